/** Adds many published notifications to an app with one statement, because requests that create them take seconds. */
import type { Db } from "../../src/data/database.js";
import type { NotificationScope } from "../../src/rules/notification-scope.js";

const INSERT_PUBLISHED = `
  WITH place AS (
    INSERT INTO notification_place (app_id, cursor) VALUES ($1, $2::int)
    ON CONFLICT (app_id) DO UPDATE SET cursor = notification_place.cursor + excluded.cursor
    RETURNING cursor - $2::int AS before)
  INSERT INTO notification (app_id, status, data, scope, cursor, published_at)
  SELECT $1, 'published', '{}', $3, place.before + at, now() FROM place, generate_series(1, $2::int) AS at`;

/** Publishes `count` notifications with this scope and no data, newer than all others of the app. */
export async function publishNotifications(
  db: Db,
  appId: number,
  count: number,
  scope: NotificationScope,
): Promise<void> {
  await db.query(INSERT_PUBLISHED, [appId, count, JSON.stringify(scope)]);
}
