/**
 * Codes as rows: one a page, for one purpose, that ends soon, after few failures, and with its use; and how many were asked for. Knows no
 * message and no user.
 */
import { randomInt } from "node:crypto";
import type { DataSource as Database } from "typeorm";
import { type Executor, rows } from "../../data/database.js";
import { tooOften } from "../../errors.js";
import { digest } from "./sign-in-attempts.js";

const GOOD_FOR_SECONDS = 600;
const FAILURES_MAX = 5;

/** How many codes may be asked for: to one address in ten minutes and in a day, from one place, of one app. */
const BOUNDS = {
  address: { count: 5, seconds: 600 },
  "address today": { count: 20, seconds: 86_400 },
  from: { count: 20, seconds: 600 },
  app: { count: 300, seconds: 600 },
} as const;
export type Bounded = keyof typeof BOUNDS;

/** What a code is good for. */
export interface CodeTarget {
  credentialId: number;
  appId: number;
  /** Hash of what is to be proven. */
  subject: Buffer;
  dataSourceId: number;
  /** null: nobody has that address. */
  entryId: number | null;
  address: string;
}

/** One after the other for each subject, in one order for all. */
const LOCK = `
  SELECT pg_advisory_xact_lock(key) FROM (
    SELECT hashtextextended(encode(subject, 'hex'), 1) AS key FROM unnest($1::bytea[]) AS subject ORDER BY 1) AS ordered`;
/* $1 subjects, $2 how many each may have, $3 in how many seconds. Seconds until the last of the full ones is no longer full. */
const WAIT = `
  SELECT max(wait) AS wait FROM unnest($1::bytea[], $2::int[], $3::int[]) AS bound (subject, most, seconds)
   CROSS JOIN LATERAL (
     SELECT count(*) AS count, extract(epoch FROM min(created_at) + seconds * interval '1 second' - now())::float8 AS wait
       FROM verification_request AS request
      WHERE request.subject = bound.subject AND created_at > now() - seconds * interval '1 second') AS asked
   WHERE asked.count >= bound.most`;
const ASK = `
  WITH old AS (
    DELETE FROM verification_request WHERE id IN (
      SELECT id FROM verification_request WHERE created_at < now() - interval '1 day' ORDER BY created_at LIMIT 20 FOR UPDATE SKIP LOCKED))
  INSERT INTO verification_request (subject) SELECT unnest($1::bytea[])`;

const SAVE = `
  INSERT INTO verification_code (credential_id, app_id, subject, data_source_id, entry_id, address, code, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, now() + interval '${GOOD_FOR_SECONDS} seconds')
  ON CONFLICT (credential_id) DO UPDATE
    SET app_id = excluded.app_id, subject = excluded.subject, data_source_id = excluded.data_source_id, entry_id = excluded.entry_id,
        address = excluded.address, code = excluded.code, failures = 0, expires_at = excluded.expires_at`;
/* It counts as a failure from its start; a right one takes the row away, once. */
const TRY = `
  UPDATE verification_code SET failures = failures + 1
   WHERE credential_id = $1 AND subject = $2 AND failures < ${FAILURES_MAX} AND expires_at > now()
  RETURNING code = $3 AS "isRight", entry_id AS "entryId", address`;
const USE =
  "DELETE FROM verification_code WHERE credential_id = $1 AND subject = $2 AND code = $3 RETURNING credential_id";

export const newCode = (): string => String(randomInt(1_000_000)).padStart(6, "0");

export type VerificationCodes = ReturnType<typeof createVerificationCodes>;

export function createVerificationCodes({ db }: { db: Database }) {
  const hashOf = (credentialId: number, code: string) => digest("code", credentialId, code);

  return {
    /** Seconds that a code is good for. */
    goodFor: GOOD_FOR_SECONDS,

    /** Counts one more for each subject. @throws RATE_LIMIT_EXCEEDED where one has had enough; then none is counted */
    async ask(bounded: Readonly<Record<Bounded, readonly unknown[]>>): Promise<void> {
      const names = Object.keys(BOUNDS) as Bounded[];
      const subjects = names.map((name) => digest("ask", name, ...bounded[name]));
      const [counts, seconds] = [names.map((name) => BOUNDS[name].count), names.map((name) => BOUNDS[name].seconds)];
      await db.transaction(async (manager) => {
        await rows(manager, LOCK, [subjects]);
        const [full] = await rows<{ wait: number | null }>(manager, WAIT, [subjects, counts, seconds]);
        if (full?.wait != null) throw tooOften("too many codes were asked for", Math.max(1, Math.ceil(full.wait)));
        await rows(manager, ASK, [subjects]);
      });
    },

    /** Puts the code in the place of the page's last. */
    async save(executor: Executor, code: string, to: CodeTarget): Promise<void> {
      const { credentialId, appId, subject, dataSourceId, entryId, address } = to;
      const hash = hashOf(credentialId, code);
      await rows(executor, SAVE, [credentialId, appId, subject, dataSourceId, entryId, address, hash]);
    },

    /** Whose code it is, once; null for a wrong, spent or old one. */
    async use(
      credentialId: number,
      subject: Buffer,
      code: string,
    ): Promise<{ entryId: number; address: string } | null> {
      const hash = hashOf(credentialId, code);
      const [found] = await rows<{ isRight: boolean; entryId: number | null; address: string }>(db, TRY, [
        credentialId,
        subject,
        hash,
      ]);
      if (!found?.isRight || found.entryId === null) return null;
      const used = await rows(db, USE, [credentialId, subject, hash]);
      return used.length > 0 ? { entryId: found.entryId, address: found.address } : null;
    },
  };
}
