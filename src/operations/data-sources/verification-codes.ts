/**
 * Stores the codes with which app users confirm an address, and counts requests for codes. A page has at most one valid
 * code. A code becomes invalid when it is used, expires, or was entered wrongly too often.
 */
import { randomInt } from "node:crypto";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { createRateLimitError } from "../../errors.js";
import { hashJsonValues } from "./sign-in-attempts.js";

const CODE_VALIDITY_SECONDS = 600;
const MAX_WRONG_ATTEMPTS = 5;

export interface VerificationCodeRequest {
  appId: number;
  /** Network address range from which the request was sent, or the credential if the address is unknown. */
  sender: string;
  /** Recipient of the code: the channel ("email" or "sms") and the address. */
  to: readonly [kind: string, address: string];
}

/** A limit on requests for codes: at most `count` requests with the same limit key within `seconds`. */
interface CodeLimit {
  count: number;
  seconds: number;
  limitKeyOf: (request: VerificationCodeRequest) => readonly unknown[];
  /**
   * Returns another key. If set, the limit applies only if an earlier request had this key. The key includes the sender, so that other
   * senders cannot lock out a user.
   */
  appliesAfterRequestOf?: (request: VerificationCodeRequest) => readonly unknown[];
}

const listRecipientAndSenderKey = ({ appId, to, sender }: VerificationCodeRequest) => ["address", appId, ...to, sender];
const listSenderKey = ({ appId, sender }: VerificationCodeRequest) => ["from", appId, sender];

/** Limits per recipient and network address, per network address, per recipient from all addresses, and per app. */
const CODE_LIMITS: readonly CodeLimit[] = [
  { count: 5, seconds: 600, limitKeyOf: listRecipientAndSenderKey },
  { count: 20, seconds: 86_400, limitKeyOf: (request) => ["today", ...listRecipientAndSenderKey(request)] },
  { count: 20, seconds: 600, limitKeyOf: listSenderKey },
  {
    count: 20,
    seconds: 600,
    limitKeyOf: ({ appId, to }) => ["all", appId, ...to],
    appliesAfterRequestOf: listRecipientAndSenderKey,
  },
  {
    count: 60,
    seconds: 86_400,
    limitKeyOf: ({ appId, to }) => ["all today", appId, ...to],
    appliesAfterRequestOf: listRecipientAndSenderKey,
  },
  { count: 300, seconds: 600, limitKeyOf: ({ appId }) => ["app", appId], appliesAfterRequestOf: listSenderKey },
];

export interface VerificationCodeTarget {
  credentialId: number;
  appId: number;
  /** Hash of the purpose and the address (or the user). A code is only accepted for the purpose and address for which it was sent. */
  purposeHash: Buffer;
  dataSourceId: number;
  /** ID of the user's entry with this address; null if no user has the address. */
  entryId: number | null;
  address: string;
}

/** Locks the limit keys, so that concurrent requests are counted one after the other. The fixed order prevents deadlocks. */
const LOCK_LIMIT_KEYS = `
  SELECT pg_advisory_xact_lock(key) FROM (
    SELECT hashtextextended(encode(subject, 'hex'), 1) AS key FROM unnest($1::bytea[]) AS subject ORDER BY 1) AS ordered`;
/** Selects the seconds until a code can be requested again; null if it can be requested now. $4: keys of `appliesAfterRequestOf`. */
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
const INSERT_CODE_REQUESTS = `
  WITH old AS (
    DELETE FROM verification_request WHERE id IN (
      SELECT id FROM verification_request WHERE created_at < now() - interval '1 day' ORDER BY created_at LIMIT 20 FOR UPDATE SKIP LOCKED))
  INSERT INTO verification_request (subject) SELECT unnest($1::bytea[])`;

const INSERT_VERIFICATION_CODE = `
  INSERT INTO verification_code (credential_id, app_id, subject, data_source_id, entry_id, address, code, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, now() + interval '${CODE_VALIDITY_SECONDS} seconds')
  ON CONFLICT (credential_id) DO UPDATE
    SET app_id = excluded.app_id, subject = excluded.subject, data_source_id = excluded.data_source_id, entry_id = excluded.entry_id,
        address = excluded.address, code = excluded.code, failures = 0, expires_at = excluded.expires_at`;
/** Counts each attempt as failed. After a correct code, DELETE_VERIFICATION_CODE deletes the row, so that the code works only once. */
const COUNT_CODE_ATTEMPT = `
  UPDATE verification_code SET failures = failures + 1
   WHERE credential_id = $1 AND subject = $2 AND failures < ${MAX_WRONG_ATTEMPTS} AND expires_at > now()
  RETURNING code = $3 AS "isCorrect", entry_id AS "entryId", address`;
const DELETE_VERIFICATION_CODE =
  "DELETE FROM verification_code WHERE credential_id = $1 AND subject = $2 AND code = $3 RETURNING credential_id";

export const createVerificationCode = (): string => String(randomInt(1_000_000)).padStart(6, "0");

const hashCode = (credentialId: number, code: string) => hashJsonValues("code", credentialId, code);

export class VerificationCodes {
  readonly validSeconds = CODE_VALIDITY_SECONDS;

  constructor(private readonly options: { db: Db }) {}

  /**
   * Counts a request for a code.
   * @throws ActionError RATE_LIMIT_EXCEEDED after too many requests; the rejected request itself is not counted
   */
  async countRequest(request: VerificationCodeRequest): Promise<void> {
    const limitKeyHashes = CODE_LIMITS.map(({ limitKeyOf }) => hashJsonValues("ask", ...limitKeyOf(request)));
    const earlierKeyHashes = CODE_LIMITS.map(
      ({ appliesAfterRequestOf }) => appliesAfterRequestOf && hashJsonValues("ask", ...appliesAfterRequestOf(request)),
    );
    const limitColumns = [
      limitKeyHashes,
      CODE_LIMITS.map(({ count }) => count),
      CODE_LIMITS.map(({ seconds }) => seconds),
      earlierKeyHashes,
    ];
    await this.options.db.transaction(async (manager) => {
      await rows(manager, LOCK_LIMIT_KEYS, [limitKeyHashes]);
      const [reachedLimit] = await rows<{ wait: number | null }>(manager, SELECT_WAIT_SECONDS, limitColumns);
      if (reachedLimit?.wait != null) {
        const retryAfter = Math.max(1, Math.ceil(reachedLimit.wait));
        const message =
          "too many codes were requested for this e-mail address or phone number, from this network address or for this app; " +
          `try again in ${retryAfter} s`;
        throw createRateLimitError(message, retryAfter);
      }
      await rows(manager, INSERT_CODE_REQUESTS, [limitKeyHashes]);
    });
  }

  /** Stores a code for the page that requested it. Any earlier code of this page becomes invalid. */
  async save(executor: SqlClient, code: string, to: VerificationCodeTarget): Promise<void> {
    const { credentialId, appId, purposeHash, dataSourceId, entryId, address } = to;
    const hash = hashCode(credentialId, code);
    await rows(executor, INSERT_VERIFICATION_CODE, [
      credentialId,
      appId,
      purposeHash,
      dataSourceId,
      entryId,
      address,
      hash,
    ]);
  }

  /**
   * Checks a code, and deletes it if it is correct. Returns null if the code is wrong, used or expired, after too many wrong codes, and if
   * no user has the address.
   */
  async use(credentialId: number, subject: Buffer, code: string): Promise<{ entryId: number; address: string } | null> {
    const { db } = this.options;
    const hash = hashCode(credentialId, code);
    const [codeRow] = await rows<{ isCorrect: boolean; entryId: number | null; address: string }>(
      db,
      COUNT_CODE_ATTEMPT,
      [credentialId, subject, hash],
    );
    if (!codeRow?.isCorrect || codeRow.entryId === null) return null;
    const usedCodes = await rows(db, DELETE_VERIFICATION_CODE, [credentialId, subject, hash]);
    return usedCodes.length > 0 ? { entryId: codeRow.entryId, address: codeRow.address } : null;
  }
}
