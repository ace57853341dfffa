/** Writes audit entries when people or back ends change an app's media. Changes by runs and visitors are recorded elsewhere. */
import type { Executor } from "../../data/database.js";
import type { AdmittedRequest } from "../access/gate.js";
import { recordChange } from "../records/audit.js";

const RECORDED_CALLERS = ["editor", "admin", "api"];

/** Writes an entry in the transaction of the change. `data` has IDs, names and fields, never contents. */
export async function auditMedia(
  executor: Executor,
  { caller }: AdmittedRequest,
  appId: number,
  type: string,
  data: Record<string, unknown>,
): Promise<void> {
  if (caller && RECORDED_CALLERS.includes(caller.kind)) await recordChange(executor, caller, { appId, type, data });
}
