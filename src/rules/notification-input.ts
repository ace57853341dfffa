/** Validates notifications (packages, Notifications). */

import { EVENT_MAX_BYTES } from "../limits.js";
import { isObject, nestsDeeperThan, unstorableCharacterIndex } from "./described.js";
import { refuseField } from "./fields.js";
import { parseScope, type Scope } from "./scope.js";
import { flatShape, refuseUnknownFields, type Shape } from "./unknown-fields.js";

export const NOTIFICATION_STATUSES = ["draft", "published", "scheduled"] as const;
export type NotificationStatus = (typeof NOTIFICATION_STATUSES)[number];

export interface PushWish {
  payload: Record<string, unknown>;
  /** Unix time in milliseconds at which the notification is sent; null to send it at once. */
  delayUntilTimestamp: number | null;
}

/** Fields of a notification that the caller sets; others are absent. */
export interface NotificationFields {
  status?: NotificationStatus;
  data?: Record<string, unknown>;
  /** Merged into `data`. */
  extendData?: Record<string, unknown>;
  scope?: Scope | null;
  orderAt?: Date | null;
  push?: PushWish | null;
}

const NOTIFICATION_SHAPE: Shape = {
  fields: {
    ...flatShape(["status", "data", "extendData", "scope", "orderAt"]).fields,
    pushNotification: flatShape(["payload", "delayUntilTimestamp"]),
  },
  readOnly: ["id", "appId", "publishedAt", "cursor", "readStatus", "createdAt", "updatedAt"],
};

export const NOTIFICATIONS_PER_BATCH = 1_000;
/** Maximum size of the data in a push message: the limit of push services (4,096 bytes) without the overhead of encryption. */
const PUSH_MAX_BYTES = 3_000;
const DATA_MAX_DEPTH = 50;
const LATEST_MS = 8_640_000_000_000_000;

function readStorable(value: unknown, field: string, maxBytes: number): Record<string, unknown> {
  if (!isObject(value)) return refuseField(field, "an object", value);
  if (nestsDeeperThan(value, DATA_MAX_DEPTH)) refuseField(field, `at most ${DATA_MAX_DEPTH} levels deep`, value);
  const text = JSON.stringify(value);
  if (Buffer.byteLength(text) > maxBytes)
    refuseField(field, `at most ${maxBytes} bytes of JSON`, Buffer.byteLength(text));
  if (/\\u0000/.test(text) || unstorableCharacterIndex(text) >= 0 || /\\ud[89a-f]/i.test(text)) {
    refuseField(field, "without characters that cannot be stored", "one that cannot");
  }
  return value;
}

function readTime(value: unknown, field: string): Date {
  const time = typeof value === "string" ? Date.parse(value) : value;
  if (typeof time === "number" && Number.isFinite(time) && Math.abs(time) <= LATEST_MS) return new Date(time);
  return refuseField(field, "a time: ISO 8601, or Unix milliseconds", value);
}

function pushWish(value: unknown): PushWish | null {
  if (value === null) return null;
  if (!isObject(value)) return refuseField("pushNotification", "an object {payload, delayUntilTimestamp}", value);
  const payload = readStorable(value["payload"], "pushNotification.payload", PUSH_MAX_BYTES);
  const { delayUntilTimestamp: delay = null } = value;
  const at = delay === null ? null : readTime(delay, "pushNotification.delayUntilTimestamp").getTime();
  return { payload, delayUntilTimestamp: at };
}

function readTexts(data: Record<string, unknown>): Record<string, unknown> {
  for (const name of ["title", "message"]) {
    const text = data[name];
    if (text !== undefined && text !== null && typeof text !== "string") refuseField(`data.${name}`, "a text", text);
  }
  return data;
}

/** `extendData: true` merges `data` instead of replacing it. */
function dataOf({ data, extendData }: Record<string, unknown>): { data?: unknown; extendData?: unknown } {
  if (typeof extendData !== "boolean") return { data, extendData };
  return extendData ? { extendData: data } : { data };
}

/** @param path of the notification in a larger body @throws REQUEST_INVALID naming the field */
export function parseNotification(body: unknown, path = ""): NotificationFields {
  if (!isObject(body)) return refuseField("the notification", "an object", body);
  const { status, scope, orderAt, pushNotification } = body;
  const { data, extendData } = dataOf(body);
  if (status !== undefined && status !== null && !NOTIFICATION_STATUSES.some((allowed) => allowed === status)) {
    refuseField("status", NOTIFICATION_STATUSES.join(", "), status);
  }
  const isSet = (value: unknown) => value !== undefined && value !== null;
  const fields: NotificationFields = {
    ...(isSet(status) && { status: status as NotificationStatus }),
    ...(isSet(data) && { data: readTexts(readStorable(data, "data", EVENT_MAX_BYTES)) }),
    ...(isSet(extendData) && {
      extendData: readTexts(
        readStorable(extendData, body["extendData"] === true ? "data" : "extendData", EVENT_MAX_BYTES),
      ),
    }),
    ...(scope !== undefined && { scope: parseScope(scope) }),
    ...(orderAt !== undefined && { orderAt: orderAt === null ? null : readTime(orderAt, "orderAt") }),
    ...(pushNotification !== undefined && { push: pushWish(pushNotification) }),
  };
  refuseUnknownFields(body, NOTIFICATION_SHAPE, path);
  return fields;
}

/** Text that stands for all published notifications, in place of their IDs. */
export const EVERY_ONE = "all";

const MARKED_SHAPE = flatShape(["ids"]);

/** Parses which notifications to mark: `"all"` or a list of IDs. @throws REQUEST_INVALID */
export function parseMarked(value: unknown): typeof EVERY_ONE | number[] {
  const ids = isObject(value) ? value["ids"] : value;
  const isList = Array.isArray(ids) && ids.length <= NOTIFICATIONS_PER_BATCH;
  if (ids !== EVERY_ONE && !(isList && ids.every((id) => Number.isSafeInteger(id) && id > 0))) {
    return refuseField("ids", `"all" or an array of at most ${NOTIFICATIONS_PER_BATCH} ids`, ids);
  }
  refuseUnknownFields(value, MARKED_SHAPE);
  return ids as typeof EVERY_ONE | number[];
}

/** A browser's push subscription. */
export interface PushTarget {
  endpoint: string;
  p256dh: string;
  auth: string;
}

/** Shape of `PushSubscription.toJSON()`. */
export const PUSH_TARGET_SHAPE: Shape = {
  fields: { ...flatShape(["endpoint", "expirationTime"]).fields, keys: flatShape(["p256dh", "auth"]) },
};
/** Shape of a device to remove: as listed, or as the browser's own subscription. */
export const PUSH_DEVICE_SHAPE = flatShape(["endpoint", "id"], ["host", "createdAt", "keys", "expirationTime"]);

const ENDPOINT_MAX = 2_000;
const KEY_BYTES = 65;
const AUTH_BYTES = 16;

function keyOf(value: unknown, field: string, bytes: number): string {
  const isValid = typeof value === "string" && /^[A-Za-z0-9_-]{1,100}={0,2}$/.test(value);
  if (isValid && Buffer.from(value, "base64url").length === bytes) return value.replaceAll("=", "");
  return refuseField(field, `${bytes} bytes in base64url`, typeof value);
}

/** Parses `PushSubscription.toJSON()`. @param allowHttp true if plain http is allowed @throws ActionError REQUEST_INVALID */
export function parsePushTarget(body: unknown, allowHttp: boolean): PushTarget {
  if (!isObject(body)) return refuseField("the subscription", "an object {endpoint, keys}", body);
  const { endpoint, keys, expirationTime = null } = body;
  if (expirationTime !== null && !(typeof expirationTime === "number" && expirationTime >= 0)) {
    refuseField("expirationTime", "a time in milliseconds or null", expirationTime);
  }
  const url = typeof endpoint === "string" && endpoint.length <= ENDPOINT_MAX ? URL.parse(endpoint) : null;
  const isWeb = url?.protocol === "https:" || (allowHttp && url?.protocol === "http:");
  if (!url || !isWeb || url.username !== "" || url.password !== "")
    refuseField("endpoint", "an https address", endpoint);
  const input = isObject(keys) ? keys : {};
  return {
    endpoint: url!.href,
    p256dh: keyOf(input["p256dh"], "keys.p256dh", KEY_BYTES),
    auth: keyOf(input["auth"], "keys.auth", AUTH_BYTES),
  };
}
