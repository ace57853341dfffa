/** Finds the actions that read a setting, only by their code: it contains the key as a word. Knows no value. */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { checkAskedKeys } from "../../rules/setting-tiers.js";

/** What underscore settings take of their room, as server actions are given them, and who reads the key that was asked about. */
export interface SettingsUse {
  underscoreBytes: number;
  underscoreMaxBytes: number;
  readers: { id: number; name: string }[];
}

const READERS_MAX = 100;

/** The plain search first: it spares the expression for most codes. */
const READERS = `
  SELECT id, name FROM action
   WHERE app_id = $1 AND master_id IS NULL AND strpos(code, $2) > 0
     AND code ~ ('(^|[^[:alnum:]_$])' || $3 || '($|[^[:alnum:]_$])')
   ORDER BY name LIMIT ${READERS_MAX}`;

/** The masters by name, READERS_MAX at most. @throws SETTINGS_INVALID for what can be no key */
export async function readersOf(db: DataSource, appId: number, key: string): Promise<SettingsUse["readers"]> {
  checkAskedKeys([key]);
  // A text column holds no NUL, so no code has it.
  if (key.includes("\0")) return [];
  const literal = key.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return rows(db, READERS, [appId, key, literal]);
}
