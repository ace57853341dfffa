/** Operations on an app's notifications: back ends write and schedule them, and users list them and mark them as read. */

import type { EntityManager } from "typeorm";
import { type Db, rows } from "../../data/database.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import { CLIENT_REPORTS_PER_CREDENTIAL_AND_MINUTE, EVENT_MAX_BYTES, RATE_WINDOW_MS } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { getRateLimitKey } from "../../rules/address-block.js";
import { describeValue } from "../../rules/describe-value.js";
import { parseWithErrorPrefix, refuseField } from "../../rules/fields.js";
import {
  ALL_NOTIFICATIONS,
  NOTIFICATION_STATUSES,
  NOTIFICATIONS_PER_BATCH_MAX,
  type NotificationFields,
  type NotificationStatus,
  parseNotification,
  parseReadStatusNotificationIds,
} from "../../rules/notification-input.js";
import { isUserInScope } from "../../rules/notification-scope.js";
import {
  parseLimitAndOffset,
  type ReserveResponseBytes,
  type SizedRow,
  selectIdsThatFitOnPage,
} from "../../rules/page.js";
import { type ExpectedVersions, requireExpectedVersion } from "../../rules/precondition.js";
import { recordChange } from "../records/audit.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import {
  insertNotification,
  type ListedNotification,
  type Notification,
  type NotificationSearchBatch,
  publishNotification,
  readNotifications,
  searchNewestNotifications,
  updateNotificationRow,
  withdrawNotification,
} from "./notification-rows.js";
import type { FindNotificationReader, NotificationReader } from "./reader.js";

/** Maximum number of notifications that a search for a user returns: the newest that the user can read. */
const LISTED_NOTIFICATIONS_MAX = 1_000;
const NOTIFICATIONS_PER_QUERY = 1_000;
/** A search for a user's notifications starts no further query after it has read this many `where` objects in scopes. */
const COMPARED_ALTERNATIVES_MAX = 20_000;
/** A search for a user's notifications starts no further query after this process has evaluated the scopes of this many notifications. */
const CHECKED_NOTIFICATIONS_MAX = 10_000;
const PUBLISH_BATCH_SIZE = 100;

const SELECT_DUE_NOTIFICATIONS = `SELECT id, app_id AS "appId" FROM notification WHERE status = 'scheduled' AND order_at <= $1
              ORDER BY order_at LIMIT ${PUBLISH_BATCH_SIZE}`;
const SELECT_NEXT_SCHEDULED = "SELECT min(order_at) AS next FROM notification WHERE status = 'scheduled'";

const MARK_READ = `
  INSERT INTO notification_read (notification_id, reader)
  SELECT id, $2 FROM notification WHERE app_id = $1 AND id = ANY ($3::bigint[]) AND cursor IS NOT NULL
  ON CONFLICT DO NOTHING RETURNING notification_id`;
const MARK_ALL_READ = `
  INSERT INTO notification_read_all (app_id, reader, cursor)
  SELECT $1, $2, coalesce(max(cursor), 0) FROM notification WHERE app_id = $1
  ON CONFLICT (app_id, reader) DO UPDATE SET cursor = excluded.cursor, read_at = now()`;

/** The notification that a request changes. `precondition` lists the ETags that the request accepts (`If-Match`). */
export interface NotificationChangeTarget {
  appId: number;
  id: number;
  precondition?: ExpectedVersions;
}

const COUNT_NOTIFICATIONS =
  "SELECT count(*)::int AS total FROM notification WHERE app_id = $1 AND ($2::text IS NULL OR status = $2)";

export interface NotificationPage {
  entries: Notification[];
  /**
   * `total` is the number of matching notifications that the caller can read. If the search for them ended at a limit, `totalIsExact` is
   * false, and older ones are missing.
   */
  pagination: { total: number; hasMore: boolean; totalIsExact?: false };
}

/** The newest notifications that a user can read. */
interface UserNotifications {
  newest: ListedNotification[];
  /** False if the search ended at a limit, so that older notifications may be missing. */
  isComplete: boolean;
}

const createPagination = (total: number, end: number) => ({ total, hasMore: end < total });

interface NotificationsServiceOptions {
  db: Db;
  findReader: FindNotificationReader;
  receivedDataLimiter: ReceivedDataLimiter;
  now: () => number;
}

/** @throws REQUEST_INVALID for a scheduled notification without the time at which it is published */
function requireTimeIfScheduled(status: NotificationStatus, orderAt: Date | null): void {
  if (status === "scheduled" && orderAt === null)
    throw new ActionError("REQUEST_INVALID", "orderAt is required for a scheduled notification");
}

async function readNotification(
  executor: EntityManager | Db,
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

/** Locks a notification until the transaction ends. @throws NOTIFICATION_NOT_FOUND, RESOURCE_CHANGED */
async function lockNotification(
  manager: EntityManager,
  { appId, id, precondition }: NotificationChangeTarget,
  reader: string,
): Promise<Notification> {
  await rows(manager, "SELECT FROM notification WHERE app_id = $1 AND id = $2 FOR NO KEY UPDATE", [appId, id]);
  const before = await readNotification(manager, appId, id, reader);
  requireExpectedVersion(before, precondition);
  return before;
}

export class NotificationsService {
  private readonly requestBucket = createTokenBucket({
    limit: CLIENT_REPORTS_PER_CREDENTIAL_AND_MINUTE,
    windowMs: RATE_WINDOW_MS,
  });

  constructor(private readonly options: NotificationsServiceOptions) {}

  /** Gives the requested status to a notification whose status is draft. @throws ActionError REQUEST_INVALID */
  private async applyStatus(
    manager: EntityManager,
    appId: number,
    id: number,
    status: NotificationStatus,
    orderAt: Date | null,
  ): Promise<void> {
    requireTimeIfScheduled(status, orderAt);
    if (status === "published") await publishNotification(manager, appId, id, "draft", new Date(this.options.now()));
    if (status === "scheduled") await withdrawNotification(manager, id, status);
  }

  private async insertFields(manager: EntityManager, appId: number, fields: NotificationFields): Promise<number> {
    const { data = {}, extendData = {}, scope = null, orderAt = null, push = null } = fields;
    const id = await insertNotification(manager, appId, {
      data: { ...data, ...extendData },
      scope,
      orderAt,
      push,
    });
    await this.applyStatus(manager, appId, id, fields.status ?? "draft", orderAt);
    return id;
  }

  private async insertFromBodies(
    caller: Caller,
    appId: number,
    bodies: readonly unknown[],
    getPath: (index: number) => string,
  ): Promise<Notification[]> {
    const { db, findReader, receivedDataLimiter } = this.options;
    const parse = (body: unknown, path: string) =>
      parseWithErrorPrefix(path, () => {
        const fields = parseNotification(body, path);
        requireTimeIfScheduled(fields.status ?? "draft", fields.orderAt ?? null);
        return fields;
      });
    const parsedNotifications = bodies.map((body, index) => parse(body, getPath(index)));
    receivedDataLimiter.countRows(caller, appId, Buffer.byteLength(JSON.stringify(bodies)), parsedNotifications.length);
    const { key } = await findReader(caller, appId);
    const ids = await db.transaction(async (manager) => {
      const insertedIds: number[] = [];
      for (const fields of parsedNotifications) insertedIds.push(await this.insertFields(manager, appId, fields));
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

  private async searchForUser(appId: number, reader: NotificationReader): Promise<UserNotifications> {
    const readableNotifications: ListedNotification[] = [];
    let before: number | null = null;
    let isLastPage = false;
    let [comparedCount, checkedCount] = [0, 0];
    while (comparedCount < COMPARED_ALTERNATIVES_MAX && checkedCount < CHECKED_NOTIFICATIONS_MAX) {
      const page: NotificationSearchBatch = await searchNewestNotifications(this.options.db, appId, reader, {
        before,
        limit: NOTIFICATIONS_PER_QUERY,
      });
      readableNotifications.push(...page.candidates.filter(({ scope }) => isUserInScope(scope, reader.user)));
      isLastPage = page.count < NOTIFICATIONS_PER_QUERY;
      if (isLastPage || readableNotifications.length >= LISTED_NOTIFICATIONS_MAX) break;
      comparedCount += page.alternatives;
      checkedCount += page.candidates.length;
      before = page.lastCursor;
    }
    const newest = readableNotifications.slice(0, LISTED_NOTIFICATIONS_MAX);
    return { newest, isComplete: isLastPage && newest.length === readableNotifications.length };
  }

  /**
   * Returns the caller as a reader. Counts the request in the rate limit, unless the caller is an editor or back end.
   * @throws RATE_LIMIT_EXCEEDED
   */
  private async findAndCountReader(caller: Caller, appId: number): Promise<NotificationReader> {
    const reader = await this.options.findReader(caller, appId);
    const retryAfter = reader.canReadAll ? 0 : this.requestBucket.takeTokens(getRateLimitKey(caller));
    if (retryAfter > 0)
      throw createRateLimitError(`too many requests from this client; try again in ${retryAfter} s`, retryAfter);
    return reader;
  }

  /** Reads the notifications with these IDs, the newest first, up to the page's maximum size. `reserve` reserves memory for them. */
  private async readPage(
    appId: number,
    { key }: NotificationReader,
    ids: readonly number[],
    reserve: ReserveResponseBytes,
  ): Promise<Notification[]> {
    const { db } = this.options;
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
      values: [await selectIdsThatFitOnPage(notificationSizes, reserve)],
    });
  }

  async insert(caller: Caller, appId: number, body: unknown): Promise<Notification> {
    return (await this.insertFromBodies(caller, appId, [body], () => ""))[0]!;
  }

  /**
   * Creates all notifications of a request in one transaction, or none if one is invalid.
   * @throws ActionError REQUEST_INVALID, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async insertAll(caller: Caller, appId: number, body: unknown): Promise<Notification[]> {
    if (!Array.isArray(body) || body.length === 0 || body.length > NOTIFICATIONS_PER_BATCH_MAX) {
      const message = `the batch must be an array of 1 to ${NOTIFICATIONS_PER_BATCH_MAX} notifications (got ${describeValue(body)})`;
      throw new ActionError("REQUEST_INVALID", message);
    }
    return this.insertFromBodies(caller, appId, body, (index) => `[${index}]`);
  }

  /**
   * Writes the fields in the body to a notification. Merges `extendData` into the stored `data`.
   * @throws REQUEST_INVALID, NOTIFICATION_NOT_FOUND, RESOURCE_CHANGED, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async update(caller: Caller, target: NotificationChangeTarget, body: unknown): Promise<Notification> {
    const { db, findReader, receivedDataLimiter } = this.options;
    const { appId, id } = target;
    const fields = parseNotification(body);
    receivedDataLimiter.countRows(caller, appId, Buffer.byteLength(JSON.stringify(body)));
    const { key } = await findReader(caller, appId);
    await db.transaction(async (manager) => {
      const before = await lockNotification(manager, target, key);
      const orderAt = fields.orderAt === undefined ? before.orderAt && new Date(before.orderAt) : fields.orderAt;
      const data = { ...(fields.data ?? before.data), ...fields.extendData };
      const dataBytes = Buffer.byteLength(JSON.stringify(data));
      if (dataBytes > EVENT_MAX_BYTES) {
        throw new ActionError(
          "REQUEST_INVALID",
          `data and extendData together must be at most ${EVENT_MAX_BYTES} bytes of JSON (got ${dataBytes})`,
        );
      }
      const scope = fields.scope === undefined ? before.scope : fields.scope;
      const push = fields.push === undefined ? before.pushNotification : fields.push;
      const { status = before.status } = fields;
      // Only a notification that stays published keeps its cursor. All others become drafts first.
      const staysPublished = status === "published" && before.status === status;
      if (!staysPublished) await withdrawNotification(manager, id, "draft");
      await updateNotificationRow(manager, id, { data, scope, orderAt: orderAt || null, push });
      if (!staysPublished) await this.applyStatus(manager, appId, id, status, orderAt || null);
      await recordChange(manager, caller, {
        appId,
        type: "app.notification.update",
        data: { id, fields: Object.keys(fields) },
      });
    });
    return readNotification(db, appId, id, key);
  }

  /** Deletes a notification. @throws NOTIFICATION_NOT_FOUND, RESOURCE_CHANGED */
  async remove(caller: Caller, target: NotificationChangeTarget): Promise<void> {
    const { db, findReader } = this.options;
    const { appId, id } = target;
    const { key } = await findReader(caller, appId);
    await db.transaction(async (manager) => {
      await lockNotification(manager, target, key);
      await rows(manager, "DELETE FROM notification WHERE app_id = $1 AND id = $2", [appId, id]);
      await recordChange(manager, caller, { appId, type: "app.notification.delete", data: { id } });
    });
  }

  /**
   * Lists notifications, the newest first. Back ends and editors get all notifications of the app; an app user gets those whose scope
   * includes the user.
   * @throws ActionError REQUEST_INVALID, RATE_LIMIT_EXCEEDED
   */
  async list(
    caller: Caller,
    appId: number,
    query: { status?: unknown; limit?: unknown; offset?: unknown },
    reserve: ReserveResponseBytes = async () => undefined,
  ): Promise<NotificationPage> {
    const { db } = this.options;
    const { limit, offset } = parseLimitAndOffset(query);
    const { status = null } = query;
    if (status !== null && !NOTIFICATION_STATUSES.some((allowed) => allowed === status)) {
      refuseField("status", `one of ${NOTIFICATION_STATUSES.join(", ")}`, status);
    }
    const reader = await this.findAndCountReader(caller, appId);
    if (!reader.canReadAll) {
      // A user can read only published notifications.
      const { newest, isComplete } =
        status === null || status === "published"
          ? await this.searchForUser(appId, reader)
          : { newest: [], isComplete: true };
      const ids = newest.slice(offset, offset + limit).map(({ id }) => id);
      const entries = await this.readPage(appId, reader, ids, reserve);
      const pagination = createPagination(newest.length, offset + entries.length);
      return { entries, pagination: { ...pagination, ...(!isComplete && { totalIsExact: false }) } };
    }
    const sql = `SELECT id, bytes FROM notification WHERE app_id = $1 AND ($2::text IS NULL OR status = $2)
                    ORDER BY id DESC LIMIT $3 OFFSET $4`;
    const ids = await selectIdsThatFitOnPage(await rows<SizedRow>(db, sql, [appId, status, limit, offset]), reserve);
    const [where, tail] = ["notification.id = ANY ($3::bigint[])", "ORDER BY notification.id DESC"];
    const entries = await readNotifications(db, { appId, reader: reader.key, where, tail, values: [ids] });
    const [count] = await rows<{ total: number }>(db, COUNT_NOTIFICATIONS, [appId, status]);
    return { entries, pagination: createPagination(count!.total, offset + entries.length) };
  }

  /**
   * Marks the notifications that the body lists, or all published notifications, as read. Returns the number that were unread.
   * @throws ActionError REQUEST_INVALID, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async markRead(caller: Caller, appId: number, body: unknown): Promise<{ count: number }> {
    const { db, receivedDataLimiter } = this.options;
    const ids = parseReadStatusNotificationIds(body);
    const reader = await this.findAndCountReader(caller, appId);
    const { newest } = await this.searchForUser(appId, reader);
    const byId = new Map(newest.map((notification) => [notification.id, notification]));
    const unreadNotifications = [...byId.values()].filter(({ readStatus }) => !readStatus);
    if (ids === ALL_NOTIFICATIONS) {
      receivedDataLimiter.countRows(caller, appId, 0, 1);
      await db.query(MARK_ALL_READ, [appId, reader.key]);
      return { count: unreadNotifications.length };
    }
    const markedIds = ids.filter((id) => byId.has(id) && !byId.get(id)!.readStatus);
    receivedDataLimiter.countRows(caller, appId, 0, markedIds.length);
    return { count: (await rows(db, MARK_READ, [appId, reader.key, markedIds])).length };
  }

  /** Counts the unread notifications among the newest 1,000 whose scope includes the caller. */
  async countUnread(caller: Caller, appId: number): Promise<{ count: number }> {
    const { newest } = await this.searchForUser(appId, await this.findAndCountReader(caller, appId));
    return { count: newest.filter(({ readStatus }) => !readStatus).length };
  }

  /**
   * Publishes up to PUBLISH_BATCH_SIZE scheduled notifications that are due. Returns the time of the next scheduled one as Unix time in
   * milliseconds; null if there is none.
   */
  async publishDueNotifications(): Promise<number | null> {
    const { db, now } = this.options;
    const moment = new Date(now());
    const dueRows = await rows<{ id: number; appId: number }>(db, SELECT_DUE_NOTIFICATIONS, [moment]);
    for (const { id, appId } of dueRows)
      await db.transaction((manager) => publishNotification(manager, appId, id, "scheduled", moment));
    const [row] = await rows<{ next: Date | null }>(db, SELECT_NEXT_SCHEDULED);
    return row!.next?.getTime() ?? null;
  }
}
