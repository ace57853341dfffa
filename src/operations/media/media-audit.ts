/**
 * Writes audit log entries when people or API tokens change an app's media. Changes by runs of actions and by visitors of pages are not
 * recorded.
 */
import type { SqlClient } from "../../data/database.js";
import type { AdmittedRequest } from "../access/access-checks.js";
import { recordChange } from "../records/audit.js";

const AUDITED_CALLER_KINDS = ["editor", "admin", "api"];

/** Writes an audit log entry in the transaction that changes the media. `data` contains IDs and names, never the content of files. */
export async function recordMediaChange(
  executor: SqlClient,
  { caller }: AdmittedRequest,
  appId: number,
  type: string,
  data: Record<string, unknown>,
): Promise<void> {
  if (caller && AUDITED_CALLER_KINDS.includes(caller.kind)) await recordChange(executor, caller, { appId, type, data });
}
