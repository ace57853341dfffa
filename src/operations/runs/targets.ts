/** Which copy a caller's name or id means, and whether it may run on demand (specification, "Which version runs"). */
import type { DataSource } from "typeorm";
import type { Copy, RunWait, Trigger } from "../../data/action-types.js";
import { preparedRows, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { type Caller, isVisitor } from "../../rules/access.js";
import { type Reference, referenceParameters } from "../../rules/reference.js";
import type { RunAccess } from "./run-access.js";
import type { RunCode } from "./run-facts.js";

export interface Target extends RunCode {
  id: number;
  active: boolean;
  actionVersion: string;
  triggers: Trigger[];
  waitsFor: RunWait | null;
  /** JSON text of the action's access; null stands for everyone. */
  access: string | null;
  /** True if the app is unpublished and the caller depends on its publication. */
  isPaused: boolean;
}

/**
 * Selects the copy from the texts of its parameters: app, copy, a name or an id (`referenceParameters`), and needsApp. The id of either
 * copy finds the caller's copy; a name finds the action that has it in the caller's copy. `needsApp`: an unpublished app pauses the run.
 */
export const FIND_TARGET = (app: string, copy: string, name: string, id: string, needsApp: string) => `
  SELECT id, name, active, code, dependencies, assets, environment, action_version AS "actionVersion", triggers,
         timeout_ms AS "timeoutMs", integration_origins AS "integrationOrigins", source->>'map' AS map, access::text AS access,
         CASE WHEN (debounce->>'manual')::boolean THEN 'debounce' WHEN concurrency IS NOT NULL THEN 'concurrency' END AS "waitsFor",
         ${needsApp}::boolean AND (SELECT published_at IS NULL FROM app WHERE app.id = action.app_id) AS "isPaused"
    FROM action
   WHERE id = coalesce(
     (SELECT CASE WHEN ${copy}::text = 'master' THEN family.id
                  ELSE (SELECT id FROM action WHERE master_id = family.id) END
        FROM (SELECT coalesce(master_id, id) AS id FROM action WHERE app_id = ${app}::bigint AND id = ${id}::bigint) AS family),
     (SELECT id FROM action
       WHERE app_id = ${app}::bigint AND name = ${name}::text AND (master_id IS NULL) = (${copy}::text = 'master')))`;

const isGranted = ({ access }: Target, { granted }: RunAccess): boolean =>
  access === null || granted === null || granted.has(access);

/** Kinds of triggers by which a request runs an action. */
export type OnDemandTrigger = "manual" | "http";

/** The rows of `FIND_TARGET` that `refuseUnlessRunnable` accepts. `granted` and `trigger`: texts of the parameters of granted access values and of the kind of trigger. */
export const runnable = (granted: string, trigger: string) => `
  (access IS NULL OR ${granted}::text[] IS NULL OR access = ANY (${granted}::text[])) AND active AND NOT "isPaused" AND environment <> 'client' AND "actionVersion" = 'v3'
  AND EXISTS (SELECT FROM json_array_elements(triggers) AS one WHERE one->>'trigger' = ${trigger}::text)`;

/**
 * Judges the access of a target that the caller's other rights reach, and adds it to what is granted.
 * @returns true if the access was not known before, so that a statement that depends on it must run again
 * @throws ACTION_ACCESS_DENIED
 */
export async function judgeAccess(target: Target | undefined, access: RunAccess): Promise<boolean> {
  if (!target || target.isPaused || target.actionVersion !== "v3" || isGranted(target, access)) return false;
  if (!(await access.judge(target.access!))) throw new ActionError("ACTION_ACCESS_DENIED");
  access.granted?.add(target.access!);
  return true;
}

/**
 * Access is judged before, by `judgeAccess`.
 * @throws ACTION_NOT_FOUND, APP_NOT_PUBLISHED, ACTION_NOT_V3, CLIENT_ACTION_NOT_RUNNABLE, ACTION_INACTIVE, TRIGGER_NOT_ALLOWED
 */
export function refuseUnlessRunnable<Found extends Target>(
  target: Found | undefined,
  wanted: OnDemandTrigger = "manual",
): Found {
  if (!target) throw new ActionError("ACTION_NOT_FOUND");
  if (target.isPaused) throw new ActionError("APP_NOT_PUBLISHED");
  if (target.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
  if (target.environment === "client") throw new ActionError("CLIENT_ACTION_NOT_RUNNABLE");
  if (!target.active) throw new ActionError("ACTION_INACTIVE");
  if (!target.triggers.some(({ trigger }) => trigger === wanted)) {
    throw new ActionError(
      "TRIGGER_NOT_ALLOWED",
      `${target.name} has no ${wanted} trigger, so it does not run on demand`,
    );
  }
  return target;
}

/**
 * Finds the action to run on demand.
 * @throws ACTION_ACCESS_DENIED, and as `refuseUnlessRunnable`
 */
export async function findTarget(
  db: DataSource,
  asked: { appId: number; copy: Copy; ref: Reference; needsApp: boolean; access: RunAccess; trigger?: OnDemandTrigger },
): Promise<Target> {
  const { appId, copy, ref, needsApp, access, trigger } = asked;
  const text = FIND_TARGET("$1", "$2", "$3", "$4", "$5");
  const values = [appId, copy, ...referenceParameters(ref), needsApp];
  const [target] = await preparedRows<Target>(db, "find-target", text, values);
  await judgeAccess(target, access);
  return refuseUnlessRunnable(target, trigger);
}

/**
 * Says of a missing action that it is only not published, to backends of the app: visitors do not learn which drafts exist.
 * @throws the error, or ACTION_NOT_FOUND with that reason
 */
export async function explainMissing(
  db: DataSource,
  caller: Caller,
  appId: number,
  ref: Reference,
  error: unknown,
): Promise<never> {
  const isMissing = error instanceof ActionError && error.status === "ACTION_NOT_FOUND";
  if (!isMissing || caller.copy === "master" || isVisitor(caller)) throw error;
  const values = [appId, "master", ...referenceParameters(ref), false];
  const [draft] = await rows<Target>(db, FIND_TARGET("$1", "$2", "$3", "$4", "$5"), values);
  if (!draft) throw error;
  const message = `the action ${draft.name} is not published; publish it, or run its draft with an editor's session`;
  throw new ActionError("ACTION_NOT_FOUND", message);
}
