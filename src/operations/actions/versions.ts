/** Stores, lists and reads the versions of an action. A version is a stored snapshot of the action's draft. */
import { createHash } from "node:crypto";
import type { Logger } from "pino";
import type { EntityManager } from "typeorm";
import type { ActionRow } from "../../data/action.js";
import type { Asset, Environment, StoredAsset } from "../../data/action-types.js";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { type Person, personJsonSql } from "../../data/person.js";
import { ActionError } from "../../errors.js";
import { VERSIONS_PER_ACTION_MAX, VERSIONS_PER_PAGE_DEFAULT, VERSIONS_PER_PAGE_MAX } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { type ActionInput, omitActionSourceIfNull } from "../../rules/action-input.js";
import { omitActionSourceMap } from "../../rules/action-source.js";
import type { AddAssetUrls } from "../../rules/packages.js";
import { parseLimitAndOffset } from "../../rules/page.js";
import { listStoredScriptHashes } from "../packages/kept-scripts.js";
import { findLiveVersion, isStorableId, pickAuthoredFields, requireAction } from "./action-rows.js";

/** Reason for saving a version: after the draft was created ("create") or updated ("update"), or before a restore ("pre-restore"). */
export type ActionVersionReason = "create" | "update" | "pre-restore";

/** All fields of a draft in the form in which the database stores a version. */
export interface StoredDraftSnapshot extends ActionInput {
  action: ActionVersionReason;
  functions: [];
  assets: StoredAsset[];
  widgetInstanceIds: [];
  /** ID of the draft to which a live version belongs. Always null here, because only drafts have versions. */
  masterTaskId: number | null;
  /** ID of the live version at the time of the snapshot; null if the draft was not published. */
  productionTaskId: number | null;
  actionVersion: string;
}

/** All fields of a draft in the form in which callers receive a version (field `data`). */
export type Snapshot = Omit<StoredDraftSnapshot, "assets"> & { assets: Asset[] };

interface VersionHead {
  id: number;
  /** Time at which the version was stored, ISO 8601. */
  createdAt: string;
  userId: number | null;
  user: Person | null;
  /** Hash of the Git commit whose pull created this version; missing if the version was not created from Git. */
  commit?: string;
}

export interface VersionSummary extends VersionHead {
  action: ActionVersionReason;
  name: string;
  description: string | null;
  active: boolean;
  environment: Environment;
  frequency: string | null;
  /** Time at which this version was last published, ISO 8601; null if this version was never live. */
  publishedAt?: string | null;
}

export interface Version extends VersionHead {
  data: Snapshot;
}

export interface StoredActionVersion extends VersionHead {
  data: StoredDraftSnapshot;
}

export interface VersionPagination {
  limit: number;
  offset: number;
  total: number;
  hasMore: boolean;
}

function createSnapshot(
  row: ActionRow,
  occasion: ActionVersionReason,
  productionTaskId: number | null,
): StoredDraftSnapshot {
  const { assets, masterId: masterTaskId, actionVersion } = row;
  const links = { masterTaskId, productionTaskId, functions: [] as [], widgetInstanceIds: [] as [] };
  return { action: occasion, ...pickAuthoredFields(row), assets, actionVersion, ...links };
}

/* Inserts a snapshot, and the references to its scripts. A script is not deleted while a snapshot refers to it. */
const INSERT_SNAPSHOT = `
  WITH version AS (
    INSERT INTO action_version (action_id, person_id, summary, data, state, commit_id) VALUES ($1, $2, $3, $4, $6, $7) RETURNING id),
  used AS (
    INSERT INTO kept_script_use (sha256, action_version_id) SELECT sha256, id FROM version, unnest($5::text[]) AS sha256)
  SELECT id FROM version`;

/** Returns a hash of the fields that authors can write. Versions store this hash, to find the versions that equal a draft. */
const hashDraftState = (row: ActionRow): Buffer =>
  createHash("sha256")
    .update(JSON.stringify(pickAuthoredFields(row)))
    .digest();

/** Keeps only the newest VERSIONS_PER_ACTION_MAX versions. Newer versions have higher IDs, because each insert holds the draft's lock. */
const DELETE_OLD_VERSIONS = `
  DELETE FROM action_version WHERE action_id = $1 AND id <=
    (SELECT id FROM action_version WHERE action_id = $1 ORDER BY id DESC OFFSET ${VERSIONS_PER_ACTION_MAX} LIMIT 1)`;

interface SnapshotOrigin extends Pick<Caller, "personId" | "commit"> {
  occasion: ActionVersionReason;
}

async function writeSnapshot(manager: EntityManager, row: ActionRow, { occasion, personId, commit }: SnapshotOrigin) {
  const production = await findLiveVersion(manager, row.id);
  const snapshot = createSnapshot(row, occasion, production?.id ?? null);
  const { name, description, active, environment, frequency } = row;
  const summary = { action: occasion, name, description, active, environment, frequency };
  const [version] = await rows<{ id: number }>(manager, INSERT_SNAPSHOT, [
    row.id,
    personId,
    JSON.stringify(summary),
    JSON.stringify(snapshot),
    listStoredScriptHashes(row.assets),
    hashDraftState(row),
    commit ?? null,
  ]);
  await rows(manager, DELETE_OLD_VERSIONS, [row.id]);
  return version!.id;
}

/**
 * Stores a version of a draft in the transaction that changes the draft. Deletes the oldest versions above VERSIONS_PER_ACTION_MAX. If
 * storing fails, the function logs the error and rolls back to a savepoint, so that the change is saved without a version.
 * @param manager a transaction that has locked or created the draft
 * @returns the ID of the version; null if it could not be stored
 */
export async function storeDraftVersion(
  manager: EntityManager,
  log: Logger,
  row: ActionRow,
  origin: SnapshotOrigin,
): Promise<number | null> {
  try {
    return await manager.transaction((savepoint) => writeSnapshot(savepoint, row, origin));
  } catch (error) {
    const { occasion } = origin;
    // Logs only the message, because the error object also contains parameters of the SQL statement, such as the action's code.
    log.error(
      { actionId: row.id, occasion, reason: (error as Error).message },
      "the version of a changed action could not be stored; the change was saved without it",
    );
    return null;
  }
}

const MARK_PUBLISHED = `
  UPDATE action_version SET published_at = clock_timestamp() WHERE id =
    (SELECT id FROM action_version WHERE action_id = $1 AND state = $2 ORDER BY id DESC LIMIT 1) RETURNING id`;

/**
 * Sets the publishing time of the newest version that equals the draft. If no version equals the draft, stores one first.
 * @param manager a transaction that has locked the draft
 */
export async function markVersionPublished(
  manager: EntityManager,
  log: Logger,
  master: ActionRow,
  { personId, commit }: Pick<Caller, "personId" | "commit">,
): Promise<void> {
  const markNewestVersion = () => rows(manager, MARK_PUBLISHED, [master.id, hashDraftState(master)]);
  if ((await markNewestVersion()).length > 0) return;
  await storeDraftVersion(manager, log, master, {
    occasion: "update",
    personId,
    ...(commit !== undefined && { commit }),
  });
  await markNewestVersion();
}

const SELECT_PUBLISHED_VERSION =
  "SELECT FROM action_version WHERE action_id = $1 AND state = $2 AND published_at IS NOT NULL LIMIT 1";

/**
 * True if a version that equals the draft was live before.
 * @param manager a transaction that has locked the draft
 */
export async function wasDraftStatePublished(manager: EntityManager, master: ActionRow): Promise<boolean> {
  return (await rows(manager, SELECT_PUBLISHED_VERSION, [master.id, hashDraftState(master)])).length > 0;
}

export interface PublishedState {
  state: Buffer | null;
  publishedAt: Date | null;
}

/** Reads the hash and the publishing time of a version. */
export async function readPublishedState(manager: EntityManager, versionId: number): Promise<PublishedState> {
  const sql = `SELECT state, published_at AS "publishedAt" FROM action_version WHERE id = $1`;
  return (await rows<PublishedState>(manager, sql, [versionId]))[0]!;
}

const SET_PUBLISHING_TIME = "UPDATE action_version SET published_at = $2 WHERE id = $1 AND state = $3";

/**
 * If the restored version no longer exists, stores the restored draft as a new version. A restore first stores a "pre-restore" version.
 * This can delete the oldest version, which may be the restored one. If the new version has the same content as the deleted version, it
 * gets the publishing time of the deleted version.
 * @param manager a transaction that has locked the draft
 * @param displacedVersion the restored version, as it was before the "pre-restore" version was stored
 */
export async function storeDisplacedVersion(
  manager: EntityManager,
  log: Logger,
  row: ActionRow,
  displacedVersion: PublishedState & { versionId: number; personId: number | null },
): Promise<void> {
  const { versionId, personId, publishedAt, state } = displacedVersion;
  if ((await rows(manager, "SELECT FROM action_version WHERE id = $1", [versionId])).length > 0) return;
  const newVersionId = await storeDraftVersion(manager, log, row, { occasion: "update", personId });
  if (newVersionId !== null) await rows(manager, SET_PUBLISHING_TIME, [newVersionId, publishedAt, state]);
}

const VERSION_HEAD_COLUMNS = `version.id, version.created_at AS "createdAt", version.person_id AS "userId", version.commit_id AS "commitId",
  ${personJsonSql("person")} AS "user"`;
const FROM_VERSIONS = "FROM action_version version LEFT JOIN person ON person.id = version.person_id";

type VersionHeadRow = Omit<VersionHead, "createdAt" | "commit"> & { createdAt: Date; commitId: string | null };
type StoredSummary = Omit<VersionSummary, keyof VersionHead | "publishedAt">;

const toVersionHead = ({ id, createdAt, userId, user, commitId }: VersionHeadRow): VersionHead => ({
  id,
  createdAt: createdAt.toISOString(),
  userId,
  user,
  ...(commitId !== null && { commit: commitId }),
});

/** Reads one version of an action with its snapshot. @throws ActionError VERSION_NOT_FOUND */
export async function requireActionVersion(
  executor: SqlClient,
  actionId: number,
  versionId: number,
): Promise<StoredActionVersion> {
  const sql = `SELECT ${VERSION_HEAD_COLUMNS}, version.data ${FROM_VERSIONS} WHERE version.action_id = $1 AND version.id = $2`;
  const [versionRow] = isStorableId(versionId)
    ? await rows<VersionHeadRow & { data: StoredDraftSnapshot }>(executor, sql, [actionId, versionId])
    : [];
  if (!versionRow) throw new ActionError("VERSION_NOT_FOUND");
  // A version from an older release lacks the field `integrationOrigins`, so the field is set to an empty list.
  return {
    ...toVersionHead(versionRow),
    data: { ...versionRow.data, integrationOrigins: versionRow.data.integrationOrigins ?? [] },
  };
}

/** SQL condition and sort order for all versions of an action, the newest first. */
const ALL_VERSIONS_SQL = ["version.action_id = $1", "version.id DESC"] as const;
const PUBLISHED_VERSIONS_SQL = [
  `${ALL_VERSIONS_SQL[0]} AND version.published_at IS NOT NULL`,
  "version.published_at DESC, version.id DESC",
] as const;

/** Operations on versions of actions. For the ID of a live version, the list of versions is empty, because only drafts have versions. */
export class ActionVersions {
  constructor(private readonly options: { db: Db; addAssetUrls: AddAssetUrls }) {}

  /**
   * Lists the versions of a draft, the newest first: 50 by default, 100 at most. If `published` is true, lists only
   * the versions that were live, the most recently published first.
   * @throws ActionError ACTION_NOT_FOUND, ACTION_NOT_V3, REQUEST_INVALID
   */
  async list(
    appId: number,
    actionId: number,
    options: { limit?: unknown; offset?: unknown; published?: boolean | null | undefined },
  ): Promise<{ versions: VersionSummary[]; pagination: VersionPagination }> {
    const { db } = this.options;
    const { limit, offset } = parseLimitAndOffset(options, VERSIONS_PER_PAGE_DEFAULT, VERSIONS_PER_PAGE_MAX);
    await requireAction(db.manager, appId, actionId);
    const [condition, order] = options.published ? PUBLISHED_VERSIONS_SQL : ALL_VERSIONS_SQL;
    const [count] = await rows<{ total: number }>(
      db,
      `SELECT count(*) AS total FROM action_version version WHERE ${condition}`,
      [actionId],
    );
    const versionRows = await rows<VersionHeadRow & { summary: StoredSummary; publishedAt: Date | null }>(
      db,
      `SELECT ${VERSION_HEAD_COLUMNS}, version.summary, version.published_at AS "publishedAt" ${FROM_VERSIONS}
           WHERE ${condition} ORDER BY ${order} LIMIT $2 OFFSET $3`,
      [actionId, limit, offset],
    );
    const { total } = count!;
    return {
      versions: versionRows.map(({ summary, publishedAt, ...head }) => ({
        ...toVersionHead(head),
        ...summary,
        publishedAt: publishedAt?.toISOString() ?? null,
      })),
      pagination: { limit, offset, total, hasMore: offset + versionRows.length < total },
    };
  }

  /** Returns one version with its snapshot. @throws ACTION_NOT_FOUND, ACTION_NOT_V3, VERSION_NOT_FOUND */
  async get(appId: number, actionId: number, versionId: number): Promise<Version> {
    const { db, addAssetUrls } = this.options;
    await requireAction(db.manager, appId, actionId);
    const { data, ...head } = await requireActionVersion(db, actionId, versionId);
    const { source, ...snapshot } = data;
    const shownSourceOrNull = omitActionSourceIfNull(source ? omitActionSourceMap(source) : null);
    return { ...head, data: { ...snapshot, ...shownSourceOrNull, assets: addAssetUrls(data.assets) } };
  }
}
