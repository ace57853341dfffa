/** Measures the settings of an app, and finds the actions that read a setting, by searching their code for the setting's key. */
import { type Db, rows } from "../../data/database.js";
import { NON_PUBLIC_SETTINGS_PER_APP_MAX_BYTES } from "../../limits.js";
import { checkRequestedSettingKeys, type SettingsByKey } from "../../rules/setting-tiers.js";

/**
 * Use of an app's settings. `underscoreBytes` is the size of the private and protected settings that server actions receive, so without
 * sealed ones. `readers` are the drafts that read a setting.
 */
export interface SettingsUse {
  underscoreBytes: number;
  underscoreMaxBytes: number;
  readers: { id: number; name: string }[];
}

const READERS_MAX = 100;

/** Selects the drafts whose code contains the key $2. `strpos` comes first, because it is fast and excludes most code. */
const SELECT_READERS = `
  SELECT id, name FROM action
   WHERE app_id = $1 AND master_id IS NULL AND strpos(code, $2) > 0
     AND code ~ ('(^|[^[:alnum:]_$])' || $3 || '($|[^[:alnum:]_$])')
   ORDER BY name LIMIT ${READERS_MAX}`;

/** Returns up to READERS_MAX drafts whose code contains the key. @throws SETTINGS_INVALID for an invalid key */
async function findDraftsReadingSetting(db: Db, appId: number, key: string): Promise<SettingsUse["readers"]> {
  checkRequestedSettingKeys([key]);
  // No stored code contains a key with a NUL character, because a text in PostgreSQL cannot contain this character.
  if (key.includes("\0")) return [];
  const escapedKey = key.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return rows(db, SELECT_READERS, [appId, key, escapedKey]);
}

/**
 * Returns the size of `settings`, which server actions receive, and the drafts that read the setting `key`; no drafts if `key` is null.
 * @throws SETTINGS_INVALID for an invalid key
 */
export async function measureSettingsUse(
  db: Db,
  appId: number,
  settings: SettingsByKey,
  key: string | null,
): Promise<SettingsUse> {
  const underscoreBytes = Buffer.byteLength(JSON.stringify(settings));
  const readers = key === null ? [] : await findDraftsReadingSetting(db, appId, key);
  return { underscoreBytes, underscoreMaxBytes: NON_PUBLIC_SETTINGS_PER_APP_MAX_BYTES, readers };
}
