/** A task token without the run that it would belong to. */
import type { DataSource } from "typeorm";
import { hashToken, newToken } from "../../src/operations/access/credentials.js";

export async function taskToken(db: DataSource, appId: number): Promise<string> {
  const token = newToken("task");
  await db.query("INSERT INTO credential (kind, hash, app_id) VALUES ('task', $1, $2)", [hashToken(token), appId]);
  return token;
}
