/** Finds the action that a call names, and checks that the action can run on demand. */
import type { RunWaitReason, Trigger } from "../../data/action-types.js";
import { ActionError } from "../../errors.js";
import type { CallerActionAccess } from "./run-access.js";
import type { RunCode } from "./run-types.js";

export type OnDemandTrigger = "manual" | "http";

/** The message is the same if a draft exists, because visitors must not learn about drafts. */
const NO_ACTION_MESSAGE = "the app has no action with this ID or name, or the action is not published";

export interface CalledAction extends RunCode {
  id: number;
  active: boolean;
  actionVersion: string;
  triggers: Trigger[];
  waitsFor: RunWaitReason | null;
  /** JSON text; null if the action has no access rule. */
  access: string | null;
  isPaused: boolean;
}

/** $1 is the app's ID, $2 `master` (draft) or `production` (live). The ID of a draft also finds its live version. */
export const createFindActionSql = (name: string, id: string, needsPublishedApp: string) => `
  SELECT id, name, active, code, dependencies, assets, environment, action_version AS "actionVersion", triggers,
         timeout_ms AS "timeoutMs", integration_origins AS "integrationOrigins", source->>'map' AS map, access::text AS access,
         CASE WHEN (debounce->>'manual')::boolean THEN 'debounce' WHEN concurrency IS NOT NULL THEN 'concurrency' END AS "waitsFor",
         ${needsPublishedApp}::boolean AND (SELECT published_at IS NULL FROM app WHERE app.id = action.app_id) AS "isPaused"
    FROM action
   WHERE id = coalesce(
     (SELECT CASE WHEN $2::text = 'master' THEN family.id
                  ELSE (SELECT id FROM action WHERE master_id = family.id) END
        FROM (SELECT coalesce(master_id, id) AS id FROM action WHERE app_id = $1::bigint AND id = ${id}::bigint) AS family),
     (SELECT id FROM action
       WHERE app_id = $1::bigint AND name = ${name}::text AND (master_id IS NULL) = ($2::text = 'master')))`;

/** SQL condition: `granted` (SQL parameter with the texts `metRules`) contains the action's rule, and `checkRunnable` accepts the action. */
export const createRunnableConditionSql = (granted: string, trigger: string) => `
  (access IS NULL OR ${granted}::text[] IS NULL OR access = ANY (${granted}::text[])) AND active AND NOT "isPaused" AND environment <> 'client' AND "actionVersion" = 'v3'
  AND EXISTS (SELECT FROM json_array_elements(triggers) AS entry WHERE entry->>'trigger' = ${trigger}::text)`;

/** Returns true if it added a rule to `metRules`: then repeat the SQL statement. @throws ActionError ACTION_ACCESS_DENIED */
export async function checkActionAccess(
  action: CalledAction | undefined,
  access: CallerActionAccess,
): Promise<boolean> {
  if (!action || action.isPaused || action.actionVersion !== "v3") return false;
  const { metRules } = access;
  if (action.access === null || metRules === null || metRules.has(action.access)) return false;
  if (!(await access.meetsRule(action.access))) throw new ActionError("ACTION_ACCESS_DENIED");
  metRules.add(action.access);
  return true;
}

/** Returns the action if it can run, otherwise throws an ActionError. Does not check the access rule: first call `checkActionAccess`. */
export function checkRunnable<Named extends CalledAction>(action: Named | undefined, trigger: OnDemandTrigger): Named {
  if (!action) throw new ActionError("ACTION_NOT_FOUND", NO_ACTION_MESSAGE);
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
