/** Each app's data key: created when first needed, stored wrapped under a SETTINGS_KEY, wrapped again on rotation. */
import type { KeyObject } from "node:crypto";
import { join } from "node:path";
import { LRUCache } from "lru-cache";
import type { DataSource } from "typeorm";
import { type Executor, rows } from "../../data/database.js";
import { fingerprint, newDataKey, unwrap, wrap, wrappedUnder } from "../../engine/cipher.js";
import type { KeyRing } from "../../engine/key-ring.js";
import { StartError } from "../../errors.js";

/** Where the master keys lie that no SETTINGS_KEY gives. */
export const settingsKeyFile = (dataDir: string): string => join(dataDir, "settings-key");

const bound = (appId: number): string => `app:${appId}`;

/** Keys that this process remembers at the most; each is 32 bytes. */
const KNOWN_MAX = 100_000;

export type DataKeys = ReturnType<typeof createDataKeys>;

export function createDataKeys({ db, ring }: { db: DataSource; ring: KeyRing }) {
  /** A committed data key never changes, whatever wraps it. */
  const known = new LRUCache<number, KeyObject>({ max: KNOWN_MAX });

  function masterKey(name: string): Buffer {
    const key = ring.find((candidate) => fingerprint(candidate) === name);
    if (key) return key;
    const problem = `is not the key that this database's settings are encrypted under (${name})`;
    if (ring.source === "SETTINGS_KEY") throw new StartError(`SETTINGS_KEY ${problem}`);
    throw new StartError(
      `${ring.source} of DATA_DIR is missing or ${problem}: copy the file from the previous DATA_DIR, or set SETTINGS_KEY`,
    );
  }

  const opened = (appId: number, wrapped: Buffer): KeyObject =>
    unwrap(masterKey(wrappedUnder(wrapped)), wrapped, bound(appId));

  async function wrappedKey(appId: number, executor: Executor, lock = ""): Promise<Buffer | null> {
    const sql = `SELECT data_key AS "dataKey" FROM app WHERE id = $1 ${lock}`;
    const [row] = await rows<{ dataKey: Buffer | null }>(executor, sql, [appId]);
    return row?.dataKey ?? null;
  }

  /** The fingerprint of the key that wraps what is new; no rotation changes it before the transaction ends. */
  async function keyInForce(executor: Executor): Promise<string> {
    const [row] = await rows<{ fingerprint: string }>(executor, "SELECT fingerprint FROM settings_key FOR SHARE");
    return row!.fingerprint;
  }

  /** Before anything changes: every key in use is at hand. */
  async function mustKnowAll(): Promise<void> {
    const used = await rows<{ name: string }>(
      db,
      `SELECT fingerprint AS name FROM settings_key
        UNION SELECT left(encode(data_key, 'hex'), length(fingerprint)) FROM app, settings_key WHERE data_key IS NOT NULL`,
    );
    for (const { name } of used) masterKey(name);
  }

  /** The apps whose data key is not wrapped under the key of that fingerprint. */
  async function appsNotUnder(name: string): Promise<number[]> {
    const found = await rows<{ id: number }>(
      db,
      "SELECT id FROM app WHERE data_key IS NOT NULL AND left(encode(data_key, 'hex'), length($1)) <> $1 ORDER BY id",
      [name],
    );
    return found.map(({ id }) => id);
  }

  async function wrapAnew(appId: number, next: Buffer): Promise<void> {
    await db.transaction(async (manager) => {
      const wrapped = await wrappedKey(appId, manager, "FOR NO KEY UPDATE");
      if (!wrapped) return;
      const rewrapped = wrap(next, opened(appId, wrapped), bound(appId));
      await rows(manager, "UPDATE app SET data_key = $2 WHERE id = $1", [appId, rewrapped]);
    });
  }

  return {
    /** Names the key of an empty database, and makes sure that this process has the one in force. */
    async start(): Promise<void> {
      // A key is made only for a database that has none.
      if ((await rows(db, "SELECT FROM settings_key")).length === 0) {
        const values = [fingerprint(ring.current())];
        await db.query("INSERT INTO settings_key (fingerprint) VALUES ($1) ON CONFLICT DO NOTHING", values);
      }
      masterKey(await keyInForce(db.manager));
    },

    /** The app's data key, or null when the app has none yet. */
    async find(appId: number): Promise<KeyObject | null> {
      const hit = known.get(appId);
      if (hit) return hit;
      const wrapped = await wrappedKey(appId, db);
      if (!wrapped) return null;
      const key = opened(appId, wrapped);
      known.set(appId, key);
      return key;
    },

    /** The app's data key, made now if there is none. For a transaction that has locked the app's row. */
    async findOrMake(appId: number, executor: Executor): Promise<KeyObject> {
      const hit = known.get(appId);
      if (hit) return hit;
      // What is found or made here is not remembered: the transaction may yet come to nothing.
      const wrapped = await wrappedKey(appId, executor);
      if (wrapped) return opened(appId, wrapped);
      const key = newDataKey();
      const master = masterKey(await keyInForce(executor));
      await rows(executor, "UPDATE app SET data_key = $2 WHERE id = $1", [appId, wrap(master, key, bound(appId))]);
      return key;
    },

    /**
     * Wraps every data key under `next`, app by app, while readers and writers go on; may be repeated after a failure.
     * Answers how many it wrapped. `next` and all keys in use must lie where every process finds them before this is called.
     */
    async rotate(next: Buffer): Promise<number> {
      await mustKnowAll();
      const name = fingerprint(next);
      // From this commit on, new data keys are wrapped under the next key: its lock waited for those that were being made.
      await db.query("UPDATE settings_key SET fingerprint = $1", [name]);
      const apps = await appsNotUnder(name);
      for (const id of apps) await wrapAnew(id, next);
      return apps.length;
    },
  };
}
