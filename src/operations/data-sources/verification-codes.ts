/**
 * Stores verification codes and counts requests for them. A page has at most one code for each purpose. A code ends after a short time,
 * after a few failures, or when it is used.
 */
import { randomInt } from "node:crypto";
import type { DataSource as Database } from "typeorm";
import { type Executor, rows } from "../../data/database.js";
import { rateLimitError } from "../../errors.js";
import { digestParts } from "./sign-in-attempts.js";

const GOOD_FOR_SECONDS = 600;
const FAILURES_MAX = 5;

/** Request for a code: the network address of the page, and more facts. */
export interface CodeRequest {
  appId: number;
  from: string;
  /** Kind of the address (e-mail or phone) and the address. */
  to: readonly [kind: string, address: string];
}

interface CodeLimit {
  count: number;
  seconds: number;
  subject: (registryRequest: CodeRequest) => readonly unknown[];
  /**
   * While this subject has had no recent request, its request is accepted above the limit, so that a flood from elsewhere does not lock it
   * out.
   */
  unlessNew?: (registryRequest: CodeRequest) => readonly unknown[];
}

const pairKey = ({ appId, to, from }: CodeRequest) => ["address", appId, ...to, from];
const senderKey = ({ appId, from }: CodeRequest) => ["from", appId, from];

/**
 * Maximum numbers of codes: for a recipient from one network address, from one network address, for a recipient in total, and of an app in
 * total.
 */
const CODE_LIMITS: readonly CodeLimit[] = [
  { count: 5, seconds: 600, subject: pairKey },
  { count: 20, seconds: 86_400, subject: (registryRequest) => ["today", ...pairKey(registryRequest)] },
  { count: 20, seconds: 600, subject: senderKey },
  { count: 20, seconds: 600, subject: ({ appId, to }) => ["all", appId, ...to], unlessNew: pairKey },
  { count: 60, seconds: 86_400, subject: ({ appId, to }) => ["all today", appId, ...to], unlessNew: pairKey },
  { count: 300, seconds: 600, subject: ({ appId }) => ["app", appId], unlessNew: senderKey },
];

/** Purpose of a code. */
export interface CodeTarget {
  credentialId: number;
  appId: number;
  /** Hash of the address that the code proves. */
  subject: Buffer;
  dataSourceId: number;
  /** ID of the user with the address; null if there is none. */
  entryId: number | null;
  address: string;
}

/** Locks the subjects of a request in one fixed order, so that concurrent requests are counted one after the other. */
const LOCK_SUBJECTS = `
  SELECT pg_advisory_xact_lock(key) FROM (
    SELECT hashtextextended(encode(subject, 'hex'), 1) AS key FROM unnest($1::bytea[]) AS subject ORDER BY 1) AS ordered`;
/**
 * Selects the seconds until a request is possible again. $1 are the subjects, $2 their limits, $3 their windows in seconds, $4 the subject
 * that must have a recent request, or null.
 */
const SELECT_WAIT_SECONDS = `
  SELECT max(wait) AS wait FROM unnest($1::bytea[], $2::int[], $3::int[], $4::bytea[]) AS bound (subject, most, seconds, known)
   CROSS JOIN LATERAL (
     SELECT count(*) AS count, extract(epoch FROM min(created_at) + seconds * interval '1 second' - now())::float8 AS wait
       FROM verification_request AS request
      WHERE request.subject = bound.subject AND created_at > now() - seconds * interval '1 second') AS recent
   WHERE recent.count >= bound.most
     AND (bound.known IS NULL OR EXISTS (
       SELECT FROM verification_request AS request
        WHERE request.subject = bound.known AND created_at > now() - seconds * interval '1 second'))`;
const ASK = `
  WITH old AS (
    DELETE FROM verification_request WHERE id IN (
      SELECT id FROM verification_request WHERE created_at < now() - interval '1 day' ORDER BY created_at LIMIT 20 FOR UPDATE SKIP LOCKED))
  INSERT INTO verification_request (subject) SELECT unnest($1::bytea[])`;

const INSERT_CODE = `
  INSERT INTO verification_code (credential_id, app_id, subject, data_source_id, entry_id, address, code, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, now() + interval '${GOOD_FOR_SECONDS} seconds')
  ON CONFLICT (credential_id) DO UPDATE
    SET app_id = excluded.app_id, subject = excluded.subject, data_source_id = excluded.data_source_id, entry_id = excluded.entry_id,
        address = excluded.address, code = excluded.code, failures = 0, expires_at = excluded.expires_at`;
/* Counts a failure before the code is compared. The right code removes the row, so that it works once. */
const TRY = `
  UPDATE verification_code SET failures = failures + 1
   WHERE credential_id = $1 AND subject = $2 AND failures < ${FAILURES_MAX} AND expires_at > now()
  RETURNING code = $3 AS "isRight", entry_id AS "entryId", address`;
const USE =
  "DELETE FROM verification_code WHERE credential_id = $1 AND subject = $2 AND code = $3 RETURNING credential_id";

export const newCode = (): string => String(randomInt(1_000_000)).padStart(6, "0");

export type VerificationCodes = ReturnType<typeof createVerificationCodes>;

export function createVerificationCodes({ db }: { db: Database }) {
  const hashOf = (credentialId: number, code: string) => digestParts("code", credentialId, code);

  return {
    /** Time in seconds for which a code is valid. */
    goodFor: GOOD_FOR_SECONDS,

    /**
     * Counts one more request for a code.
     * @throws ActionError RATE_LIMIT_EXCEEDED if there were too many; then the request is not counted
     */
    async sendCode(registryRequest: CodeRequest): Promise<void> {
      const subjects = CODE_LIMITS.map(({ subject }) => digestParts("ask", ...subject(registryRequest)));
      const knownSubjects = CODE_LIMITS.map(
        ({ unlessNew }) => unlessNew && digestParts("ask", ...unlessNew(registryRequest)),
      );
      const limitColumns = [
        subjects,
        CODE_LIMITS.map(({ count }) => count),
        CODE_LIMITS.map(({ seconds }) => seconds),
        knownSubjects,
      ];
      await db.transaction(async (manager) => {
        await rows(manager, LOCK_SUBJECTS, [subjects]);
        const [full] = await rows<{ wait: number | null }>(manager, SELECT_WAIT_SECONDS, limitColumns);
        if (full?.wait != null)
          throw rateLimitError("too many codes were requested", Math.max(1, Math.ceil(full.wait)));
        await rows(manager, ASK, [subjects]);
      });
    },

    /** Replaces the page's previous code. */
    async save(executor: Executor, code: string, to: CodeTarget): Promise<void> {
      const { credentialId, appId, subject, dataSourceId, entryId, address } = to;
      const hash = hashOf(credentialId, code);
      await rows(executor, INSERT_CODE, [credentialId, appId, subject, dataSourceId, entryId, address, hash]);
    },

    /** Uses up a code and returns its entry; null for a wrong, used or expired code. */
    async use(
      credentialId: number,
      subject: Buffer,
      code: string,
    ): Promise<{ entryId: number; address: string } | null> {
      const hash = hashOf(credentialId, code);
      const [codeRow] = await rows<{ isRight: boolean; entryId: number | null; address: string }>(db, TRY, [
        credentialId,
        subject,
        hash,
      ]);
      if (!codeRow?.isRight || codeRow.entryId === null) return null;
      const usedCodes = await rows(db, USE, [credentialId, subject, hash]);
      return usedCodes.length > 0 ? { entryId: codeRow.entryId, address: codeRow.address } : null;
    },
  };
}
