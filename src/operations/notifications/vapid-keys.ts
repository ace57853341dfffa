/** Keys by which push services identify an app, created once and stored encrypted. Sends nothing. */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { newVapidKeys, type VapidKeys } from "../../engine/push-message.js";
import { lockApp, type Settings } from "../settings/settings.js";

const NAME = "vapid";
const FIND = `SELECT public_key AS "publicKey", sealed FROM vapid_key WHERE app_id = $1`;

export type VapidKeysOf = ReturnType<typeof createVapidKeys>;

export function createVapidKeys({ db, settings }: { db: DataSource; settings: Settings }) {
  const known = new Map<number, VapidKeys>();

  async function found(appId: number): Promise<VapidKeys | null> {
    const [row] = await rows<{ publicKey: string; sealed: Buffer }>(db, FIND, [appId]);
    if (!row) return null;
    return { publicKey: row.publicKey, privateKey: await settings.unsealFor(appId, NAME, row.sealed) };
  }

  async function make(appId: number): Promise<void> {
    const { publicKey, privateKey } = newVapidKeys();
    await db.transaction(async (manager) => {
      await lockApp(manager, appId);
      const sealed = await settings.sealFor(manager, appId, NAME, privateKey);
      const sql = "INSERT INTO vapid_key (app_id, public_key, sealed) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
      await rows(manager, sql, [appId, publicKey, sealed]);
    });
  }

  /** Returns the app's keys, and creates them if there are none. Of concurrent creations one pair is stored. */
  return async function keysOf(appId: number): Promise<VapidKeys> {
    const keys = known.get(appId) ?? (await found(appId));
    if (!keys) {
      await make(appId);
      return keysOf(appId);
    }
    known.set(appId, keys);
    return keys;
  };
}
