/** Which copy a caller's name or id means, and whether it may run on demand (specification, "Which version runs"). */
import type { DataSource } from "typeorm";
import type { Copy, RunWait, Trigger } from "../../data/action-types.js";
import { preparedRows, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { type Caller, isVisitor } from "../../rules/access.js";
import { type Reference, referenceParameters } from "../../rules/reference.js";
import type { RunCode } from "./run-facts.js";

export interface Target extends RunCode {
  id: number;
  active: boolean;
  actionVersion: string;
  triggers: Trigger[];
  waitsFor: RunWait | null;
}

/**
 * Selects the copy from the texts of its parameters: app, copy, and a name or an id (`referenceParameters`). The id of either copy finds
 * the caller's copy; a name finds the action that has it in the caller's copy.
 */
export const FIND_TARGET = (app: string, copy: string, name: string, id: string) => `
  SELECT id, name, active, code, dependencies, assets, environment, action_version AS "actionVersion", triggers,
         timeout_ms AS "timeoutMs",
         CASE WHEN (debounce->>'manual')::boolean THEN 'debounce' WHEN concurrency IS NOT NULL THEN 'concurrency' END AS "waitsFor"
    FROM action
   WHERE id = coalesce(
     (SELECT CASE WHEN ${copy}::text = 'master' THEN family.id
                  ELSE (SELECT id FROM action WHERE master_id = family.id) END
        FROM (SELECT coalesce(master_id, id) AS id FROM action WHERE app_id = ${app}::bigint AND id = ${id}::bigint) AS family),
     (SELECT id FROM action
       WHERE app_id = ${app}::bigint AND name = ${name}::text AND (master_id IS NULL) = (${copy}::text = 'master')))`;

/** What `refuseUnlessRunnable` lets pass, of a row of `FIND_TARGET`. */
export const RUNNABLE = `
  active AND environment <> 'client' AND "actionVersion" = 'v3'
  AND EXISTS (SELECT FROM json_array_elements(triggers) AS one WHERE one->>'trigger' = 'manual')`;

/** @throws ACTION_NOT_FOUND, ACTION_NOT_V3, CLIENT_ACTION_NOT_RUNNABLE, ACTION_INACTIVE, TRIGGER_NOT_ALLOWED */
export function refuseUnlessRunnable<Found extends Target>(target: Found | undefined): Found {
  if (!target) throw new ActionError("ACTION_NOT_FOUND");
  if (target.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
  if (target.environment === "client") throw new ActionError("CLIENT_ACTION_NOT_RUNNABLE");
  if (!target.active) throw new ActionError("ACTION_INACTIVE");
  if (!target.triggers.some(({ trigger }) => trigger === "manual")) {
    throw new ActionError("TRIGGER_NOT_ALLOWED", `${target.name} has no manual trigger, so it does not run on demand`);
  }
  return target;
}

/**
 * The copy to run on demand.
 * @throws as `refuseUnlessRunnable`
 */
export async function findTarget(db: DataSource, appId: number, copy: Copy, ref: Reference): Promise<Target> {
  const text = FIND_TARGET("$1", "$2", "$3", "$4");
  const values = [appId, copy, ...referenceParameters(ref)];
  return refuseUnlessRunnable((await preparedRows<Target>(db, "find-target", text, values))[0]);
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
  const values = [appId, "master", ...referenceParameters(ref)];
  const [draft] = await rows<Target>(db, FIND_TARGET("$1", "$2", "$3", "$4"), values);
  if (!draft) throw error;
  const message = `the action ${draft.name} is not published; publish it, or run its draft with an editor's session`;
  throw new ActionError("ACTION_NOT_FOUND", message);
}
