/**
 * An app's settings: one row a key, private and protected values sealed, each reader its tiers (specification, App settings).
 * The only room where a sealed value is opened. Knows no transport.
 */
import type { DataSource } from "typeorm";
import { type Executor, rows } from "../data/database.js";
import { open, seal } from "../engine/cipher.js";
import { ActionError } from "../errors.js";
import type { Caller } from "../rules/access.js";
import {
  artifactKey,
  checkDeletedKeys,
  checkSettingKeys,
  httpView,
  runtimeView,
  type SettingsView,
  serverActionView,
  tierOf,
} from "../rules/setting-tiers.js";
import { audit } from "./audit.js";
import type { DataKeys } from "./data-keys.js";

/** A key as a text column holds it: the inside of a JSON string, since text knows neither NUL nor lone surrogates. */
const stored = (key: string): string => JSON.stringify(key).slice(1, -1);
const spoken = (key: string): string => JSON.parse(`"${key}"`);

/** What binds a sealed value to its place: moved to another app or key it does not open. */
const bound = (appId: number, key: string): string => `app:${appId}:${key}`;

interface StoredSetting {
  key: string;
  value: string | null;
  sealed: Buffer | null;
}

/** Of each key that was asked about: whether it is set, and by whom and when. Never a value. */
export interface SettingsStatus {
  configured: Record<string, boolean>;
  details: Record<string, { updatedAt: string; updatedBy: number | null }>;
}

const TIER_FILTER = {
  all: "",
  http: "AND left(key, 2) <> '__'",
  runtime: "AND left(key, 1) <> '_'",
  underscore: "AND left(key, 1) = '_'",
};

const UPSERT = `
  INSERT INTO setting (app_id, key, value, sealed, updated_by)
  SELECT $1, s.key, s.value, s.sealed, $5 FROM unnest($2::text[], $3::text[], $4::bytea[]) AS s (key, value, sealed)
  ON CONFLICT (app_id, key) DO UPDATE
    SET value = excluded.value, sealed = excluded.sealed, updated_at = now(), updated_by = excluded.updated_by`;

function refuseProtected(caller: Caller, keys: readonly string[]): void {
  const key = caller.kind === "task" ? keys.find((name) => tierOf(name) === "protected") : undefined;
  if (key !== undefined) {
    throw new ActionError("FORBIDDEN", "a task token may neither write nor delete a setting whose key starts with __");
  }
}

export type Settings = ReturnType<typeof createSettings>;

export function createSettings({ db, dataKeys }: { db: DataSource; dataKeys: DataKeys }) {
  async function read(appId: number, tiers: keyof typeof TIER_FILTER): Promise<Map<string, unknown>> {
    const found = await rows<StoredSetting>(
      db,
      `SELECT key, value, sealed FROM setting WHERE app_id = $1 ${TIER_FILTER[tiers]} ORDER BY key`,
      [appId],
    );
    const dataKey = found.some(({ sealed }) => sealed) ? await dataKeys.find(appId) : null;
    return new Map(
      found.map(({ key, value, sealed }) => [
        spoken(key),
        JSON.parse(sealed ? open(dataKey!, sealed, bound(appId, key)) : value!),
      ]),
    );
  }

  async function put(
    executor: Executor,
    appId: number,
    entries: [string, unknown][],
    by: number | null,
  ): Promise<void> {
    // In one order, so that two writers of the same keys wait for each other instead of locking each other out.
    const ordered = entries
      .map(([key, value]) => ({ key: stored(key), tier: tierOf(key), text: JSON.stringify(value) }))
      .sort((a, b) => (a.key < b.key ? -1 : 1));
    const secret = ordered.some(({ tier }) => tier !== "public");
    const dataKey = secret ? await dataKeys.findOrMake(appId, executor) : null;
    await rows(executor, UPSERT, [
      appId,
      ordered.map(({ key }) => key),
      ordered.map(({ tier, text }) => (tier === "public" ? text : null)),
      ordered.map(({ key, tier, text }) => (tier === "public" ? null : seal(dataKey!, text, bound(appId, key)))),
      by,
    ]);
  }

  async function http(appId: number): Promise<SettingsView> {
    return httpView(await read(appId, "http"));
  }

  async function write(caller: Caller, appId: number, entries: [string, unknown][]): Promise<SettingsView> {
    const keys = entries.map(([key]) => key);
    refuseProtected(caller, keys);
    if (keys.length > 0) {
      await db.transaction(async (manager) => {
        await put(manager, appId, entries, caller.personId);
        await audit(manager, caller, { appId, type: "app.settings.update", data: { keys } });
      });
    }
    return http(appId);
  }

  return {
    /** What GET answers: no protected key, for nobody. */
    http,

    /** `window.ENV.appSettings`: public keys alone. */
    async runtime(appId: number): Promise<SettingsView> {
      return runtimeView(await read(appId, "runtime"));
    },

    /** Everything, for code inside the service (specification, App settings, rule 3). */
    async backend(appId: number): Promise<Map<string, unknown>> {
      return read(appId, "all");
    },

    /** The private and protected settings: what server actions see, and what no run may carry out. */
    async underscore(appId: number): Promise<SettingsView> {
      return serverActionView(await read(appId, "underscore"));
    },

    /**
     * Sets the listed keys whole and keeps the others; answers as GET does.
     * @throws SETTINGS_INVALID; FORBIDDEN for a task token and a protected key: then nothing is written
     */
    async set(caller: Caller, appId: number, body: unknown): Promise<SettingsView> {
      return write(caller, appId, checkSettingKeys(body));
    },

    /** The settings in an administrator's PUT: protected keys in it are ignored, their values kept. */
    async setIgnoringProtected(caller: Caller, appId: number, body: unknown): Promise<SettingsView> {
      return write(
        caller,
        appId,
        checkSettingKeys(body).filter(([key]) => tierOf(key) !== "protected"),
      );
    },

    /** Stores a secure field of the AI builder as `_aiartifact_<settingKey>`; answers with that key. */
    async setArtifact(caller: Caller, appId: number, settingKey: unknown, value: unknown): Promise<string> {
      if (typeof settingKey !== "string" || settingKey === "") {
        throw new ActionError("SETTINGS_INVALID", "settingKey must be a string that is not empty");
      }
      if (value === undefined) throw new ActionError("SETTINGS_INVALID", "value is required");
      const key = artifactKey(settingKey);
      await write(caller, appId, checkSettingKeys({ [key]: value }));
      return key;
    },

    /**
     * Removes top-level keys, those that are not there in silence; answers as GET does.
     * @throws SETTINGS_INVALID; FORBIDDEN as in `set`
     */
    async remove(caller: Caller, appId: number, body: unknown): Promise<SettingsView> {
      const keys = checkDeletedKeys(body);
      refuseProtected(caller, keys);
      await db.transaction(async (manager) => {
        const gone = await rows<{ key: string }>(
          manager,
          "DELETE FROM setting WHERE app_id = $1 AND key = ANY ($2::text[]) RETURNING key",
          [appId, keys.map(stored)],
        );
        if (gone.length === 0) return;
        await audit(manager, caller, {
          appId,
          type: "app.settings.delete",
          data: { keys: gone.map(({ key }) => spoken(key)) },
        });
      });
      return http(appId);
    },

    /** Whether each of `keys` is set, and since when and by whom; null asks about every underscore key. */
    async status(appId: number, keys: readonly string[] | null): Promise<SettingsStatus> {
      const found = await rows<{ key: string; updatedAt: Date; updatedBy: number | null }>(
        db,
        `SELECT key, updated_at AS "updatedAt", updated_by AS "updatedBy" FROM setting
          WHERE app_id = $1 AND CASE WHEN $2::text[] IS NULL THEN left(key, 1) = '_' ELSE key = ANY ($2) END`,
        [appId, keys?.map(stored) ?? null],
      );
      const status: SettingsStatus = { configured: Object.create(null), details: Object.create(null) };
      for (const key of keys ?? []) status.configured[key] = false;
      for (const { key, updatedAt, updatedBy } of found) {
        status.configured[spoken(key)] = true;
        status.details[spoken(key)] = { updatedAt: updatedAt.toISOString(), updatedBy };
      }
      return status;
    },
  };
}
