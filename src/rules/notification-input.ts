/** Validates notifications in requests (specification of packages, Notifications). */

import { ActionError } from "../errors.js";
import { EVENT_MAX_BYTES } from "../limits.js";
import { isCalendarDay } from "./csv-types.js";
import { describeType, findUnstorableCharacter, isObject, nestsDeeperThan } from "./describe-value.js";
import { refuseField, UNSTORABLE_TEXT_FAULT } from "./fields.js";
import { type NotificationScope, parseNotificationScope } from "./notification-scope.js";
import { createFlatShape, refuseUnknownFields, type Shape } from "./unknown-fields.js";

export const NOTIFICATION_STATUSES = ["draft", "published", "scheduled"] as const;
export type NotificationStatus = (typeof NOTIFICATION_STATUSES)[number];

export interface PushMessageOptions {
  payload: Record<string, unknown>;
  /** Unix time in milliseconds at which the service sends the push message; null to send it at once. */
  delayUntilTimestamp: number | null;
}

/** Fields of a notification that a request sets. Fields that the request omits are absent. */
export interface NotificationFields {
  status?: NotificationStatus;
  data?: Record<string, unknown>;
  /** Properties to add to the notification's stored `data`, whose other properties stay unchanged. */
  extendData?: Record<string, unknown>;
  scope?: NotificationScope | null;
  orderAt?: Date | null;
  push?: PushMessageOptions | null;
}

const NOTIFICATION_SHAPE: Shape = {
  fields: {
    ...createFlatShape(["status", "data", "extendData", "scope", "orderAt"]).fields,
    pushNotification: createFlatShape(["payload", "delayUntilTimestamp"]),
  },
  readOnly: ["id", "appId", "publishedAt", "cursor", "readStatus", "createdAt", "updatedAt"],
};

export const NOTIFICATIONS_PER_BATCH_MAX = 1_000;
/** Maximum size in bytes of a push message's data. Encryption makes the data larger, and push services accept at most 4,096 bytes. */
const PUSH_MAX_BYTES = 3_000;
const DATA_MAX_DEPTH = 50;
/** Matches the day at the beginning of an ISO 8601 text. */
const ISO_DAY_PATTERN = /^\d{4}-\d\d-\d\d/;
const TIME_MAX_MS = 8_640_000_000_000_000;

function readStorableObject(value: unknown, field: string, maxBytes: number): Record<string, unknown> {
  if (!isObject(value)) return refuseField(field, "an object", value);
  if (nestsDeeperThan(value, DATA_MAX_DEPTH))
    refuseField(field, `an object with at most ${DATA_MAX_DEPTH} levels`, value);
  const text = JSON.stringify(value);
  if (Buffer.byteLength(text) > maxBytes)
    refuseField(field, `at most ${maxBytes} bytes of JSON`, Buffer.byteLength(text));
  if (/\\u0000/.test(text) || findUnstorableCharacter(text) >= 0 || /\\ud[89a-f]/i.test(text)) {
    throw new ActionError("REQUEST_INVALID", `${field} ${UNSTORABLE_TEXT_FAULT}`);
  }
  return value;
}

function readTime(value: unknown, field: string): Date {
  const day = typeof value === "string" ? ISO_DAY_PATTERN.exec(value)?.[0] : undefined;
  const isRealDay = day === undefined || isCalendarDay(day);
  const time = typeof value !== "string" ? value : isRealDay ? Date.parse(value) : Number.NaN;
  if (typeof time === "number" && Number.isFinite(time) && Math.abs(time) <= TIME_MAX_MS) return new Date(time);
  return refuseField(field, "a time as ISO 8601 text or as a Unix time in milliseconds", value);
}

function parsePushRequest(value: unknown): PushMessageOptions | null {
  if (value === null) return null;
  if (!isObject(value)) return refuseField("pushNotification", "an object {payload, delayUntilTimestamp}", value);
  const payload = readStorableObject(value["payload"], "pushNotification.payload", PUSH_MAX_BYTES);
  const { delayUntilTimestamp: delay = null } = value;
  const at = delay === null ? null : readTime(delay, "pushNotification.delayUntilTimestamp").getTime();
  return { payload, delayUntilTimestamp: at };
}

function checkTitleAndMessage(data: Record<string, unknown>): Record<string, unknown> {
  for (const name of ["title", "message"]) {
    const text = data[name];
    if (text !== undefined && text !== null && typeof text !== "string") refuseField(`data.${name}`, "a text", text);
  }
  return data;
}

/**
 * Returns `data`, which replaces the stored data, or `extendData`, which the service merges into it. In a request, `extendData` can also be
 * a boolean: true means that `data` has the properties to merge.
 */
function readDataFields({ data, extendData }: Record<string, unknown>): { data?: unknown; extendData?: unknown } {
  if (typeof extendData !== "boolean") return { data, extendData };
  return extendData ? { extendData: data } : { data };
}

/**
 * Validates a notification in a request, and returns its fields.
 * @param path path of the notification in the request's body
 * @throws REQUEST_INVALID with the path of the invalid field
 */
export function parseNotification(body: unknown, path = ""): NotificationFields {
  if (!isObject(body)) return refuseField("the notification", "an object", body);
  const { status, scope, orderAt, pushNotification } = body;
  const { data, extendData } = readDataFields(body);
  if (status !== undefined && status !== null && !NOTIFICATION_STATUSES.some((allowed) => allowed === status)) {
    refuseField("status", `one of ${NOTIFICATION_STATUSES.join(", ")}`, status);
  }
  const isSet = (value: unknown) => value !== undefined && value !== null;
  const fields: NotificationFields = {
    ...(isSet(status) && { status: status as NotificationStatus }),
    ...(isSet(data) && { data: checkTitleAndMessage(readStorableObject(data, "data", EVENT_MAX_BYTES)) }),
    ...(isSet(extendData) && {
      extendData: checkTitleAndMessage(
        readStorableObject(extendData, body["extendData"] === true ? "data" : "extendData", EVENT_MAX_BYTES),
      ),
    }),
    ...(scope !== undefined && { scope: parseNotificationScope(scope) }),
    ...(orderAt !== undefined && { orderAt: orderAt === null ? null : readTime(orderAt, "orderAt") }),
    ...(pushNotification !== undefined && { push: parsePushRequest(pushNotification) }),
  };
  refuseUnknownFields(body, NOTIFICATION_SHAPE, path);
  return fields;
}

export const ALL_NOTIFICATIONS = "all";

const READ_STATUS_SHAPE = createFlatShape(["ids"]);

/** Parses the IDs of notifications to mark as read or unread, or "all". @throws REQUEST_INVALID */
export function parseReadStatusNotificationIds(value: unknown): typeof ALL_NOTIFICATIONS | number[] {
  const ids = isObject(value) ? value["ids"] : value;
  if (ids !== ALL_NOTIFICATIONS) {
    if (!Array.isArray(ids) || ids.length > NOTIFICATIONS_PER_BATCH_MAX)
      return refuseField("ids", `"all" or an array of at most ${NOTIFICATIONS_PER_BATCH_MAX} notification IDs`, ids);
    const invalidIndex = ids.findIndex((id) => !(Number.isSafeInteger(id) && id > 0));
    if (invalidIndex >= 0)
      return refuseField(
        `ids[${invalidIndex}]`,
        "the ID of a notification, a positive whole number",
        ids[invalidIndex],
      );
  }
  refuseUnknownFields(value, READ_STATUS_SHAPE);
  return ids;
}

/** Web Push subscription of a browser: the URL to which push messages are sent, and the keys for their encryption. */
export interface PushTarget {
  endpoint: string;
  p256dh: string;
  auth: string;
}

export const PUSH_TARGET_SHAPE: Shape = {
  fields: { ...createFlatShape(["endpoint", "expirationTime"]).fields, keys: createFlatShape(["p256dh", "auth"]) },
};
/** Allowed fields of a request that removes a device. A page can send a device from a response, or the browser's push subscription. */
export const PUSH_DEVICE_SHAPE = createFlatShape(["endpoint", "id"], ["host", "createdAt", "keys", "expirationTime"]);

const ENDPOINT_MAX_CHARACTERS = 2_000;
const P256DH_BYTES = 65;
const AUTH_BYTES = 16;

function readKey(value: unknown, field: string, bytes: number): string {
  const isValid = typeof value === "string" && /^[A-Za-z0-9_-]{1,100}={0,2}$/.test(value);
  if (isValid && Buffer.from(value, "base64url").length === bytes) return value.replaceAll("=", "");
  // The message contains only the type of the value, because the value is secret.
  throw new ActionError("REQUEST_INVALID", `${field} must be ${bytes} bytes in base64url (got ${describeType(value)})`);
}

/** Returns an endpoint without its fragment. Requests contain no fragment, so endpoints with different fragments are the same device. */
export function normalizePushEndpoint(endpoint: URL): string {
  const url = new URL(endpoint);
  url.hash = "";
  return url.href;
}

/** Validates a push subscription, as `PushSubscription.toJSON()` returns it in a browser. @throws ActionError REQUEST_INVALID */
export function parsePushTarget(body: unknown, allowHttp: boolean): PushTarget {
  if (!isObject(body)) return refuseField("the subscription", "an object {endpoint, keys}", body);
  const { endpoint, keys, expirationTime = null } = body;
  if (expirationTime !== null && !(typeof expirationTime === "number" && expirationTime >= 0)) {
    refuseField("expirationTime", "a Unix time in milliseconds, or null", expirationTime);
  }
  const url = typeof endpoint === "string" && endpoint.length <= ENDPOINT_MAX_CHARACTERS ? URL.parse(endpoint) : null;
  const hasAllowedProtocol = url?.protocol === "https:" || (allowHttp && url?.protocol === "http:");
  if (!url || !hasAllowedProtocol || url.username !== "" || url.password !== "")
    refuseField("endpoint", "an https URL", endpoint);
  const input = isObject(keys) ? keys : {};
  return {
    endpoint: normalizePushEndpoint(url!),
    p256dh: readKey(input["p256dh"], "keys.p256dh", P256DH_BYTES),
    auth: readKey(input["auth"], "keys.auth", AUTH_BYTES),
  };
}
