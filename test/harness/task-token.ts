/** Issues a task token for a test. With `runId`, the token belongs to this run. Otherwise, it belongs to no run. */
import type { Db } from "../../src/data/database.js";
import { generateToken, hashToken } from "../../src/operations/access/tokens.js";

export async function issueTaskToken(db: Db, appId: number, runId: number | null = null): Promise<string> {
  const token = generateToken("task");
  const values = [hashToken(token), appId, runId];
  await db.query("INSERT INTO credential (kind, hash, app_id, run_id) VALUES ('task', $1, $2, $3)", values);
  return token;
}
