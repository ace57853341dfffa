/**
 * Operations on an app's notifications. Back ends write and schedule them; users read them. Each write has an audit
 * entry. Each published notification has a cursor from which streams can resume.
 */

import type { DataSource, EntityManager } from "typeorm";
import { rows } from "../../data/database.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError } from "../../errors.js";
import { CLIENT_REQUESTS_PER_CREDENTIAL, EVENT_MAX_BYTES, RATE_WINDOW_MS } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { rateLimitKeyOf } from "../../rules/address-block.js";
import { describeValue } from "../../rules/described.js";
import { refuseField } from "../../rules/fields.js";
import {
  ALL_NOTIFICATIONS,
  NOTIFICATION_STATUSES,
  NOTIFICATIONS_PER_BATCH,
  type NotificationFields,
  type NotificationStatus,
  parseMarkedIds,
  parseNotification,
} from "../../rules/notification-input.js";
import { parsePageLimits, type ReserveBytes, type SizedRow, selectIdsThatFit } from "../../rules/page.js";
import { type ExpectedTags, requireExpectedVersion } from "../../rules/precondition.js";
import { isUserInScope } from "../../rules/scope.js";
import { recordChange } from "../records/audit.js";
import type { IntakeLimiter } from "../records/intake.js";
import {
  insertNotification,
  type Notification,
  newestPublished,
  publishNotification,
  readNotifications,
  withdrawNotification,
  writeNotification,
} from "./notification-rows.js";
import type { NotificationReader, ReaderOf } from "./reader.js";

/** Only this many of the newest notifications are checked for an app user. */
const OWN_MAX = 1_000;
/** Number of notifications that are published in one batch. */
const NOTIFICATIONS_PER_PASS = 100;

const DUE = `SELECT id, app_id AS "appId" FROM notification WHERE status = 'scheduled' AND order_at <= $1
              ORDER BY order_at LIMIT ${NOTIFICATIONS_PER_PASS}`;
const SELECT_NEXT_SCHEDULED = "SELECT min(order_at) AS next FROM notification WHERE status = 'scheduled'";

const MARK_READ = `
  INSERT INTO notification_read (notification_id, reader)
  SELECT id, $2 FROM notification WHERE app_id = $1 AND id = ANY ($3::bigint[]) AND cursor IS NOT NULL
  ON CONFLICT DO NOTHING RETURNING notification_id`;
const MARK_ALL = `
  INSERT INTO notification_read_all (app_id, reader, cursor)
  SELECT $1, $2, coalesce(max(cursor), 0) FROM notification WHERE app_id = $1
  ON CONFLICT (app_id, reader) DO UPDATE SET cursor = excluded.cursor, read_at = now()`;

/** The notification to change, and the ETags that the request accepts (`If-Match`). */
export interface NotificationTarget {
  appId: number;
  id: number;
  precondition?: ExpectedTags;
}

const COUNT = "SELECT count(*)::int AS total FROM notification WHERE app_id = $1 AND ($2::text IS NULL OR status = $2)";

export interface NotificationPage {
  entries: Notification[];
  /** `total` counts the notifications that the caller can read. */
  pagination: { total: number; hasMore: boolean };
}

const paginationOf = (total: number, end: number) => ({ total, hasMore: end < total });

export type NotificationsService = ReturnType<typeof createNotificationsService>;

export function createNotificationsService(options: {
  db: DataSource;
  readerOf: ReaderOf;
  intake: IntakeLimiter;
  now: () => number;
}) {
  const { db, readerOf, intake, now } = options;
  const requestBucket = createTokenBucket({ limit: CLIENT_REQUESTS_PER_CREDENTIAL, windowMs: RATE_WINDOW_MS });

  async function readNotification(
    executor: EntityManager | DataSource,
    appId: number,
    id: number,
    reader: string,
  ): Promise<Notification> {
    const notificationRows = await readNotifications(executor, {
      appId,
      reader,
      where: "notification.id = $3",
      tail: "",
      values: [id],
    });
    if (!notificationRows[0]) throw new ActionError("NOTIFICATION_NOT_FOUND");
    return notificationRows[0];
  }

  /** Locks the notification until the transaction ends. @throws NOTIFICATION_NOT_FOUND, RESOURCE_CHANGED */
  async function lockNotification(
    manager: EntityManager,
    { appId, id, precondition }: NotificationTarget,
    reader: string,
  ): Promise<Notification> {
    await rows(manager, "SELECT FROM notification WHERE app_id = $1 AND id = $2 FOR NO KEY UPDATE", [appId, id]);
    const before = await readNotification(manager, appId, id, reader);
    requireExpectedVersion(before, precondition);
    return before;
  }

  /** Changes a draft to the requested status. @throws ActionError REQUEST_INVALID */
  async function applyStatus(
    manager: EntityManager,
    appId: number,
    id: number,
    status: NotificationStatus,
    orderAt: Date | null,
  ): Promise<void> {
    if (status === "scheduled" && orderAt === null) {
      throw new ActionError("REQUEST_INVALID", "orderAt is required for a scheduled notification");
    }
    if (status === "published") await publishNotification(manager, appId, id, "draft", new Date(now()));
    if (status === "scheduled") await withdrawNotification(manager, id, status);
  }

  async function insert(manager: EntityManager, appId: number, fields: NotificationFields): Promise<number> {
    const { data = {}, extendData = {}, scope = null, orderAt = null, push = null } = fields;
    const id = await insertNotification(manager, appId, {
      data: { ...data, ...extendData },
      scope,
      orderAt,
      push,
    });
    await applyStatus(manager, appId, id, fields.status ?? "draft", orderAt);
    return id;
  }

  async function insertAll(
    caller: Caller,
    appId: number,
    bodies: readonly unknown[],
    pathOf: (index: number) => string,
  ): Promise<Notification[]> {
    const all = bodies.map((body, index) => parseNotification(body, pathOf(index)));
    intake.takeRows(caller, appId, Buffer.byteLength(JSON.stringify(bodies)), all.length);
    const { key } = await readerOf(caller, appId);
    const ids = await db.transaction(async (manager) => {
      const insertedIds: number[] = [];
      for (const fields of all) insertedIds.push(await insert(manager, appId, fields));
      await recordChange(manager, caller, {
        appId,
        type: "app.notification.create",
        data: { ids: insertedIds.slice(0, 100), count: insertedIds.length },
      });
      return insertedIds;
    });
    const where = "notification.id = ANY ($3::bigint[])";
    return readNotifications(db, { appId, reader: key, where, tail: "ORDER BY notification.id", values: [ids] });
  }

  /** Returns the newest published notifications that the reader may read. */
  async function listNotifications(
    appId: number,
    { key, user }: NotificationReader,
  ): Promise<Pick<Notification, "id" | "readStatus">[]> {
    return (await newestPublished(db, appId, key, OWN_MAX)).filter(({ scope }) => isUserInScope(scope, user));
  }

  /** Returns the reader; rejects a visitor that sends too many requests. @throws RATE_LIMIT_EXCEEDED */
  async function enterReader(caller: Caller, appId: number): Promise<NotificationReader> {
    const reader = await readerOf(caller, appId);
    const retryAfter = reader.seesAll ? 0 : requestBucket.takeTokens(rateLimitKeyOf(caller));
    if (retryAfter > 0)
      throw new ActionError("RATE_LIMIT_EXCEEDED", "too many requests from this client", { retryAfter });
    return reader;
  }

  /** Returns the first of the notifications with these IDs, as many as `reserve` has memory for. */
  async function pageOfReader(
    appId: number,
    { key }: NotificationReader,
    ids: readonly number[],
    reserve: ReserveBytes,
  ): Promise<Notification[]> {
    const notificationSizes = await rows<SizedRow>(
      db,
      "SELECT id, bytes FROM notification WHERE id = ANY ($1::bigint[]) ORDER BY cursor DESC",
      [ids],
    );
    const [where, tail] = ["notification.id = ANY ($3::bigint[])", "ORDER BY notification.cursor DESC"];
    return readNotifications(db, {
      appId,
      reader: key,
      where,
      tail,
      values: [await selectIdsThatFit(notificationSizes, reserve)],
    });
  }

  return {
    /** @throws REQUEST_INVALID, RATE_LIMIT_EXCEEDED, OVERLOADED */
    async insert(caller: Caller, appId: number, body: unknown): Promise<Notification> {
      return (await insertAll(caller, appId, [body], () => ""))[0]!;
    },

    /** Inserts all notifications of a request, or none if one is invalid. @throws as `insert` */
    async insertAll(caller: Caller, appId: number, body: unknown): Promise<Notification[]> {
      if (!Array.isArray(body) || body.length === 0 || body.length > NOTIFICATIONS_PER_BATCH) {
        const message = `the batch must be an array of 1 to ${NOTIFICATIONS_PER_BATCH} notifications (got ${describeValue(body)})`;
        throw new ActionError("REQUEST_INVALID", message);
      }
      return insertAll(caller, appId, body, (index) => `[${index}]`);
    },

    /**
     * Changes the fields that are passed; `extendData` is merged into `data`.
     * @throws REQUEST_INVALID, NOTIFICATION_NOT_FOUND, RESOURCE_CHANGED
     */
    async update(caller: Caller, target: NotificationTarget, body: unknown): Promise<Notification> {
      const { appId, id } = target;
      const fields = parseNotification(body);
      intake.takeRows(caller, appId, Buffer.byteLength(JSON.stringify(body)));
      const { key } = await readerOf(caller, appId);
      await db.transaction(async (manager) => {
        const before = await lockNotification(manager, target, key);
        const orderAt = fields.orderAt === undefined ? before.orderAt && new Date(before.orderAt) : fields.orderAt;
        const data = { ...(fields.data ?? before.data), ...fields.extendData };
        if (Buffer.byteLength(JSON.stringify(data)) > EVENT_MAX_BYTES) {
          throw new ActionError(
            "REQUEST_INVALID",
            `data and extendData together must be at most ${EVENT_MAX_BYTES} bytes of JSON`,
          );
        }
        const scope = fields.scope === undefined ? before.scope : fields.scope;
        const push = fields.push === undefined ? before.pushNotification : fields.push;
        const { status = before.status } = fields;
        // A notification that stays published keeps its cursor. Any other notification first becomes a draft.
        const staysPublished = status === "published" && before.status === status;
        if (!staysPublished) await withdrawNotification(manager, id, "draft");
        await writeNotification(manager, id, { data, scope, orderAt: orderAt || null, push });
        if (!staysPublished) await applyStatus(manager, appId, id, status, orderAt || null);
        await recordChange(manager, caller, {
          appId,
          type: "app.notification.update",
          data: { id, fields: Object.keys(fields) },
        });
      });
      return readNotification(db, appId, id, key);
    },

    /** @throws NOTIFICATION_NOT_FOUND, RESOURCE_CHANGED */
    async remove(caller: Caller, target: NotificationTarget): Promise<void> {
      const { appId, id } = target;
      const { key } = await readerOf(caller, appId);
      await db.transaction(async (manager) => {
        await lockNotification(manager, target, key);
        await rows(manager, "DELETE FROM notification WHERE app_id = $1 AND id = $2", [appId, id]);
        await recordChange(manager, caller, { appId, type: "app.notification.delete", data: { id } });
      });
    },

    /**
     * Lists notifications, the newest first: all of them for the app's backend, those with a matching scope for an app
     * user.
     * @throws ActionError REQUEST_INVALID
     */
    async list(
      caller: Caller,
      appId: number,
      query: { status?: unknown; limit?: unknown; offset?: unknown },
      reserve: ReserveBytes = async () => undefined,
    ): Promise<NotificationPage> {
      const { limit, offset } = parsePageLimits(query);
      const { status = null } = query;
      if (status !== null && !NOTIFICATION_STATUSES.some((allowed) => allowed === status)) {
        refuseField("status", `one of ${NOTIFICATION_STATUSES.join(", ")}`, status);
      }
      const reader = await enterReader(caller, appId);
      if (!reader.seesAll) {
        const all = status === null || status === "published" ? await listNotifications(appId, reader) : [];
        const ids = all.slice(offset, offset + limit).map(({ id }) => id);
        const entries = await pageOfReader(appId, reader, ids, reserve);
        return { entries, pagination: paginationOf(all.length, offset + entries.length) };
      }
      const sql = `SELECT id, bytes FROM notification WHERE app_id = $1 AND ($2::text IS NULL OR status = $2)
                    ORDER BY id DESC LIMIT $3 OFFSET $4`;
      const ids = await selectIdsThatFit(await rows<SizedRow>(db, sql, [appId, status, limit, offset]), reserve);
      const [where, tail] = ["notification.id = ANY ($3::bigint[])", "ORDER BY notification.id DESC"];
      const entries = await readNotifications(db, { appId, reader: reader.key, where, tail, values: [ids] });
      const [count] = await rows<{ total: number }>(db, COUNT, [appId, status]);
      return { entries, pagination: paginationOf(count!.total, offset + entries.length) };
    },

    /**
     * Marks the listed notifications as read, or all published ones.
     * @throws ActionError REQUEST_INVALID, RATE_LIMIT_EXCEEDED
     */
    async markRead(caller: Caller, appId: number, body: unknown): Promise<{ count: number }> {
      const ids = parseMarkedIds(body);
      const reader = await enterReader(caller, appId);
      const byId = new Map(
        (await listNotifications(appId, reader)).map((notification) => [notification.id, notification]),
      );
      const unreadNotifications = [...byId.values()].filter(({ readStatus }) => !readStatus);
      if (ids === ALL_NOTIFICATIONS) {
        intake.takeRows(caller, appId, 0, 1);
        await db.query(MARK_ALL, [appId, reader.key]);
        return { count: unreadNotifications.length };
      }
      const markedIds = ids.filter((id) => byId.has(id) && !byId.get(id)!.readStatus);
      intake.takeRows(caller, appId, 0, markedIds.length);
      return { count: (await rows(db, MARK_READ, [appId, reader.key, markedIds])).length };
    },

    /** Returns the number of unread notifications among the caller's newest 1,000. */
    async countUnread(caller: Caller, appId: number): Promise<{ count: number }> {
      const all = await listNotifications(appId, await enterReader(caller, appId));
      return { count: all.filter(({ readStatus }) => !readStatus).length };
    },

    /** Publishes due notifications. Returns the Unix time in milliseconds of the next due notification, or null. */
    async publishDue(): Promise<number | null> {
      const moment = new Date(now());
      const dueRows = await rows<{ id: number; appId: number }>(db, DUE, [moment]);
      for (const { id, appId } of dueRows)
        await db.transaction((manager) => publishNotification(manager, appId, id, "scheduled", moment));
      const [row] = await rows<{ next: Date | null }>(db, SELECT_NEXT_SCHEDULED);
      return row!.next?.getTime() ?? null;
    },
  };
}
