/** Reads and writes the keys, tiers and public values of an app's settings, as manifests contain them. Never decrypts a value. */
import { rows, type SqlClient } from "../../data/database.js";
import { escapeSettingKey, unescapeSettingKey } from "../../rules/setting-key-text.js";
import { getSettingTier, type SettingTier } from "../../rules/setting-tiers.js";

export interface SettingDefinition {
  key: string;
  tier: SettingTier;
  /** Value of a public setting; absent if the setting has no value yet. */
  value?: unknown;
  /** For private settings: false if logs and responses may show the value. */
  secret?: boolean;
}

const SELECT_DEFINITIONS = `
  SELECT key, s.value, coalesce(s.not_secret, d.not_secret) AS "notSecret"
    FROM (SELECT * FROM setting WHERE app_id = $1) s
    FULL JOIN (SELECT * FROM declared_setting WHERE app_id = $1) d USING (key)`;

const INSERT_DECLARED = `
  INSERT INTO declared_setting (app_id, key, not_secret) SELECT $1, key, $3 FROM unnest($2::text[]) AS key
  ON CONFLICT (app_id, key) DO UPDATE SET not_secret = excluded.not_secret`;

const MARK_NOT_SECRET =
  "UPDATE setting SET not_secret = $3 WHERE app_id = $1 AND key = ANY ($2::text[]) AND left(key, 1) = '_'";

/** Returns the app's settings sorted by key, including those that have no value yet. */
export async function readSettingDefinitions(executor: SqlClient, appId: number): Promise<SettingDefinition[]> {
  const definitionRows = await rows<{ key: string; value: string | null; notSecret: boolean }>(
    executor,
    SELECT_DEFINITIONS,
    [appId],
  );
  const definitions = definitionRows.map(({ key: stored, value, notSecret }): SettingDefinition => {
    const key = unescapeSettingKey(stored);
    const tier = getSettingTier(key);
    if (tier === "public") return { key, tier, ...(value !== null && { value: JSON.parse(value) as unknown }) };
    return tier === "private" ? { key, tier, secret: !notSecret } : { key, tier };
  });
  return definitions.sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** Returns the size of the keys and public values of an app's settings in bytes. Does not count settings that have no value yet. */
export async function readSettingDefinitionsSize(executor: SqlClient, appId: number): Promise<number> {
  const sql = `SELECT coalesce(sum(octet_length(key) + coalesce(octet_length(value), 0)), 0)::float8 AS bytes
    FROM setting WHERE app_id = $1`;
  return (await rows<{ bytes: number }>(executor, sql, [appId]))[0]!.bytes;
}

interface SettingStatusRow {
  key: string;
  updatedAt: Date | null;
  updatedBy: number | null;
  notSecret: boolean;
}

/** Selects the status of settings. A setting that was declared without a value has no `updatedAt`. */
const SELECT_STATUS = `
  SELECT key, s.updated_at AS "updatedAt", s.updated_by AS "updatedBy", coalesce(s.not_secret, d.not_secret) AS "notSecret"
    FROM (SELECT * FROM setting WHERE app_id = $1) s
    FULL JOIN (SELECT * FROM declared_setting WHERE app_id = $1) d USING (key)
   WHERE CASE WHEN $2::text[] IS NULL THEN left(key, 1) = '_' ELSE key = ANY ($2) END`;

/** Reads the status of settings. Leaves out keys without a setting. @param keys null for all private and protected settings */
export async function readStoredSettingStatus(
  executor: SqlClient,
  appId: number,
  keys: readonly string[] | null,
): Promise<SettingStatusRow[]> {
  const statusRows = await rows<SettingStatusRow>(executor, SELECT_STATUS, [
    appId,
    keys?.map(escapeSettingKey) ?? null,
  ]);
  return statusRows.map((row) => ({ ...row, key: unescapeSettingKey(row.key) }));
}

/** Stores that the app needs these settings, which may have no value yet, and whether their values are secret. */
export async function declareSettings(
  executor: SqlClient,
  appId: number,
  keys: readonly string[],
  { secret }: { secret: boolean },
): Promise<void> {
  const escapedKeys = keys.map(escapeSettingKey);
  await rows(executor, INSERT_DECLARED, [appId, escapedKeys, !secret]);
  await rows(executor, MARK_NOT_SECRET, [appId, escapedKeys, !secret]);
}
