/**
 * SQL for reading, writing and publishing notifications, without validation. Cursors become visible in ascending order, so that a reader
 * who continues after a cursor misses no notification.
 */
import { rows, type SqlClient } from "../../data/database.js";
import type { NotificationStatus, PushMessageOptions } from "../../rules/notification-input.js";
import type { NotificationScope } from "../../rules/notification-scope.js";
import { NEXT_UPDATED_AT_SQL } from "../../rules/precondition.js";
import type { NotificationReader } from "./reader.js";

/** PostgreSQL channel. A message contains the ID of an app that has published a notification. */
export const NOTIFICATION_CHANNEL = "svc_notification";

/** Notification for the users of an app. Times are ISO 8601 text. */
export interface Notification {
  id: number;
  appId: number;
  status: NotificationStatus;
  data: Record<string, unknown>;
  scope: NotificationScope | null;
  orderAt: string | null;
  pushNotification: PushMessageOptions | null;
  publishedAt: string | null;
  /** Position among the app's published notifications; null if the notification is not published. */
  cursor: number | null;
  /** True if the caller of the request has marked the notification as read. */
  readStatus: boolean;
  createdAt: string;
  updatedAt: string;
}

const NOTIFICATION_COLUMNS = `notification.id, notification.app_id AS "appId", notification.status, notification.data, notification.scope,
  notification.order_at AS "orderAt", notification.push AS "pushNotification", notification.published_at AS "publishedAt",
  notification.cursor, notification.created_at AS "createdAt", notification.updated_at AS "updatedAt"`;

/* SQL condition: the reader with the key $2 has marked the notification as read. */
const IS_READ_SQL = `(EXISTS (SELECT FROM notification_read mark WHERE mark.notification_id = notification.id AND mark.reader = $2)
  OR notification.cursor <= coalesce((SELECT cursor FROM notification_read_all mark
                              WHERE mark.app_id = notification.app_id AND mark.reader = $2), -1)) IS TRUE`;

const toJsonOrNull = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));

type NotificationRow = Omit<Notification, "orderAt" | "publishedAt" | "createdAt" | "updatedAt"> & {
  orderAt: Date | null;
  publishedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
};

const toNotification = ({ orderAt, publishedAt, createdAt, updatedAt, ...row }: NotificationRow): Notification => ({
  ...row,
  readStatus: row.readStatus ?? false,
  orderAt: orderAt?.toISOString() ?? null,
  publishedAt: publishedAt?.toISOString() ?? null,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
});

/**
 * Selects notifications of an app. `where` is an SQL condition in which `values` are $3 and higher; `tail` is SQL after it, such as ORDER
 * BY. `reader` is the key of the reader for the field `readStatus`.
 */
export async function readNotifications(
  executor: SqlClient,
  {
    appId,
    reader,
    where = "true",
    tail,
    values = [],
  }: {
    appId: number;
    reader: string;
    where?: string;
    tail: string;
    values?: unknown[];
  },
): Promise<Notification[]> {
  const sql = `SELECT ${NOTIFICATION_COLUMNS}, ${IS_READ_SQL} AS "readStatus" FROM notification WHERE notification.app_id = $1 AND ${where} ${tail}`;
  return (await rows<NotificationRow>(executor, sql, [appId, reader, ...values])).map(toNotification);
}

/**
 * SQL condition: the scope of a notification (conditions on its readers) may include the user $5. The condition can also be true for other
 * users, so check `isUserInScope` afterwards.
 */
const MAY_BE_IN_SCOPE_SQL = `(notification.scope IS NULL OR $5::jsonb IS NOT NULL AND EXISTS (
  SELECT FROM jsonb_array_elements(CASE jsonb_typeof(notification.scope) WHEN 'array' THEN notification.scope
                                   ELSE jsonb_build_array(notification.scope) END) AS alternative (conditions)
   WHERE NOT EXISTS (
     SELECT FROM jsonb_each(conditions) AS condition (name, expected)
      WHERE jsonb_typeof(expected) IN ('string', 'number', 'boolean') AND strpos(name, '.') = 0
        AND NOT coalesce($5::jsonb -> name @> expected, false))))`;

export type ListedNotification = Pick<Notification, "id" | "scope" | "readStatus">;

export interface NotificationSearchBatch {
  /** Number of notifications that were searched. */
  count: number;
  /** Total number of `where` objects in the scopes of the searched notifications. A scope is one `where`, or an array of them. */
  alternatives: number;
  /** Lowest cursor of the searched notifications; null if no notification was searched. */
  lastCursor: number | null;
  /** Notifications that the reader may be able to read, the newest first. Check each of them with `isUserInScope`. */
  candidates: ListedNotification[];
}

const SEARCH_NEWEST_NOTIFICATIONS = `
  SELECT count(*)::int AS count, min(cursor) AS "lastCursor",
         coalesce(sum(CASE jsonb_typeof(scope) WHEN 'array' THEN greatest(1, jsonb_array_length(scope)) ELSE 1 END), 0)::int AS alternatives,
         coalesce(json_agg(json_build_object('id', id, 'scope', scope, 'readStatus', ${IS_READ_SQL}) ORDER BY cursor DESC)
                    FILTER (WHERE ${MAY_BE_IN_SCOPE_SQL}), '[]') AS candidates
    FROM (SELECT id, app_id, cursor, scope FROM notification
           WHERE app_id = $1 AND cursor IS NOT NULL AND ($3::bigint IS NULL OR cursor < $3)
           ORDER BY cursor DESC LIMIT $4) AS notification`;

/**
 * Searches the `limit` newest published notifications of an app for those that the reader may be able to read.
 * @param before cursor below which the search starts; null to start with the newest notification
 */
export async function searchNewestNotifications(
  executor: SqlClient,
  appId: number,
  { key, user }: Pick<NotificationReader, "key" | "user">,
  { before, limit }: { before: number | null; limit: number },
): Promise<NotificationSearchBatch> {
  const values = [appId, key, before, limit, toJsonOrNull(user)];
  return (await rows<NotificationSearchBatch>(executor, SEARCH_NEWEST_NOTIFICATIONS, values))[0]!;
}

/** Returns up to 500 published notifications with cursors above `after`, in ascending order. */
export async function listNotificationsPublishedAfter(
  executor: SqlClient,
  appId: number,
  after: number,
  reader = "",
): Promise<Notification[]> {
  const where = "notification.cursor > $3";
  return readNotifications(executor, {
    appId,
    reader,
    where,
    tail: "ORDER BY notification.cursor LIMIT 500",
    values: [after],
  });
}

/** Returns the cursor of the last notification that was published before `moment`; 0 if there is none. */
export async function readNotificationCursorBefore(executor: SqlClient, appId: number, moment: Date): Promise<number> {
  const sql = "SELECT coalesce(max(cursor), 0) AS cursor FROM notification WHERE app_id = $1 AND published_at < $2";
  return (await rows<{ cursor: number }>(executor, sql, [appId, moment]))[0]!.cursor;
}

export async function readLastNotificationCursor(executor: SqlClient, appId: number): Promise<number> {
  const sql = "SELECT coalesce(max(cursor), 0) AS cursor FROM notification WHERE app_id = $1";
  return (await rows<{ cursor: number }>(executor, sql, [appId]))[0]!.cursor;
}

export interface StoredNotificationFields {
  data: Record<string, unknown>;
  scope: NotificationScope | null;
  orderAt: Date | null;
  push: PushMessageOptions | null;
}

/** Inserts a notification with the status draft. */
export async function insertNotification(
  executor: SqlClient,
  appId: number,
  fields: StoredNotificationFields,
): Promise<number> {
  const [row] = await rows<{ id: number }>(
    executor,
    "INSERT INTO notification (app_id, status, data, scope, order_at, push) VALUES ($1, 'draft', $2, $3, $4, $5) RETURNING id",
    [appId, toJsonOrNull(fields.data), toJsonOrNull(fields.scope), fields.orderAt, toJsonOrNull(fields.push)],
  );
  return row!.id;
}

export async function updateNotificationRow(
  executor: SqlClient,
  id: number,
  fields: StoredNotificationFields,
): Promise<void> {
  await rows(
    executor,
    `UPDATE notification SET data = $2, scope = $3, order_at = $4, push = $5, updated_at = ${NEXT_UPDATED_AT_SQL} WHERE id = $1`,
    [id, toJsonOrNull(fields.data), toJsonOrNull(fields.scope), fields.orderAt, toJsonOrNull(fields.push)],
  );
}

/** Publishes the notification $2 if its status is $3. The lock of the row in `notification_place` keeps cursors in commit order. */
const PUBLISH_NOTIFICATION = `
  WITH place AS (
    INSERT INTO notification_place (app_id, cursor) VALUES ($1, 1)
    ON CONFLICT (app_id) DO UPDATE SET cursor = notification_place.cursor + 1
    RETURNING cursor),
  published AS (
    UPDATE notification SET status = 'published', cursor = place.cursor, published_at = clock_timestamp(),
           updated_at = ${NEXT_UPDATED_AT_SQL},
           push_at = CASE WHEN push IS NOT NULL
                          THEN greatest($4::timestamptz, to_timestamp((push->>'delayUntilTimestamp')::float8 / 1000)) END
      FROM place WHERE notification.app_id = $1 AND notification.id = $2 AND status = $3
    RETURNING notification.app_id)
  SELECT pg_notify('${NOTIFICATION_CHANNEL}', app_id::text) FROM published`;

/** Returns false and changes nothing if the status of the notification is not `requiredStatus`. */
export async function publishNotification(
  executor: SqlClient,
  appId: number,
  id: number,
  requiredStatus: Exclude<NotificationStatus, "published">,
  now: Date,
): Promise<boolean> {
  return (await rows(executor, PUBLISH_NOTIFICATION, [appId, id, requiredStatus, now])).length > 0;
}

/** Sets the status of a notification, so that readers no longer see it. Deletes its push messages that were not sent yet. */
export async function withdrawNotification(
  executor: SqlClient,
  id: number,
  status: Exclude<NotificationStatus, "published">,
): Promise<void> {
  const sql = `UPDATE notification SET status = $2, cursor = NULL, published_at = NULL, push_at = NULL, updated_at = ${NEXT_UPDATED_AT_SQL}
                WHERE id = $1`;
  await rows(executor, sql, [id, status]);
  await rows(executor, "DELETE FROM push_delivery WHERE notification_id = $1", [id]);
}
