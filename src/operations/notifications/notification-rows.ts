/**
 * Reads, writes and publishes notifications in SQL. Cursors become visible in ascending order, so that no reader misses
 * a notification. Validates nothing.
 */
import { type Executor, rows } from "../../data/database.js";
import type { NotificationStatus, PushRequest } from "../../rules/notification-input.js";
import { NEXT_UPDATED_AT } from "../../rules/precondition.js";
import type { Scope } from "../../rules/scope.js";

/** Notification channel with `appId`: a message means that a notification of the app was published. */
export const NOTIFICATION_CHANNEL = "svc_notification";

/** Notification for an app's users (section "Notifications" of the package documentation). Times are ISO 8601. */
export interface Notification {
  id: number;
  appId: number;
  status: NotificationStatus;
  data: Record<string, unknown>;
  scope: Scope | null;
  orderAt: string | null;
  pushNotification: PushRequest | null;
  publishedAt: string | null;
  /** Position among the app's published notifications; null until it is published. */
  cursor: number | null;
  /** True if the reader has read the notification. */
  readStatus: boolean;
  createdAt: string;
  updatedAt: string;
}

const COLUMNS = `notification.id, notification.app_id AS "appId", notification.status, notification.data, notification.scope,
  notification.order_at AS "orderAt", notification.push AS "pushNotification", notification.published_at AS "publishedAt",
  notification.cursor, notification.created_at AS "createdAt", notification.updated_at AS "updatedAt"`;

/* SQL condition: the reader ($2) has read the notification. */
const READ_STATUS = `(EXISTS (SELECT FROM notification_read mark WHERE mark.notification_id = notification.id AND mark.reader = $2)
  OR notification.cursor <= coalesce((SELECT cursor FROM notification_read_all mark
                              WHERE mark.app_id = notification.app_id AND mark.reader = $2), -1)) IS TRUE AS "readStatus"`;

type Row = Omit<Notification, "orderAt" | "publishedAt" | "createdAt" | "updatedAt"> & {
  orderAt: Date | null;
  publishedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
};

const toNotification = ({ orderAt, publishedAt, createdAt, updatedAt, ...row }: Row): Notification => ({
  ...row,
  readStatus: row.readStatus ?? false,
  orderAt: orderAt?.toISOString() ?? null,
  publishedAt: publishedAt?.toISOString() ?? null,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
});

/**
 * Selects notifications of the app that match `where` (table `notification`). $1 is the app, $2 the reader; `values`
 * are $3 and up.
 */
export async function readNotifications(
  executor: Executor,
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
  const sql = `SELECT ${COLUMNS}, ${READ_STATUS} FROM notification WHERE notification.app_id = $1 AND ${where} ${tail}`;
  return (await rows<Row>(executor, sql, [appId, reader, ...values])).map(toNotification);
}

/** Selects the fields that decide who can read the newest published notifications. */
export async function newestPublished(
  executor: Executor,
  appId: number,
  reader: string,
  limit: number,
): Promise<Pick<Notification, "id" | "scope" | "readStatus">[]> {
  const sql = `SELECT notification.id, notification.scope, ${READ_STATUS} FROM notification
                WHERE notification.app_id = $1 AND notification.cursor IS NOT NULL ORDER BY notification.cursor DESC LIMIT $3`;
  return rows(executor, sql, [appId, reader, limit]);
}

/** Selects up to 500 published notifications with a higher cursor than `after`, in order. */
export async function publishedAfter(
  executor: Executor,
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
export async function positionBefore(executor: Executor, appId: number, moment: Date): Promise<number> {
  const sql = "SELECT coalesce(max(cursor), 0) AS cursor FROM notification WHERE app_id = $1 AND published_at < $2";
  return (await rows<{ cursor: number }>(executor, sql, [appId, moment]))[0]!.cursor;
}

export async function lastPosition(executor: Executor, appId: number): Promise<number> {
  const sql = "SELECT coalesce(max(cursor), 0) AS cursor FROM notification WHERE app_id = $1";
  return (await rows<{ cursor: number }>(executor, sql, [appId]))[0]!.cursor;
}

export interface WrittenNotification {
  data: Record<string, unknown>;
  scope: Scope | null;
  orderAt: Date | null;
  push: PushRequest | null;
}

const jsonOrNull = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));

/** Inserts a draft. */
export async function insertNotification(
  executor: Executor,
  appId: number,
  fields: WrittenNotification,
): Promise<number> {
  const [row] = await rows<{ id: number }>(
    executor,
    "INSERT INTO notification (app_id, status, data, scope, order_at, push) VALUES ($1, 'draft', $2, $3, $4, $5) RETURNING id",
    [appId, jsonOrNull(fields.data), jsonOrNull(fields.scope), fields.orderAt, jsonOrNull(fields.push)],
  );
  return row!.id;
}

export async function writeNotification(executor: Executor, id: number, fields: WrittenNotification): Promise<void> {
  await rows(
    executor,
    `UPDATE notification SET data = $2, scope = $3, order_at = $4, push = $5, updated_at = ${NEXT_UPDATED_AT} WHERE id = $1`,
    [id, jsonOrNull(fields.data), jsonOrNull(fields.scope), fields.orderAt, jsonOrNull(fields.push)],
  );
}

/**
 * Publishes a notification. $1 is the app, $2 the notification, $3 its required status. The row in `notification_place`
 * is locked until the commit, so that cursors become visible in ascending order: a reader of one cursor has seen all
 * lower ones.
 */
const PUBLISH_DUE_NOTIFICATIONS = `
  WITH place AS (
    INSERT INTO notification_place (app_id, cursor) VALUES ($1, 1)
    ON CONFLICT (app_id) DO UPDATE SET cursor = notification_place.cursor + 1
    RETURNING cursor),
  published AS (
    UPDATE notification SET status = 'published', cursor = place.cursor, published_at = clock_timestamp(),
           updated_at = ${NEXT_UPDATED_AT},
           push_at = CASE WHEN push IS NOT NULL
                          THEN greatest($4::timestamptz, to_timestamp((push->>'delayUntilTimestamp')::float8 / 1000)) END
      FROM place WHERE notification.app_id = $1 AND notification.id = $2 AND status = $3
    RETURNING notification.app_id)
  SELECT pg_notify('${NOTIFICATION_CHANNEL}', app_id::text) FROM published`;

/** Publishes a notification. Returns false if its status is not `from`. */
export async function publishNotification(
  executor: Executor,
  appId: number,
  id: number,
  from: Exclude<NotificationStatus, "published">,
  now: Date,
): Promise<boolean> {
  return (await rows(executor, PUBLISH_DUE_NOTIFICATIONS, [appId, id, from, now])).length > 0;
}

/** Withdraws a published notification. Devices that have not received the notification yet will not receive it. */
export async function withdrawNotification(
  executor: Executor,
  id: number,
  status: Exclude<NotificationStatus, "published">,
): Promise<void> {
  const sql = `UPDATE notification SET status = $2, cursor = NULL, published_at = NULL, push_at = NULL, updated_at = ${NEXT_UPDATED_AT}
                WHERE id = $1`;
  await rows(executor, sql, [id, status]);
  await rows(executor, "DELETE FROM push_delivery WHERE notification_id = $1", [id]);
}
