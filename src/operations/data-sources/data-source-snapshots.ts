/**
 * Takes snapshots of all entries of a data source before large changes, and restores them. SQL statements copy the entries inside the
 * database, because all entries together may not fit into the memory of this process.
 */
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { VERSIONS_PER_DATA_SOURCE_MAX } from "../../limits.js";
import type { ExpectedVersions } from "../../rules/precondition.js";
import { checkDataSource, lockDataSource, lockEntryReplacement, type StoredDataSource } from "./data-source-rows.js";
import type { EntryChangeCollector, EntryChangeTransactions, EntryWritingCaller } from "./entry-changes.js";
import { readNewestEntryId, removeEntriesExcept } from "./entry-statements.js";

/** Description of a snapshot of all entries of a data source. Times are ISO 8601. */
export interface DataSourceSnapshot {
  id: number;
  dataSourceId: number;
  /** Operation before which the service took the snapshot: "import", "append", "commit", "delete" or "restore". */
  operation: string;
  userId: number | null;
  columns: string[];
  entries: number;
  bytes: number;
  createdAt: string;
}

const ENTRIES_PER_STATEMENT = 2_000;
/** Approximate size in bytes of a part of a snapshot. Each part is one database row; a whole snapshot would be too large for one row. */
const PART_BYTES = 4 * 1024 * 1024;

const INSERT_VERSION = `
  INSERT INTO data_source_version (app_id, data_source_id, user_id, operation, columns, entries, bytes)
  VALUES ($1, $2, $3, $4, $5, 0, 0) RETURNING id`;

/**
 * Copies the next entries into parts of the snapshot, except those that this transaction has written. `data` has the type json, not jsonb,
 * so that an entry's text stays unchanged.
 */
const INSERT_VERSION_PART = `
  WITH next AS (
    SELECT id, data, "order", created_at, updated_at, bytes FROM data_source_entry
     WHERE app_id = $1 AND data_source_id = $2 AND id > $3 AND id <= $4
       AND xmin <> pg_current_xact_id()::xid ORDER BY id LIMIT ${ENTRIES_PER_STATEMENT}),
  summed AS (SELECT *, sum(bytes) OVER (ORDER BY id) / ${PART_BYTES} AS part FROM next),
  made AS (
    INSERT INTO data_source_version_part (app_id, version_id, part, content)
    SELECT $1, $5, $6 + part::int,
           convert_to(json_agg(json_build_array(id, "order", created_at, updated_at, data) ORDER BY id)::text, 'UTF8')
      FROM summed GROUP BY part
    RETURNING part, octet_length(content) AS bytes)
  SELECT (SELECT max(id) FROM next) AS last, (SELECT count(*) FROM next) AS count,
         (SELECT coalesce(max(part) + 1, $6) FROM made) AS next, (SELECT coalesce(sum(bytes), 0) FROM made)::float8 AS bytes`;

const DELETE_EMPTY_VERSION = "DELETE FROM data_source_version WHERE app_id = $1 AND id = $2";
const SET_VERSION_COUNTS = "UPDATE data_source_version SET entries = $3, bytes = $4 WHERE app_id = $1 AND id = $2";

/**
 * Keeps only the newest $3 snapshots of the data source $2. Also deletes the oldest snapshots of the app if all together have more than $4
 * bytes (0: no limit). Never deletes the app's newest snapshot.
 */
const DELETE_OLD_VERSIONS = `
  DELETE FROM data_source_version WHERE app_id = $1 AND id IN (
    SELECT id FROM (
      SELECT id, data_source_id, row_number() OVER (PARTITION BY data_source_id ORDER BY id DESC) AS place,
             row_number() OVER (ORDER BY id DESC) AS age, sum(bytes) OVER (ORDER BY id DESC) AS total
        FROM data_source_version WHERE app_id = $1) AS sized
     WHERE age > 1 AND ((data_source_id = $2 AND place > $3) OR ($4::float8 > 0 AND total > $4::float8)))`;

const LIST_VERSIONS = `
  SELECT id, data_source_id AS "dataSourceId", operation, user_id AS "userId", columns, entries, bytes,
         created_at AS "createdAt"
    FROM data_source_version WHERE app_id = $1 AND data_source_id = $2 ORDER BY id DESC LIMIT ${VERSIONS_PER_DATA_SOURCE_MAX}`;

/** Inserts the entries of one part of a snapshot. `ids` contains their IDs; null if the part has more than $5 entries. */
const RESTORE_PART = `
  WITH made AS (
    INSERT INTO data_source_entry (id, app_id, data_source_id, data, "order", created_at, updated_at) OVERRIDING SYSTEM VALUE
    SELECT (row_values ->> 0)::bigint, $1, $2, row_values -> 4, (row_values ->> 1)::float8, (row_values ->> 2)::timestamptz, (row_values ->> 3)::timestamptz
      FROM data_source_version_part, json_array_elements(convert_from(content, 'UTF8')::json) AS row_values
     WHERE app_id = $1 AND version_id = $3 AND part = $4
    RETURNING id, bytes)
  SELECT count(*) AS count, coalesce(sum(bytes), 0)::float8 AS bytes,
         CASE WHEN count(*) <= $5 THEN coalesce(array_agg(id), '{}') END AS ids FROM made`;

interface RestoredPart {
  count: number;
  bytes: number;
  ids: number[] | null;
}

interface DataSourceSnapshotsOptions {
  db: Db;
  /** Maximum total size of one app's snapshots in bytes; 0 for no limit. */
  quotaBytes: number;
}

async function storeSnapshot(
  change: EntryChangeCollector,
  writer: EntryWritingCaller,
  operation: string,
): Promise<void> {
  const { executor, source } = change;
  const newestEntryId = await readNewestEntryId(executor, source);
  if (newestEntryId === 0) return;
  const values = [source.appId, source.id, writer.emitter.personId, operation, JSON.stringify(source.columns)];
  const [head] = await rows<{ id: number }>(executor, INSERT_VERSION, values);
  const total = { entries: 0, bytes: 0, part: 0 };
  let after: number | null = 0;
  while (after !== null) {
    const partValues: unknown[] = [source.appId, source.id, after, newestEntryId, head!.id, total.part];
    const [read]: { last: number | null; count: number; next: number; bytes: number }[] = await rows(
      executor,
      INSERT_VERSION_PART,
      partValues,
    );
    total.entries += read!.count;
    total.bytes += read!.bytes;
    total.part = read!.next;
    after = read!.last;
  }
  if (total.entries === 0) {
    await rows(executor, DELETE_EMPTY_VERSION, [source.appId, head!.id]);
    return;
  }
  await rows(executor, SET_VERSION_COUNTS, [source.appId, head!.id, total.entries, total.bytes]);
}

export class DataSourceSnapshots {
  constructor(private readonly options: DataSourceSnapshotsOptions) {}

  private async deleteOldSnapshots({ executor, source }: EntryChangeCollector): Promise<void> {
    await rows(executor, DELETE_OLD_VERSIONS, [
      source.appId,
      source.id,
      VERSIONS_PER_DATA_SOURCE_MAX,
      this.options.quotaBytes,
    ]);
  }

  /**
   * Takes a snapshot of the entries as they were before this transaction, and deletes old snapshots. If the data
   * source has no entries, takes no snapshot.
   */
  async snapshot(change: EntryChangeCollector, writer: EntryWritingCaller, operation: string): Promise<void> {
    await storeSnapshot(change, writer, operation);
    await this.deleteOldSnapshots(change);
  }

  async list({ appId, id }: StoredDataSource): Promise<DataSourceSnapshot[]> {
    const versionRows = await rows<DataSourceSnapshot & { createdAt: Date }>(this.options.db, LIST_VERSIONS, [
      appId,
      id,
    ]);
    return versionRows.map((version) => ({ ...version, createdAt: version.createdAt.toISOString() }));
  }

  /**
   * Replaces all entries of the data source by the entries of a snapshot, with their IDs. First takes a snapshot of
   * the current entries. Returns the number of restored entries.
   * @throws VERSION_NOT_FOUND; RESOURCE_CHANGED if the data source does not meet the precondition (`If-Match`)
   */
  async restore(
    changes: EntryChangeTransactions,
    source: StoredDataSource,
    writer: EntryWritingCaller,
    versionId: number,
    precondition: ExpectedVersions,
  ): Promise<number> {
    return changes.commit(source, writer, async (change) => {
      const { executor } = change;
      // Two concurrent restores would insert entries with the same IDs, so the second restore waits for this lock.
      await lockEntryReplacement(executor, source.appId, source.id);
      const parts = await rows<{ part: number; entries: number }>(
        executor,
        `SELECT part, entries FROM data_source_version JOIN data_source_version_part USING (app_id)
            WHERE app_id = $1 AND data_source_id = $2 AND id = $3 AND version_id = id ORDER BY part`,
        [source.appId, source.id, versionId],
      );
      if (parts.length === 0) throw new ActionError("VERSION_NOT_FOUND");
      await checkDataSource(executor, source.appId, source.id, precondition);
      change.operation = "restore";
      await storeSnapshot(change, writer, "restore");
      change.addRemovedBatch(await removeEntriesExcept(executor, source, [], change.remainingCapacity));
      for (const { part } of parts) {
        const values = [source.appId, source.id, versionId, part, change.remainingCapacity.entries];
        const [made] = await rows<RestoredPart>(executor, RESTORE_PART, values);
        change.addInsertedBatch(made!.ids, made!);
      }
      // Another transaction may have deleted this snapshot during the restore, because a snapshot of another data source needed the space.
      if (change.counts.inserted !== parts[0]!.entries) throw new ActionError("VERSION_NOT_FOUND");
      await this.deleteOldSnapshots(change);
      // Locks the data source's row last, because an update of an entry also locks this row last. The opposite order could deadlock.
      await lockDataSource(executor, source.appId, source.id, precondition);
      return change.counts.inserted;
    });
  }
}
