/** Finds the action that a call names, and checks that it can run on demand. */
import type { RunWait, Trigger } from "../../data/action-types.js";
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { type Caller, isPageCaller } from "../../rules/access.js";
import { getReferenceSqlParameters, type IdOrName } from "../../rules/reference.js";
import type { CallerActionAccess } from "./run-access.js";
import type { RunCode } from "./run-types.js";

/** Triggers with which a request can run an action: a call of the API (`manual`), or an HTTP trigger (`http`). */
export type OnDemandTrigger = "manual" | "http";

/** The draft or live version of the action that a call names. */
export interface CalledAction extends RunCode {
  id: number;
  active: boolean;
  actionVersion: string;
  triggers: Trigger[];
  waitsFor: RunWait | null;
  /** JSON text of the action's access rule; null if everyone has access. */
  access: string | null;
  /** True if this call cannot start the action, because the app is unpublished. */
  isPaused: boolean;
}

/** Fields that decide whether the caller may run the action. */
export type RunnableFacts = Pick<
  CalledAction,
  "name" | "active" | "environment" | "actionVersion" | "triggers" | "access" | "isPaused"
>;

/**
 * Returns SQL that selects the action that a call names. All arguments are SQL parameters such as `$1`; `copy` is `master` or `production`.
 * `needsPublishedApp`: an unpublished app prevents the run. The ID of a draft also finds its live version, and vice versa.
 */
export const createFindActionSql = (app: string, copy: string, name: string, id: string, needsPublishedApp: string) => `
  SELECT id, name, active, code, dependencies, assets, environment, action_version AS "actionVersion", triggers,
         timeout_ms AS "timeoutMs", integration_origins AS "integrationOrigins", source->>'map' AS map, access::text AS access,
         CASE WHEN (debounce->>'manual')::boolean THEN 'debounce' WHEN concurrency IS NOT NULL THEN 'concurrency' END AS "waitsFor",
         ${needsPublishedApp}::boolean AND (SELECT published_at IS NULL FROM app WHERE app.id = action.app_id) AS "isPaused"
    FROM action
   WHERE id = coalesce(
     (SELECT CASE WHEN ${copy}::text = 'master' THEN family.id
                  ELSE (SELECT id FROM action WHERE master_id = family.id) END
        FROM (SELECT coalesce(master_id, id) AS id FROM action WHERE app_id = ${app}::bigint AND id = ${id}::bigint) AS family),
     (SELECT id FROM action
       WHERE app_id = ${app}::bigint AND name = ${name}::text AND (master_id IS NULL) = (${copy}::text = 'master')))`;

/** SQL condition for the actions that `checkRunnable` accepts. `granted` and `trigger` are SQL parameters such as `$1`. */
export const createRunnableConditionSql = (granted: string, trigger: string) => `
  (access IS NULL OR ${granted}::text[] IS NULL OR access = ANY (${granted}::text[])) AND active AND NOT "isPaused" AND environment <> 'client' AND "actionVersion" = 'v3'
  AND EXISTS (SELECT FROM json_array_elements(triggers) AS entry WHERE entry->>'trigger' = ${trigger}::text)`;

/**
 * Checks the action's access rule, and adds a rule that the caller meets to `metRules`. Returns true if it was added: then repeat the SQL
 * statement with the longer list. @throws ActionError ACTION_ACCESS_DENIED
 */
export async function checkActionAccess(
  action: RunnableFacts | undefined,
  access: CallerActionAccess,
): Promise<boolean> {
  if (!action || action.isPaused || action.actionVersion !== "v3") return false;
  const { metRules } = access;
  if (action.access === null || metRules === null || metRules.has(action.access)) return false;
  if (!(await access.meetsRule(action.access))) throw new ActionError("ACTION_ACCESS_DENIED");
  metRules.add(action.access);
  return true;
}

/**
 * Call `checkActionAccess` before. @throws ActionError ACTION_NOT_FOUND, APP_NOT_PUBLISHED, ACTION_NOT_V3, CLIENT_ACTION_NOT_RUNNABLE,
 * ACTION_INACTIVE, TRIGGER_NOT_ALLOWED
 */
export function checkRunnable<Named extends RunnableFacts>(action: Named | undefined, trigger: OnDemandTrigger): Named {
  if (!action) throw new ActionError("ACTION_NOT_FOUND");
  if (action.isPaused) throw new ActionError("APP_NOT_PUBLISHED");
  if (action.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
  if (action.environment === "client") throw new ActionError("CLIENT_ACTION_NOT_RUNNABLE");
  if (!action.active) throw new ActionError("ACTION_INACTIVE");
  if (action.triggers.some((entry) => entry.trigger === trigger)) return action;
  throw new ActionError(
    "TRIGGER_NOT_ALLOWED",
    `the action ${action.name} has no "${trigger}" trigger, so a request cannot run it`,
  );
}

/**
 * Throws `error` again. If it is ACTION_NOT_FOUND but the action has a draft, a back end of the app gets a message that says that the
 * action is not published. Visitors do not get this message, because it would reveal which drafts exist.
 */
export async function throwMissingActionError(
  db: Db,
  caller: Caller,
  { appId, ref }: { appId: number; ref: IdOrName },
  error: unknown,
): Promise<never> {
  const isMissing = error instanceof ActionError && error.status === "ACTION_NOT_FOUND";
  if (!isMissing || caller.copy === "master" || isPageCaller(caller)) throw error;
  const values = [appId, "master", ...getReferenceSqlParameters(ref), false];
  const [draft] = await rows<CalledAction>(db, createFindActionSql("$1", "$2", "$3", "$4", "$5"), values);
  if (!draft) throw error;
  const message = `the action ${draft.name} is not published; publish it, or run its draft with an editor's session`;
  throw new ActionError("ACTION_NOT_FOUND", message);
}
