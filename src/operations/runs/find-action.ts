/** Finds the action that a call names, and checks that it can run on demand (specification, "Which version runs"). */
import type { DataSource } from "typeorm";
import type { RunWait, Trigger } from "../../data/action-types.js";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { type Caller, isPageCaller } from "../../rules/access.js";
import { type EntityReference, referenceParameters } from "../../rules/reference.js";
import type { RunAccess } from "./run-access.js";
import type { RunCode } from "./run-types.js";

/** Triggers with which a request runs an action: a call of the API (`manual`), or an HTTP trigger. */
export type OnDemandTrigger = "manual" | "http";

/** The draft or live version that a call names. */
export interface NamedAction extends RunCode {
  id: number;
  active: boolean;
  actionVersion: string;
  triggers: Trigger[];
  waitsFor: RunWait | null;
  /** JSON text of the action's access; null means that everyone has access. */
  access: string | null;
  /** True if the app is unpublished and the caller's runs depend on its publication. */
  isPaused: boolean;
}

/** Fields that decide whether the caller may run the action. */
export type RunnableFacts = Pick<
  NamedAction,
  "name" | "active" | "environment" | "actionVersion" | "triggers" | "access" | "isPaused"
>;

/**
 * SQL that selects the action. Its arguments are SQL parameters such as `$1`: app, version (draft or live), a name or
 * an ID (`referenceParameters`), and `needsPublishedApp`, which is true if an unpublished app pauses the run. The ID of
 * a draft also finds its live version, and vice versa.
 */
export const FIND_ACTION = (app: string, copy: string, name: string, id: string, needsPublishedApp: string) => `
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

/**
 * SQL condition that is true for the rows that `checkRunnable` accepts. Its arguments are SQL parameters such as `$1`:
 * the granted access values, and the trigger.
 */
export const IS_RUNNABLE = (granted: string, trigger: string) => `
  (access IS NULL OR ${granted}::text[] IS NULL OR access = ANY (${granted}::text[])) AND active AND NOT "isPaused" AND environment <> 'client' AND "actionVersion" = 'v3'
  AND EXISTS (SELECT FROM json_array_elements(triggers) AS entry WHERE entry->>'trigger' = ${trigger}::text)`;

/**
 * Checks the action's `access` rule for the caller and adds it to the granted rules.
 * @returns true if the rule was added, so that the statement that depends on it must run again
 * @throws ActionError ACTION_ACCESS_DENIED
 */
export async function grantAccess(action: RunnableFacts | undefined, access: RunAccess): Promise<boolean> {
  if (!action || action.isPaused || action.actionVersion !== "v3") return false;
  const { granted } = access;
  if (action.access === null || granted === null || granted.has(action.access)) return false;
  if (!(await access.isGranted(action.access))) throw new ActionError("ACTION_ACCESS_DENIED");
  granted.add(action.access);
  return true;
}

/**
 * Checks that the action can run. Call `grantAccess` first.
 * @throws ActionError ACTION_NOT_FOUND, APP_NOT_PUBLISHED, ACTION_NOT_V3, CLIENT_ACTION_NOT_RUNNABLE, ACTION_INACTIVE,
 *   TRIGGER_NOT_ALLOWED
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
 * For back ends of the app, adds to ACTION_NOT_FOUND that the action has no live version. Visitors get the plain error,
 * so that it does not reveal which drafts exist.
 * @throws the error, or ACTION_NOT_FOUND with that reason
 */
export async function explainMissing(
  db: DataSource,
  caller: Caller,
  { appId, ref }: { appId: number; ref: EntityReference },
  error: unknown,
): Promise<never> {
  const isMissing = error instanceof ActionError && error.status === "ACTION_NOT_FOUND";
  if (!isMissing || caller.copy === "master" || isPageCaller(caller)) throw error;
  const values = [appId, "master", ...referenceParameters(ref), false];
  const [draft] = await rows<NamedAction>(db, FIND_ACTION("$1", "$2", "$3", "$4", "$5"), values);
  if (!draft) throw error;
  const message = `the action ${draft.name} is not published; publish it, or run its draft with an editor's session`;
  throw new ActionError("ACTION_NOT_FOUND", message);
}
