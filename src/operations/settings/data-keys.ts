/**
 * Each app has a data key that encrypts its settings. A data key is created when first needed and stored encrypted
 * under a master key (SETTINGS_KEY). A rotation replaces the master key.
 */
import type { KeyObject } from "node:crypto";
import { join } from "node:path";
import type { DataSource } from "typeorm";
import { type Executor, rows } from "../../data/database.js";
import { boundedCache } from "../../engine/bounded-cache.js";
import { keyFingerprint, masterKeyFingerprintOf, newDataKey, unwrapDataKey, wrapDataKey } from "../../engine/cipher.js";
import type { KeyRing } from "../../engine/key-ring.js";
import { StartError } from "../../errors.js";

/** Returns the path of the file with the master keys, used without SETTINGS_KEY. */
export const settingsKeyFile = (dataDir: string): string => join(dataDir, "settings-key");

const keyLabel = (appId: number): string => `app:${appId}`;

/** Maximum number of cached keys of 32 bytes each. */
const KNOWN_MAX = 100_000;

export type DataKeys = ReturnType<typeof createDataKeys>;

export function createDataKeys({ db, ring }: { db: DataSource; ring: KeyRing }) {
  /** Cached data keys. A committed data key never changes. A rotation only changes the master key that encrypts it. */
  const cachedKeys = boundedCache<number, KeyObject>(KNOWN_MAX);

  function masterKey(name: string): Buffer {
    const key = ring.find((candidate) => keyFingerprint(candidate) === name);
    if (key) return key;
    const keyMismatch = `is not the key that this database's settings are encrypted under (${name})`;
    if (ring.source === "SETTINGS_KEY") throw new StartError(`SETTINGS_KEY ${keyMismatch}`);
    throw new StartError(
      `${ring.source} of DATA_DIR is missing or ${keyMismatch}: copy the file from the previous DATA_DIR, or set SETTINGS_KEY`,
    );
  }

  const unwrapKey = (appId: number, wrappedDataKey: Buffer): KeyObject =>
    unwrapDataKey(masterKey(masterKeyFingerprintOf(wrappedDataKey)), wrappedDataKey, keyLabel(appId));

  async function wrappedKey(appId: number, executor: Executor, lock = ""): Promise<Buffer | null> {
    const sql = `SELECT data_key AS "dataKey" FROM app WHERE id = $1 ${lock}`;
    const [row] = await rows<{ dataKey: Buffer | null }>(executor, sql, [appId]);
    return row?.dataKey ?? null;
  }

  /**
   * Returns the fingerprint of the master key that encrypts new data keys. No rotation replaces this key before the
   * transaction ends.
   */
  async function currentMasterKeyName(executor: Executor): Promise<string> {
    const [row] = await rows<{ fingerprint: string }>(executor, "SELECT fingerprint FROM settings_key FOR SHARE");
    return row!.fingerprint;
  }

  /** Checks that this process has every key that encrypts a data key. */
  async function requireAllMasterKeys(): Promise<void> {
    const usedKeys = await rows<{ name: string }>(
      db,
      `SELECT fingerprint AS name FROM settings_key
        UNION SELECT left(encode(data_key, 'hex'), length(fingerprint)) FROM app, settings_key WHERE data_key IS NOT NULL`,
    );
    for (const { name } of usedKeys) masterKey(name);
  }

  /** Returns the apps whose data key is not encrypted under the master key with this fingerprint. */
  async function appsNotUnder(name: string): Promise<number[]> {
    const appRows = await rows<{ id: number }>(
      db,
      "SELECT id FROM app WHERE data_key IS NOT NULL AND left(encode(data_key, 'hex'), length($1)) <> $1 ORDER BY id",
      [name],
    );
    return appRows.map(({ id }) => id);
  }

  async function rewrapKeys(appId: number, next: Buffer): Promise<void> {
    await db.transaction(async (manager) => {
      const wrappedDataKey = await wrappedKey(appId, manager, "FOR NO KEY UPDATE");
      if (!wrappedDataKey) return;
      const rewrappedKey = wrapDataKey(next, unwrapKey(appId, wrappedDataKey), keyLabel(appId));
      await rows(manager, "UPDATE app SET data_key = $2 WHERE id = $1", [appId, rewrappedKey]);
    });
  }

  return {
    /** Records the key if the database is new, and checks that this process has the current key. */
    async start(): Promise<void> {
      // `ring.current()` creates a key file if there is none, so it is called only for a new database.
      if ((await rows(db, "SELECT FROM settings_key")).length === 0) {
        const values = [keyFingerprint(ring.current())];
        await db.query("INSERT INTO settings_key (fingerprint) VALUES ($1) ON CONFLICT DO NOTHING", values);
      }
      masterKey(await currentMasterKeyName(db.manager));
    },

    /** Returns the app's data key, or null if it has none yet. */
    async find(appId: number): Promise<KeyObject | null> {
      const hit = cachedKeys.get(appId);
      if (hit) return hit;
      const wrappedDataKey = await wrappedKey(appId, db);
      if (!wrappedDataKey) return null;
      const key = unwrapKey(appId, wrappedDataKey);
      cachedKeys.set(appId, key);
      return key;
    },

    /**
     * Returns the app's data key; if there is none, locks the app's row and creates the key. Call it in a transaction.
     */
    async findOrMake(appId: number, executor: Executor): Promise<KeyObject> {
      const hit = cachedKeys.get(appId);
      if (hit) return hit;
      // Not cached here, because the transaction may be rolled back.
      const wrappedDataKey =
        (await wrappedKey(appId, executor)) ?? (await wrappedKey(appId, executor, "FOR NO KEY UPDATE"));
      if (wrappedDataKey) return unwrapKey(appId, wrappedDataKey);
      const key = newDataKey();
      const masterDataKey = masterKey(await currentMasterKeyName(executor));
      await rows(executor, "UPDATE app SET data_key = $2 WHERE id = $1", [
        appId,
        wrapDataKey(masterDataKey, key, keyLabel(appId)),
      ]);
      return key;
    },

    /**
     * Encrypts every data key under `next`, app by app, while readers and writers continue; can be repeated after a
     * failure. Returns the number of re-encrypted data keys. `next` and all keys in use must be available to every
     * process before the call.
     */
    async rotate(next: Buffer): Promise<number> {
      await requireAllMasterKeys();
      const name = keyFingerprint(next);
      // From this commit on, new data keys are encrypted under `next`. The UPDATE has waited for transactions that
      // create data keys.
      await db.query("UPDATE settings_key SET fingerprint = $1", [name]);
      const apps = await appsNotUnder(name);
      for (const id of apps) await rewrapKeys(id, next);
      return apps.length;
    },
  };
}
