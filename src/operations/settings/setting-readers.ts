/** Finds the actions that read a setting, only by their code: it contains the key as a word. */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { checkRequestedKeys } from "../../rules/setting-tiers.js";

/** Size of the underscore settings, as server actions receive them, and the actions that read the requested key. */
export interface SettingsUse {
  underscoreBytes: number;
  underscoreMaxBytes: number;
  readers: { id: number; name: string }[];
}

const READERS_MAX = 100;

/** The plain text search runs first: for most codes it makes the expression unnecessary. */
const SELECT_READERS = `
  SELECT id, name FROM action
   WHERE app_id = $1 AND master_id IS NULL AND strpos(code, $2) > 0
     AND code ~ ('(^|[^[:alnum:]_$])' || $3 || '($|[^[:alnum:]_$])')
   ORDER BY name LIMIT ${READERS_MAX}`;

/** The drafts by name, at most READERS_MAX. @throws SETTINGS_INVALID for an invalid key */
export async function readersOf(db: DataSource, appId: number, key: string): Promise<SettingsUse["readers"]> {
  checkRequestedKeys([key]);
  // A text column holds no NUL, so no code has it.
  if (key.includes("\0")) return [];
  const escapedKey = key.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return rows(db, SELECT_READERS, [appId, key, escapedKey]);
}
