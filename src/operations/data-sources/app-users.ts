/**
 * Signs users of an app in to its pages. A user is an entry of a data source with a hashed column, such as a password.
 * The sign-in belongs to the page's credential. It ends when a compared value of the entry changes.
 */
import type { DataSource as Database } from "typeorm";
import { type Executor, preparedRows, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { accessDenied } from "../../rules/entries/entry-access.js";
import type { EntryData } from "../../rules/entries/entry-input.js";
import { textHooks } from "../../rules/entries/hooks.js";
import { parseSignIn } from "../../rules/entries/sign-in.js";
import type { VerificationChannel } from "../../rules/verification.js";
import { type HashTurn, hashTurn, matchesHash } from "../records/hashes.js";
import type { StoredDataSource } from "./data-source-rows.js";
import { visibleColumns } from "./entry.js";
import { digestParts, type SignInAttempts } from "./sign-in-attempts.js";

/** The user who is signed in to a page: an entry, without its hashed columns. */
export interface AppUser {
  id: number;
  dataSourceId: number;
  data: EntryData;
  /**
   * Kinds of address that the user has proven with a code since the sign-in, each with the time of the proof in ISO
   * 8601. Absent if the user has proven none.
   */
  verified?: Partial<Record<VerificationChannel, string>>;
}

/**
 * An e-mail address or phone number that a user has proven with a code, and the column of the user's entry that
 * contains it.
 */
export interface AddressProof {
  entryId: number;
  column: string;
  address: string;
  by: VerificationChannel;
}

/**
 * SQL condition that ignores sign-ins at data sources that no longer contain users. A sign-in counts if its data source
 * has `isUsers`, or if the user has proven an address: then the data source is the one in the verification setting.
 * Earlier releases also stored sign-ins at other data sources.
 */
const HOLDS_USERS = "(source.is_users OR session.verified <> '{}')";

const SELECT_APP_USER = `
  SELECT entry.id, entry.data_source_id AS "dataSourceId", entry.data, source.hashed_columns AS hashed, session.columns, session.proof,
         session.verified, session.pending
    FROM app_user_session AS session
    JOIN data_source AS source ON source.app_id = session.app_id AND source.id = session.data_source_id
    JOIN data_source_entry AS entry
      ON entry.app_id = session.app_id AND entry.id = session.entry_id AND entry.data_source_id = session.data_source_id
   WHERE session.credential_id = $1 AND session.app_id = $2 AND ${HOLDS_USERS}`;

/**
 * Selects the first matching entry, so that a later entry with the same address cannot take over the sign-in. The query
 * reads all matches before it selects one. So its duration does not reveal whether an entry exists.
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
 * Adds a proof. $1 is the credential, $2 the app, $3 the data source, $4 the entry, $5 the proof. Changes nothing if
 * the user who requested the code is no longer signed in.
 */
const ADD_PROOF = `
  UPDATE app_user_session SET verified = verified || $5::jsonb, pending = false
   WHERE credential_id = $1 AND app_id = $2 AND data_source_id = $3 AND entry_id = $4 RETURNING credential_id`;

/* Selects an entry of a data source. $1 is the app, $2 the data source, $3 the entry. */
const SELECT_ENTRY = "SELECT id, data FROM data_source_entry WHERE app_id = $1 AND data_source_id = $2 AND id = $3";

/** Returns a digest of the entry's values in these columns. A sign-in ends when the digest changes. */
const proofOf = (data: EntryData, columns: readonly string[]): Buffer =>
  digestParts(columns.map((column) => (Object.hasOwn(data, column) ? data[column] : null)));

const wrongValuesError = (): ActionError => new ActionError("UNAUTHORIZED", "no user with these values");

interface AppUserRow extends AppUser {
  verified: Partial<Record<VerificationChannel, string>>;
  pending: boolean;
  hashed: string[];
  columns: string[];
  proof: Buffer;
}

/**
 * A validated request to sign in: the data source, the values that identify the entry, and the secrets that prove it.
 */
type SignInRequest = ReturnType<typeof parseSignIn> & { source: StoredDataSource };

export type AppUsers = ReturnType<typeof createAppUsers>;

export function createAppUsers(options: {
  db: Database;
  attempts: SignInAttempts;
  /** True if a sign-in to the app needs a second factor. */
  needsSecondFactor: (appId: number) => Promise<boolean>;
}) {
  const { db, attempts, needsSecondFactor } = options;

  /**
   * True if all secrets match the entry's hashes. Hashes are computed even without an entry, so that the duration does
   * not reveal whether the entry exists.
   */
  async function provesIdentity(secrets: EntryData, appUser: EntryData | undefined, turn: HashTurn): Promise<boolean> {
    let isProven = appUser !== undefined;
    for (const [column, value] of Object.entries(secrets)) {
      const stored = appUser && Object.hasOwn(appUser, column) ? appUser[column] : undefined;
      if (!(await matchesHash(String(value), stored, turn))) isProven = false;
    }
    return isProven;
  }

  /**
   * Returns the user who is signed in with the page's credential. Returns null if no user is signed in, if the entry is
   * removed, or if a value that the sign-in compared has changed. `pending` is true if the second factor is still
   * missing: then requests of the page count as anonymous.
   */
  async function findSignedInUser(
    credentialId: number | null,
    appId: number,
  ): Promise<(AppUser & { pending: boolean }) | null> {
    if (credentialId === null) return null;
    const [appUser] = await preparedRows<AppUserRow>(db, "app-user", SELECT_APP_USER, [credentialId, appId]);
    if (!appUser?.proof.equals(proofOf(appUser.data, appUser.columns))) return null;
    const { id, dataSourceId, data, hashed, verified, pending: needsCode } = appUser;
    const visibleData = visibleColumns(data, (column) => !hashed.includes(column));
    return {
      id,
      dataSourceId,
      data: visibleData,
      ...(Object.keys(verified).length > 0 && { verified }),
      pending: needsCode,
    };
  }

  /**
   * Returns the user who is signed in with the page's credential; null if no user is, or if the second factor is
   * missing.
   */
  async function userOfCredential(credentialId: number | null, appId: number): Promise<AppUser | null> {
    const appUser = await findSignedInUser(credentialId, appId);
    if (!appUser || appUser.pending) return null;
    const { pending: _, ...user } = appUser;
    return user;
  }

  async function beginSession(
    { credentialId }: Caller,
    { appId, id }: StoredDataSource,
    { id: entryId, data }: { id: number; data: EntryData },
    columns: readonly string[],
    verified: AppUser["verified"] = {},
  ): Promise<void> {
    const needsCode = await needsSecondFactor(appId);
    const session = [credentialId, appId, id, entryId, JSON.stringify(columns), proofOf(data, columns)];
    await rows(db, SAVE_SIGN_IN, [...session, JSON.stringify(verified), needsCode]);
  }

  const provenNow = (channel: VerificationChannel) => ({ [channel]: new Date().toISOString() });

  return {
    signedIn: findSignedInUser,
    userOfCredential,

    /** Returns the user who is signed in to the calling page; null if no user is, or if the caller is not a page. */
    async userOf(caller: Caller | null): Promise<AppUser | null> {
      if (caller?.appId == null || (caller.kind !== "viewer" && caller.kind !== "live")) return null;
      return userOfCredential(caller.credentialId, caller.appId);
    },

    /**
     * Validates the sign-in data of a page.
     * @throws DATA_SOURCE_ACCESS_DENIED for a data source without users, or a where without a hashed column;
     *   REQUEST_INVALID
     */
    parseSignInRequest(source: StoredDataSource, where: unknown): SignInRequest {
      if (!source.isUsers) throw accessDenied();
      return { source, ...parseSignIn(where, source.hashedColumns) };
    },

    /**
     * Signs in the page's user.
     * @throws UNAUTHORIZED, the same for a wrong password and an unknown user; RATE_LIMIT_EXCEEDED, OVERLOADED
     */
    async signIn(caller: Caller, { source, known, secrets, subjects }: SignInRequest): Promise<AppUser> {
      const normalize = textHooks(source.hooks, null);
      const normalizedNames = normalize(known);
      const guessedSubjects = subjects.map((subject) => [source.id, normalize(subject)]);
      let appUser: { id: number; data: EntryData } | undefined;
      const isProven = await attempts.runCounted(source.appId, guessedSubjects, caller, async () => {
        const values = [source.appId, source.id, JSON.stringify(normalizedNames)];
        [appUser] = await rows<{ id: number; data: EntryData }>(db, SELECT_CANDIDATE, values);
        return provesIdentity(normalize(secrets), appUser?.data, hashTurn(source.appId, caller));
      });
      if (!isProven) throw wrongValuesError();
      await beginSession(caller, source, appUser!, Object.keys(secrets));
      const hashed = source.hashedColumns;
      return {
        id: appUser!.id,
        dataSourceId: source.id,
        data: visibleColumns(appUser!.data, (column) => !hashed.includes(column)),
      };
    },

    /**
     * Signs in the page's user without a password, because a code has proven the address. Returns false if the entry no
     * longer has this address.
     */
    async signInByProof(caller: Caller, source: StoredDataSource, proof: AddressProof): Promise<boolean> {
      const { entryId, column, address, by } = proof;
      const [entry] = await rows<{ id: number; data: EntryData }>(db, SELECT_ENTRY, [source.appId, source.id, entryId]);
      if (!entry || !Object.hasOwn(entry.data, column) || entry.data[column] !== address) return false;
      await beginSession(caller, source, entry, [column], provenNow(by));
      return true;
    },

    /**
     * Records in the current sign-in that the user has proven an address. Returns false if the user is no longer signed
     * in.
     */
    async addProof(caller: Caller, source: StoredDataSource, { entryId, by }: AddressProof): Promise<boolean> {
      const session = [caller.credentialId, source.appId, source.id, entryId, JSON.stringify(provenNow(by))];
      return (await rows(db, ADD_PROOF, session)).length > 0;
    },

    async signOut(caller: Caller, executor: Executor = db): Promise<void> {
      await rows(executor, "DELETE FROM app_user_session WHERE credential_id = $1", [caller.credentialId]);
    },
  };
}
