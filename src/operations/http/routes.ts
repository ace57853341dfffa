/**
 * Stores the URL path of each HTTP trigger, for drafts and live versions. The primary key allows one trigger per path
 * and method of an app, even if two actions are saved at the same time.
 */
import type { EntityManager } from "typeorm";
import type { ActionRow } from "../../data/action.js";
import type { HttpMethod, HttpWhere, Trigger } from "../../data/action-types.js";
import { type Executor, isDeadlock, isDuplicate, preparedRows, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { matchingShapesOf, patternShapeOf } from "../../rules/http/path.js";
import { routeKey } from "../../rules/http/where.js";
import { type RouteMatch, SELECT_ROUTES } from "../runs/matching-routes.js";

/** Stored method of a trigger that accepts all methods. */
const ANY = "";

/** A trigger whose path matches a request. */
export interface Route {
  actionId: number;
  /** ID of the draft to which the trigger belongs. */
  masterId: number;
  where: HttpWhere;
  /**
   * For a live version, true if the action is active and its app is published. For a draft, true if the action is
   * active.
   */
  isOpen: boolean;
  /** Version number of the app's secrets if the proof needs a setting, otherwise 0. */
  secretsVersion: number;
  /** Encrypted secret of a trigger with a secret in the URL; otherwise null. */
  sealed: Buffer | null;
}

export const httpWheres = (triggers: readonly Trigger[]): HttpWhere[] =>
  triggers.flatMap((trigger) => (trigger.trigger === "http" ? [trigger.where] : []));

const nameOf = ({ method, path }: HttpWhere): string => `${method ?? "every method"} ${path}`;

const SELECT_TAKEN_ADDRESS = `
  SELECT wanted.at, action.name FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS wanted (shape, method, at)
    JOIN http_route AS route ON route.app_id = $1 AND route.is_draft = $2 AND route.shape = wanted.shape AND route.method = wanted.method
    JOIN action ON action.id = route.action_id
   WHERE route.action_id <> ALL ($5::bigint[]) ORDER BY wanted.at LIMIT 1`;

/**
 * Returns TRIGGERS_INVALID if a trigger of another action has one of the addresses, otherwise null. Ignores the actions
 * in `except`.
 */
export async function addressTakenFault(
  executor: Executor,
  where: { appId: number; isDraft: boolean; except: readonly number[] },
  triggers: readonly Trigger[],
): Promise<ActionError | null> {
  const httpConditions = httpWheres(triggers);
  if (httpConditions.length === 0) return null;
  const pathShapes = httpConditions.map(({ path }) => patternShapeOf(path));
  const methods = httpConditions.map(({ method }) => method ?? ANY);
  const values = [where.appId, where.isDraft, pathShapes, methods, where.except];
  const [taken] = await rows<{ at: number; name: string }>(executor, SELECT_TAKEN_ADDRESS, values);
  if (!taken) return null;
  const takenCondition = httpConditions[taken.at - 1]!;
  const at = triggers.findIndex((trigger) => trigger.trigger === "http" && trigger.where === takenCondition);
  const message = `triggers[${at}].where has the method and path of another trigger: the action ${taken.name} answers ${nameOf(takenCondition)}`;
  return new ActionError("TRIGGERS_INVALID", message);
}

/* Deletes the routes of the action $1 that its triggers no longer contain. */
const REMOVE_OTHERS = `
  DELETE FROM http_route WHERE action_id = $1
     AND NOT EXISTS (SELECT FROM unnest($2::text[], $3::text[]) AS wanted (shape, method)
                      WHERE wanted.shape = http_route.shape AND wanted.method = http_route.method)`;
const ADD = `
  INSERT INTO http_route AS route (app_id, is_draft, shape, method, action_id, settings)
  SELECT $1, $2, shape, method, $3, settings
    FROM unnest($4::text[], $5::text[], $6::json[]) AS wanted (shape, method, settings)
   WHERE NOT EXISTS (SELECT FROM http_route AS own WHERE own.action_id = $3 AND own.shape = wanted.shape AND own.method = wanted.method)
   ORDER BY shape COLLATE "C", method COLLATE "C"`;
const REPLACE_ROUTES = `
  UPDATE http_route AS route SET settings = wanted.settings
    FROM unnest($2::text[], $3::text[], $4::json[]) AS wanted (shape, method, settings)
   WHERE route.action_id = $1 AND route.shape = wanted.shape AND route.method = wanted.method
     AND route.settings::text <> wanted.settings::text`;

/**
 * Updates the routes of a draft or live version, in the transaction that writes its triggers.
 * @throws TRIGGERS_INVALID if a trigger of another action has one of the addresses
 */
export async function writeRoutes(manager: EntityManager, { id, appId, masterId, triggers }: ActionRow): Promise<void> {
  const httpConditions = httpWheres(triggers);
  const isDraft = masterId === null;
  const pathShapes = httpConditions.map(({ path }) => patternShapeOf(path));
  const methods = httpConditions.map(({ method }) => method ?? ANY);
  const settings = httpConditions.map((where) => JSON.stringify(where));
  await rows(manager, REMOVE_OTHERS, [id, pathShapes, methods]);
  if (httpConditions.length === 0) return;
  await rows(manager, REPLACE_ROUTES, [id, pathShapes, methods, settings]);
  try {
    await rows(manager, ADD, [appId, isDraft, id, pathShapes, methods, settings]);
  } catch (error) {
    // Two actions that exchange their addresses wait for each other: a deadlock.
    if (!isDuplicate(error, "http_route_pkey") && !isDeadlock(error)) throw error;
    throw new ActionError(
      "TRIGGERS_INVALID",
      "triggers: another action already has a trigger with one of these methods and paths",
    );
  }
}

/** Frees the paths of actions that the same transaction writes again, so that actions can exchange paths. */
export async function freeRoutes(manager: EntityManager, actionIds: readonly number[]): Promise<void> {
  if (actionIds.length > 0)
    await rows(manager, "DELETE FROM http_route WHERE action_id = ANY ($1::bigint[])", [actionIds]);
}

/**
 * Returns a function that reserves the addresses of one action of a document. It throws TRIGGERS_INVALID if another
 * action has reserved one.
 */
export function createAddressClaims(): (triggers: readonly Trigger[]) => void {
  const claimedKeys = new Set<string>();
  return (triggers) => {
    const httpConditions = httpWheres(triggers);
    const existingCondition = httpConditions.find((where) => claimedKeys.has(routeKey(where)));
    if (existingCondition) {
      throw new ActionError(
        "TRIGGERS_INVALID",
        `triggers: two actions have an http trigger for ${nameOf(existingCondition)}`,
      );
    }
    for (const where of httpConditions) claimedKeys.add(routeKey(where));
  };
}

/**
 * Returns the routes with the most specific shape: from left to right, a literal segment has precedence over a
 * parameter.
 */
function bestOf(routes: readonly Route[], pathShapes: readonly string[]): Route[] {
  const shapeRank = ({ where }: Route) => pathShapes.indexOf(patternShapeOf(where.path));
  const bestRank = Math.min(...routes.map(shapeRank));
  return routes.filter((route) => shapeRank(route) === bestRank);
}

/** Triggers whose addresses match a request. */
export interface FoundRoutes {
  routes: readonly Route[];
  /** All rows that matched, for the statement that writes the run; null for drafts. */
  match: RouteMatch | null;
}

/**
 * Finds the triggers whose path matches the segments, for all methods.
 * @param mayOpen true if the last segment is the trigger's secret; drafts have no secret in the path
 */
export async function findRoutes(
  db: Executor,
  { appId, isDraft, decoded }: { appId: number; isDraft: boolean; decoded: readonly string[] },
  mayOpen: (route: Route, segment: string) => Promise<boolean>,
): Promise<FoundRoutes> {
  const shapes = matchingShapesOf(decoded);
  const shapesBeforeSecret = isDraft ? [] : matchingShapesOf(decoded.slice(0, -1));
  if (shapes.length + shapesBeforeSecret.length === 0) return { routes: [], match: null };
  const values = [appId, isDraft, shapes, shapesBeforeSecret];
  const found = await preparedRows<Route & { rowText: string }>(db, "find-http-routes", SELECT_ROUTES, values);
  const match = isDraft ? null : { shapes, shapesBeforeSecret, rowTexts: found.map(({ rowText }) => rowText).sort() };
  const openRoutes = found.filter(({ isOpen }) => isOpen);
  const isOfSecret = ({ where }: Route) => !isDraft && where.auth.type === "secret";
  const openedRoutes: Route[] = [];
  for (const route of openRoutes.filter(isOfSecret))
    if (await mayOpen(route, decoded.at(-1)!)) openedRoutes.push(route);
  if (openedRoutes.length > 0) return { routes: bestOf(openedRoutes, shapesBeforeSecret), match };
  const routes = bestOf(
    openRoutes.filter((route) => !isOfSecret(route)),
    shapes,
  );
  return { routes, match };
}

/**
 * Returns the trigger that answers the method: first one for this method, then GET for HEAD, then one for all methods.
 */
export function routeFor<R extends Pick<Route, "where">>(routes: readonly R[], method: string): R | undefined {
  const withMethod = (wanted: string) => routes.find(({ where }) => (where.method ?? ANY) === wanted);
  return withMethod(method) ?? (method === "HEAD" ? withMethod("GET") : undefined) ?? withMethod(ANY);
}

/** Returns the value of the header `Allow`. */
export function allowHeaderOf(routes: readonly Pick<Route, "where">[]): string {
  const methods = new Set<HttpMethod | "OPTIONS">(routes.flatMap(({ where }) => where.method ?? []));
  if (methods.has("GET")) methods.add("HEAD");
  return [...methods.add("OPTIONS")].join(", ");
}
