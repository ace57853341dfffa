/** Each app's data key: made when first needed, kept wrapped under the current SETTINGS_KEY, wrapped anew on rotation. */
import type { DataSource } from "typeorm";
import { type Executor, rows } from "../data/database.js";
import { fingerprint, newKey, unwrap, wrap, wrappedUnder } from "../engine/cipher.js";
import type { KeyRing } from "../engine/key-ring.js";

const bound = (appId: number): string => `app:${appId}`;

export type DataKeys = ReturnType<typeof createDataKeys>;

export function createDataKeys({ db, ring }: { db: DataSource; ring: KeyRing }) {
  /** A data key never changes, whatever wraps it. */
  const known = new Map<number, Buffer>();

  function masterKey(name: string): Buffer {
    const key = ring.find((candidate) => fingerprint(candidate) === name);
    if (key) return key;
    throw new Error(`SETTINGS_KEY is not the key that this database's settings are encrypted under (${name})`);
  }

  /** The fingerprint of the key in force, locked against a rotation until the transaction ends. */
  async function keyInForce(executor: Executor, lock: "SHARE" | "UPDATE"): Promise<string> {
    const [row] = await rows<{ fingerprint: string }>(executor, `SELECT fingerprint FROM settings_key FOR ${lock}`);
    return row!.fingerprint;
  }

  return {
    /** Names the key of an empty database, and makes sure that this process has the one in force. */
    async start(): Promise<void> {
      await db.query("INSERT INTO settings_key (fingerprint) VALUES ($1) ON CONFLICT DO NOTHING", [
        fingerprint(ring.current()),
      ]);
      masterKey(await keyInForce(db.manager, "SHARE"));
    },

    /** The app's data key, or null when the app has none yet. */
    async find(appId: number, executor: Executor = db): Promise<Buffer | null> {
      const hit = known.get(appId);
      if (hit) return hit;
      const [row] = await rows<{ dataKey: Buffer | null }>(
        executor,
        `SELECT data_key AS "dataKey" FROM app WHERE id = $1`,
        [appId],
      );
      if (!row?.dataKey) return null;
      const key = unwrap(masterKey(wrappedUnder(row.dataKey)), row.dataKey, bound(appId));
      known.set(appId, key);
      return key;
    },

    /** The app's data key, made now if there is none; inside the transaction that first seals something with it. */
    async findOrMake(appId: number, executor: Executor): Promise<Buffer> {
      const found = await this.find(appId, executor);
      if (found) return found;
      const master = masterKey(await keyInForce(executor, "SHARE"));
      await rows(executor, "UPDATE app SET data_key = $2 WHERE id = $1 AND data_key IS NULL", [
        appId,
        wrap(master, newKey(), bound(appId)),
      ]);
      // Read back: another writer's key may have come first.
      const [row] = await rows<{ dataKey: Buffer }>(executor, `SELECT data_key AS "dataKey" FROM app WHERE id = $1`, [
        appId,
      ]);
      return unwrap(masterKey(wrappedUnder(row!.dataKey)), row!.dataKey, bound(appId));
    },

    /** Wraps every data key under `next`, in one transaction; readers go on meanwhile. Returns how many. */
    async rotate(next: Buffer): Promise<number> {
      return db.transaction(async (manager) => {
        await keyInForce(manager, "UPDATE");
        const apps = await rows<{ id: number; dataKey: Buffer }>(
          manager,
          `SELECT id, data_key AS "dataKey" FROM app WHERE data_key IS NOT NULL ORDER BY id FOR UPDATE`,
        );
        for (const { id, dataKey } of apps) {
          const plain = unwrap(masterKey(wrappedUnder(dataKey)), dataKey, bound(id));
          await rows(manager, "UPDATE app SET data_key = $2 WHERE id = $1", [id, wrap(next, plain, bound(id))]);
        }
        await rows(manager, "UPDATE settings_key SET fingerprint = $1", [fingerprint(next)]);
        return apps.length;
      });
    },
  };
}
