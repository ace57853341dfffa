/** Reads the rows of media folders and files, and converts them to the form of responses. */
import { rows, type SqlClient } from "../../data/database.js";
import type { MediaFile, MediaFolder } from "../../data/media-types.js";
import type { ExpectedVersions } from "../../rules/precondition.js";
import type { MediaRules } from "./media-callers.js";

export interface FolderRow extends Omit<MediaFolder, "createdAt" | "updatedAt"> {
  ownRules: MediaRules;
  /** Access rules that apply to the folder: its own rules, or else those of the nearest containing folder that has rules. */
  rules: MediaRules;
  createdAt: Date;
  updatedAt: Date;
}

export interface FileRow {
  id: number;
  name: string;
  contentType: string;
  bytes: number;
  checksum: string;
  width: number | null;
  height: number | null;
  blobKey: string;
  thumbnailKey: string | null;
  folderId: number | null;
  userId: number | null;
  ownRules: MediaRules;
  rules: MediaRules;
  createdAt: Date;
  updatedAt: Date;
}

/** The file or folder that a request changes. `precondition` lists the versions (ETags) that the request accepts. */
export interface MediaChangeTarget {
  appId: number;
  id: number;
  precondition?: ExpectedVersions;
}

export const SELECT_FOLDERS_SQL = `
  SELECT id, name, parent_id AS "parentId", user_id AS "userId", access_rules AS "ownRules",
         svc_media_rules(id) AS rules, created_at AS "createdAt", updated_at AS "updatedAt"
    FROM media_folder`;

export const SELECT_FILES_SQL = `
  SELECT id, name, content_type AS "contentType", bytes, checksum, width, height, blob_key AS "blobKey",
         thumbnail_key AS "thumbnailKey", folder_id AS "folderId", user_id AS "userId", access_rules AS "ownRules",
         coalesce(access_rules, svc_media_rules(folder_id)) AS rules, created_at AS "createdAt", updated_at AS "updatedAt"
    FROM media_file`;

export async function findFolder(executor: SqlClient, appId: number, id: number): Promise<FolderRow | null> {
  const [row] = await rows<FolderRow>(executor, `${SELECT_FOLDERS_SQL} WHERE app_id = $1 AND id = $2`, [appId, id]);
  return row ?? null;
}

export async function findFile(executor: SqlClient, appId: number, id: number): Promise<FileRow | null> {
  const [row] = await rows<FileRow>(executor, `${SELECT_FILES_SQL} WHERE app_id = $1 AND id = $2`, [appId, id]);
  return row ?? null;
}

export const toFolder = ({ ownRules: _, rules: __, createdAt, updatedAt, ...folder }: FolderRow): MediaFolder => ({
  ...folder,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
});

/** Returns the URL of a file's content. `baseUrl` is the URL of the service, without a slash at the end. */
export const createFileContentUrl = (baseUrl: string, appId: number, id: number): string =>
  `${baseUrl}/v1/apps/${appId}/media/files/${id}/contents`;

export function toFile(row: FileRow, appId: number, baseUrl: string): MediaFile {
  const { id, name, contentType, bytes, checksum, width, height, folderId, userId, createdAt, updatedAt } = row;
  const url = createFileContentUrl(baseUrl, appId, id);
  return {
    ...{ id, name, contentType, url },
    thumbnail: row.thumbnailKey === null ? null : `${url}?size=thumbnail`,
    size: width === null || height === null ? null : [width, height],
    ...{ bytes, checksum, folderId, userId },
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}
