/** Counts failed attempts to guess passwords and codes, over all processes. */
import { createHash } from "node:crypto";
import type { DataSource as Database } from "typeorm";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { SIGN_IN_FAILURES, SIGN_IN_WINDOW_SECONDS } from "../../limits.js";
import { addressBlock } from "../../rules/address-block.js";
import type { Sender } from "../records/intake.js";

/* Serializes the attempts of each subject, so that each of many concurrent attempts is counted. */
const LOCK_SUBJECTS = `
  SELECT pg_advisory_xact_lock(key) FROM (
    SELECT hashtextextended(encode(subject, 'hex'), 0) AS key FROM unnest($1::bytea[]) AS subject ORDER BY 1) AS ordered`;
const COUNT = `
  SELECT encode(subject, 'hex') AS subject, count(*) AS count, extract(epoch FROM min(created_at) + interval '${SIGN_IN_WINDOW_SECONDS} seconds' - now())::float8 AS wait
    FROM app_user_failure
   WHERE subject = ANY ($1::bytea[]) AND created_at > now() - interval '${SIGN_IN_WINDOW_SECONDS} seconds' GROUP BY subject`;
/* Inserts failures. An attempt counts from its start; a successful one is removed. */
const INSERT_FAILURES = "INSERT INTO app_user_failure (subject) SELECT unnest($1::bytea[]) RETURNING id";
const DELETE_FAILURES = `
  DELETE FROM app_user_failure WHERE id = ANY ($1::bigint[]) OR id IN
    (SELECT id FROM app_user_failure WHERE created_at < now() - interval '${SIGN_IN_WINDOW_SECONDS} seconds'
      ORDER BY created_at LIMIT 20 FOR UPDATE SKIP LOCKED)`;

export const digestParts = (...parts: readonly unknown[]): Buffer =>
  createHash("sha256").update(JSON.stringify(parts)).digest();

function refuseFull(fullSubjects: readonly { wait: number }[]): void {
  if (fullSubjects.length === 0) return;
  const retryAfter = Math.max(1, Math.ceil(Math.max(...fullSubjects.map(({ wait }) => wait))));
  const nextValidRequestDate = new Date(Date.now() + retryAfter * 1000).toISOString();
  const message = `${SIGN_IN_FAILURES} failures in ten minutes are enough; try again in ${retryAfter} s`;
  throw new ActionError("RATE_LIMIT_EXCEEDED", message, { retryAfter, nextValidRequestDate });
}

interface Subject {
  hash: Buffer;
  /** Number of failures after which attempts are rejected. */
  most: number;
  /** If this subject has not failed yet, the attempt is not rejected, so that others cannot lock it out. */
  unlessNew?: Buffer;
}

export type SignInAttempts = ReturnType<typeof createSignInAttempts>;

export function createSignInAttempts({ db }: { db: Database }) {
  const forgetFailures = (ids: readonly number[]) => rows(db, DELETE_FAILURES, [ids]);

  /** @throws RATE_LIMIT_EXCEEDED if a subject has failed too often */
  async function countAttempt(subjects: readonly Subject[]): Promise<number[]> {
    return db.transaction(async (manager) => {
      const hashes = subjects.map(({ hash }) => hash);
      await rows(manager, LOCK_SUBJECTS, [hashes]);
      const counts = await rows<{ subject: string; count: number; wait: number }>(manager, COUNT, [hashes]);
      const countOf = (hash: Buffer) => counts.find(({ subject }) => subject === hash.toString("hex"));
      const fullSubjects = subjects.flatMap(({ hash, most, unlessNew }) => {
        const failureCount = countOf(hash);
        const isFull = failureCount !== undefined && failureCount.count >= most;
        return isFull && (!unlessNew || countOf(unlessNew)) ? [failureCount] : [];
      });
      refuseFull(fullSubjects);
      return (await rows<{ id: number }>(manager, INSERT_FAILURES, [hashes])).map(({ id }) => id);
    });
  }

  return {
    /**
     * Runs `attempt`. If `attempt` returns false, counts a failure for the network address, and one for the address with
     * the guessed name. An attempt that throws, for example because of a full queue, does not count.
     * @param guessed names the guessed user, in one or several forms
     * @param total failures from all addresses together, after which each address has one attempt; for secrets that are
     *   short enough to be guessed from many addresses. An address without a failure is never locked out.
     * @throws RATE_LIMIT_EXCEEDED before it starts, after ten failures; errors of `attempt`
     */
    async counted(
      appId: number,
      guessed: readonly unknown[],
      { address, credentialId }: Sender,
      attempt: () => Promise<boolean>,
      total: number | null = null,
    ): Promise<boolean> {
      const networkAddress = address === undefined ? `credential ${credentialId}` : addressBlock(address);
      const subjects: Subject[] = [{ hash: digestParts("from", appId, networkAddress), most: SIGN_IN_FAILURES }];
      for (const of of guessed) {
        const hash = digestParts("entry", appId, of, networkAddress);
        subjects.push({ hash, most: SIGN_IN_FAILURES });
        if (total !== null)
          subjects.push({ hash: digestParts("entry", appId, of, null), most: total, unlessNew: hash });
      }
      const ids = await countAttempt(subjects);
      let hasFailed = false;
      try {
        hasFailed = !(await attempt());
        return !hasFailed;
      } finally {
        if (!hasFailed) await forgetFailures(ids);
      }
    },
  };
}
