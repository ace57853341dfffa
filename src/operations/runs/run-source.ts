/** The newest runs that an index finds, as SQL: the source of every list and count of them, bounded by construction. */
import { type Executor, rows } from "../../data/database.js";
import type { RunConditions } from "./run-filter.js";

const COPIES = `
  SELECT kin.id FROM action self JOIN action kin ON coalesce(kin.master_id, kin.id) = coalesce(self.master_id, self.id)
   WHERE self.app_id = $1 AND self.id = $2`;

/** A statement that selects `columns` of the newest `most` runs of the row `run`, newest first. */
export type NewestRuns = (columns: string, most: number) => string;

/** An action is asked for by the id of either copy; the runs of each copy are found by themselves, since both together have no index. */
export async function newestRuns(
  executor: Executor,
  appId: number,
  { actionId, found }: Pick<RunConditions, "actionId" | "found">,
): Promise<NewestRuns> {
  const of = (columns: string, condition: string, most: number) =>
    `SELECT ${columns} FROM run WHERE ${found}${condition} ORDER BY run.id DESC LIMIT ${most}`;
  if (actionId === null) return (columns, most) => of(columns, "", most);
  const copies = await rows<{ id: number }>(executor, COPIES, [appId, actionId]);
  const ids = new Set([actionId, ...copies.map(({ id }) => id)]);
  return (columns, most) => {
    const each = [...ids].map((id) => `(${of("run.*", ` AND run.action_id = ${id}`, most)})`);
    return `SELECT ${columns} FROM (${each.join(" UNION ALL ")}) AS run ORDER BY run.id DESC LIMIT ${most}`;
  };
}
