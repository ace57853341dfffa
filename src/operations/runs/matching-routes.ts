/**
 * SQL that selects the routes of HTTP triggers whose paths match a request, and a condition that they have not changed. The insert of a run
 * checks this condition, so that requests can use cached routes.
 */

/** Path patterns (shapes) that match a request, and the routes with one of these patterns. */
export interface RouteMatch {
  /** Patterns of the whole path. */
  shapes: readonly string[];
  /** Patterns of the path without its last segment, which may be the secret of a trigger. */
  shapesBeforeSecret: readonly string[];
  /** The rows of the matching routes as text, in ascending order. */
  rowTexts: readonly string[];
}

/** Thrown if the routes have changed since the request was matched to them. Then match the request again. */
export class RoutesChangedError extends Error {
  constructor() {
    super("the routes of the request have changed");
  }
}

const HAS_URL_SECRET = `settings->'auth'->>'type' = 'secret'`;

/** All arguments are SQL parameters such as `$1`. `isDraft` is true for drafts; the shapes are the lists of a `RouteMatch`. */
const matchingRoutesSql = (app: string, isDraft: string, shapes: string, shapesBeforeSecret: string) => `
  SELECT route.action_id AS "actionId", coalesce(action.master_id, action.id) AS "masterId", route.settings AS "where", secret.sealed,
         CASE WHEN route.settings->'auth'->>'setting' IS NULL THEN 0 ELSE app.secrets_version END AS "secretsVersion",
         action.active AND action.environment = 'server' AND action.action_version = 'v3'
           AND (route.is_draft OR app.published_at IS NOT NULL) AS "isRunnable"
    FROM http_route AS route JOIN action ON action.id = route.action_id JOIN app ON app.id = route.app_id
    LEFT JOIN http_secret AS secret ON secret.action_id = coalesce(action.master_id, action.id)
   WHERE route.app_id = ${app}::bigint AND route.is_draft = ${isDraft}
     AND (route.shape = ANY (${shapes}::text[]) AND (${isDraft} OR (route.${HAS_URL_SECRET}) IS NOT TRUE)
          OR route.shape = ANY (${shapesBeforeSecret}::text[]) AND route.${HAS_URL_SECRET})`;

/** Selects the matching routes, each row also as text. $1 is the app's ID, $2 true for drafts, $3 and $4 the shapes of a `RouteMatch`. */
export const SELECT_MATCHING_ROUTES_SQL = `
  SELECT found.*, found::text AS "rowText" FROM (${matchingRoutesSql("$1", "$2::boolean", "$3", "$4")}) AS found`;

/** SQL condition: the live routes in a `RouteMatch` have not changed. The arguments are SQL parameters such as `$1`. */
export const createUnchangedRoutesConditionSql = (
  app: string,
  shapes: string,
  shapesBeforeSecret: string,
  rowTexts: string,
) => `
  ARRAY(SELECT found::text FROM (${matchingRoutesSql(app, "false", shapes, shapesBeforeSecret)}) AS found
         ORDER BY found::text COLLATE "C") = ${rowTexts}::text[]`;
