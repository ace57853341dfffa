/**
 * Creates and stores a VAPID key pair for each app. The service signs the app's requests to push services with it. The private key is
 * stored encrypted.
 */
import { type Db, rows } from "../../data/database.js";
import { generateVapidKeys, type VapidKeys } from "../../engine/push-message.js";
import { transactWithAppLock } from "../settings/app-lock.js";
import type { Settings } from "../settings/settings.js";

const VAPID_ENCRYPTION_LABEL = "vapid";
const SELECT_VAPID_KEYS = `SELECT public_key AS "publicKey", sealed FROM vapid_key WHERE app_id = $1`;

/** Returns the app's VAPID key pair. The first call creates it. Concurrent first calls return the same pair. */
export type ReadOrCreateVapidKeys = (appId: number) => Promise<VapidKeys>;

interface VapidKeyReaderOptions {
  db: Db;
  settings: Settings;
}

export function createVapidKeyProvider({ db, settings }: VapidKeyReaderOptions): ReadOrCreateVapidKeys {
  const cachedKeys = new Map<number, VapidKeys>();

  async function findKeys(appId: number): Promise<VapidKeys | null> {
    const [row] = await rows<{ publicKey: string; sealed: Buffer }>(db, SELECT_VAPID_KEYS, [appId]);
    if (!row) return null;
    return {
      publicKey: row.publicKey,
      privateKey: await settings.unsealFor(appId, VAPID_ENCRYPTION_LABEL, row.sealed),
    };
  }

  async function createKeys(appId: number): Promise<void> {
    const { publicKey, privateKey } = generateVapidKeys();
    await transactWithAppLock(db, appId, async (manager) => {
      const sealedKey = await settings.sealFor(manager, appId, VAPID_ENCRYPTION_LABEL, privateKey);
      const sql = "INSERT INTO vapid_key (app_id, public_key, sealed) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
      await rows(manager, sql, [appId, publicKey, sealedKey]);
    });
  }

  return async function readOrCreateKeys(appId) {
    const keys = cachedKeys.get(appId) ?? (await findKeys(appId));
    if (!keys) {
      await createKeys(appId);
      return readOrCreateKeys(appId);
    }
    cachedKeys.set(appId, keys);
    return keys;
  };
}
