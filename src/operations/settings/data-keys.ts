/**
 * Creates and stores a data key for each app. This key encrypts the app's settings. The data key itself is stored encrypted under a master
 * key (SETTINGS_KEY). A rotation replaces the master key.
 */
import type { KeyObject } from "node:crypto";
import { join } from "node:path";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { createBoundedCache } from "../../engine/bounded-cache.js";
import {
  computeKeyFingerprint,
  createDataKey,
  readMasterKeyFingerprint,
  unwrapDataKey,
  wrapDataKey,
} from "../../engine/cipher.js";
import type { KeyRing } from "../../engine/key-ring.js";
import { StartError } from "../../errors.js";

/** File with the master keys, which is used if SETTINGS_KEY is not set. */
export const getSettingsKeyFilePath = (dataDir: string): string => join(dataDir, "settings-key");

const createKeyLabel = (appId: number): string => `app:${appId}`;

const CACHED_KEYS_MAX = 100_000;

/** Returns the app's data key, encrypted under a master key; null if the app has none. `lock` is a locking clause of SQL. */
async function readWrappedKey(appId: number, executor: SqlClient, lock = ""): Promise<Buffer | null> {
  const sql = `SELECT data_key AS "dataKey" FROM app WHERE id = $1 ${lock}`;
  const [row] = await rows<{ dataKey: Buffer | null }>(executor, sql, [appId]);
  return row?.dataKey ?? null;
}

/** Returns the fingerprint of the master key for new data keys. Locks the row, so that no rotation replaces the key before the commit. */
async function readCurrentFingerprint(executor: SqlClient): Promise<string> {
  const [row] = await rows<{ fingerprint: string }>(executor, "SELECT fingerprint FROM settings_key FOR SHARE");
  return row!.fingerprint;
}

export class DataKeys {
  /** Cache of data keys. A data key never changes: a rotation changes only the master key under which the data key is stored. */
  private readonly cachedKeys = createBoundedCache<number, KeyObject>(CACHED_KEYS_MAX);

  constructor(private readonly options: { db: Db; ring: KeyRing }) {}

  /** @throws StartError if this process does not have the master key with this fingerprint */
  private requireMasterKey(fingerprint: string): Buffer {
    const { ring } = this.options;
    const key = ring.findKey((candidate) => computeKeyFingerprint(candidate) === fingerprint);
    if (key) return key;
    const missingKey = `the key that encrypts the settings of this database (fingerprint ${fingerprint})`;
    if (ring.source === "SETTINGS_KEY") {
      throw new StartError(`SETTINGS_KEY does not contain ${missingKey}; append a comma and this key to SETTINGS_KEY`);
    }
    throw new StartError(
      `the file ${ring.source} of DATA_DIR is missing, or does not contain ${missingKey}: copy the file from the previous DATA_DIR, or set SETTINGS_KEY to this key`,
    );
  }

  private unwrapKey(appId: number, wrappedDataKey: Buffer): KeyObject {
    return unwrapDataKey(
      this.requireMasterKey(readMasterKeyFingerprint(wrappedDataKey)),
      wrappedDataKey,
      createKeyLabel(appId),
    );
  }

  /** @throws StartError if this process does not have all master keys under which data keys are encrypted */
  private async requireAllMasterKeys(): Promise<void> {
    const usedKeys = await rows<{ name: string }>(
      this.options.db,
      `SELECT fingerprint AS name FROM settings_key
        UNION SELECT left(encode(data_key, 'hex'), length(fingerprint)) FROM app, settings_key WHERE data_key IS NOT NULL`,
    );
    for (const { name } of usedKeys) this.requireMasterKey(name);
  }

  /** Returns the IDs of the apps whose data key is not encrypted under the master key with the fingerprint `name`. */
  private async listAppsWithOtherMasterKey(name: string): Promise<number[]> {
    const appRows = await rows<{ id: number }>(
      this.options.db,
      "SELECT id FROM app WHERE data_key IS NOT NULL AND left(encode(data_key, 'hex'), length($1)) <> $1 ORDER BY id",
      [name],
    );
    return appRows.map(({ id }) => id);
  }

  private async rewrapKey(appId: number, next: Buffer): Promise<void> {
    await this.options.db.transaction(async (manager) => {
      const wrappedDataKey = await readWrappedKey(appId, manager, "FOR NO KEY UPDATE");
      if (!wrappedDataKey) return;
      const rewrappedKey = wrapDataKey(next, this.unwrapKey(appId, wrappedDataKey), createKeyLabel(appId));
      await rows(manager, "UPDATE app SET data_key = $2 WHERE id = $1", [appId, rewrappedKey]);
    });
  }

  /** For a new database, stores the fingerprint of the master key. @throws StartError if this process lacks the current key */
  async start(): Promise<void> {
    const { db, ring } = this.options;
    // Calls `getCurrentKey` only for a new database, because this call creates a key file if none exists.
    if ((await rows(db, "SELECT FROM settings_key")).length === 0) {
      const values = [computeKeyFingerprint(ring.getCurrentKey())];
      await db.query("INSERT INTO settings_key (fingerprint) VALUES ($1) ON CONFLICT DO NOTHING", values);
    }
    this.requireMasterKey(await readCurrentFingerprint(db.manager));
  }

  /** Returns the app's committed data key; null if the app has no data key yet. */
  async find(appId: number, executor: SqlClient = this.options.db): Promise<KeyObject | null> {
    const cachedKey = this.cachedKeys.get(appId);
    if (cachedKey) return cachedKey;
    const wrappedDataKey = await readWrappedKey(appId, executor);
    if (!wrappedDataKey) return null;
    const key = this.unwrapKey(appId, wrappedDataKey);
    this.cachedKeys.set(appId, key);
    return key;
  }

  /** Returns the app's data key; creates it if the app has none. Call this function in a transaction. */
  async findOrCreate(appId: number, executor: SqlClient): Promise<KeyObject> {
    const cachedKey = this.cachedKeys.get(appId);
    if (cachedKey) return cachedKey;
    // Does not cache the key here, because the transaction may be rolled back.
    const wrappedDataKey =
      (await readWrappedKey(appId, executor)) ?? (await readWrappedKey(appId, executor, "FOR NO KEY UPDATE"));
    if (wrappedDataKey) return this.unwrapKey(appId, wrappedDataKey);
    const key = createDataKey();
    const masterKey = this.requireMasterKey(await readCurrentFingerprint(executor));
    await rows(executor, "UPDATE app SET data_key = $2 WHERE id = $1", [
      appId,
      wrapDataKey(masterKey, key, createKeyLabel(appId)),
    ]);
    return key;
  }

  /**
   * Encrypts the data keys of all apps under the master key `next`. Before the call, every process must have `next` and all master keys in
   * use. The call can be repeated after a failure. Returns the number of data keys that were encrypted again.
   */
  async rotate(next: Buffer): Promise<number> {
    await this.requireAllMasterKeys();
    const name = computeKeyFingerprint(next);
    // The UPDATE waits for transactions that are creating data keys. Later transactions use `next` for new data keys.
    await this.options.db.query("UPDATE settings_key SET fingerprint = $1", [name]);
    const apps = await this.listAppsWithOtherMasterKey(name);
    for (const id of apps) await this.rewrapKey(id, next);
    return apps.length;
  }
}
