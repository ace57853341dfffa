/** SQL for routes of HTTP triggers. Requests use cached routes, so the insert of a run checks that the routes have not changed. */

export interface RouteMatchSnapshot {
  /** Path patterns that match the whole path. */
  shapes: readonly string[];
  /** Path patterns that match the path without its last segment, which may be the secret of a trigger. */
  shapesBeforeSecret: readonly string[];
  /** The matching routes, each as the text of its row, in ascending order. */
  rowTexts: readonly string[];
}

/** The routes have changed since the request was matched to them, so the request must be matched again. */
export class RoutesChangedError extends Error {
  constructor() {
    super("the routes of the request have changed");
  }
}

const HAS_URL_SECRET = `settings->'auth'->>'type' = 'secret'`;

/** $1 is the app's ID. The arguments are SQL expressions. */
const createMatchingRoutesSql = (isDraft: string, shapes: string, shapesBeforeSecret: string) => `
  SELECT route.action_id AS "actionId", coalesce(action.master_id, action.id) AS "masterId", route.settings AS "where", secret.sealed,
         CASE WHEN route.settings->'auth'->>'setting' IS NULL THEN 0 ELSE app.secrets_version END AS "secretsVersion",
         action.active AND action.environment = 'server' AND action.action_version = 'v3'
           AND (route.is_draft OR app.published_at IS NOT NULL) AS "isRunnable"
    FROM http_route AS route JOIN action ON action.id = route.action_id JOIN app ON app.id = route.app_id
    LEFT JOIN http_secret AS secret ON secret.action_id = coalesce(action.master_id, action.id)
   WHERE route.app_id = $1::bigint AND route.is_draft = ${isDraft}
     AND (route.shape = ANY (${shapes}::text[]) AND (${isDraft} OR (route.${HAS_URL_SECRET}) IS NOT TRUE)
          OR route.shape = ANY (${shapesBeforeSecret}::text[]) AND route.${HAS_URL_SECRET})`;

/** $1 is the app's ID, $2 true for drafts, $3 and $4 the shapes of a `RouteMatchSnapshot`. Also selects each row as text. */
export const SELECT_MATCHING_ROUTES_SQL = `
  SELECT found.*, found::text AS "rowText" FROM (${createMatchingRoutesSql("$2::boolean", "$3", "$4")}) AS found`;

/** Returns an SQL condition for live routes. $1 is the app's ID. The arguments are SQL parameters for a `RouteMatchSnapshot`. */
export const createUnchangedRoutesConditionSql = (shapes: string, shapesBeforeSecret: string, rowTexts: string) => `
  ARRAY(SELECT found::text FROM (${createMatchingRoutesSql("false", shapes, shapesBeforeSecret)}) AS found
         ORDER BY found::text COLLATE "C") = ${rowTexts}::text[]`;
