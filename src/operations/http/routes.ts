/**
 * Stores a route (URL path and method) for each HTTP trigger of drafts and live versions. The primary key of http_route allows one trigger
 * per path and method, even if two requests save actions at the same time.
 */
import type { EntityManager } from "typeorm";
import type { ActionRow } from "../../data/action.js";
import type { HttpMethod, HttpWhere, Trigger } from "../../data/action-types.js";
import { isDeadlock, isUniqueViolation, queryPreparedRows, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { getPathPatternShape, listMatchingPatternShapes } from "../../rules/http/path.js";
import { createRouteKey, HTTP_METHODS } from "../../rules/http/where.js";

/** Value of the database column `method` for a trigger that accepts every HTTP method. */
const ANY_METHOD = "";

export interface TriggerRoute {
  actionId: number;
  /** ID of the draft; for a trigger of a live version, ID of the draft that this live version belongs to. */
  masterId: number;
  where: HttpWhere;
  /** True if requests can run the action: it is an active server action, and for a live version its app is published. */
  isRunnable: boolean;
  /** Version number of the app's secrets if the trigger verifies the sender with the value of a setting; otherwise 0. */
  secretsVersion: number;
  /** Encrypted secret that the trigger's URL contains; null if the URL contains no secret. */
  sealed: Buffer | null;
}

export const listHttpTriggerConditions = (triggers: readonly Trigger[]): HttpWhere[] =>
  triggers.flatMap((trigger) => (trigger.trigger === "http" ? [trigger.where] : []));

const describeRoute = ({ method, path }: HttpWhere): string => `${method ?? "every method"} ${path}`;

const SELECT_TAKEN_ROUTE = `
  SELECT wanted.at, action.name FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS wanted (shape, method, at)
    JOIN http_route AS route ON route.app_id = $1 AND route.is_draft = $2 AND route.shape = wanted.shape AND route.method = wanted.method
    JOIN action ON action.id = route.action_id
   WHERE route.action_id <> ALL ($5::bigint[]) ORDER BY wanted.at LIMIT 1`;

/** Returns the error TRIGGERS_INVALID if a trigger of another action already uses one of these methods and paths; otherwise null. */
export async function findRouteConflictError(
  executor: SqlClient,
  where: { appId: number; isDraft: boolean; ignoredActionIds: readonly number[] },
  triggers: readonly Trigger[],
): Promise<ActionError | null> {
  const httpConditions = listHttpTriggerConditions(triggers);
  if (httpConditions.length === 0) return null;
  const pathShapes = httpConditions.map(({ path }) => getPathPatternShape(path));
  const methods = httpConditions.map(({ method }) => method ?? ANY_METHOD);
  const values = [where.appId, where.isDraft, pathShapes, methods, where.ignoredActionIds];
  const [conflictingRoute] = await rows<{ at: number; name: string }>(executor, SELECT_TAKEN_ROUTE, values);
  if (!conflictingRoute) return null;
  const takenCondition = httpConditions[conflictingRoute.at - 1]!;
  const at = triggers.findIndex((trigger) => trigger.trigger === "http" && trigger.where === takenCondition);
  const message = `triggers[${at}].where has the method and path of another trigger: the action ${conflictingRoute.name} answers ${describeRoute(takenCondition)}`;
  return new ActionError("TRIGGERS_INVALID", message);
}

/* Deletes the routes of the action $1 that its triggers no longer contain. */
const REMOVE_OLD_ROUTES = `
  DELETE FROM http_route WHERE action_id = $1
     AND NOT EXISTS (SELECT FROM unnest($2::text[], $3::text[]) AS wanted (shape, method)
                      WHERE wanted.shape = http_route.shape AND wanted.method = http_route.method)`;
const ADD_ROUTES = `
  INSERT INTO http_route AS route (app_id, is_draft, shape, method, action_id, settings)
  SELECT $1, $2, shape, method, $3, settings
    FROM unnest($4::text[], $5::text[], $6::json[]) AS wanted (shape, method, settings)
   WHERE NOT EXISTS (SELECT FROM http_route AS own WHERE own.action_id = $3 AND own.shape = wanted.shape AND own.method = wanted.method)
   ORDER BY shape COLLATE "C", method COLLATE "C"`;
const UPDATE_ROUTES = `
  UPDATE http_route AS route SET settings = wanted.settings
    FROM unnest($2::text[], $3::text[], $4::json[]) AS wanted (shape, method, settings)
   WHERE route.action_id = $1 AND route.shape = wanted.shape AND route.method = wanted.method
     AND route.settings::text <> wanted.settings::text`;

/**
 * Writes the routes of a draft or live version to the database, in the transaction that writes the triggers.
 * @throws TRIGGERS_INVALID if a trigger of another action already uses one of the methods and paths
 */
export async function writeRoutes(manager: EntityManager, { id, appId, masterId, triggers }: ActionRow): Promise<void> {
  const httpConditions = listHttpTriggerConditions(triggers);
  const isDraft = masterId === null;
  const pathShapes = httpConditions.map(({ path }) => getPathPatternShape(path));
  const methods = httpConditions.map(({ method }) => method ?? ANY_METHOD);
  const settings = httpConditions.map((where) => JSON.stringify(where));
  await rows(manager, REMOVE_OLD_ROUTES, [id, pathShapes, methods]);
  if (httpConditions.length === 0) return;
  await rows(manager, UPDATE_ROUTES, [id, pathShapes, methods, settings]);
  try {
    await rows(manager, ADD_ROUTES, [appId, isDraft, id, pathShapes, methods, settings]);
  } catch (error) {
    // Two transactions can deadlock if each one adds a path that the other one has just added. This path is in use, too.
    if (!isUniqueViolation(error, "http_route_pkey") && !isDeadlock(error)) throw error;
    throw new ActionError(
      "TRIGGERS_INVALID",
      "triggers: another action of this app already has an http trigger with the same method and path; change the method or the path",
    );
  }
}

/** Deletes the routes of actions before the same transaction writes these actions again, so that two actions can exchange their paths. */
export async function deleteRoutes(manager: EntityManager, actionIds: readonly number[]): Promise<void> {
  if (actionIds.length > 0)
    await rows(manager, "DELETE FROM http_route WHERE action_id = ANY ($1::bigint[])", [actionIds]);
}

/**
 * Returns a function to call with the triggers of each action of one manifest or import. The function throws TRIGGERS_INVALID if an action
 * of an earlier call has an HTTP trigger with the same method and path.
 */
export function createDuplicateRouteCheck(): (triggers: readonly Trigger[]) => void {
  const claimedKeys = new Set<string>();
  return (triggers) => {
    const httpConditions = listHttpTriggerConditions(triggers);
    const existingCondition = httpConditions.find((where) => claimedKeys.has(createRouteKey(where)));
    if (existingCondition) {
      throw new ActionError(
        "TRIGGERS_INVALID",
        `triggers: two actions have an http trigger for ${describeRoute(existingCondition)}; change one of the triggers`,
      );
    }
    for (const where of httpConditions) claimedKeys.add(createRouteKey(where));
  };
}

/** Returns the routes with the most specific pattern: from left to right, a literal segment has precedence over a parameter. */
function selectMostSpecificRoutes(routes: readonly TriggerRoute[], pathShapes: readonly string[]): TriggerRoute[] {
  const getShapeRank = ({ where }: TriggerRoute) => pathShapes.indexOf(getPathPatternShape(where.path));
  const bestRank = Math.min(...routes.map(getShapeRank));
  return routes.filter((route) => getShapeRank(route) === bestRank);
}

const HAS_URL_SECRET = `settings->'auth'->>'type' = 'secret'`;

/**
 * Selects the routes that match a path in the app $1. $2 is true for drafts. $3 are the patterns that match the whole path. $4 are the
 * patterns that match the path without its last segment, which may be a secret.
 */
const SELECT_MATCHING_ROUTES = `
  SELECT route.action_id AS "actionId", coalesce(action.master_id, action.id) AS "masterId", route.settings AS "where", secret.sealed,
         CASE WHEN route.settings->'auth'->>'setting' IS NULL THEN 0 ELSE app.secrets_version END AS "secretsVersion",
         action.active AND action.environment = 'server' AND action.action_version = 'v3'
           AND (route.is_draft OR app.published_at IS NOT NULL) AS "isRunnable"
    FROM http_route AS route JOIN action ON action.id = route.action_id JOIN app ON app.id = route.app_id
    LEFT JOIN http_secret AS secret ON secret.action_id = coalesce(action.master_id, action.id)
   WHERE route.app_id = $1 AND route.is_draft = $2
     AND (route.shape = ANY ($3::text[]) AND ($2 OR (route.${HAS_URL_SECRET}) IS NOT TRUE)
          OR route.shape = ANY ($4::text[]) AND route.${HAS_URL_SECRET})`;

/**
 * Finds the HTTP triggers whose paths match the URL segments, for all methods. Ignores triggers whose action cannot run. Returns only the
 * triggers with the most specific path. If a trigger with a secret in its URL matches, returns no triggers without one.
 * @param isSecretSegment checks that the last segment is the secret of the route's trigger; not called for drafts, whose URLs contain no
 *   secret
 */
export async function findMatchingRoutes(
  db: SqlClient,
  { appId, isDraft, decodedSegments }: { appId: number; isDraft: boolean; decodedSegments: readonly string[] },
  isSecretSegment: (route: TriggerRoute, segment: string) => Promise<boolean>,
): Promise<readonly TriggerRoute[]> {
  const shapes = listMatchingPatternShapes(decodedSegments);
  const shapesBeforeSecret = isDraft ? [] : listMatchingPatternShapes(decodedSegments.slice(0, -1));
  if (shapes.length + shapesBeforeSecret.length === 0) return [];
  const values = [appId, isDraft, shapes, shapesBeforeSecret];
  const matchingRows = await queryPreparedRows<TriggerRoute>(db, "find-http-routes", SELECT_MATCHING_ROUTES, values);
  const runnableRoutes = matchingRows.filter(({ isRunnable }) => isRunnable);
  const hasSecretInUrl = ({ where }: TriggerRoute) => !isDraft && where.auth.type === "secret";
  const routesWithSecret: TriggerRoute[] = [];
  for (const route of runnableRoutes.filter(hasSecretInUrl))
    if (await isSecretSegment(route, decodedSegments.at(-1)!)) routesWithSecret.push(route);
  if (routesWithSecret.length > 0) return selectMostSpecificRoutes(routesWithSecret, shapesBeforeSecret);
  return selectMostSpecificRoutes(
    runnableRoutes.filter((route) => !hasSecretInUrl(route)),
    shapes,
  );
}

/**
 * Returns the route that accepts the method. A route for exactly this method has precedence. The second choice is a GET
 * route for a HEAD request, and the last is a route for all methods.
 */
export function selectRoute<R extends Pick<TriggerRoute, "where">>(
  routes: readonly R[],
  method: string,
): R | undefined {
  const findByMethod = (routeMethod: string) =>
    routes.find(({ where }) => (where.method ?? ANY_METHOD) === routeMethod);
  return findByMethod(method) ?? (method === "HEAD" ? findByMethod("GET") : undefined) ?? findByMethod(ANY_METHOD);
}

export function createAllowHeader(routes: readonly Pick<TriggerRoute, "where">[]): string {
  const methods = new Set<HttpMethod | "OPTIONS">(routes.flatMap(({ where }) => where.method ?? HTTP_METHODS));
  if (methods.has("GET")) methods.add("HEAD");
  return [...methods.add("OPTIONS")].join(", ");
}
