/**
 * Stores the devices that have subscribed to push messages of an app. A device belongs to the user who is signed in to its page. After the
 * page's session has ended, the device gets only notifications for everyone (without a scope).
 */
import { isIP } from "node:net";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { PUSH_SUBSCRIPTIONS_PER_USER_MAX, VISITOR_PUSH_SUBSCRIPTIONS_PER_APP_MAX } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { describeValue, isObject } from "../../rules/describe-value.js";
import {
  normalizePushEndpoint,
  PUSH_DEVICE_SHAPE,
  PUSH_TARGET_SHAPE,
  parsePushTarget,
} from "../../rules/notification-input.js";
import { refuseUnknownFields } from "../../rules/unknown-fields.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { type FindNotificationReader, IS_VISITOR_READER_SQL, type NotificationReader } from "./reader.js";
import type { ReadOrCreateVapidKeys } from "./vapid-keys.js";

/** A device in API responses. The device's endpoint URL is secret, because everyone who has it can send messages to the device. */
export interface PushDevice {
  id: number;
  /** Host name of the device's push service. */
  host: string;
  createdAt: string;
}

/** Maximum number of visitors' devices per network address. It equals the maximum of sessions, because many people can share an address. */
export const VISITOR_PUSH_SUBSCRIPTIONS_PER_ADDRESS_MAX = 1_000;

/**
 * Stores a device, or replaces the row with the same endpoint. Copies `visitor_block`, because the credential can be deleted before the
 * device.
 */
const SAVE_SUBSCRIPTION = `
  INSERT INTO push_subscription (app_id, reader, credential_id, endpoint, p256dh, auth, visitor_block)
  VALUES ($1, $2, $3, $4, $5, $6, (SELECT visitor_block FROM credential WHERE id = $3))
  ON CONFLICT (app_id, endpoint) DO UPDATE SET reader = excluded.reader, credential_id = excluded.credential_id,
     p256dh = excluded.p256dh, auth = excluded.auth, visitor_block = excluded.visitor_block
  RETURNING id`;

/** Returns SQL that deletes the devices in `selection`, except locked ones, so that two transactions cannot deadlock. */
const createDeleteSql = (selection: string) => `
  DELETE FROM push_subscription WHERE id IN (
    SELECT id FROM push_subscription WHERE id IN (${selection}) ORDER BY id FOR UPDATE SKIP LOCKED)`;

/* Statements that delete an app's oldest devices above a maximum, but never the new device $2, which can have an old ID. */
const DELETE_OLDEST_OF_READER = createDeleteSql(`
  SELECT id FROM push_subscription WHERE app_id = $1 AND reader = $3
   ORDER BY id = $2 DESC, id DESC OFFSET ${PUSH_SUBSCRIPTIONS_PER_USER_MAX}`);
const DELETE_OLDEST_OF_ADDRESS = createDeleteSql(`
  SELECT id FROM push_subscription WHERE app_id = $1 AND ${IS_VISITOR_READER_SQL}
     AND visitor_block = (SELECT visitor_block FROM push_subscription WHERE id = $2)
   ORDER BY id = $2 DESC, id DESC OFFSET ${VISITOR_PUSH_SUBSCRIPTIONS_PER_ADDRESS_MAX}`);
const DELETE_OLDEST_OF_VISITORS = createDeleteSql(`
  SELECT id FROM (SELECT id FROM push_subscription WHERE app_id = $1 AND ${IS_VISITOR_READER_SQL}
                   ORDER BY id DESC OFFSET ${VISITOR_PUSH_SUBSCRIPTIONS_PER_APP_MAX}) AS oldest WHERE id <> $2`);

interface PushSubscriptionsOptions {
  db: Db;
  findReader: FindNotificationReader;
  readVapidKeys: ReadOrCreateVapidKeys;
  receivedDataLimiter: ReceivedDataLimiter;
  /** True if the network rules allow connections from the service to this IP address. */
  mayConnectTo: (address: string) => boolean;
  allowHttp: boolean;
}

/**
 * Deletes the reader's oldest devices above the maximum per reader. For a visitor, also applies the maximums of visitors' devices per
 * address and per app. Never deletes the device `keptId`.
 */
async function deleteOldestAboveMaximum(
  manager: SqlClient,
  appId: number,
  { key, isVisitor }: NotificationReader,
  keptId: number,
): Promise<void> {
  await rows(manager, DELETE_OLDEST_OF_READER, [appId, keptId, key]);
  if (!isVisitor) return;
  await rows(manager, DELETE_OLDEST_OF_ADDRESS, [appId, keptId]);
  await rows(manager, DELETE_OLDEST_OF_VISITORS, [appId, keptId]);
}

export class PushSubscriptions {
  constructor(private readonly options: PushSubscriptionsOptions) {}

  /** Returns the public VAPID key, which a browser needs to subscribe, and the caller's subscribed devices. */
  async list(caller: Caller, appId: number): Promise<{ publicKey: string; subscriptions: PushDevice[] }> {
    const { db, findReader, readVapidKeys } = this.options;
    const { key } = await findReader(caller, appId);
    const { publicKey } = await readVapidKeys(appId);
    const sql = `SELECT id, endpoint, created_at AS "createdAt" FROM push_subscription
                    WHERE app_id = $1 AND reader = $2 ORDER BY id`;
    const subscriptionRows = await rows<{ id: number; endpoint: string; createdAt: Date }>(db, sql, [appId, key]);
    const subscriptions = subscriptionRows.map(({ id, endpoint, createdAt }) => {
      return { id, host: new URL(endpoint).host, createdAt: createdAt.toISOString() };
    });
    return { publicKey, subscriptions };
  }

  /**
   * Stores a device of the caller, and deletes older devices above the maximums.
   * @throws REQUEST_INVALID, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async add(caller: Caller, appId: number, body: unknown): Promise<{ id: number }> {
    const { db, findReader, receivedDataLimiter, mayConnectTo, allowHttp } = this.options;
    const { endpoint, p256dh, auth } = parsePushTarget(body, allowHttp);
    const host = new URL(endpoint).hostname.replace(/^\[|\]$/g, "");
    // Checks only IP addresses. A host name is resolved and checked when a push message is sent.
    if (isIP(host) !== 0 && !mayConnectTo(host)) {
      throw new ActionError("REQUEST_INVALID", "endpoint must be the URL of a public host");
    }
    refuseUnknownFields(body, PUSH_TARGET_SHAPE);
    receivedDataLimiter.countRows(caller, appId, endpoint.length);
    const reader = await findReader(caller, appId);
    return db.transaction(async (manager) => {
      const values = [appId, reader.key, caller.credentialId, endpoint, p256dh, auth];
      const [row] = await rows<{ id: number }>(manager, SAVE_SUBSCRIPTION, values);
      await deleteOldestAboveMaximum(manager, appId, reader, row!.id);
      return row!;
    });
  }

  /** Assigns the devices of a page to the user who is now signed in to the page. Then this user can list and remove the devices. */
  async assignToCurrentUser(caller: Caller, appId: number): Promise<void> {
    const { db, findReader } = this.options;
    const reader = await findReader(caller, appId);
    const sql =
      "UPDATE push_subscription SET reader = $3 WHERE app_id = $1 AND credential_id = $2 AND reader <> $3 RETURNING id";
    await db.transaction(async (manager) => {
      const assigned = await rows<{ id: number }>(manager, sql, [appId, caller.credentialId, reader.key]);
      if (assigned.length > 0) await deleteOldestAboveMaximum(manager, appId, reader, assigned[0]!.id);
    });
  }

  /**
   * Removes a device of the caller, selected by `endpoint` or `id`. Returns the number of removed devices.
   * @throws ActionError REQUEST_INVALID
   */
  async remove(caller: Caller, appId: number, body: unknown): Promise<{ count: number }> {
    const { db, findReader } = this.options;
    const { endpoint = null, id = null } = isObject(body) ? body : {};
    if (typeof endpoint !== "string" && !Number.isSafeInteger(id)) {
      throw new ActionError("REQUEST_INVALID", `endpoint or id is required (got ${describeValue(body)})`);
    }
    refuseUnknownFields(body, PUSH_DEVICE_SHAPE);
    const { key } = await findReader(caller, appId);
    const url = typeof endpoint === "string" ? URL.parse(endpoint) : null;
    const endpoints = url ? [endpoint, normalizePushEndpoint(url)] : [endpoint];
    const sql = `DELETE FROM push_subscription WHERE app_id = $1 AND reader = $2 AND (endpoint = ANY ($3) OR id = $4) RETURNING id`;
    return { count: (await rows(db, sql, [appId, key, endpoints, id])).length };
  }
}
