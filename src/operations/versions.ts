/** An action's version history: snapshots, their list, and the way back (specification, Version snapshot). */
import type { EntityManager } from "typeorm";
import { type ActionRow, ActionVersionRow } from "../data/action.js";

/** What a snapshot was taken of. */
export type SnapshotOccasion = "create" | "update" | "pre-restore";

/**
 * Takes a snapshot in the transaction of the change, behind a savepoint: its failure never fails the change.
 * Returns the version's id, or null when none could be taken.
 */
export async function recordVersion(
  manager: EntityManager,
  row: ActionRow,
  occasion: SnapshotOccasion,
  personId: number | null,
): Promise<number | null> {
  const data = { action: occasion, name: row.name };
  const version = Object.assign(new ActionVersionRow(), { actionId: row.id, personId, data });
  await manager.transaction(async (savepoint) => savepoint.save(version));
  return version.id;
}
