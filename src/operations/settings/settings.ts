/** Operations on an app's settings (specification, App settings). Only this file decrypts values of settings. */
import type { EntityManager } from "typeorm";
import { type Db, queryPreparedRows, rows, type SqlClient } from "../../data/database.js";
import { decryptText, encryptText } from "../../engine/cipher.js";
import { shareConcurrentReads } from "../../engine/shared-reads.js";
import { ActionError } from "../../errors.js";
import { SETTINGS_PER_APP_MAX_BYTES } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { createAppUpdateEvent } from "../../rules/app-events.js";
import type { ReadAppSession } from "../../rules/app-session.js";
import type { PageEnv, PageEnvWithSession } from "../../rules/env-script.js";
import { type ExpectedVersions, requireExpectedVersion } from "../../rules/precondition.js";
import { escapeSettingKey, unescapeSettingKey } from "../../rules/setting-key-text.js";
import {
  checkRequestedSettingKeys,
  createAiArtifactSettingKey,
  getSettingTier,
  parseDeletedSettingKeys,
  parseSecretFlagRequest,
  parseSettingsBody,
  removeProtectedKeys,
  type SettingsByKey,
  selectHttpSettings,
  selectRuntimeSettings,
  selectServerActionSettings,
} from "../../rules/setting-tiers.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import { recordChange } from "../records/audit.js";
import type { LogEventStore } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { transactWithAppLock } from "./app-lock.js";
import type { DataKeys } from "./data-keys.js";
import { deleteUnusedOauthTokens, SecretValueReader, type StoredSetting, setSecretFlags } from "./secret-values.js";
import { readStoredSettingStatus } from "./setting-definitions.js";
import { measureSettingsUse, type SettingsUse } from "./setting-readers.js";

/** Returns the label of a value's encryption. The value can be decrypted only with the same label (same app and setting). */
const createSettingLabel = (appId: number, key: string): string => `app:${appId}:${key}`;

type SettingEntries = [key: string, value: unknown][];

/** The settings that the caller may read, and the time of the last change of any setting of the app. */
export interface SettingsWithUpdateTime {
  settings: SettingsByKey;
  updatedAt: string;
}

/** Status of a setting. Never contains the value. */
export interface SettingStatus {
  key: string;
  configured: boolean;
  /** Time of the last change of the value, as ISO 8601 text; null if the setting has no value. */
  updatedAt: string | null;
  updatedBy: number | null;
  /** True if logs and responses must not show the value. */
  secret: boolean;
}

const SELECT_SETTINGS = "SELECT key, value, sealed FROM setting WHERE app_id = $1";
const SELECT_BY_READER = {
  all: `${SELECT_SETTINGS} ORDER BY key`,
  http: `${SELECT_SETTINGS} AND left(key, 2) <> '__' ORDER BY key`,
  runtime: `${SELECT_SETTINGS} AND left(key, 1) <> '_' ORDER BY key`,
};

const UPSERT_SETTING = `
  INSERT INTO setting (app_id, key, value, sealed, not_secret, updated_by)
  SELECT $1, s.key, s.value, s.sealed, coalesce(d.not_secret, false), $5
    FROM unnest($2::text[], $3::text[], $4::bytea[]) AS s (key, value, sealed)
    LEFT JOIN declared_setting d ON d.app_id = $1 AND d.key = s.key
  ON CONFLICT (app_id, key) DO UPDATE
    SET value = excluded.value, sealed = excluded.sealed, updated_at = now(), updated_by = excluded.updated_by`;

const SELECT_OTHER_SETTINGS_BYTES = `
  SELECT coalesce(sum(octet_length(key) + coalesce(octet_length(value), octet_length(sealed))), 0)::float8 AS bytes
    FROM setting WHERE app_id = $1 AND key <> ALL ($2::text[])`;

function rejectProtectedKeys(caller: Caller, keys: readonly string[]): void {
  const key = caller.kind === "task" ? keys.find((name) => getSettingTier(name) === "protected") : undefined;
  if (key !== undefined) {
    throw new ActionError("FORBIDDEN", `the token of a run cannot change the protected setting ${key}`);
  }
}

const SELECT_SETTINGS_UPDATED_AT =
  'SELECT coalesce(settings_updated_at, created_at) AS "updatedAt" FROM app WHERE id = $1';

/** The new time is always later than the old time, so that each change of the settings changes their ETag. */
const TOUCH_SETTINGS = `
  UPDATE app SET settings_updated_at =
    date_trunc('milliseconds', greatest(clock_timestamp(), settings_updated_at + interval '1 millisecond')) WHERE id = $1`;

/** Stores the current time as the time of the last change. Call this function in the transaction that changes the settings. */
export async function recordSettingsChangeTime(executor: SqlClient, appId: number): Promise<void> {
  await rows(executor, TOUCH_SETTINGS, [appId]);
}

/** The app whose settings a request changes, and the ETags that the request accepts (`If-Match`). */
export interface SettingsChangeTarget {
  appId: number;
  precondition?: ExpectedVersions;
}

export type { SettingsUse, StoredSetting };

interface SettingsOptions {
  db: Db;
  dataKeys: DataKeys;
  baseUrl: string;
  clientTimeoutMs: number;
  readAppSession: ReadAppSession;
  logEvents: LogEventStore;
  receivedDataLimiter: ReceivedDataLimiter;
}

/** @throws ActionError SETTINGS_INVALID if the app's settings would be too large in total */
async function checkSize(executor: SqlClient, appId: number, texts: { key: string; text: string }[]): Promise<void> {
  const keys = texts.map(({ key }) => key);
  const [otherSettings] = await rows<{ bytes: number }>(executor, SELECT_OTHER_SETTINGS_BYTES, [appId, keys]);
  const total = texts.reduce((bytes, { key, text }) => bytes + Buffer.byteLength(key + text), otherSettings!.bytes);
  if (total <= SETTINGS_PER_APP_MAX_BYTES) return;
  const message = `the settings of one app must be at most ${SETTINGS_PER_APP_MAX_BYTES} bytes in total (got ${total} with this change)`;
  throw new ActionError("SETTINGS_INVALID", message);
}

export class Settings {
  readonly secretValues = new SecretValueReader({
    db: this.options.db,
    openSettings: (appId, storedRows, executor) => this.openSettings(appId, storedRows, executor),
  });
  /** Concurrent reads of one app's settings share a query. Each reader decrypts the values itself. */
  private readonly storedRowReaders = {
    all: this.createSharedReader("all"),
    http: this.createSharedReader("http"),
    runtime: this.createSharedReader("runtime"),
  };

  constructor(private readonly options: SettingsOptions) {}

  private async openSettings(
    appId: number,
    storedRows: readonly StoredSetting[],
    executor?: SqlClient,
  ): Promise<[string, unknown][]> {
    const { dataKeys } = this.options;
    const hasSealed = storedRows.some((row) => row.sealed);
    // The transaction `executor` may just have created the data key, so the key is read in this transaction.
    const dataKey = hasSealed ? await (executor ? dataKeys.findOrCreate(appId, executor) : dataKeys.find(appId)) : null;
    if (hasSealed && !dataKey) throw new ActionError("APP_NOT_FOUND");
    return storedRows.map(({ key, value, sealed }) => [
      unescapeSettingKey(key),
      JSON.parse(sealed ? decryptText(dataKey!, sealed, createSettingLabel(appId, key)) : value!),
    ]);
  }

  private createSharedReader(reader: keyof typeof SELECT_BY_READER) {
    return shareConcurrentReads((appId: number) =>
      queryPreparedRows<StoredSetting>(this.options.db, `settings-${reader}`, SELECT_BY_READER[reader], [appId]),
    );
  }

  private async readSettings(appId: number, reader: keyof typeof SELECT_BY_READER): Promise<[string, unknown][]> {
    return this.openSettings(appId, await this.storedRowReaders[reader](appId));
  }

  /** Locks the app before it calls `work`. @throws RESOURCE_CHANGED if the settings have another version than `precondition` */
  private transact({ appId, precondition }: SettingsChangeTarget, work: (manager: EntityManager) => Promise<void>) {
    return transactWithAppLock(this.options.db, appId, async (manager) => {
      if (precondition) requireExpectedVersion({ updatedAt: await this.readUpdateTime(appId, manager) }, precondition);
      await work(manager);
    });
  }

  private async store(executor: SqlClient, caller: Caller, appId: number, entries: SettingEntries): Promise<void> {
    const { dataKeys, receivedDataLimiter } = this.options;
    const texts = entries.map(([key, value]) => ({
      key: escapeSettingKey(key),
      tier: getSettingTier(key),
      text: JSON.stringify(value),
    }));
    // Counts each key twice, because the audit log stores it too. Counts two rows for the whole change.
    const bytes = Buffer.byteLength(texts.map(({ key, text }) => key + key + text).join(""));
    receivedDataLimiter.countRows(caller, appId, bytes, 2);
    await checkSize(executor, appId, texts);
    const hasSecret = texts.some(({ tier }) => tier !== "public");
    const dataKey = hasSecret ? await dataKeys.findOrCreate(appId, executor) : null;
    await rows(executor, UPSERT_SETTING, [
      appId,
      texts.map(({ key }) => key),
      texts.map(({ tier, text }) => (tier === "public" ? text : null)),
      texts.map(({ key, tier, text }) =>
        tier === "public" ? null : encryptText(dataKey!, text, createSettingLabel(appId, key)),
      ),
      caller.personId,
    ]);
    await recordSettingsChangeTime(executor, appId);
    const keys = entries.map(([key]) => key);
    await recordChange(executor, caller, { appId, type: "app.settings.update", data: { keys } });
  }

  private async writeAndEmit(caller: Caller, target: SettingsChangeTarget, entries: SettingEntries): Promise<void> {
    const { appId } = target;
    const keys = entries.map(([key]) => key);
    await this.transact(target, async (manager) => {
      await this.write(manager, caller, appId, entries);
      throwIfUnknownField(caller);
      if (keys.length > 0) await this.emitUpdate(manager, caller, appId, keys);
    });
  }

  /** Writes settings and their audit log entry. Call this method after the app is locked. The calling code must emit the log event. */
  async write(executor: SqlClient, caller: Caller, appId: number, entries: SettingEntries): Promise<void> {
    if (entries.length === 0) return;
    await this.store(executor, caller, appId, entries);
    const keys = entries.map(([key]) => key);
    await this.secretValues.requireMaskableSecrets(executor, appId, keys);
  }

  /** Deletes settings, including declared settings that have no value. Returns the keys of the deleted settings that had a value. */
  async removeKeys(executor: SqlClient, caller: Caller, appId: number, keys: string[]): Promise<string[]> {
    const escapedKeys = keys.map(escapeSettingKey);
    await rows(executor, "DELETE FROM declared_setting WHERE app_id = $1 AND key = ANY ($2::text[])", [
      appId,
      escapedKeys,
    ]);
    const sql = "DELETE FROM setting WHERE app_id = $1 AND key = ANY ($2::text[]) RETURNING key";
    const removedRows = await rows<{ key: string }>(executor, sql, [appId, escapedKeys]);
    const removedKeys = removedRows.map(({ key }) => unescapeSettingKey(key));
    if (removedKeys.length === 0) return removedKeys;
    await deleteUnusedOauthTokens(executor, appId);
    await recordSettingsChangeTime(executor, appId);
    await recordChange(executor, caller, { appId, type: "app.settings.delete", data: { keys: removedKeys } });
    return removedKeys;
  }

  /** Emits the log event of a change. Call this method in the transaction that changes the settings. */
  emitUpdate(executor: SqlClient, caller: Caller, appId: number, keys: string[]) {
    return this.options.logEvents.emit(executor, caller, appId, createAppUpdateEvent({ fields: ["settings"], keys }));
  }

  /** Returns the size of the settings for server actions, and up to 100 drafts whose code contains `key`. @throws SETTINGS_INVALID */
  async readUse(appId: number, key: string | null): Promise<SettingsUse> {
    const sealedKeys = await this.secretValues.readSealedKeys(appId);
    const settings = selectServerActionSettings(await this.readSettings(appId, "all"), sealedKeys);
    return measureSettingsUse(this.options.db, appId, settings, key);
  }

  /** Returns the settings that a response of the API may contain. */
  async readResponseSettings(appId: number): Promise<SettingsByKey> {
    return selectHttpSettings(await this.readSettings(appId, "http"));
  }

  async readResponseSettingsWithTime(appId: number): Promise<SettingsWithUpdateTime> {
    const updatedAt = await this.readUpdateTime(appId);
    return { settings: await this.readResponseSettings(appId), updatedAt };
  }

  /** Returns only the public settings, for people who may read the app but not edit it. */
  async readPublicSettings(appId: number): Promise<SettingsWithUpdateTime> {
    const updatedAt = await this.readUpdateTime(appId);
    return { settings: selectRuntimeSettings(await this.readSettings(appId, "runtime")), updatedAt };
  }

  /** Returns the time of the last change of any setting of the app, as ISO 8601 text. @throws APP_NOT_FOUND */
  async readUpdateTime(appId: number, executor: SqlClient = this.options.db): Promise<string> {
    const [app] = await rows<{ updatedAt: Date }>(executor, SELECT_SETTINGS_UPDATED_AT, [appId]);
    if (!app) throw new ActionError("APP_NOT_FOUND");
    return app.updatedAt.toISOString();
  }

  /** Returns settings of a snapshot in the form of a response, without protected settings. */
  async decryptResponseSettings(appId: number, snapshotSettings: readonly StoredSetting[]): Promise<SettingsByKey> {
    return selectHttpSettings(
      await this.openSettings(
        appId,
        snapshotSettings.filter(({ key }) => getSettingTier(key) !== "protected"),
      ),
    );
  }

  /** Returns the data of `window.ENV` for the caller's page. It contains only public settings. */
  async buildPageEnv({ kind, credentialId, personId, copy }: Caller, appId: number): Promise<PageEnvWithSession> {
    const { baseUrl, clientTimeoutMs, readAppSession } = this.options;
    const appSettings = selectRuntimeSettings(await this.readSettings(appId, "runtime"));
    const session = await readAppSession({ appId, personId, credentialId, copy });
    const environment = kind === "live" ? "live" : "viewer";
    return { appId, apiUrl: baseUrl, environment, appSettings, clientTimeoutMs, session };
  }

  /**
   * Returns the data of `window.ENV` for a page without a credential: the public settings of a published app.
   * @throws UNAUTHORIZED for any other app, whether it exists or not
   */
  async buildPublicPageEnv(appId: number): Promise<PageEnv> {
    const { db, baseUrl, clientTimeoutMs } = this.options;
    const [app] = await rows(db, "SELECT FROM app WHERE id = $1 AND published_at IS NOT NULL", [appId]);
    if (!app) throw new ActionError("UNAUTHORIZED");
    const appSettings = selectRuntimeSettings(await this.readSettings(appId, "runtime"));
    return { appId, apiUrl: baseUrl, environment: "live", appSettings, clientTimeoutMs };
  }

  /** Returns all settings of the app, for code inside the service (specification, App settings, rule 3). */
  async readAll(appId: number, executor?: SqlClient): Promise<Map<string, unknown>> {
    if (!executor) return new Map(await this.readSettings(appId, "all"));
    const storedRows = await rows<StoredSetting>(executor, SELECT_BY_READER.all, [appId]);
    return new Map(await this.openSettings(appId, storedRows, executor));
  }

  /** Writes the setting values that are part of a change of bindings, in the transaction of this change. @throws SETTINGS_INVALID */
  async writeBoundSettings(executor: SqlClient, caller: Caller, appId: number, values: object): Promise<void> {
    await this.write(executor, caller, appId, parseSettingsBody(values));
    if (Object.keys(values).length > 0) await this.emitUpdate(executor, caller, appId, Object.keys(values));
  }

  /** Encrypts a secret that another table stores. The transaction must have locked the app. */
  async sealFor(executor: SqlClient, appId: number, name: string, text: string): Promise<Buffer> {
    return encryptText(await this.options.dataKeys.findOrCreate(appId, executor), text, `app:${appId}/${name}`);
  }

  /** Decrypts a secret that `sealFor` has encrypted with the same `name`. */
  async unsealFor(appId: number, name: string, sealed: Buffer, executor?: SqlClient): Promise<string> {
    const dataKey = await this.options.dataKeys.find(appId, executor);
    if (!dataKey) throw new ActionError("APP_NOT_FOUND");
    return decryptText(dataKey, sealed, `app:${appId}/${name}`);
  }

  /**
   * Marks private settings as secret or not secret. The mark also applies to later values. Protected settings are always secret.
   * @throws SETTINGS_INVALID, RESOURCE_CHANGED; then nothing is written
   */
  async mark(caller: Caller, target: SettingsChangeTarget, input: unknown): Promise<SettingStatus[]> {
    const { appId } = target;
    const { keys, secret } = parseSecretFlagRequest(input);
    await this.transact(target, async (manager) => {
      await setSecretFlags(manager, appId, keys, secret);
      throwIfUnknownField(caller);
      await recordSettingsChangeTime(manager, appId);
      await recordChange(manager, caller, { appId, type: "app.settings.mark", data: { keys, secret } });
    });
    return this.readStatus(appId, keys);
  }

  /**
   * Writes the settings in the body. Returns the settings that a GET request returns.
   * @throws SETTINGS_INVALID, RESOURCE_CHANGED, RATE_LIMIT_EXCEEDED, OVERLOADED; FORBIDDEN if the token of a run writes a protected setting
   */
  async set(caller: Caller, target: SettingsChangeTarget, body: unknown): Promise<SettingsWithUpdateTime> {
    const entries = parseSettingsBody(body);
    const keys = entries.map(([key]) => key);
    rejectProtectedKeys(caller, keys);
    await this.writeAndEmit(caller, target, entries);
    return this.readResponseSettingsWithTime(target.appId);
  }

  /** Validates the settings in an administrator's request, and leaves out protected settings. @throws SETTINGS_INVALID */
  validateIgnoringProtected(settings: unknown): [string, unknown][] {
    return parseSettingsBody(removeProtectedKeys(settings));
  }

  /** Stores a secret field of the AI builder as `_aiartifact_<field>`. @throws the errors of `set` */
  async setArtifact(caller: Caller, target: SettingsChangeTarget, field: unknown, value: unknown): Promise<string> {
    const key = createAiArtifactSettingKey(field);
    if (value === undefined) throw new ActionError("SETTINGS_INVALID", "value is required");
    const entries = parseSettingsBody({ [key]: value });
    await this.writeAndEmit(caller, target, entries);
    return key;
  }

  /** Deletes settings; ignores unknown keys. Returns the settings that a GET request returns. @throws the errors of `set` */
  async remove(caller: Caller, target: SettingsChangeTarget, body: unknown): Promise<SettingsWithUpdateTime> {
    const { appId } = target;
    const keys = parseDeletedSettingKeys(body);
    rejectProtectedKeys(caller, keys);
    await this.transact(target, async (manager) => {
      const removedKeys = await this.removeKeys(manager, caller, appId, keys);
      throwIfUnknownField(caller);
      if (removedKeys.length === 0) return;
      await this.emitUpdate(manager, caller, appId, removedKeys);
    });
    return this.readResponseSettingsWithTime(appId);
  }

  /** Returns the status of each setting in `keys`, also if it does not exist. @param keys null for all private and protected settings */
  async readStatus(appId: number, keys: readonly string[] | null): Promise<SettingStatus[]> {
    if (keys) checkRequestedSettingKeys(keys);
    const statusRows = await readStoredSettingStatus(this.options.db, appId, keys);
    const unsetStatus = { configured: false, updatedAt: null, updatedBy: null };
    const isSecretKey = (key: string) => getSettingTier(key) !== "public";
    const statusByKey = new Map<string, SettingStatus>(
      keys?.map((key) => [key, { key, ...unsetStatus, secret: isSecretKey(key) }]),
    );
    for (const { key, updatedAt, updatedBy, notSecret } of statusRows) {
      const times = { updatedAt: updatedAt?.toISOString() ?? null, updatedBy };
      statusByKey.set(key, { key, configured: updatedAt !== null, ...times, secret: isSecretKey(key) && !notSecret });
    }
    return [...statusByKey.values()];
  }
}
