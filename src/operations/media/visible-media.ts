/**
 * Builds SQL conditions for the files and folders that a caller can read. A list needs these conditions in its SQL, because its `total`
 * must not count hidden files.
 */
import type { ReadRows } from "../data-sources/read-pool.js";
import type { MediaAccess, MediaRules } from "./media-callers.js";

/** SQL conditions that select the files and folders of a list. In both conditions, $1 is the app's ID and $2 is `value`. */
export interface MediaListConditions {
  appId: number;
  fileCondition: string;
  folderCondition: string;
  value: unknown;
}

/**
 * Values of $3 and $4 in the SQL of a list; null if the caller can read everything. `ownRules` are access rules of single files that let
 * the caller read these files. `folderIds` are the folders that the caller can read. Their files without rules of their own are readable,
 * too.
 */
export type VisibleMediaParameters = readonly [ownRules: string[], folderIds: number[]] | null;

const IS_FILE_VISIBLE =
  "(access_rules::jsonb = ANY ($3::jsonb[]) OR (access_rules IS NULL AND folder_id = ANY ($4::bigint[])))";
const IS_FOLDER_VISIBLE = "(id = ANY ($4::bigint[]) AND $3::jsonb[] IS NOT NULL)";
/**
 * Condition for callers who can read everything: $3 and $4 are null for them. It contains $3 and $4 because all lists have the same
 * parameters.
 */
const IS_EVERYTHING_VISIBLE = "($3::jsonb[] IS NULL AND $4::bigint[] IS NULL)";

export const createVisibleFileSql = (visible: VisibleMediaParameters): string =>
  visible === null ? IS_EVERYTHING_VISIBLE : IS_FILE_VISIBLE;
export const createVisibleFolderSql = (visible: VisibleMediaParameters): string =>
  visible === null ? IS_EVERYTHING_VISIBLE : IS_FOLDER_VISIBLE;

/** IDs of folders, grouped by the access rules that apply: the folder's own, or else those of the nearest containing folder with rules. */
const FOLDERS_BY_RULES = `
  WITH RECURSIVE tree AS (
    SELECT id, access_rules AS rules FROM media_folder WHERE app_id = $1 AND parent_id IS NULL
    UNION ALL
    SELECT below.id, coalesce(below.access_rules, tree.rules)
      FROM media_folder AS below JOIN tree ON below.app_id = $1 AND below.parent_id = tree.id)
  SELECT rules::jsonb AS rules, array_agg(id) AS ids FROM tree WHERE rules IS NOT NULL GROUP BY rules::jsonb`;

/** Determines the files and folders that the caller can read. Returns null if the caller can read everything. */
export async function readVisibleMedia(
  read: ReadRows,
  grants: MediaAccess,
  { appId, fileCondition, value }: MediaListConditions,
): Promise<VisibleMediaParameters> {
  if (grants.isTrusted) return null;
  const [folders, fileRules] = await Promise.all([
    read<{ rules: MediaRules; ids: number[] }>(appId, FOLDERS_BY_RULES, [appId]),
    read<{ rules: MediaRules }>(
      appId,
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
