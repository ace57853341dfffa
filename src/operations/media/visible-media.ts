/**
 * Builds SQL conditions for the files and folders that a caller can read. Lists use them in their SQL, so that `total`
 * and `hasMore` do not count hidden files.
 */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import type { MediaGrants, MediaRules } from "./media-callers.js";

/** SQL conditions that select the files and folders of a list. In them, $1 is the app and $2 is `value`. */
export interface MediaFilter {
  appId: number;
  fileCondition: string;
  folderCondition: string;
  value: unknown;
}

/**
 * Values of the parameters $3 and $4 of a list: the access rules of files that let the caller read, and the IDs of
 * folders whose rules do. Null if the caller can read everything.
 */
export type VisibleMedia = readonly [ownRules: string[], folderIds: number[]] | null;

const VISIBLE_FILE =
  "(access_rules::jsonb = ANY ($3::jsonb[]) OR (access_rules IS NULL AND folder_id = ANY ($4::bigint[])))";
const VISIBLE_FOLDER = "(id = ANY ($4::bigint[]) AND $3::jsonb[] IS NOT NULL)";
/**
 * SQL condition for callers that can read everything. It contains both parameters, so that all lists have the same
 * parameters.
 */
const SEES_EVERYTHING = "($3::jsonb[] IS NULL AND $4::bigint[] IS NULL)";

export const visibleFileSql = (visible: VisibleMedia): string => (visible === null ? SEES_EVERYTHING : VISIBLE_FILE);
export const visibleFolderSql = (visible: VisibleMedia): string =>
  visible === null ? SEES_EVERYTHING : VISIBLE_FOLDER;

/**
 * Selects folder IDs, grouped by the access rules that apply: those of the folder, or else of the nearest containing
 * folder with rules.
 */
const FOLDERS_BY_RULES = `
  WITH RECURSIVE tree AS (
    SELECT id, access_rules AS rules FROM media_folder WHERE app_id = $1 AND parent_id IS NULL
    UNION ALL
    SELECT below.id, coalesce(below.access_rules, tree.rules)
      FROM media_folder AS below JOIN tree ON below.app_id = $1 AND below.parent_id = tree.id)
  SELECT rules::jsonb AS rules, array_agg(id) AS ids FROM tree WHERE rules IS NOT NULL GROUP BY rules::jsonb`;

/** Determines which files and folders the caller can read. */
export async function readVisibleMedia(
  db: DataSource,
  grants: MediaGrants,
  { appId, fileCondition, value }: MediaFilter,
): Promise<VisibleMedia> {
  if (grants.isTrusted) return null;
  const [folders, fileRules] = await Promise.all([
    rows<{ rules: MediaRules; ids: number[] }>(db, FOLDERS_BY_RULES, [appId]),
    rows<{ rules: MediaRules }>(
      db,
      `SELECT DISTINCT access_rules::jsonb AS rules FROM media_file WHERE app_id = $1 AND access_rules IS NOT NULL AND ${fileCondition}`,
      [appId, value],
    ),
  ]);
  const isReadable = ({ rules }: { rules: MediaRules }) => grants.hasRight(rules, "read");
  return [
    fileRules.filter(isReadable).map(({ rules }) => JSON.stringify(rules)),
    folders.filter(isReadable).flatMap(({ ids }) => ids),
  ];
}
