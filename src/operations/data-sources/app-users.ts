/**
 * Signs users of an app in to its pages. Each user is an entry of a data source, and signs in with a password (a hashed column) or a code.
 * A sign-in with a password ends when the password changes. A sign-in with a code ends when the confirmed address changes.
 */
import { type Db, queryPreparedRows, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { createAccessDeniedError } from "../../rules/entries/entry-access.js";
import type { EntryData } from "../../rules/entries/entry-input.js";
import { createTextNormalizer } from "../../rules/entries/hooks.js";
import { parseSignInWhere } from "../../rules/entries/sign-in.js";
import type { VerificationChannel } from "../../rules/verification.js";
import { createHashQueueKey, type HashQueueKey, matchesHash } from "../records/hashes.js";
import type { StoredDataSource } from "./data-source-rows.js";
import { pickVisibleColumns } from "./entry.js";
import type { ReadRows } from "./read-pool.js";
import { type AppUserSignInAttempts, hashJsonValues } from "./sign-in-attempts.js";

/** The user who is signed in to a page: the entry of the user, without hashed columns. */
export interface AppUser {
  id: number;
  dataSourceId: number;
  data: EntryData;
  /** Channels (e-mail, text message) by which the user has confirmed this sign-in with a code, each with its time in ISO 8601. */
  verified?: Partial<Record<VerificationChannel, string>>;
}

/** Address or phone number that a user confirmed with a code, and the column of the user's entry that contains it. */
export interface VerifiedAddress {
  entryId: number;
  column: string;
  address: string;
  by: VerificationChannel;
}

/** SQL condition for valid sign-ins: the data source contains users (`is_users`), or the user has confirmed an address with a code. */
const IS_USER_SIGN_IN = "(source.is_users OR session.verified <> '{}')";

/** Start of a statement that selects sign-ins of the app $2. The condition on the credential must follow. */
const SELECT_SIGN_INS = `
  SELECT session.credential_id AS "credentialId", entry.id, entry.data_source_id AS "dataSourceId", entry.data, source.hashed_columns AS hashed, session.columns, session.proof,
         session.verified, session.pending
    FROM app_user_session AS session
    JOIN data_source AS source ON source.app_id = session.app_id AND source.id = session.data_source_id
    JOIN data_source_entry AS entry
      ON entry.app_id = session.app_id AND entry.id = session.entry_id AND entry.data_source_id = session.data_source_id
   WHERE session.app_id = $2 AND ${IS_USER_SIGN_IN} AND session.credential_id`;
const SELECT_SIGN_IN = `${SELECT_SIGN_INS} = $1`;
const SELECT_SIGN_INS_OF_CREDENTIALS = `${SELECT_SIGN_INS} = ANY ($1::bigint[])`;

/**
 * Selects the first entry with the values $3, so that a later entry cannot take over an account. Reads all matching entries, so that the
 * duration does not depend on the number of matches.
 */
const SELECT_CANDIDATE = `
  WITH found AS MATERIALIZED (
    SELECT id, "order" FROM data_source_entry WHERE app_id = $1 AND data_source_id = $2 AND doc @> $3::jsonb)
  SELECT id, data FROM data_source_entry
   WHERE app_id = $1 AND id = (SELECT id FROM found ORDER BY "order", id LIMIT 1)`;

const SAVE_SIGN_IN = `
  INSERT INTO app_user_session (credential_id, app_id, data_source_id, entry_id, columns, proof, verified, pending)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
  ON CONFLICT (credential_id) DO UPDATE
    SET data_source_id = excluded.data_source_id, entry_id = excluded.entry_id, columns = excluded.columns,
        proof = excluded.proof, verified = excluded.verified, pending = excluded.pending, created_at = clock_timestamp()`;

/**
 * Adds a confirmation $5 (channel and time) to a sign-in, which is then no longer pending. Changes nothing if the user has signed out, or
 * if the column $6 of the user's entry no longer contains the confirmed address $7.
 */
const ADD_PROOF = `
  UPDATE app_user_session SET verified = verified || $5::jsonb, pending = false
   WHERE credential_id = $1 AND app_id = $2 AND data_source_id = $3 AND entry_id = $4
     AND EXISTS (SELECT FROM data_source_entry AS entry
                  WHERE entry.app_id = $2 AND entry.data_source_id = $3 AND entry.id = $4 AND entry.data ->> $6 = $7)
  RETURNING credential_id`;

const SELECT_ENTRY = "SELECT id, data FROM data_source_entry WHERE app_id = $1 AND data_source_id = $2 AND id = $3";

/** Returns a digest of the password or the confirmed address with which a user signed in. The sign-in ends when the digest changes. */
const digestComparedValues = (data: EntryData, columns: readonly string[]): Buffer =>
  hashJsonValues(columns.map((column) => (Object.hasOwn(data, column) ? data[column] : null)));

const createSignInError = (): ActionError =>
  new ActionError("UNAUTHORIZED", 'no user of the app has the values in "where"');

/** A user who is signed in to a page. If `pending` is true, the second factor is still missing. */
type SignedInUser = AppUser & { pending: boolean };

interface AppUserRow extends AppUser {
  credentialId: number;
  verified: Partial<Record<VerificationChannel, string>>;
  pending: boolean;
  hashed: string[];
  columns: string[];
  proof: Buffer;
}

type SignInRequest = ReturnType<typeof parseSignInWhere> & { source: StoredDataSource };

interface AppUsersOptions {
  db: Db;
  /** Runs a query on the separate database connections for callers' queries, because a search without an index can be slow. */
  read: ReadRows;
  attempts: AppUserSignInAttempts;
  needsSecondFactor: (appId: number) => Promise<boolean>;
}

/**
 * True if the user's entry has all values of `secrets` in its hashed columns. Also computes the hashes if `userEntry` is undefined, so that
 * the duration does not reveal whether the user exists.
 */
async function matchesSecrets(
  secrets: EntryData,
  userEntry: EntryData | undefined,
  queueKey: HashQueueKey,
): Promise<boolean> {
  let isProven = userEntry !== undefined;
  for (const [column, value] of Object.entries(secrets)) {
    const stored = userEntry && Object.hasOwn(userEntry, column) ? userEntry[column] : undefined;
    if (!(await matchesHash(String(value), stored, queueKey))) isProven = false;
  }
  return isProven;
}

/** Returns the user of a sign-in; null if the password or the confirmed address of the sign-in has changed. */
function readSignedInUser(signIn: AppUserRow): SignedInUser | null {
  const { id, dataSourceId, data, hashed, columns, proof, verified, pending } = signIn;
  if (!proof.equals(digestComparedValues(data, columns))) return null;
  const visibleData = pickVisibleColumns(data, (column) => !hashed.includes(column));
  return { id, dataSourceId, data: visibleData, ...(Object.keys(verified).length > 0 && { verified }), pending };
}

const createVerifiedTime = (channel: VerificationChannel) => ({ [channel]: new Date().toISOString() });

export class AppUsers {
  constructor(private readonly options: AppUsersOptions) {}

  private async saveSignIn(
    { credentialId }: Caller,
    { appId, id }: StoredDataSource,
    { id: entryId, data }: { id: number; data: EntryData },
    columns: readonly string[],
    verified: AppUser["verified"] = {},
  ): Promise<void> {
    const { db, needsSecondFactor } = this.options;
    const needsCode = await needsSecondFactor(appId);
    const sessionValues = [
      credentialId,
      appId,
      id,
      entryId,
      JSON.stringify(columns),
      digestComparedValues(data, columns),
    ];
    await rows(db, SAVE_SIGN_IN, [...sessionValues, JSON.stringify(verified), needsCode]);
  }

  /**
   * Returns the user who is signed in with the page's credential. Returns null if there is none, if the user's entry was removed, or if the
   * password or the confirmed address of the sign-in has changed. While `pending` is true, the second factor is missing: the page's
   * requests are anonymous.
   */
  async findSignedInUser(credentialId: number | null, appId: number): Promise<SignedInUser | null> {
    if (credentialId === null) return null;
    const [appUser] = await queryPreparedRows<AppUserRow>(this.options.db, "app-user", SELECT_SIGN_IN, [
      credentialId,
      appId,
    ]);
    return appUser ? readSignedInUser(appUser) : null;
  }

  /**
   * Returns the signed-in users by the ID of their page's credential. Does not check that the credential is still valid. Leaves out users
   * whose second factor is missing.
   */
  async findUsersOfCredentials(
    executor: SqlClient,
    appId: number,
    credentialIds: readonly number[],
  ): Promise<Map<number, AppUser>> {
    const signInRows = await rows<AppUserRow>(executor, SELECT_SIGN_INS_OF_CREDENTIALS, [credentialIds, appId]);
    const users = new Map<number, AppUser>();
    for (const signInRow of signInRows) {
      const appUser = readSignedInUser(signInRow);
      if (!appUser || appUser.pending) continue;
      const { pending: _, ...user } = appUser;
      users.set(signInRow.credentialId, user);
    }
    return users;
  }

  /** Like `findSignedInUser`, but also returns null if the second factor is missing. */
  async findUserOfCredential(credentialId: number | null, appId: number): Promise<AppUser | null> {
    const appUser = await this.findSignedInUser(credentialId, appId);
    if (!appUser || appUser.pending) return null;
    const { pending: _, ...user } = appUser;
    return user;
  }

  /** Returns the user who is signed in to the caller's page; null if there is none, or if the caller is not a page. */
  async findUserOfCaller(caller: Caller | null): Promise<AppUser | null> {
    if (caller?.appId == null || (caller.kind !== "viewer" && caller.kind !== "live")) return null;
    return this.findUserOfCredential(caller.credentialId, caller.appId);
  }

  /**
   * Validates a page's sign-in request.
   * @throws DATA_SOURCE_ACCESS_DENIED if the data source contains no users, or `where` contains no hashed column; REQUEST_INVALID
   */
  parseSignInRequest(source: StoredDataSource, where: unknown): SignInRequest {
    if (!source.isUsers) throw createAccessDeniedError();
    return { source, ...parseSignInWhere(where, source.hashedColumns) };
  }

  /**
   * Signs a user in to the caller's page. If the app requires a second factor, the sign-in stays pending until `addProof`.
   * @throws UNAUTHORIZED, both for a wrong password and for an unknown user; RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async signIn(
    caller: Caller,
    { source, identifyingValues, secretValues, attemptKeys }: SignInRequest,
  ): Promise<AppUser> {
    const { read, attempts } = this.options;
    const normalize = createTextNormalizer(source.hooks, null);
    const normalizedValues = normalize(identifyingValues);
    const guessedSubjects = attemptKeys.map((attemptKey) => [source.id, normalize(attemptKey)]);
    let appUser: { id: number; data: EntryData } | undefined;
    const isProven = await attempts.runCountedAttempt(source.appId, guessedSubjects, caller, async () => {
      const values = [source.appId, source.id, JSON.stringify(normalizedValues)];
      [appUser] = await read<{ id: number; data: EntryData }>(source.appId, SELECT_CANDIDATE, values);
      return matchesSecrets(normalize(secretValues), appUser?.data, createHashQueueKey(source.appId, caller));
    });
    if (!isProven) throw createSignInError();
    await this.saveSignIn(caller, source, appUser!, Object.keys(secretValues));
    const hashed = source.hashedColumns;
    return {
      id: appUser!.id,
      dataSourceId: source.id,
      data: pickVisibleColumns(appUser!.data, (column) => !hashed.includes(column)),
    };
  }

  /**
   * Signs a user in to the caller's page without a password, because the user has confirmed an address with a code.
   * Returns false if the user's entry was removed, or no longer has this address.
   */
  async signInByProof(caller: Caller, source: StoredDataSource, proof: VerifiedAddress): Promise<boolean> {
    const { entryId, column, address, by } = proof;
    const [entry] = await rows<{ id: number; data: EntryData }>(this.options.db, SELECT_ENTRY, [
      source.appId,
      source.id,
      entryId,
    ]);
    if (!entry || !Object.hasOwn(entry.data, column) || entry.data[column] !== address) return false;
    await this.saveSignIn(caller, source, entry, [column], createVerifiedTime(by));
    return true;
  }

  /**
   * Completes the sign-in on the caller's page with a second factor: a confirmed address. Returns false if the user is no longer signed in,
   * or if the user's entry no longer has this address.
   */
  async addProof(caller: Caller, source: StoredDataSource, proof: VerifiedAddress): Promise<boolean> {
    const { entryId, column, address, by } = proof;
    const sessionValues = [caller.credentialId, source.appId, source.id, entryId];
    const values = [...sessionValues, JSON.stringify(createVerifiedTime(by)), column, address];
    return (await rows(this.options.db, ADD_PROOF, values)).length > 0;
  }

  async signOut(caller: Caller, executor: SqlClient = this.options.db): Promise<void> {
    await rows(executor, "DELETE FROM app_user_session WHERE credential_id = $1", [caller.credentialId]);
  }
}
