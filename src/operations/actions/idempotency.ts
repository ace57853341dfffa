/** Idempotency keys of writes: stores the first response for 24 hours and returns it to repeats. Runs store their keys with the run. */
import { createHash } from "node:crypto";
import type { EntityManager } from "typeorm";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { IDEMPOTENCY_HOURS } from "../../limits.js";
import type { Caller } from "../../rules/access.js";

const IS_EXPIRED = `created_at < now() - interval '${IDEMPOTENCY_HOURS} hours'`;

/* Deletes a few expired keys of all callers. Rows that another process is deleting are skipped. */
const DELETE_EXPIRED_KEYS = `
  DELETE FROM idempotency WHERE ctid IN
    (SELECT ctid FROM idempotency WHERE ${IS_EXPIRED} ORDER BY created_at LIMIT 100 FOR UPDATE SKIP LOCKED)`;

/* Claims a key. The statement waits for a transaction that is writing the same key. */
const CLAIM_KEY = `
  INSERT INTO idempotency (credential_id, app_id, key, request) VALUES ($1, $2, $3, $4)
  ON CONFLICT (credential_id, app_id, key) DO NOTHING RETURNING key`;

/** A request with an idempotency key. The key belongs to the credential and the app. `request` is the request as JSON. */
export interface IdempotentRequest {
  appId: number;
  key: string | null;
  request: unknown;
}

/**
 * Runs `work` once for its key, and returns the first result to repeats. Failures are not stored.
 * @param manager of the transaction of `work`
 * @throws REQUEST_INVALID if the key was used for another request
 */
export async function runOnce<T extends object>(
  manager: EntityManager,
  { credentialId }: Caller,
  { appId, key, request }: IdempotentRequest,
  work: () => Promise<T>,
): Promise<T> {
  if (key === null) return work();
  const keyColumns = [credentialId, appId, key];
  const digest = createHash("sha256").update(JSON.stringify(request)).digest();
  await rows(manager, DELETE_EXPIRED_KEYS);
  const keyCondition = "credential_id = $1 AND app_id = $2 AND key = $3";
  await rows(manager, `DELETE FROM idempotency WHERE ${keyCondition} AND ${IS_EXPIRED}`, keyColumns);
  for (;;) {
    if ((await rows(manager, CLAIM_KEY, [...keyColumns, digest])).length > 0) {
      const firstAnswer = await work();
      await rows(manager, `UPDATE idempotency SET answer = $4 WHERE ${keyCondition}`, [
        ...keyColumns,
        JSON.stringify(firstAnswer),
      ]);
      return firstAnswer;
    }
    const sql = `SELECT request, answer FROM idempotency WHERE ${keyCondition}`;
    const [first] = await rows<{ request: Buffer; answer: T }>(manager, sql, keyColumns);
    if (first?.request.equals(digest)) return first.answer;
    if (first) throw new ActionError("REQUEST_INVALID", "this Idempotency-Key was sent with another request before");
  }
}
