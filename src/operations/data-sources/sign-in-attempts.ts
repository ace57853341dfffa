/**
 * Counts failed sign-ins of app users, wrong codes, and failed comparisons with hashed columns. Rejects further attempts after too many
 * failures. The counts are in the database, so that they apply to all processes together.
 */
import { createHash } from "node:crypto";
import { type Db, rows } from "../../data/database.js";
import { createRateLimitError } from "../../errors.js";
import { APP_USER_SIGN_IN_FAILURES_MAX, APP_USER_SIGN_IN_WINDOW_SECONDS } from "../../limits.js";
import { getAddressBlock } from "../../rules/address-block.js";
import type { DataSender } from "../records/received-data-limiter.js";

/* Locks the keys (`subject`) whose failures are counted, so that concurrent attempts are counted one after the other. */
const LOCK_SUBJECTS = `
  SELECT pg_advisory_xact_lock(key) FROM (
    SELECT hashtextextended(encode(subject, 'hex'), 0) AS key FROM unnest($1::bytea[]) AS subject ORDER BY 1) AS ordered`;
const COUNT_FAILURES = `
  SELECT encode(subject, 'hex') AS subject, count(*) AS count, extract(epoch FROM min(created_at) + interval '${APP_USER_SIGN_IN_WINDOW_SECONDS} seconds' - now())::float8 AS wait
    FROM app_user_failure
   WHERE subject = ANY ($1::bytea[]) AND created_at > now() - interval '${APP_USER_SIGN_IN_WINDOW_SECONDS} seconds' GROUP BY subject`;
/* Inserts a failure for each key (`subject`) when an attempt starts. The failures of a successful attempt are removed afterwards. */
const INSERT_FAILURES = "INSERT INTO app_user_failure (subject) SELECT unnest($1::bytea[]) RETURNING id";
const DELETE_FAILURES = `
  DELETE FROM app_user_failure WHERE id = ANY ($1::bigint[]) OR id IN
    (SELECT id FROM app_user_failure WHERE created_at < now() - interval '${APP_USER_SIGN_IN_WINDOW_SECONDS} seconds'
      ORDER BY created_at LIMIT 20 FOR UPDATE SKIP LOCKED)`;

export const hashJsonValues = (...values: readonly unknown[]): Buffer =>
  createHash("sha256").update(JSON.stringify(values)).digest();

function throwIfLimitReached(fullSubjects: readonly { wait: number }[]): void {
  if (fullSubjects.length === 0) return;
  const retryAfter = Math.max(1, Math.ceil(Math.max(...fullSubjects.map(({ wait }) => wait))));
  const message = `too many wrong passwords, codes or values of hashed columns within ten minutes; try again in ${retryAfter} s`;
  throw createRateLimitError(message, retryAfter);
}

/** A key for which failed attempts are counted: a network address, a guessed user, or a guessed user from one network address. */
interface AttemptKey {
  hash: Buffer;
  /** Number of failures within ten minutes after which further attempts are rejected. */
  failuresMax: number;
  /**
   * Hash of another key. If set, the limit applies only if the other key also has a failure. The other key includes the sender's network
   * address, so that other senders cannot lock out an app user.
   */
  appliesAfterFailureOf?: Buffer;
}

export class AppUserSignInAttempts {
  constructor(private readonly options: { db: Db }) {}

  private deleteFailures(ids: readonly number[]) {
    return rows(this.options.db, DELETE_FAILURES, [ids]);
  }

  /**
   * Counts the attempt as failed before its result is known. Returns the IDs of the stored failures.
   * @throws RATE_LIMIT_EXCEEDED if a key already has too many failures
   */
  private async countAttempt(subjects: readonly AttemptKey[]): Promise<number[]> {
    return this.options.db.transaction(async (manager) => {
      const hashes = subjects.map(({ hash }) => hash);
      await rows(manager, LOCK_SUBJECTS, [hashes]);
      const failureCounts = await rows<{ subject: string; count: number; wait: number }>(manager, COUNT_FAILURES, [
        hashes,
      ]);
      const findFailureCount = (hash: Buffer) => failureCounts.find(({ subject }) => subject === hash.toString("hex"));
      const fullSubjects = subjects.flatMap(({ hash, failuresMax, appliesAfterFailureOf }) => {
        const failureCount = findFailureCount(hash);
        const isFull = failureCount !== undefined && failureCount.count >= failuresMax;
        return isFull && (!appliesAfterFailureOf || findFailureCount(appliesAfterFailureOf)) ? [failureCount] : [];
      });
      throwIfLimitReached(fullSubjects);
      return (await rows<{ id: number }>(manager, INSERT_FAILURES, [hashes])).map(({ id }) => id);
    });
  }

  /**
   * Runs `attempt`. If it returns false, counts a failure for the network address, and a failure for each guessed user from this address.
   * With `userFailuresMax`, also counts a failure for each guessed user from all addresses together. If `attempt` throws, counts nothing.
   * @param guessedUsers values that each identify a guessed user
   * @param userFailuresMax number of failures for one guessed user from all network addresses, after which each address has only one
   *   attempt; null: no limit
   * @throws RATE_LIMIT_EXCEEDED after too many failures, without running `attempt`; errors of `attempt`
   */
  async runCountedAttempt(
    appId: number,
    guessedUsers: readonly unknown[],
    { address, credentialId }: DataSender,
    attempt: () => Promise<boolean>,
    userFailuresMax: number | null = null,
  ): Promise<boolean> {
    const networkAddress = address === undefined ? `credential ${credentialId}` : getAddressBlock(address);
    const subjects: AttemptKey[] = [
      { hash: hashJsonValues("from", appId, networkAddress), failuresMax: APP_USER_SIGN_IN_FAILURES_MAX },
    ];
    for (const guessedUser of guessedUsers) {
      const hash = hashJsonValues("entry", appId, guessedUser, networkAddress);
      subjects.push({ hash, failuresMax: APP_USER_SIGN_IN_FAILURES_MAX });
      if (userFailuresMax !== null)
        subjects.push({
          hash: hashJsonValues("entry", appId, guessedUser, null),
          failuresMax: userFailuresMax,
          appliesAfterFailureOf: hash,
        });
    }
    const ids = await this.countAttempt(subjects);
    let hasFailed = false;
    try {
      hasFailed = !(await attempt());
      return !hasFailed;
    } finally {
      if (!hasFailed) await this.deleteFailures(ids);
    }
  }
}
