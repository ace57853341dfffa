/** Takes, lists and reads snapshots of actions (specification, Version snapshot). */
import { createHash } from "node:crypto";
import type { Logger } from "pino";
import type { DataSource, EntityManager } from "typeorm";
import type { ActionRow } from "../../data/action.js";
import type { Asset, Environment, StoredAsset } from "../../data/action-types.js";
import { type Executor, rows } from "../../data/database.js";
import { type Person, personJson } from "../../data/person.js";
import { ActionError } from "../../errors.js";
import { VERSION_PAGE_DEFAULT, VERSION_PAGE_MAX, VERSIONS_KEPT } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { type ActionInput, presentSource } from "../../rules/action-input.js";
import { shownSource } from "../../rules/action-source.js";
import type { AddressAssets } from "../../rules/packages.js";
import { createPage } from "../../rules/page.js";
import { storedScripts } from "../packages/kept-scripts.js";
import { findAction, inputOf, isStorableId, productionOf } from "./action-rows.js";

/** The change for which a snapshot was taken. */
export type SnapshotOccasion = "create" | "update" | "pre-restore";

/** Full configuration of a draft, as stored. */
export interface StoredSnapshot extends ActionInput {
  action: SnapshotOccasion;
  functions: [];
  assets: StoredAsset[];
  widgetInstanceIds: [];
  /** Null, because only drafts have a history, and a draft belongs to no other draft. */
  masterTaskId: number | null;
  productionTaskId: number | null;
  actionVersion: string;
}

/** Snapshot as callers see it (specification, Version snapshot: `version.data`). */
export type Snapshot = Omit<StoredSnapshot, "assets"> & { assets: Asset[] };

interface VersionHead {
  id: number;
  /** ISO 8601. */
  createdAt: string;
  userId: number | null;
  user: Person | null;
  /** Hash of the git commit from which a pull made this version; absent if no pull made it. */
  commit?: string;
}

export interface VersionSummary extends VersionHead {
  action: SnapshotOccasion;
  name: string;
  description: string | null;
  active: boolean;
  environment: Environment;
  frequency: string | null;
  /** Time of the last publish of this state, ISO 8601; null if it was never live. */
  publishedAt?: string | null;
}

export interface Version extends VersionHead {
  data: Snapshot;
}

export interface StoredVersion extends VersionHead {
  data: StoredSnapshot;
}

export interface VersionPagination {
  limit: number;
  offset: number;
  total: number;
  hasMore: boolean;
}

function snapshotOf(row: ActionRow, occasion: SnapshotOccasion, productionTaskId: number | null): StoredSnapshot {
  const { assets, masterId: masterTaskId, actionVersion } = row;
  const links = { masterTaskId, productionTaskId, functions: [] as [], widgetInstanceIds: [] as [] };
  return { action: occasion, ...inputOf(row), assets, actionVersion, ...links };
}

/* Inserts a snapshot and the scripts that it uses, which stay as long as the snapshot. */
const INSERT_SNAPSHOT = `
  WITH version AS (
    INSERT INTO action_version (action_id, person_id, summary, data, state, commit_id) VALUES ($1, $2, $3, $4, $6, $7) RETURNING id),
  used AS (
    INSERT INTO kept_script_use (sha256, action_version_id) SELECT sha256, id FROM version, unnest($5::text[]) AS sha256)
  SELECT id FROM version`;

/** Returns a fingerprint of the author's fields, by which a restored draft equals its version. */
const stateOf = (row: ActionRow): Buffer =>
  createHash("sha256")
    .update(JSON.stringify(inputOf(row)))
    .digest();

/* Deletes all but the newest versions. Every writer holds the draft's lock, so the IDs of its versions grow in the order of the changes. */
const DELETE_OLD_VERSIONS = `
  DELETE FROM action_version WHERE action_id = $1 AND id <=
    (SELECT id FROM action_version WHERE action_id = $1 ORDER BY id DESC OFFSET ${VERSIONS_KEPT} LIMIT 1)`;

/** Change that caused a snapshot, and its author. */
interface Origin extends Pick<Caller, "personId" | "commit"> {
  occasion: SnapshotOccasion;
}

async function writeSnapshot(manager: EntityManager, row: ActionRow, { occasion, personId, commit }: Origin) {
  const production = await productionOf(manager, row.id);
  const snapshot = snapshotOf(row, occasion, production?.id ?? null);
  const { name, description, active, environment, frequency } = row;
  const summary = { action: occasion, name, description, active, environment, frequency };
  const [version] = await rows<{ id: number }>(manager, INSERT_SNAPSHOT, [
    row.id,
    personId,
    JSON.stringify(summary),
    JSON.stringify(snapshot),
    storedScripts(row.assets),
    stateOf(row),
    commit ?? null,
  ]);
  await rows(manager, DELETE_OLD_VERSIONS, [row.id]);
  return version!.id;
}

/**
 * Takes a snapshot in the transaction of the change, and removes all but the newest 100. It uses a savepoint: its
 * failure is logged and never fails the change (specification, Other rules 5).
 * @param manager of a transaction that locked or created the draft
 * @returns the version's id, null if none could be taken
 */
export async function recordVersion(
  manager: EntityManager,
  log: Logger,
  row: ActionRow,
  origin: Origin,
): Promise<number | null> {
  try {
    return await manager.transaction((savepoint) => writeSnapshot(savepoint, row, origin));
  } catch (error) {
    const { occasion } = origin;
    // The error itself is not logged, because it contains the statement's parameters with the code.
    log.error(
      { actionId: row.id, occasion, reason: (error as Error).message },
      "a snapshot of an action could not be stored",
    );
    return null;
  }
}

/* Marks the version that becomes live. A publish takes no snapshot, so this is the newest version with the draft's state. */
const MARK_PUBLISHED = `
  UPDATE action_version SET published_at = clock_timestamp() WHERE id =
    (SELECT id FROM action_version WHERE action_id = $1 AND state = $2 ORDER BY id DESC LIMIT 1)`;

/** Marks the version that a publish makes live. @param manager of a transaction that holds the lock of the draft */
export async function markPublished(manager: EntityManager, master: ActionRow): Promise<void> {
  await rows(manager, MARK_PUBLISHED, [master.id, stateOf(master)]);
}

const WAS_PUBLISHED =
  "SELECT FROM action_version WHERE action_id = $1 AND state = $2 AND published_at IS NOT NULL LIMIT 1";

/** True if a version with the draft's state was live. @param manager of a transaction that holds the lock of the draft */
export async function wasPublished(manager: EntityManager, master: ActionRow): Promise<boolean> {
  return (await rows(manager, WAS_PUBLISHED, [master.id, stateOf(master)])).length > 0;
}

const VERSION_HEAD_COLUMNS = `version.id, version.created_at AS "createdAt", version.person_id AS "userId", version.commit_id AS "commitId",
  ${personJson("person")} AS "user"`;
const FROM_VERSIONS = "FROM action_version version LEFT JOIN person ON person.id = version.person_id";

type VersionHeadRow = Omit<VersionHead, "createdAt" | "commit"> & { createdAt: Date; commitId: string | null };
type StoredSummary = Omit<VersionSummary, keyof VersionHead | "publishedAt">;

const headOf = ({ id, createdAt, userId, user, commitId }: VersionHeadRow): VersionHead => ({
  id,
  createdAt: createdAt.toISOString(),
  userId,
  user,
  ...(commitId !== null && { commit: commitId }),
});

/** Finds one version of an action. @throws ActionError VERSION_NOT_FOUND */
export async function findVersion(executor: Executor, actionId: number, versionId: number): Promise<StoredVersion> {
  const sql = `SELECT ${VERSION_HEAD_COLUMNS}, version.data ${FROM_VERSIONS} WHERE version.action_id = $1 AND version.id = $2`;
  const [versionRows] = isStorableId(versionId)
    ? await rows<VersionHeadRow & { data: StoredSnapshot }>(executor, sql, [actionId, versionId])
    : [];
  if (!versionRows) throw new ActionError("VERSION_NOT_FOUND");
  // Snapshots from before origins existed allow none.
  return {
    ...headOf(versionRows),
    data: { ...versionRows.data, integrationOrigins: versionRows.data.integrationOrigins ?? [] },
  };
}

/** SQL condition and order of the two lists of versions. */
const ALL = ["version.action_id = $1", "version.id DESC"] as const;
const PUBLISHED_COLUMNS = [
  `${ALL[0]} AND version.published_at IS NOT NULL`,
  "version.published_at DESC, version.id DESC",
] as const;

export type Versions = ReturnType<typeof createVersions>;

/** Operations on versions. A live version has no history of its own: its list is empty. */
export function createVersions({ db, addressed }: { db: DataSource; addressed: AddressAssets }) {
  return {
    /**
     * Lists versions, the most recent first: 50 by default, 100 at most. With `published`, lists only versions that were live, the last
     * published one first.
     * @throws ActionError ACTION_NOT_FOUND, ACTION_NOT_V3, REQUEST_INVALID
     */
    async list(
      appId: number,
      actionId: number,
      options: { limit?: unknown; offset?: unknown; published?: boolean | null | undefined },
    ): Promise<{ versions: VersionSummary[]; pagination: VersionPagination }> {
      const { limit, offset } = createPage(options, VERSION_PAGE_DEFAULT, VERSION_PAGE_MAX);
      await findAction(db.manager, appId, actionId);
      const [chosen, order] = options.published ? PUBLISHED_COLUMNS : ALL;
      const [count] = await rows<{ total: number }>(
        db,
        `SELECT count(*) AS total FROM action_version version WHERE ${chosen}`,
        [actionId],
      );
      const versionRows = await rows<VersionHeadRow & { summary: StoredSummary; publishedAt: Date | null }>(
        db,
        `SELECT ${VERSION_HEAD_COLUMNS}, version.summary, version.published_at AS "publishedAt" ${FROM_VERSIONS}
           WHERE ${chosen} ORDER BY ${order} LIMIT $2 OFFSET $3`,
        [actionId, limit, offset],
      );
      const { total } = count!;
      return {
        versions: versionRows.map(({ summary, publishedAt, ...head }) => ({
          ...headOf(head),
          ...summary,
          publishedAt: publishedAt?.toISOString() ?? null,
        })),
        pagination: { limit, offset, total, hasMore: offset + versionRows.length < total },
      };
    },

    /** @throws ACTION_NOT_FOUND, ACTION_NOT_V3, VERSION_NOT_FOUND */
    async get(appId: number, actionId: number, versionId: number): Promise<Version> {
      await findAction(db.manager, appId, actionId);
      const { data, ...head } = await findVersion(db, actionId, versionId);
      const { source, ...snapshot } = data;
      const shownSourceOrNull = presentSource(source ? shownSource(source) : null);
      return { ...head, data: { ...snapshot, ...shownSourceOrNull, assets: addressed(data.assets) } };
    },
  };
}
