/** Which copy a caller's name or id means, and whether it may run on demand (specification, "Which version runs"). */
import type { DataSource } from "typeorm";
import type { Copy, Trigger } from "../../data/action-types.js";
import { preparedRows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { RunCode } from "./ledger.js";

export interface Target extends RunCode {
  id: number;
  active: boolean;
  actionVersion: string;
  triggers: Trigger[];
}

/*
 * An id names a family, whichever of its two copies it is the id of; a name names the action that bears it in the caller's copy.
 * Text that is all digits is an id first: names may be digits too.
 */
const FIND = `
  SELECT a.id, a.name, a.active, a.code, a.dependencies, a.environment, a.action_version AS "actionVersion", a.triggers
    FROM action a
   WHERE a.app_id = $1 AND (a.master_id IS NULL) = ($2 = 'master')
     AND (a.name = $3 OR coalesce(a.master_id, a.id) =
          (SELECT coalesce(f.master_id, f.id) FROM action f WHERE f.app_id = $1 AND f.id = $4))
   ORDER BY a.name = $3 LIMIT 1`;

function asId(nameOrId: string | number): number | null {
  const id = typeof nameOrId === "number" || /^[1-9]\d{0,15}$/.test(nameOrId) ? Number(nameOrId) : 0;
  return Number.isSafeInteger(id) && id > 0 ? id : null;
}

/**
 * The copy to run on demand.
 * @throws ACTION_NOT_FOUND, ACTION_NOT_V3, CLIENT_ACTION_NOT_RUNNABLE, ACTION_INACTIVE, TRIGGER_NOT_ALLOWED
 */
export async function findTarget(
  db: DataSource,
  appId: number,
  copy: Copy,
  nameOrId: string | number,
): Promise<Target> {
  const name = String(nameOrId);
  // A text column holds no NUL, so no action bears such a name.
  const [target] = name.includes("\0")
    ? []
    : await preparedRows<Target>(db, "find-target", FIND, [appId, copy, name, asId(nameOrId)]);
  if (!target) throw new ActionError("ACTION_NOT_FOUND");
  if (target.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
  if (target.environment === "client") throw new ActionError("CLIENT_ACTION_NOT_RUNNABLE");
  if (!target.active) throw new ActionError("ACTION_INACTIVE");
  if (!target.triggers.some(({ trigger }) => trigger === "manual")) {
    throw new ActionError("TRIGGER_NOT_ALLOWED", `${target.name} has no manual trigger, so it does not run on demand`);
  }
  return target;
}
