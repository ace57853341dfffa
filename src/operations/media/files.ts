/**
 * Finds, lists, renames, moves and deletes the files of an app's media. uploads.ts receives the content of files, and contents.ts sends it.
 */
import { type Db, rows, type SqlClient } from "../../data/database.js";
import type { MediaFile } from "../../data/media-types.js";
import { ActionError } from "../../errors.js";
import { parseMediaChange } from "../../rules/media-fields.js";
import { parseLimitAndOffset } from "../../rules/page.js";
import { NEXT_UPDATED_AT_SQL, requireExpectedVersion } from "../../rules/precondition.js";
import type { AdmittedRequest } from "../access/access-checks.js";
import type { ReadRows } from "../data-sources/read-pool.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { transactWithAppLock } from "../settings/app-lock.js";
import type { MediaFolders } from "./folders.js";
import { recordMediaChange } from "./media-audit.js";
import { type MediaAccess, type MediaRightsResolver, toLogEventCause } from "./media-callers.js";
import { type FileRow, findFile, type MediaChangeTarget, SELECT_FILES_SQL, toFile } from "./media-rows.js";
import { createVisibleFileSql, type MediaListConditions, readVisibleMedia } from "./visible-media.js";

interface MediaFilesOptions {
  db: Db;
  /** Reads rows over a separate pool of database connections, so that slow queries of callers do not delay other work (read-pool.ts). */
  read: ReadRows;
  mediaRights: MediaRightsResolver;
  folders: MediaFolders;
  receivedDataLimiter: ReceivedDataLimiter;
  baseUrl: string;
  markUnused: (executor: SqlClient, keys: readonly string[]) => Promise<void>;
  removeUnused: (keys: readonly string[]) => Promise<void>;
}

export class MediaFiles {
  constructor(private readonly options: MediaFilesOptions) {}

  /**
   * Returns the row of a file.
   * @throws ActionError FILE_NOT_FOUND for trusted callers (such as editors). Other callers get the error for a missing right, which does
   *   not reveal if the file exists.
   */
  async findOrThrow(
    grants: MediaAccess,
    appId: number,
    id: number,
    executor: SqlClient = this.options.db,
  ): Promise<FileRow> {
    const row = await findFile(executor, appId, id);
    if (row) return row;
    throw grants.isTrusted ? new ActionError("FILE_NOT_FOUND") : grants.createAccessError();
  }

  async update(
    admission: AdmittedRequest,
    { appId, id, precondition }: MediaChangeTarget,
    body: unknown,
  ): Promise<MediaFile> {
    const { db, mediaRights, folders, receivedDataLimiter, baseUrl } = this.options;
    const grants = await mediaRights.resolveAccess(admission);
    grants.requireRight((await this.findOrThrow(grants, appId, id)).rules, "update");
    const change = parseMediaChange(body, "folderId");
    receivedDataLimiter.countRows(toLogEventCause(admission), appId, change.name?.length ?? 0);
    return transactWithAppLock(db, appId, async (manager) => {
      const before = await this.findOrThrow(grants, appId, id, manager);
      // Another request may have removed the right before this transaction locked the app.
      grants.requireRight(before.rules, "update");
      if (change.folderId !== undefined) {
        const target = await folders.readRulesAt(grants, appId, change.folderId, manager);
        grants.requireRight(target, "create");
        grants.requireNoAddedRights(before.ownRules ?? target, before.rules);
      }
      requireExpectedVersion(toFile(before, appId, baseUrl), precondition);
      const { name = before.name, folderId = before.folderId } = change;
      const sql =
        "UPDATE media_file SET name = $3, folder_id = $4, updated_at = " +
        `${NEXT_UPDATED_AT_SQL} WHERE app_id = $1 AND id = $2`;
      await rows(manager, sql, [appId, id, name, folderId]);
      await recordMediaChange(manager, admission, appId, "media.file.update", {
        fileId: id,
        fields: Object.keys(change),
      });
      return toFile(await this.findOrThrow(grants, appId, id, manager), appId, baseUrl);
    });
  }

  async remove(admission: AdmittedRequest, { appId, id, precondition }: MediaChangeTarget): Promise<void> {
    const { db, mediaRights, baseUrl, markUnused, removeUnused } = this.options;
    const grants = await mediaRights.resolveAccess(admission);
    grants.requireRight((await this.findOrThrow(grants, appId, id)).rules, "delete");
    const keys = await transactWithAppLock(db, appId, async (manager) => {
      const before = await this.findOrThrow(grants, appId, id, manager);
      grants.requireRight(before.rules, "delete");
      requireExpectedVersion(toFile(before, appId, baseUrl), precondition);
      const [deletedFile] = await rows<{ blobKey: string; thumbnailKey: string | null }>(
        manager,
        `DELETE FROM media_file WHERE app_id = $1 AND id = $2
         RETURNING blob_key AS "blobKey", thumbnail_key AS "thumbnailKey"`,
        [appId, id],
      );
      const blobs = [deletedFile!.blobKey, deletedFile!.thumbnailKey].filter((key) => key !== null);
      await markUnused(manager, blobs);
      await recordMediaChange(manager, admission, appId, "media.file.delete", { fileId: id, name: before.name });
      return blobs;
    });
    await removeUnused(keys);
  }

  async get(admission: AdmittedRequest, appId: number, id: number): Promise<MediaFile> {
    const { mediaRights, baseUrl } = this.options;
    const grants = await mediaRights.resolveAccess(admission);
    const row = await this.findOrThrow(grants, appId, id);
    grants.requireRight(row.rules, "read");
    return toFile(row, appId, baseUrl);
  }

  async list(admission: AdmittedRequest, appId: number, pagination: { limit?: number | null; offset?: number | null }) {
    const { read, mediaRights, baseUrl } = this.options;
    const grants = await mediaRights.resolveAccess(admission);
    const { limit, offset } = parseLimitAndOffset(pagination);
    const fileFilter: MediaListConditions = {
      appId,
      fileCondition: "$2::text IS NULL",
      folderCondition: "$2::text IS NULL",
      value: null,
    };
    const visibleMedia = await readVisibleMedia(read, grants, fileFilter);
    const where = `app_id = $1 AND ${fileFilter.fileCondition} AND ${createVisibleFileSql(visibleMedia)}`;
    const values = [appId, null, ...(visibleMedia ?? [null, null])];
    const fileRows = await read<FileRow>(
      appId,
      `${SELECT_FILES_SQL} WHERE ${where} ORDER BY id DESC LIMIT $5 OFFSET $6`,
      [...[...values, limit, offset]],
    );
    const [count] = await read<{ total: number }>(
      appId,
      `SELECT count(*) AS total FROM media_file WHERE ${where}`,
      values,
    );
    const { total } = count!;
    if (!grants.isTrusted && total === 0) throw grants.createAccessError();
    const hasMore = offset + fileRows.length < total;
    return { files: fileRows.map((row) => toFile(row, appId, baseUrl)), pagination: { total, hasMore } };
  }
}
