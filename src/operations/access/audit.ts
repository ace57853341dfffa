/** The trail of writes: who changed what and when. Holds names and ids; refuses to hold values. */
import type { DataSource } from "typeorm";
import { type Executor, rows } from "../../data/database.js";
import type { Caller } from "../../rules/access.js";
import { page } from "../../rules/page.js";

/** `data` names keys, fields and ids, never a setting's value or code. Times are ISO 8601. */
export interface AuditEntry {
  id: number;
  type: string;
  userId: number | null;
  credentialId: number | null;
  actionId: number | null;
  data: Record<string, unknown>;
  createdAt: string;
}

/** Reads the trail of one app. */
export type Trail = (
  appId: number,
  options: { actionId?: number | null; limit?: number | null; offset?: number | null },
) => ReturnType<typeof listAudit>;

/** Writes one entry, in the transaction of the change that it tells of. */
export async function audit(
  executor: Executor,
  caller: Pick<Caller, "personId" | "credentialId"> | null,
  entry: { appId: number; type: string; actionId?: number; data: Record<string, unknown> },
): Promise<void> {
  const { appId, type, actionId = null, data } = entry;
  await rows(
    executor,
    `INSERT INTO audit_entry (app_id, type, person_id, credential_id, action_id, data) VALUES ($1, $2, $3, $4, $5, $6)`,
    [appId, type, caller?.personId ?? null, caller?.credentialId ?? null, actionId, JSON.stringify(data)],
  );
}

/** The app's trail, most recent first; `total` is how many entries match. @throws REQUEST_INVALID */
export async function listAudit(
  db: DataSource,
  appId: number,
  options: { actionId?: number | null; limit?: number | null; offset?: number | null },
): Promise<{ entries: AuditEntry[]; pagination: { total: number; hasMore: boolean } }> {
  const { limit, offset } = page(options);
  const matching = "app_id = $1 AND ($2::bigint IS NULL OR action_id = $2)";
  const parameters = [appId, options.actionId ?? null];
  const [count] = await rows<{ total: number }>(
    db,
    `SELECT count(*) AS total FROM audit_entry WHERE ${matching}`,
    parameters,
  );
  const entries = await rows<AuditEntry & { createdAt: Date }>(
    db,
    `SELECT id, type, person_id AS "userId", credential_id AS "credentialId", action_id AS "actionId", data,
            created_at AS "createdAt"
       FROM audit_entry WHERE ${matching} ORDER BY id DESC LIMIT $3 OFFSET $4`,
    [...parameters, limit, offset],
  );
  return {
    entries: entries.map((entry) => ({ ...entry, createdAt: entry.createdAt.toISOString() })),
    pagination: { total: count!.total, hasMore: offset + entries.length < count!.total },
  };
}
