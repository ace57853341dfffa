/** Validates log events in requests (contract, section 3, log event). */
import { ActionError } from "../errors.js";
import { EVENT_MAX_BYTES } from "../limits.js";
import {
  containsInfinity,
  describeValue,
  findUnstorableCharacter,
  isObject,
  nestsDeeperThan,
} from "./describe-value.js";
import { parseOptionalId, refuseField } from "./fields.js";
import { EVENT_TYPE_MAX_CHARACTERS } from "./trigger-input.js";
import { createFlatShape, refuseUnknownFields } from "./unknown-fields.js";

const DATA_MAX_DEPTH = 100;

/** Start of the event types that the service writes about runs. Callers cannot use it: their events would look like ended runs. */
const RESERVED_TYPE_PREFIX = "app.task.";

const ID_FIELDS = ["userId", "dataSourceId", "dataSourceEntryId", "sessionId", "appNotificationId"] as const;

/** Allowed fields of a log event in a request. The second list has fields that only responses have; the service ignores them. */
const EVENT_SHAPE = createFlatShape(
  ["type", "data", ...ID_FIELDS],
  ["id", "appId", "organizationId", "requestId", "dataString", "createdAt", "updatedAt"],
);

export type ParsedLogEvent = { type: string; data: Record<string, unknown> } & Record<
  (typeof ID_FIELDS)[number],
  number | null
>;

function readEventType(value: unknown): string {
  const isText = typeof value === "string" && value !== "" && value.length <= EVENT_TYPE_MAX_CHARACTERS;
  if (!isText || findUnstorableCharacter(value) >= 0) {
    const expected = `type must be a log event type of 1 to ${EVENT_TYPE_MAX_CHARACTERS} characters`;
    throw new ActionError("REQUEST_INVALID", `${expected} (got ${describeValue(value)})`);
  }
  if (!value.startsWith(RESERVED_TYPE_PREFIX)) return value;
  throw new ActionError(
    "REQUEST_INVALID",
    `type must not begin with ${RESERVED_TYPE_PREFIX}, which is reserved for log events of the service (got ${describeValue(value)})`,
  );
}

function readEventData(value: unknown): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) refuseField("data", "an object", value);
  if (nestsDeeperThan(value, DATA_MAX_DEPTH)) {
    throw new ActionError("REQUEST_INVALID", `data must nest at most ${DATA_MAX_DEPTH} levels`);
  }
  if (containsInfinity(value))
    throw new ActionError("REQUEST_INVALID", "data must not contain a number above 1.8e308 or below -1.8e308");
  return value;
}

/** Returns the size of the event in bytes of JSON. @throws PAYLOAD_TOO_LARGE if the size exceeds EVENT_MAX_BYTES (contract, section 3) */
export function measureEventBytesWithinLimit(event: unknown, name: string): number {
  const bytes = Buffer.byteLength(JSON.stringify(event));
  if (bytes <= EVENT_MAX_BYTES) return bytes;
  const message = `${name} must be at most ${EVENT_MAX_BYTES} bytes (32 KB) of JSON (got ${bytes})`;
  throw new ActionError("PAYLOAD_TOO_LARGE", message);
}

/** Validates a log event. @throws REQUEST_INVALID with the name of the invalid field */
export function parseLogEvent(body: unknown): ParsedLogEvent {
  if (!isObject(body)) refuseField("the body", "an object", body);
  const getOwnField = (field: string) => (Object.hasOwn(body, field) ? body[field] : undefined);
  const ids = ID_FIELDS.map((field) => [field, parseOptionalId(getOwnField(field), field)]);
  const event = {
    type: readEventType(getOwnField("type")),
    data: readEventData(getOwnField("data")),
    ...Object.fromEntries(ids),
  };
  refuseUnknownFields(body, EVENT_SHAPE);
  return event;
}
