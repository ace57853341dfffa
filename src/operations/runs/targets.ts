/** Which copy a caller's name or id means, and whether it may run on demand (specification, "Which version runs"). */
import type { DataSource } from "typeorm";
import type { Copy, RunWait, Trigger } from "../../data/action-types.js";
import { preparedRows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { RunCode } from "./run-facts.js";

export interface Target extends RunCode {
  id: number;
  active: boolean;
  actionVersion: string;
  triggers: Trigger[];
  waitsFor: RunWait | null;
}

/**
 * Selects the copy from the texts of its parameters: app, copy, name, id. An id names a family, whichever of its two copies it is the id
 * of; a name names the action that bears it in the caller's copy. Text that is all digits is an id first: names may be digits too.
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

function asId(nameOrId: string | number): number | null {
  const id = typeof nameOrId === "number" || /^[1-9]\d{0,15}$/.test(nameOrId) ? Number(nameOrId) : 0;
  return Number.isSafeInteger(id) && id > 0 ? id : null;
}

/** Name and id as `FIND_TARGET` takes them. A text column holds no NUL, so no action bears a name that has one: no name does. */
export function targetParameters(nameOrId: string | number): [name: string, id: number | null] {
  const name = String(nameOrId);
  return name.includes("\0") ? ["", null] : [name, asId(nameOrId)];
}

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
export async function findTarget(
  db: DataSource,
  appId: number,
  copy: Copy,
  nameOrId: string | number,
): Promise<Target> {
  const text = FIND_TARGET("$1", "$2", "$3", "$4");
  const values = [appId, copy, ...targetParameters(nameOrId)];
  return refuseUnlessRunnable((await preparedRows<Target>(db, "find-target", text, values))[0]);
}
