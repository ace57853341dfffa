/** Creates, lists, renames, moves and deletes the folders of an app's media. Deleting a folder also deletes all files and folders in it. */
import type { EntityManager } from "typeorm";
import { type Db, isUniqueViolation, rows, type SqlClient } from "../../data/database.js";
import type { MediaFile, MediaFolder } from "../../data/media-types.js";
import { ActionError } from "../../errors.js";
import { LIST_ITEMS_PER_PAGE_MAX, MEDIA_FOLDER_DEPTH_MAX, MEDIA_FOLDERS_PER_APP_MAX } from "../../limits.js";
import { containsTextFoldedSql } from "../../rules/comparable-text.js";
import { isObject } from "../../rules/describe-value.js";
import { parseMediaChange, parseMediaFolderId, parseMediaName } from "../../rules/media-fields.js";
import { parseLimitAndOffset } from "../../rules/page.js";
import { NEXT_UPDATED_AT_SQL, requireExpectedVersion } from "../../rules/precondition.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import type { AdmittedRequest } from "../access/access-checks.js";
import type { ReadRows } from "../data-sources/read-pool.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { transactWithAppLock } from "../settings/app-lock.js";
import { recordMediaChange } from "./media-audit.js";
import { type MediaAccess, type MediaRightsResolver, type MediaRules, toLogEventCause } from "./media-callers.js";
import {
  type FileRow,
  type FolderRow,
  findFolder,
  type MediaChangeTarget,
  SELECT_FILES_SQL,
  SELECT_FOLDERS_SQL,
  toFile,
  toFolder,
} from "./media-rows.js";
import {
  createVisibleFileSql,
  createVisibleFolderSql,
  type MediaListConditions,
  readVisibleMedia,
  type VisibleMediaParameters,
} from "./visible-media.js";

export interface FolderListing {
  /** The listed folder; null for the top level and for a search. */
  folder: MediaFolder | null;
  /**
   * Folders that contain the listed folder, from the top level down. Empty for callers who are not trusted (neither editors nor back ends).
   */
  path: { id: number; name: string }[];
  folders: MediaFolder[];
  files: MediaFile[];
  /** Pagination of the list `files`. */
  pagination: { total: number; hasMore: boolean };
}

export interface FolderListingOptions {
  folderId?: unknown;
  /** Text to search for in the names of all folders and files of the app, regardless of case. */
  name?: unknown;
  limit?: number | null;
  offset?: number | null;
}

/** Defines the SQL table `tree`: the folder $2 of the app $1, and all folders inside it. */
const FOLDER_TREE = `
  WITH RECURSIVE tree AS (
    SELECT id FROM media_folder WHERE app_id = $1 AND id = $2
    UNION ALL SELECT below.id FROM media_folder AS below JOIN tree ON below.app_id = $1 AND below.parent_id = tree.id)`;

/** Selects the nesting level of a folder: 1 for a folder at the top level, 0 for the top level itself. */
const SELECT_FOLDER_DEPTH = `
  WITH RECURSIVE up AS (
    SELECT parent_id, 1 AS step FROM media_folder WHERE app_id = $1 AND id = $2
    UNION ALL SELECT above.parent_id, step + 1 FROM media_folder AS above JOIN up ON above.app_id = $1 AND above.id = up.parent_id)
  SELECT coalesce(max(step), 0)::int AS depth FROM up`;
/** Selects the number of nesting levels in a folder, including its own: 1 for a folder that contains no folders. */
const SELECT_TREE_HEIGHT = `
  WITH RECURSIVE down AS (
    SELECT id, 1 AS step FROM media_folder WHERE app_id = $1 AND id = $2
    UNION ALL SELECT below.id, step + 1 FROM media_folder AS below JOIN down ON below.app_id = $1 AND below.parent_id = down.id)
  SELECT coalesce(max(step), 0)::int AS depth FROM down`;

const SELECT_FOLDER_PATH = `
  WITH RECURSIVE up AS (
    SELECT id, name, parent_id, 0 AS step FROM media_folder WHERE app_id = $1 AND id = $2
    UNION ALL
    SELECT above.id, above.name, above.parent_id, step + 1
      FROM media_folder AS above JOIN up ON above.app_id = $1 AND above.id = up.parent_id)
  SELECT id, name FROM up WHERE step > 0 ORDER BY step DESC`;

const NAME_CONTAINS_SQL = containsTextFoldedSql("name", "$2::text");

/** Returns the result of the query that stores a folder's name. @throws NAME_ALREADY_EXISTS if the parent folder contains this name */
async function rejectTakenName<T>(name: string, storedName: Promise<T>): Promise<T> {
  return storedName.catch((error: unknown) => {
    if (!isUniqueViolation(error, "media_folder_name")) throw error;
    throw new ActionError(
      "NAME_ALREADY_EXISTS",
      `the parent folder already contains a folder named ${JSON.stringify(name)}; choose another name`,
    );
  });
}

interface MediaFoldersOptions {
  db: Db;
  /** Reads rows over a separate pool of database connections, so that slow queries of callers do not delay other work (read-pool.ts). */
  read: ReadRows;
  mediaRights: MediaRightsResolver;
  receivedDataLimiter: ReceivedDataLimiter;
  baseUrl: string;
  /** Marks the blobs of deleted files as unused, in the transaction that deletes the files. */
  markUnused: (executor: SqlClient, keys: readonly string[]) => Promise<void>;
  /** Deletes unused blobs from the media store. */
  removeUnused: (keys: readonly string[]) => Promise<void>;
}

async function readLevels(executor: SqlClient, sql: string, appId: number, id: number | null): Promise<number> {
  const [levels] = await rows<{ depth: number }>(executor, sql, [appId, id]);
  return levels!.depth;
}

/** Checks the new parent of a folder. @throws REQUEST_INVALID if the folder would be inside itself, or nested too deeply */
async function checkParent(
  manager: EntityManager,
  appId: number,
  id: number | null,
  parentId: number | null,
): Promise<void> {
  if (id !== null && parentId !== null) {
    const enclosedRows = await rows(manager, `${FOLDER_TREE} SELECT FROM tree WHERE id = $3`, [appId, id, parentId]);
    if (enclosedRows.length > 0)
      throw new ActionError("REQUEST_INVALID", '"parentId" must not be the moved folder or a folder inside it');
  }
  const folderHeight = id === null ? 1 : await readLevels(manager, SELECT_TREE_HEIGHT, appId, id);
  const depth = (await readLevels(manager, SELECT_FOLDER_DEPTH, appId, parentId)) + folderHeight;
  if (depth <= MEDIA_FOLDER_DEPTH_MAX) return;
  throw new ActionError(
    "REQUEST_INVALID",
    `folders can be nested at most ${MEDIA_FOLDER_DEPTH_MAX} levels deep (got ${depth}); use a parent folder at a higher level`,
  );
}

/** @throws REQUEST_INVALID if the app already has the maximum number of folders */
async function requireFolderCapacity(manager: EntityManager, appId: number): Promise<void> {
  const [folderCount] = await rows<{ count: number }>(manager, "SELECT count(*) FROM media_folder WHERE app_id = $1", [
    appId,
  ]);
  if (folderCount!.count >= MEDIA_FOLDERS_PER_APP_MAX)
    throw new ActionError(
      "REQUEST_INVALID",
      `this app already has the maximum of ${MEDIA_FOLDERS_PER_APP_MAX} folders; delete one first`,
    );
}

/**
 * For callers who are not trusted, throws the error for a missing right if a search or the top level shows no items. So the response does
 * not reveal if the app has hidden files.
 */
function requireVisibleItems(grants: MediaAccess, { folder, folders, pagination }: FolderListing): void {
  const isEmpty = folders.length === 0 && pagination.total === 0;
  if (!grants.isTrusted && folder === null && isEmpty) throw grants.createAccessError();
}

/**
 * Parses a folder ID; null for the top level. For trusted callers (such as editors), an invalid ID causes REQUEST_INVALID; for others, the
 * error for a missing right.
 */
function parseFolderId(grants: MediaAccess, value: unknown, field?: string): number | null {
  try {
    return parseMediaFolderId(value, field);
  } catch (error) {
    throw grants.isTrusted ? error : grants.createAccessError();
  }
}

/** Checks that the caller may delete everything in a folder, because the items in it can have their own access rules. */
async function requireDeleteRights(
  grants: MediaAccess,
  manager: EntityManager,
  appId: number,
  id: number,
): Promise<void> {
  if (grants.isTrusted) return;
  const folderRules = await rows<{ rules: MediaRules }>(
    manager,
    `${FOLDER_TREE}
       SELECT access_rules AS rules FROM media_folder WHERE access_rules IS NOT NULL AND id IN (SELECT id FROM tree)
       UNION ALL
       SELECT access_rules FROM media_file WHERE access_rules IS NOT NULL AND app_id = $1 AND folder_id IN (SELECT id FROM tree)`,
    [appId, id],
  );
  for (const { rules } of folderRules) grants.requireRight(rules, "delete");
}

export class MediaFolders {
  constructor(private readonly options: MediaFoldersOptions) {}

  private async listFiles(
    { appId, fileCondition, value }: MediaListConditions,
    visibleMedia: VisibleMediaParameters,
    pagination: FolderListingOptions,
  ) {
    const { read, baseUrl } = this.options;
    const { limit, offset } = parseLimitAndOffset(pagination, LIST_ITEMS_PER_PAGE_MAX);
    const values = [appId, value, ...(visibleMedia ?? [null, null])];
    const condition = `app_id = $1 AND ${fileCondition} AND ${createVisibleFileSql(visibleMedia)}`;
    const fileRows = await read<FileRow>(
      appId,
      `${SELECT_FILES_SQL} WHERE ${condition} ORDER BY name, id LIMIT $5 OFFSET $6`,
      [...[...values, limit, offset]],
    );
    const [count] = await read<{ total: number }>(
      appId,
      `SELECT count(*) AS total FROM media_file WHERE ${condition}`,
      values,
    );
    const { total } = count!;
    const hasMore = offset + fileRows.length < total;
    return { files: fileRows.map((row) => toFile(row, appId, baseUrl)), pagination: { total, hasMore } };
  }

  private async listFolders(
    { appId, folderCondition, value }: MediaListConditions,
    visibleMedia: VisibleMediaParameters,
  ): Promise<MediaFolder[]> {
    const condition = `app_id = $1 AND ${folderCondition} AND ${createVisibleFolderSql(visibleMedia)}`;
    const sql = `${SELECT_FOLDERS_SQL} WHERE ${condition} ORDER BY name, id LIMIT ${LIST_ITEMS_PER_PAGE_MAX}`;
    return (await this.options.read<FolderRow>(appId, sql, [appId, value, ...(visibleMedia ?? [null, null])])).map(
      toFolder,
    );
  }

  async list(admission: AdmittedRequest, appId: number, input: FolderListingOptions): Promise<FolderListing> {
    const { read, mediaRights } = this.options;
    const grants = await mediaRights.resolveAccess(admission);
    const id = input.folderId === undefined ? null : parseFolderId(grants, input.folderId);
    const row = id === null ? null : await this.findOrThrow(grants, appId, id);
    if (row) grants.requireRight(row.rules, "read");
    const requestedName = typeof input.name === "string" && input.name !== "" ? input.name : null;
    // PostgreSQL rejects the character NUL, so no name contains it. This error is the same as for a search without results.
    if (requestedName?.includes("\0") && !grants.isTrusted) throw grants.createAccessError();
    const filter: MediaListConditions =
      requestedName === null
        ? {
            appId,
            fileCondition: "coalesce(folder_id, 0) = $2",
            folderCondition: "coalesce(parent_id, 0) = $2",
            value: id ?? 0,
          }
        : { appId, fileCondition: NAME_CONTAINS_SQL, folderCondition: NAME_CONTAINS_SQL, value: requestedName };
    const visibleMedia = await readVisibleMedia(read, grants, filter);
    const folders = await this.listFolders(filter, visibleMedia);
    const fileList = await this.listFiles(filter, visibleMedia, input);
    const path =
      row && grants.isTrusted
        ? await read<FolderListing["path"][number]>(appId, SELECT_FOLDER_PATH, [appId, row.id])
        : [];
    const folderListing = { folder: row && toFolder(row), path, folders, ...fileList };
    requireVisibleItems(grants, folderListing);
    return folderListing;
  }

  async create(admission: AdmittedRequest, appId: number, body: unknown): Promise<MediaFolder> {
    const { db, mediaRights, receivedDataLimiter } = this.options;
    const grants = await mediaRights.resolveAccess(admission);
    const fields = isObject(body) ? body : {};
    const parentId = parseFolderId(grants, fields["parentId"], "parentId");
    grants.requireRight(await this.readRulesAt(grants, appId, parentId), "create");
    const name = parseMediaName(fields["name"]);
    receivedDataLimiter.countRows(toLogEventCause(admission), appId, name.length);
    return transactWithAppLock(db, appId, async (manager) => {
      // Another request may have deleted the folder or removed the right before this transaction locked the app.
      grants.requireRight(await this.readRulesAt(grants, appId, parentId, manager), "create");
      await requireFolderCapacity(manager, appId);
      await checkParent(manager, appId, null, parentId);
      const sql = "INSERT INTO media_folder (app_id, parent_id, name, user_id) VALUES ($1, $2, $3, $4) RETURNING id";
      const values = [appId, parentId, name, admission.caller?.personId ?? null];
      const [createdFolder] = await rejectTakenName(name, rows<{ id: number }>(manager, sql, values));
      throwIfUnknownField(admission);
      await recordMediaChange(manager, admission, appId, "media.folder.create", { folderId: createdFolder!.id, name });
      return toFolder((await findFolder(manager, appId, createdFolder!.id))!);
    });
  }

  async update(
    admission: AdmittedRequest,
    { appId, id, precondition }: MediaChangeTarget,
    body: unknown,
  ): Promise<MediaFolder> {
    const { db, mediaRights, receivedDataLimiter } = this.options;
    const grants = await mediaRights.resolveAccess(admission);
    grants.requireRight((await this.findOrThrow(grants, appId, id)).rules, "update");
    const change = parseMediaChange(body, "parentId");
    receivedDataLimiter.countRows(toLogEventCause(admission), appId, change.name?.length ?? 0);
    return transactWithAppLock(db, appId, async (manager) => {
      const before = await this.findOrThrow(grants, appId, id, manager);
      // Another request may have removed the right before this transaction locked the app.
      grants.requireRight(before.rules, "update");
      if (change.folderId !== undefined) {
        const target = await this.readRulesAt(grants, appId, change.folderId, manager);
        grants.requireRight(target, "create");
        grants.requireNoAddedRights(before.ownRules ?? target, before.rules);
      }
      requireExpectedVersion(toFolder(before), precondition);
      const { name = before.name, folderId: parentId = before.parentId } = change;
      if (parentId !== before.parentId) await checkParent(manager, appId, id, parentId);
      const sql = `UPDATE media_folder SET name = $3, parent_id = $4, updated_at = ${NEXT_UPDATED_AT_SQL}
                      WHERE app_id = $1 AND id = $2`;
      await rejectTakenName(name, rows(manager, sql, [appId, id, name, parentId]));
      await recordMediaChange(manager, admission, appId, "media.folder.update", {
        folderId: id,
        fields: Object.keys(change),
      });
      return toFolder((await findFolder(manager, appId, id))!);
    });
  }

  async remove(admission: AdmittedRequest, { appId, id, precondition }: MediaChangeTarget): Promise<void> {
    const { db, mediaRights, markUnused, removeUnused } = this.options;
    const grants = await mediaRights.resolveAccess(admission);
    grants.requireRight((await this.findOrThrow(grants, appId, id)).rules, "delete");
    const keys = await transactWithAppLock(db, appId, async (manager) => {
      const before = await this.findOrThrow(grants, appId, id, manager);
      const { name } = before;
      grants.requireRight(before.rules, "delete");
      requireExpectedVersion(toFolder(before), precondition);
      await requireDeleteRights(grants, manager, appId, id);
      const removedFiles = await rows<{ keys: string[] }>(
        manager,
        `${FOLDER_TREE} DELETE FROM media_file WHERE app_id = $1 AND folder_id IN (SELECT id FROM tree)
         RETURNING array_remove(ARRAY[blob_key, thumbnail_key], NULL) AS keys`,
        [appId, id],
      );
      const blobs = removedFiles.flatMap((file) => file.keys);
      await markUnused(manager, blobs);
      await rows(manager, `${FOLDER_TREE} DELETE FROM media_folder WHERE app_id = $1 AND id IN (SELECT id FROM tree)`, [
        appId,
        id,
      ]);
      await recordMediaChange(manager, admission, appId, "media.folder.delete", {
        folderId: id,
        name,
        files: removedFiles.length,
      });
      return blobs;
    });
    await removeUnused(keys);
  }

  /**
   * Returns the row of a folder.
   * @throws ActionError FOLDER_NOT_FOUND for trusted callers (such as editors). Other callers get the error for a missing right, which does
   *   not reveal if the folder exists.
   */
  async findOrThrow(
    grants: MediaAccess,
    appId: number,
    id: number,
    executor: SqlClient = this.options.db,
  ): Promise<FolderRow> {
    const row = await findFolder(executor, appId, id);
    if (row) return row;
    throw grants.isTrusted ? new ActionError("FOLDER_NOT_FOUND") : grants.createAccessError();
  }

  /** Returns the access rules that new files and folders in a folder get. Returns null if no rules apply, such as at the top level. */
  async readRulesAt(
    grants: MediaAccess,
    appId: number,
    id: number | null,
    executor: SqlClient = this.options.db,
  ): Promise<MediaRules> {
    return id === null ? null : (await this.findOrThrow(grants, appId, id, executor)).rules;
  }
}
