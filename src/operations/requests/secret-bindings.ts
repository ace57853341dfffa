/**
 * Stores secret bindings, which add the value of a setting to requests to one origin. Provides runs with the bound values, and with
 * scanners that mask these values in responses.
 */
import { LRUCache } from "lru-cache";
import type { EntityManager } from "typeorm";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { OutgoingError } from "../../engine/outgoing.js";
import type { SecretScanner, SecretScannerCache } from "../../engine/secret-scan.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { type ExpectedVersions, requireExpectedVersion } from "../../rules/precondition.js";
import { findSealedKeyMissingValue, parseSecretBindings, type SecretBinding } from "../../rules/secret-bindings.js";
import { listSecretEncodings } from "../../rules/secret-encodings.js";
import { findSecretsInSettingValue } from "../../rules/secrets.js";
import { transactWithAppLock } from "../settings/app-lock.js";
import type { Settings } from "../settings/settings.js";
import { BindingDefinitions, readStoredBindings } from "./binding-definitions.js";
import { createBindingCredential } from "./credentials.js";
import type { OauthTokens } from "./oauth-tokens.js";
import type { RequestCredential, SecretBindings } from "./run-requests.js";

export interface BindingsWithUpdateTime {
  bindings: SecretBinding[];
  /** Time of the last change of the bindings, as ISO 8601 text. */
  updatedAt: string;
}

interface CachedBindings {
  version: number;
  bindings: SecretBinding[];
  values: ReadonlyMap<string, unknown>;
}

const SELECT_APP_CREATED_AT = 'SELECT created_at AS "createdAt" FROM app WHERE id = $1';
const CACHED_APPS_MAX = 1_000;

interface StoredBindingsOptions {
  db: Db;
  settings: Settings;
  scannerCache: SecretScannerCache;
  tokens: OauthTokens;
  allowPrivateNetwork: boolean;
}

export class SecretBindingStore {
  readonly definitions = new BindingDefinitions({
    settings: this.options.settings,
    allowPrivateNetwork: this.options.allowPrivateNetwork,
  });
  private readonly cacheByApp = new LRUCache<number, CachedBindings>({ max: CACHED_APPS_MAX });
  readonly runBindings: SecretBindings = {
    getCredential: async (appId, key, origin): Promise<RequestCredential> => {
      const { bindings, values, version } = await this.readCurrentBindings(appId);
      const binding = bindings.find((binding) => binding.key === key && binding.origin === origin);
      const createBindingError = (problem: string) => new OutgoingError("POLICY", problem, origin);
      if (!binding) throw createBindingError(`the app has no secret binding ${key} for ${origin}`);
      const value = values.get(key);
      if (value === undefined) throw createBindingError(`the setting ${key}, which is bound to ${origin}, is not set`);
      return createBindingCredential(binding, value, (rejected) =>
        this.options.tokens.getAccessToken(appId, binding, { value, version }, rejected),
      );
    },
    getScanner: async (appId) => {
      const state = await this.readCurrentBindings(appId);
      return state.bindings.length === 0 ? null : this.createScanner(appId, state);
    },
  };

  constructor(private readonly options: StoredBindingsOptions) {}

  private async readBindings(appId: number, executor: SqlClient = this.options.db): Promise<BindingsWithUpdateTime> {
    const storedRow = await readStoredBindings(executor, appId);
    if (storedRow) return { bindings: storedRow.bindings, updatedAt: storedRow.updatedAt.toISOString() };
    const [app] = await rows<{ createdAt: Date }>(executor, SELECT_APP_CREATED_AT, [appId]);
    if (!app) throw new ActionError("APP_NOT_FOUND");
    return { bindings: [], updatedAt: app.createdAt.toISOString() };
  }

  private async writeBindings(
    manager: EntityManager,
    caller: Caller,
    target: { appId: number; precondition?: ExpectedVersions },
    body: unknown,
  ) {
    const { settings, allowPrivateNetwork } = this.options;
    const { appId, precondition } = target;
    const bindingsBefore = await this.readBindings(appId, manager);
    if (precondition) requireExpectedVersion(bindingsBefore, precondition);
    const input = parseSecretBindings(body, allowPrivateNetwork);
    const sealedKeys = await settings.secretValues.readSealedKeys(appId, manager);
    const key = findSealedKeyMissingValue(bindingsBefore.bindings, sealedKeys, input);
    if (key !== null) {
      const message = `the setting ${key} is sealed; give its value in "value" to unseal it, or to send it to another origin or in another way`;
      throw new ActionError("FORBIDDEN", message);
    }
    await this.definitions.write(manager, caller, appId, input);
    const values = new Map(
      input.filter(({ value }) => value !== undefined).map((binding) => [binding.key, binding.value]),
    );
    await settings.writeBoundSettings(manager, caller, appId, Object.fromEntries(values));
  }

  /** Returns the app's current bindings and the values of their settings. Needs only one query if nothing has changed. */
  private async readCurrentBindings(appId: number): Promise<CachedBindings> {
    const { settings } = this.options;
    const version = await settings.secretValues.readVersion(appId);
    const cachedBindings = this.cacheByApp.get(appId);
    if (cachedBindings?.version === version) return cachedBindings;
    const { bindings } = await this.readBindings(appId);
    const boundKeys = new Set(bindings.map(({ key }) => key));
    const values = boundKeys.size === 0 ? null : await settings.secretValues.read(appId);
    const entries = values?.privateAndProtected.filter(([key]) => boundKeys.has(key)) ?? [];
    // If the values change between the two reads, the next request reads them again, because the version was read first.
    const newBindings = { version, bindings, values: new Map(entries) };
    this.cacheByApp.set(appId, newBindings);
    return newBindings;
  }

  private createScanner(appId: number, { version, values }: CachedBindings): SecretScanner | null {
    const { scannerCache, tokens } = this.options;
    const secrets = [...values, ...tokens.listKnownTokens(appId)].flatMap(([key, value]) =>
      findSecretsInSettingValue(key, value),
    );
    if (secrets.length === 0) return null;
    const forms = secrets.flatMap(({ name, value, mustMatchWhole }) =>
      mustMatchWhole ? [] : listSecretEncodings(value).map((form) => ({ name, value: form, mustMatchWhole: false })),
    );
    return scannerCache.getScanner(`bound ${appId}`, `bound ${appId}:${version}:${tokens.getGeneration(appId)}`, [
      ...secrets,
      ...forms,
    ]);
  }

  list(appId: number): Promise<BindingsWithUpdateTime> {
    return this.readBindings(appId);
  }

  /**
   * Replaces the app's bindings, and writes the values in the body to their settings.
   * @throws REQUEST_INVALID, RESOURCE_CHANGED, SETTINGS_INVALID; FORBIDDEN for a change of a sealed setting without its value
   */
  async set(
    caller: Caller,
    target: { appId: number; precondition?: ExpectedVersions },
    body: unknown,
  ): Promise<BindingsWithUpdateTime> {
    await transactWithAppLock(this.options.db, target.appId, (manager) =>
      this.writeBindings(manager, caller, target, body),
    );
    return this.readBindings(target.appId);
  }
}
