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
  /** True if the app is unpublished and the caller depends on its publication. */
  isPaused: boolean;
}

/**
 * Selects the copy from the texts of its parameters: app, copy, a name or an id (`referenceParameters`), and needsApp. The id of either
 * copy finds the caller's copy; a name finds the action that has it in the caller's copy. `needsApp`: an unpublished app pauses the run.
 */
export const FIND_TARGET = (app: string, copy: string, name: string, id: string, needsApp: string) => `
  SELECT id, name, active, code, dependencies, assets, environment, action_version AS "actionVersion", triggers,
         timeout_ms AS "timeoutMs",
         CASE WHEN (debounce->>'manual')::boolean THEN 'debounce' WHEN concurrency IS NOT NULL THEN 'concurrency' END AS "waitsFor",
         ${needsApp}::boolean AND (SELECT published_at IS NULL FROM app WHERE app.id = action.app_id) AS "isPaused"
    FROM action
   WHERE id = coalesce(
     (SELECT CASE WHEN ${copy}::text = 'master' THEN family.id
                  ELSE (SELECT id FROM action WHERE master_id = family.id) END
        FROM (SELECT coalesce(master_id, id) AS id FROM action WHERE app_id = ${app}::bigint AND id = ${id}::bigint) AS family),
     (SELECT id FROM action
       WHERE app_id = ${app}::bigint AND name = ${name}::text AND (master_id IS NULL) = (${copy}::text = 'master')))`;

/** What `refuseUnlessRunnable` lets pass, of a row of `FIND_TARGET`. */
export const RUNNABLE = `
  active AND NOT "isPaused" AND environment <> 'client' AND "actionVersion" = 'v3'
  AND EXISTS (SELECT FROM json_array_elements(triggers) AS one WHERE one->>'trigger' = 'manual')`;

/** @throws ACTION_NOT_FOUND, APP_NOT_PUBLISHED, ACTION_NOT_V3, CLIENT_ACTION_NOT_RUNNABLE, ACTION_INACTIVE, TRIGGER_NOT_ALLOWED */
export function refuseUnlessRunnable<Found extends Target>(target: Found | undefined): Found {
  if (!target) throw new ActionError("ACTION_NOT_FOUND");
  if (target.isPaused) throw new ActionError("APP_NOT_PUBLISHED");
  if (target.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
  if (target.environment === "client") throw new ActionError("CLIENT_ACTION_NOT_RUNNABLE");
  if (!target.active) throw new ActionError("ACTION_INACTIVE");
  if (!target.triggers.some(({ trigger }) => trigger === "manual")) {
    throw new ActionError("TRIGGER_NOT_ALLOWED", `${target.name} has no manual trigger, so it does not run on demand`);
  }
  return target;
}

/**
 * Finds the action to run on demand.
 * @throws as `refuseUnlessRunnable`
 */
export async function findTarget(
  db: DataSource,
  { appId, copy, ref, needsApp }: { appId: number; copy: Copy; ref: Reference; needsApp: boolean },
): Promise<Target> {
  const text = FIND_TARGET("$1", "$2", "$3", "$4", "$5");
  const values = [appId, copy, ...referenceParameters(ref), needsApp];
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
  const values = [appId, "master", ...referenceParameters(ref), false];
  const [draft] = await rows<Target>(db, FIND_TARGET("$1", "$2", "$3", "$4", "$5"), values);
  if (!draft) throw error;
  const message = `the action ${draft.name} is not published; publish it, or run its draft with an editor's session`;
  throw new ActionError("ACTION_NOT_FOUND", message);
}
