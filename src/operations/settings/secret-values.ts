/** Reads the secret values of an app's settings: the current values, and values that were replaced recently. */
import { type Db, queryPreparedRows, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { describeValue } from "../../rules/describe-value.js";
import { findSecretLimitFault, findSecretsInSettingValue, measureSecrets } from "../../rules/secrets.js";
import { escapeSettingKey, unescapeSettingKey } from "../../rules/setting-key-text.js";
import { getSettingTier } from "../../rules/setting-tiers.js";

/**
 * Row of a setting. `sealed` is the encrypted value. The encryption includes the app and the key, so the value cannot be used in another
 * row.
 */
export interface StoredSetting {
  key: string;
  value: string | null;
  sealed: Buffer | null;
}

/** Secret values of an app. `version` is the current version number of the app's secrets. */
export interface SecretValues {
  version: number;
  /** Values that were replaced up to this version number are no longer stored. */
  deletedUpToVersion: number;
  /** Keys and current values of the private and protected settings. */
  privateAndProtected: [string, unknown][];
  /** Keys and values of the secret settings in `privateAndProtected`, and values that were replaced after the requested version. */
  entries: [string, unknown][];
}

/** Selects the current values, and the values that were replaced after the version $2. One statement, so that both are consistent. */
const SELECT_SECRET_VALUES = `
  SELECT app.secrets_version AS version, app.secrets_forgotten AS "deletedUpToVersion", s.key, s.value, s.sealed,
         s.not_secret AS "notSecret", s.replaced
    FROM app LEFT JOIN LATERAL (
      SELECT key, value, sealed, not_secret, false AS replaced FROM setting
       WHERE app_id = app.id AND left(key, 1) = '_'
      UNION ALL
      SELECT key, NULL, sealed, false, true FROM replaced_setting WHERE app_id = app.id AND version > $2) s ON true
   WHERE app.id = $1`;
const SELECT_SECRETS_VERSION = "SELECT secrets_version AS version FROM app WHERE id = $1";

interface SecretRow extends StoredSetting {
  version: number;
  deletedUpToVersion: number;
  notSecret: boolean;
  replaced: boolean;
}

const SELECT_SEALED_KEYS = "SELECT key FROM sealed_setting WHERE app_id = $1";
const UNSEAL_OTHERS = "DELETE FROM sealed_setting WHERE app_id = $1 AND key <> ALL ($2::text[])";
const INSERT_SEALED_SETTINGS =
  "INSERT INTO sealed_setting (app_id, key) SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING";

/**
 * Makes `keys` the only sealed settings of the app. Only secret bindings can use the values of sealed settings. Call this function in the
 * transaction that writes the app's bindings.
 */
export async function setSealedSettingKeys(executor: SqlClient, appId: number, keys: readonly string[]): Promise<void> {
  const escapedKeys = keys.map(escapeSettingKey);
  await rows(executor, UNSEAL_OTHERS, [appId, escapedKeys]);
  await rows(executor, INSERT_SEALED_SETTINGS, [appId, escapedKeys]);
}

/** Marks settings as secret or not secret. @throws ActionError SETTINGS_INVALID if one of the settings has no value */
export async function setSecretFlags(
  executor: SqlClient,
  appId: number,
  keys: readonly string[],
  secret: boolean,
): Promise<void> {
  const sql = "UPDATE setting SET not_secret = $3 WHERE app_id = $1 AND key = ANY ($2::text[]) RETURNING key";
  const markedRows = await rows<{ key: string }>(executor, sql, [appId, keys.map(escapeSettingKey), !secret]);
  const markedKeys = new Set(markedRows.map(({ key }) => unescapeSettingKey(key)));
  const missingKey = keys.find((key) => !markedKeys.has(key));
  if (missingKey !== undefined)
    throw new ActionError(
      "SETTINGS_INVALID",
      `the setting ${describeValue(missingKey)} does not exist or has no value; write its value first`,
    );
}

interface SecretValueReaderOptions {
  db: Db;
  openSettings: (appId: number, rows: readonly StoredSetting[], executor?: SqlClient) => Promise<[string, unknown][]>;
}

export class SecretValueReader {
  constructor(private readonly options: SecretValueReaderOptions) {}

  /** Reads the secret values of an app. @param since version number; also returns the values that were replaced after this version */
  async read(appId: number, since?: number, executor?: SqlClient): Promise<SecretValues> {
    const { db, openSettings } = this.options;
    const sinceVersion = since ?? Number.MAX_SAFE_INTEGER;
    const secretRows = await queryPreparedRows<SecretRow>(executor ?? db, "secret-values", SELECT_SECRET_VALUES, [
      appId,
      sinceVersion,
    ]);
    const validEntries = secretRows.filter(({ key }) => key !== null);
    const values = await openSettings(appId, validEntries, executor);
    return {
      version: secretRows[0]?.version ?? 0,
      deletedUpToVersion: secretRows[0]?.deletedUpToVersion ?? 0,
      privateAndProtected: values.filter((_, index) => !validEntries[index]!.replaced),
      entries: values.filter((_, index) => !validEntries[index]!.notSecret),
    };
  }

  /** Returns the keys of the sealed settings. The code of actions does not receive the values of these settings. */
  async readSealedKeys(appId: number, executor: SqlClient = this.options.db): Promise<string[]> {
    const sealedRows = await queryPreparedRows<{ key: string }>(executor, "sealed-keys", SELECT_SEALED_KEYS, [appId]);
    return sealedRows.map(({ key }) => unescapeSettingKey(key));
  }

  /** Returns the version number of the app's secrets; 0 if the app does not exist. */
  async readVersion(appId: number): Promise<number> {
    const [app] = await queryPreparedRows<{ version: number }>(
      this.options.db,
      "secrets-version",
      SELECT_SECRETS_VERSION,
      [appId],
    );
    return app?.version ?? 0;
  }

  /**
   * Checks the secrets of the app. Call this method after `keys` were written.
   * @throws SETTINGS_INVALID if the app has too many or too long secrets to mask
   */
  async requireMaskableSecrets(executor: SqlClient, appId: number, keys: readonly string[]): Promise<void> {
    if (keys.every((key) => getSettingTier(key) === "public")) return;
    const { entries } = await this.read(appId, undefined, executor);
    const secretFault = findSecretLimitFault(
      entries.flatMap(([name, value]) => findSecretsInSettingValue(name, value)),
    );
    if (secretFault === null) return;
    const settingSize = measureSecrets(
      entries.flatMap(([n, value]) => (keys.includes(n) ? findSecretsInSettingValue(n, value) : [])),
    );
    const describedKeys = keys.map(describeValue).slice(0, 5).join(", ");
    throw new ActionError(
      "SETTINGS_INVALID",
      `${secretFault}; the settings in this request (${describedKeys}) contain ${settingSize.count} of these strings and numbers, with ${settingSize.bytes} bytes`,
    );
  }
}

const SELECT_TOKEN_BINDINGS = `
  SELECT token.key, token.origin, coalesce(stored.bindings, '[]') AS bindings
    FROM integration_token AS token LEFT JOIN secret_bindings AS stored ON stored.app_id = token.app_id
   WHERE token.app_id = $1 ORDER BY token.key, token.origin`;
const SELECT_SETTING_KEYS = "SELECT key FROM setting WHERE app_id = $1 AND key = ANY ($2::text[])";
const DELETE_TOKEN = "DELETE FROM integration_token WHERE app_id = $1 AND key = $2 AND origin = $3";

interface TokenBindings {
  key: string;
  origin: string;
  bindings: { key: string; origin: string; in: string }[];
}

/**
 * Deletes the OAuth 2 tokens of settings that have no value or no binding to the token's origin any more. Otherwise, the service would use
 * these tokens if the same binding and value are stored again. Call this function after the change, in the same transaction. It can wait 10
 * seconds for a running request to a token endpoint.
 */
export async function deleteUnusedOauthTokens(executor: SqlClient, appId: number): Promise<void> {
  const tokens = await rows<TokenBindings>(executor, SELECT_TOKEN_BINDINGS, [appId]);
  if (tokens.length === 0) return;
  const storedKeys = tokens.map(({ key }) => escapeSettingKey(key));
  const settingRows = await rows<{ key: string }>(executor, SELECT_SETTING_KEYS, [appId, storedKeys]);
  const keysWithValue = new Set(settingRows.map(({ key }) => unescapeSettingKey(key)));
  for (const { key, origin, bindings } of tokens) {
    const isBound = bindings.some((bound) => bound.key === key && bound.origin === origin && bound.in === "oauth2");
    if (!isBound || !keysWithValue.has(key)) await rows(executor, DELETE_TOKEN, [appId, key, origin]);
  }
}
