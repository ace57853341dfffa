/**
 * Builds SQL conditions for the files and folders that a caller can read. Lists apply them before they count and cut
 * pages, so that totals and `hasMore` reveal nothing about hidden files.
 */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import type { MediaGrants, MediaRules } from "./media-callers.js";

/** Condition for files and folders of a list. In the conditions, $1 is the app and $2 the value. */
export interface MediaFilter {
  appId: number;
  files: string;
  folders: string;
  value: unknown;
}

/** Values of $3 and $4 in a condition: the files' own rules that grant reading, and the folders whose rules do. Null grants everything. */
export type VisibleMedia = readonly [ownRules: string[], folderIds: number[]] | null;

const VISIBLE_FILE =
  "(access_rules::jsonb = ANY ($3::jsonb[]) OR (access_rules IS NULL AND folder_id = ANY ($4::bigint[])))";
const VISIBLE_FOLDER = "(id = ANY ($4::bigint[]) AND $3::jsonb[] IS NOT NULL)";
/** SQL condition that is true if everything is visible. It contains both parameters, so that all lists have the same ones. */
const SEES_EVERYTHING = "($3::jsonb[] IS NULL AND $4::bigint[] IS NULL)";

export const isVisibleFile = (visible: VisibleMedia): string => (visible === null ? SEES_EVERYTHING : VISIBLE_FILE);
export const isVisibleFolder = (visible: VisibleMedia): string => (visible === null ? SEES_EVERYTHING : VISIBLE_FOLDER);

/** Selects folders by their effective rules: their own, or those of the nearest folder above. */
const FOLDERS_BY_RULES = `
  WITH RECURSIVE tree AS (
    SELECT id, access_rules AS rules FROM media_folder WHERE app_id = $1 AND parent_id IS NULL
    UNION ALL
    SELECT below.id, coalesce(below.access_rules, tree.rules)
      FROM media_folder AS below JOIN tree ON below.app_id = $1 AND below.parent_id = tree.id)
  SELECT rules::jsonb AS rules, array_agg(id) AS ids FROM tree WHERE rules IS NOT NULL GROUP BY rules::jsonb`;

export async function visibleTo(
  db: DataSource,
  grants: MediaGrants,
  { appId, files, value }: MediaFilter,
): Promise<VisibleMedia> {
  if (grants.isTrusted) return null;
  const [folders, fileRules] = await Promise.all([
    rows<{ rules: MediaRules; ids: number[] }>(db, FOLDERS_BY_RULES, [appId]),
    rows<{ rules: MediaRules }>(
      db,
      `SELECT DISTINCT access_rules::jsonb AS rules FROM media_file WHERE app_id = $1 AND access_rules IS NOT NULL AND ${files}`,
      [appId, value],
    ),
  ]);
  const isReadable = ({ rules }: { rules: MediaRules }) => grants.has(rules, "read");
  return [
    fileRules.filter(isReadable).map(({ rules }) => JSON.stringify(rules)),
    folders.filter(isReadable).flatMap(({ ids }) => ids),
  ];
}
