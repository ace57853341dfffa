/**
 * Writes audit entries when people or API tokens change an app's media. Changes by runs and visitors cause no audit
 * entry.
 */
import type { Executor } from "../../data/database.js";
import type { AdmittedRequest } from "../access/gate.js";
import { recordChange } from "../records/audit.js";

const RECORDED_CALLERS = ["editor", "admin", "api"];

/**
 * Writes an audit entry in the transaction of the change. @param data IDs, names and fields; never the contents of
 * files
 */
export async function auditMedia(
  executor: Executor,
  { caller }: AdmittedRequest,
  appId: number,
  type: string,
  data: Record<string, unknown>,
): Promise<void> {
  if (caller && RECORDED_CALLERS.includes(caller.kind)) await recordChange(executor, caller, { appId, type, data });
}
