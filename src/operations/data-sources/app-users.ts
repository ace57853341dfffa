/**
 * The users of an app: entries of a data source with a hashed column, by which a page signs somebody in. The sign-in belongs to the
 * page's credential and holds while the entry has what it was proven by. Makes no credential.
 */
import type { DataSource as Database } from "typeorm";
import { type Executor, preparedRows, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import type { EntryData } from "../../rules/entries/entry-input.js";
import { textHooks } from "../../rules/entries/hooks.js";
import { parseSignIn } from "../../rules/entries/sign-in.js";
import type { StoredDataSource } from "./data-source-rows.js";
import { visible } from "./entry.js";
import { matches } from "./hashes.js";
import { digest, type SignInAttempts } from "./sign-in-attempts.js";

/** Who is signed in to a page: an entry, without its hashed columns. */
export interface AppUser {
  id: number;
  dataSourceId: number;
  data: EntryData;
}

const FIND = `
  SELECT entry.id, entry.data_source_id AS "dataSourceId", entry.data, source.hashed_columns AS hashed, session.columns, session.proof
    FROM app_user_session AS session
    JOIN data_source AS source ON source.app_id = session.app_id AND source.id = session.data_source_id
    JOIN data_source_entry AS entry
      ON entry.app_id = session.app_id AND entry.id = session.entry_id AND entry.data_source_id = session.data_source_id
   WHERE session.credential_id = $1 AND session.app_id = $2`;

/*
 * The oldest: whoever enters the same address later does not become its owner. All that match are looked for, so that it takes as long
 * when there is none.
 */
const CANDIDATE = `
  WITH found AS MATERIALIZED (
    SELECT id, "order" FROM data_source_entry WHERE app_id = $1 AND data_source_id = $2 AND doc @> $3::jsonb)
  SELECT id, data FROM data_source_entry
   WHERE app_id = $1 AND id = (SELECT id FROM found ORDER BY "order", id LIMIT 1)`;

const SIGN_IN = `
  INSERT INTO app_user_session (credential_id, app_id, data_source_id, entry_id, columns, proof) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (credential_id) DO UPDATE
    SET data_source_id = excluded.data_source_id, entry_id = excluded.entry_id, columns = excluded.columns,
        proof = excluded.proof, created_at = clock_timestamp()`;

/** What the entry's values are while nobody has changed them. */
const proofOf = (data: EntryData, columns: readonly string[]): Buffer =>
  digest(columns.map((column) => (Object.hasOwn(data, column) ? data[column] : null)));

const wrong = (): ActionError => new ActionError("UNAUTHORIZED", "no user with these values");

interface FoundUser extends AppUser {
  hashed: string[];
  columns: string[];
  proof: Buffer;
}

export type AppUsers = ReturnType<typeof createAppUsers>;

export function createAppUsers({ db, attempts }: { db: Database; attempts: SignInAttempts }) {
  /** Whether every secret is the entry's: all are computed, and as long for an entry that is not there. */
  async function proves(secrets: EntryData, found: EntryData | undefined): Promise<boolean> {
    let proven = found !== undefined;
    for (const [column, value] of Object.entries(secrets)) {
      const stored = found && Object.hasOwn(found, column) ? found[column] : undefined;
      if (!(await matches(String(value), stored))) proven = false;
    }
    return proven;
  }

  /** The user who is signed in to the page of that credential; null for none, and when the entry or its password changed. */
  async function userOfCredential(credentialId: number | null, appId: number): Promise<AppUser | null> {
    if (credentialId === null) return null;
    const [found] = await preparedRows<FoundUser>(db, "app-user", FIND, [credentialId, appId]);
    if (!found?.proof.equals(proofOf(found.data, found.columns))) return null;
    const { id, dataSourceId, data, hashed } = found;
    return { id, dataSourceId, data: visible(data, (column) => !hashed.includes(column)) };
  }

  return {
    userOfCredential,

    /** The page's user; null for callers that are no pages. */
    async userOf(caller: Caller | null): Promise<AppUser | null> {
      if (caller?.appId == null || (caller.kind !== "viewer" && caller.kind !== "live")) return null;
      return userOfCredential(caller.credentialId, caller.appId);
    },

    /**
     * Signs the page's user in.
     * @throws UNAUTHORIZED, alike for a wrong and an unknown one; RATE_LIMIT_EXCEEDED; REQUEST_INVALID, OVERLOADED
     */
    async signIn(caller: Caller, source: StoredDataSource, where: unknown): Promise<AppUser> {
      const { known, secrets, subjects } = parseSignIn(where, source.hashedColumns);
      const normal = textHooks(source.hooks, null);
      const named = normal(known);
      const guessed = subjects.map((one) => [source.id, normal(one)]);
      let found: { id: number; data: EntryData } | undefined;
      const proven = await attempts.counted(source.appId, guessed, caller, async () => {
        const values = [source.appId, source.id, JSON.stringify(named)];
        [found] = await rows<{ id: number; data: EntryData }>(db, CANDIDATE, values);
        return proves(normal(secrets), found?.data);
      });
      if (!proven) throw wrong();
      // Where nothing is hashed, all of it proved who it is.
      const columns = Object.keys(Object.keys(secrets).length > 0 ? secrets : known);
      const proof = proofOf(found!.data, columns);
      const session = [caller.credentialId, source.appId, source.id, found!.id, JSON.stringify(columns), proof];
      await rows(db, SIGN_IN, session);
      const hashed = source.hashedColumns;
      return {
        id: found!.id,
        dataSourceId: source.id,
        data: visible(found!.data, (column) => !hashed.includes(column)),
      };
    },

    async signOut(caller: Caller, executor: Executor = db): Promise<void> {
      await rows(executor, "DELETE FROM app_user_session WHERE credential_id = $1", [caller.credentialId]);
    },
  };
}
