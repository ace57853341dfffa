/**
 * Counts people's failed sign-ins across all processes. There are two limits: one per pair of account and network
 * address, and one per network address. There is no limit per account, so that one person cannot lock out another.
 */
import { createHash } from "node:crypto";
import type { EntityManager } from "typeorm";
import { type Db, rows } from "../../data/database.js";
import { createRateLimitError } from "../../errors.js";
import { getAddressBlock } from "../../rules/address-block.js";
import {
  getSignInBlockedUntil,
  recordSignInAttempt,
  removeSignInAttempt,
  SIGN_IN_ATTEMPT_STATE_LIFETIME_MS,
  type SignInAttemptState,
} from "../../rules/sign-in-wait.js";

const IS_OLD = `sign_in_failure.updated_at < now() - interval '${SIGN_IN_ATTEMPT_STATE_LIFETIME_MS} milliseconds'`;
/**
 * Creates missing rows of counts, resets old rows, and returns all rows of the keys $1. Locks these rows, so that concurrent attempts wait.
 * The list $1 must be sorted to prevent deadlocks.
 */
const LOCK_FAILURES = `
  INSERT INTO sign_in_failure (subject, failures) SELECT unnest($1::bytea[]), '{}'
  ON CONFLICT (subject) DO UPDATE SET updated_at = now(),
    failures = CASE WHEN ${IS_OLD} THEN '{}' ELSE sign_in_failure.failures END,
    level = CASE WHEN ${IS_OLD} THEN 0 ELSE sign_in_failure.level END
  RETURNING subject, failures, level, blocked_until AS "blockedUntil"`;
const SAVE_FAILURE = `
  UPDATE sign_in_failure SET failures = $2, level = $3, blocked_until = $4, updated_at = now() WHERE subject = $1`;
const DELETE_OLD_FAILURES = `
  DELETE FROM sign_in_failure WHERE subject IN
    (SELECT subject FROM sign_in_failure WHERE ${IS_OLD}
      ORDER BY updated_at LIMIT 20 FOR UPDATE SKIP LOCKED)`;
const DELETE_FAILURE = "DELETE FROM sign_in_failure WHERE subject = $1";

interface AttemptRow {
  subject: Buffer;
  failures: Date[];
  level: number;
  blockedUntil: Date | null;
}

const hashAttemptKey = (...parts: readonly string[]): Buffer =>
  createHash("sha256").update(JSON.stringify(parts)).digest();

function toAttemptState({ failures, level, blockedUntil }: AttemptRow): SignInAttemptState {
  return {
    failures: failures.map((failedAt) => failedAt.getTime()),
    level,
    blockedUntil: blockedUntil?.getTime() ?? null,
  };
}

async function saveAttempts(manager: EntityManager, subject: Buffer, state: SignInAttemptState): Promise<void> {
  const blockedUntil = state.blockedUntil === null ? null : new Date(state.blockedUntil);
  await rows(manager, SAVE_FAILURE, [
    subject,
    state.failures.map((failedAt) => new Date(failedAt)),
    state.level,
    blockedUntil,
  ]);
}

async function readDatabaseTime(manager: EntityManager): Promise<number> {
  const [row] = await rows<{ now: Date }>(manager, "SELECT clock_timestamp() AS now", []);
  return row!.now.getTime();
}

async function lockAttempts(manager: EntityManager, subjects: readonly Buffer[]): Promise<AttemptRow[]> {
  return rows<AttemptRow>(manager, LOCK_FAILURES, [[...subjects].sort(Buffer.compare)]);
}

export class PersonSignInAttempts {
  constructor(private readonly options: { db: Db }) {}

  /**
   * Counts an attempt as failed before its result is known, so that concurrent attempts cannot exceed the limits. Returns the time of the
   * attempt, which `uncountAttempt` needs. @throws RATE_LIMIT_EXCEEDED
   */
  private async countAttempt(subjects: readonly Buffer[]): Promise<number> {
    return this.options.db.transaction(async (manager) => {
      const lockedRows = await lockAttempts(manager, subjects);
      const now = await readDatabaseTime(manager);
      const blockedUntil = Math.max(...lockedRows.map((row) => getSignInBlockedUntil(toAttemptState(row), now) ?? 0));
      if (blockedUntil > 0) {
        const retryAfter = Math.max(1, Math.ceil((blockedUntil - now) / 1000));
        const message = `too many failed sign-ins to this account or from this network address; try again in ${retryAfter} s`;
        throw createRateLimitError(message, retryAfter);
      }
      for (const row of lockedRows)
        await saveAttempts(manager, row.subject, recordSignInAttempt(toAttemptState(row), now));
      await rows(manager, DELETE_OLD_FAILURES, []);
      return now;
    });
  }

  /** Removes one attempt from the counts. After a success, removes all failures for this account from this network address. */
  private async uncountAttempt(
    attemptedAt: number,
    addressKey: Buffer,
    accountKey: Buffer,
    hasSucceeded: boolean,
  ): Promise<void> {
    await this.options.db.transaction(async (manager) => {
      for (const row of await lockAttempts(manager, [addressKey, accountKey])) {
        const mustDelete = hasSucceeded && row.subject.equals(accountKey);
        if (mustDelete) await rows(manager, DELETE_FAILURE, [accountKey]);
        else await saveAttempts(manager, row.subject, removeSignInAttempt(toAttemptState(row), attemptedAt));
      }
    });
  }

  /**
   * Runs `attempt`, a sign-in to `account` from `address`. Counts a null result as a failed sign-in. If `attempt`
   * throws, for example because the service is overloaded, nothing is counted.
   * @throws ActionError RATE_LIMIT_EXCEEDED while the caller must wait, before `attempt` runs; errors of `attempt`
   */
  async runCountedAttempt<T>(
    account: string,
    address: string | undefined,
    attempt: () => Promise<T | null>,
  ): Promise<T | null> {
    const networkAddress = getAddressBlock(address ?? "");
    const addressKey = hashAttemptKey("address", networkAddress);
    const accountKey = hashAttemptKey("account", account, networkAddress);
    const at = await this.countAttempt([addressKey, accountKey]);
    let result: T | null;
    try {
      result = await attempt();
    } catch (error) {
      await this.uncountAttempt(at, addressKey, accountKey, false);
      throw error;
    }
    if (result !== null) await this.uncountAttempt(at, addressKey, accountKey, true);
    return result;
  }
}
