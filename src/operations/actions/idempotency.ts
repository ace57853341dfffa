/**
 * Idempotency keys of requests that write. The response to the first request with a key is stored for 24 hours, and returned for later
 * requests with the same key. The keys of run requests are stored with the run instead.
 */
import { createHash } from "node:crypto";
import type { EntityManager } from "typeorm";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { IDEMPOTENCY_KEY_LIFETIME_HOURS } from "../../limits.js";
import type { Caller } from "../../rules/access.js";

const IS_EXPIRED = `created_at < now() - interval '${IDEMPOTENCY_KEY_LIFETIME_HOURS} hours'`;

/* Deletes up to 100 expired keys of all callers. Skips rows that another process is deleting. */
const DELETE_EXPIRED_KEYS = `
  DELETE FROM idempotency WHERE ctid IN
    (SELECT ctid FROM idempotency WHERE ${IS_EXPIRED} ORDER BY created_at LIMIT 100 FOR UPDATE SKIP LOCKED)`;

/** Inserts a key unless it exists. Waits for the end of a transaction that is inserting the same key. */
const CLAIM_KEY = `
  INSERT INTO idempotency (credential_id, app_id, key, request) VALUES ($1, $2, $3, $4)
  ON CONFLICT (credential_id, app_id, key) DO NOTHING RETURNING key`;

/**
 * A request with its idempotency key; `key` is null if the request has none. Equal keys of different credentials or
 * apps are independent. A later request with the same key must have the same content in `request`.
 */
export interface IdempotentRequest {
  appId: number;
  key: string | null;
  request: unknown;
}

/**
 * Runs `work` only once per idempotency key. Later calls with the same key return the first result. If `work` fails,
 * nothing is stored, so that the client can repeat the request.
 * @param manager transaction in which `work` writes
 * @throws REQUEST_INVALID if the key was used for a different request
 */
export async function runOncePerIdempotencyKey<T extends object>(
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
    if (first)
      throw new ActionError(
        "REQUEST_INVALID",
        "this idempotency key was already used for a different request; send this request with a new key",
      );
  }
}
