/**
 * SQL statements that insert, lock, read, update and delete entries in batches. A statement selects entries by the IDs of the app and of
 * the data source. Only statements on entries that were selected this way before may leave out the ID of the data source.
 */
import { rows, type SqlClient } from "../../data/database.js";
import type { StoredEntry } from "./entry.js";
import type { DataSourceKey } from "./entry-rows.js";

/** Maximum total size of the entries that one statement writes, in bytes. The process needs several times this memory. */
const BATCH_MAX_BYTES = 2 * 1024 * 1024;
const BATCH_MAX_ROWS = 2_000;
const REMOVED_PER_STATEMENT = 20_000;

const TIME_COLUMNS = `created_at AS "createdAt", updated_at AS "updatedAt"`;

const INSERT_ENTRIES = `
  INSERT INTO data_source_entry (app_id, data_source_id, data)
  SELECT $1, $2, text::json FROM unnest($3::text[]) WITH ORDINALITY AS written (text, place) ORDER BY place
  RETURNING id, "order", ${TIME_COLUMNS}`;

/* Locks entries in the order of their IDs, so that concurrent changes of the same entries cannot deadlock. */
const LOCK_ENTRIES = `
  SELECT id, bytes, "order", ${TIME_COLUMNS} FROM data_source_entry
   WHERE app_id = $1 AND data_source_id = $2 AND id = ANY ($3::bigint[]) ORDER BY id FOR UPDATE`;

const LOCK_FIRST_ENTRIES = `
  SELECT id, bytes, "order", ${TIME_COLUMNS} FROM data_source_entry
   WHERE app_id = $1 AND data_source_id = $2 ORDER BY id LIMIT $3 FOR UPDATE`;

const SELECT_ENTRY_DATA = "SELECT id, data FROM data_source_entry WHERE app_id = $1 AND id = ANY ($2::bigint[])";

const UPDATE_ENTRIES = `
  UPDATE data_source_entry AS entry
     SET data = written.text::json, updated_at = greatest(clock_timestamp(), entry.updated_at + interval '1 ms')
    FROM unnest($3::bigint[], $4::text[]) AS written (id, text)
   WHERE entry.app_id = $1 AND entry.data_source_id = $2 AND entry.id = written.id
  RETURNING entry.id, entry.updated_at AS "updatedAt"`;

const DELETE_ENTRIES = `DELETE FROM data_source_entry WHERE app_id = $1 AND data_source_id = $2 AND id = ANY ($3::bigint[])`;

/**
 * Removes a batch of entries that this transaction has not written. Locks them in the order of their IDs: DELETE locks rows in the order of
 * storage, which could deadlock. Passes IDs as arrays: a join could scan the whole table for each row if the table has no statistics yet.
 */
const REMOVE_UNWRITTEN_BATCH = `
  WITH next AS MATERIALIZED (
    SELECT id FROM data_source_entry WHERE app_id = $1 AND data_source_id = $2 AND id > $3 AND id <= $4
     ORDER BY id LIMIT ${REMOVED_PER_STATEMENT}),
  locked AS MATERIALIZED (
    SELECT id FROM data_source_entry WHERE app_id = $1 AND id = ANY (ARRAY(SELECT id FROM next))
       AND xmin <> pg_current_xact_id()::xid ORDER BY id FOR UPDATE),
  gone AS (
    DELETE FROM data_source_entry
     WHERE app_id = $1 AND id = ANY (ARRAY(SELECT id FROM locked WHERE id <> ALL ($5::bigint[])))
    RETURNING bytes, id, data, "order", created_at, updated_at)
  SELECT (SELECT max(id) FROM next) AS last, (SELECT count(*) FROM gone) AS count,
         (SELECT coalesce(sum(bytes), 0) FROM gone)::float8 AS bytes,
         CASE WHEN (SELECT count(*) <= $6 AND coalesce(sum(bytes), 0) <= $7 FROM gone) THEN
           ARRAY(SELECT json_build_object('id', id, 'data', data, 'order', "order", 'createdAt', created_at,
                                          'updatedAt', updated_at, 'removed', true)::text FROM gone ORDER BY id)
         END AS "lastStates"`;

/** An entry that is locked until the transaction ends. Does not contain the entry's data, which `readEntryData` reads in batches. */
export interface LockedEntry extends Omit<StoredEntry, "data"> {
  bytes: number;
}

/** Splits `items` into batches that one SQL statement can write (see BATCH_MAX_ROWS and BATCH_MAX_BYTES). */
export function* splitIntoBatches<T>(items: readonly T[], getBytes: (item: T) => number): Generator<T[]> {
  let batch: T[] = [];
  let bytes = 0;
  for (const item of items) {
    if (batch.length >= BATCH_MAX_ROWS || (batch.length > 0 && bytes + getBytes(item) > BATCH_MAX_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(item);
    bytes += getBytes(item);
  }
  if (batch.length > 0) yield batch;
}

/**
 * Inserts entries. Returns them without their data, in the order of `texts`.
 * @param texts data of each entry as JSON text
 */
export async function insertEntriesAsJson(
  executor: SqlClient,
  { appId, id }: DataSourceKey,
  texts: readonly string[],
): Promise<Omit<StoredEntry, "data">[]> {
  const insertedEntries: Omit<StoredEntry, "data">[] = [];
  for (const batch of splitIntoBatches(texts, (text) => text.length)) {
    // PostgreSQL assigns IDs in the order of the texts, so sorting by ID restores this order.
    const insertedRows = await rows<Omit<StoredEntry, "data">>(executor, INSERT_ENTRIES, [appId, id, batch]);
    insertedEntries.push(...insertedRows.sort((a, b) => a.id - b.id));
  }
  return insertedEntries;
}

/** Locks the entries with these IDs until the transaction ends. Returns those that exist, by ID. */
export async function lockEntries(
  executor: SqlClient,
  { appId, id }: DataSourceKey,
  ids: readonly number[],
): Promise<Map<number, LockedEntry>> {
  const lockedRows = await rows<LockedEntry>(executor, LOCK_ENTRIES, [appId, id, ids]);
  return new Map(lockedRows.map((entry) => [entry.id, entry]));
}

/** Locks all entries of the data source in the order of their IDs, and returns them; null if there are more than `max`. */
export async function lockAllEntries(
  executor: SqlClient,
  { appId, id }: DataSourceKey,
  max: number,
): Promise<LockedEntry[] | null> {
  const lockedRows = await rows<LockedEntry>(executor, LOCK_FIRST_ENTRIES, [appId, id, max + 1]);
  return lockedRows.length > max ? null : lockedRows;
}

/** Reads the data of locked entries. Call it for one batch at a time, because the data of all entries may not fit into memory. */
export async function readEntryData(
  executor: SqlClient,
  { appId }: DataSourceKey,
  entries: readonly LockedEntry[],
): Promise<StoredEntry[]> {
  const dataRows = await rows<{ id: number; data: StoredEntry["data"] }>(executor, SELECT_ENTRY_DATA, [
    appId,
    entries.map(({ id }) => id),
  ]);
  const byId = new Map(dataRows.map(({ id, data }) => [id, data]));
  return entries.map((entry) => ({ ...entry, data: byId.get(entry.id)! }));
}

/**
 * Replaces the data of entries. Returns the new `updatedAt` of each entry by its ID.
 * @param changes new data of each entry as JSON text
 */
export async function updateEntriesAsJson(
  executor: SqlClient,
  { appId, id }: DataSourceKey,
  changes: readonly { id: number; text: string }[],
): Promise<Map<number, Date>> {
  const timesById = new Map<number, Date>();
  for (const batch of splitIntoBatches(changes, ({ text }) => text.length)) {
    const values = [appId, id, batch.map((entry) => entry.id), batch.map(({ text }) => text)];
    for (const row of await rows<{ id: number; updatedAt: Date }>(executor, UPDATE_ENTRIES, values))
      timesById.set(row.id, row.updatedAt);
  }
  return timesById;
}

export async function deleteEntriesById(
  executor: SqlClient,
  { appId, id }: DataSourceKey,
  ids: readonly number[],
): Promise<void> {
  await rows(executor, DELETE_ENTRIES, [appId, id, ids]);
}

export interface DeletedEntries {
  count: number;
  bytes: number;
  /** Last state of each removed entry as JSON text; null if the states exceed the maximum that the caller has passed (`lastStatesMax`). */
  lastStates: string[] | null;
}

interface RemovedBatch extends DeletedEntries {
  last: number | null;
}

/**
 * Removes all entries of the data source, except those whose ID is in `keptIds` and those that this transaction has written.
 * @param lastStatesMax maximum number and bytes of removed entries; above it, `lastStates` in the result is null
 */
export async function removeEntriesExcept(
  executor: SqlClient,
  { appId, id }: DataSourceKey,
  keptIds: readonly number[],
  lastStatesMax: { entries: number; bytes: number },
): Promise<DeletedEntries> {
  const newestEntryId = await readNewestEntryId(executor, { appId, id });
  const total: DeletedEntries = { count: 0, bytes: 0, lastStates: [] };
  let after: number | null = 0;
  while (after !== null) {
    const values: unknown[] = [
      appId,
      id,
      after,
      newestEntryId,
      keptIds,
      lastStatesMax.entries - total.count,
      lastStatesMax.bytes - total.bytes,
    ];
    const [part]: RemovedBatch[] = await rows(executor, REMOVE_UNWRITTEN_BATCH, values);
    total.count += part!.count;
    total.bytes += part!.bytes;
    if (total.lastStates && part!.lastStates) total.lastStates.push(...part!.lastStates);
    else total.lastStates = null;
    after = part!.last;
  }
  return total;
}

/** Returns the highest entry ID of the data source; 0 if it has no entries. */
export async function readNewestEntryId(executor: SqlClient, { appId, id }: DataSourceKey): Promise<number> {
  const sql = "SELECT coalesce(max(id), 0) AS id FROM data_source_entry WHERE app_id = $1 AND data_source_id = $2";
  return (await rows<{ id: number }>(executor, sql, [appId, id]))[0]!.id;
}

/** Returns the IDs above `after` of the entries that this transaction has inserted; null if there are more than `max`. */
export async function readInsertedEntryIds(
  executor: SqlClient,
  { appId, id }: DataSourceKey,
  after: number,
  max: number,
): Promise<number[] | null> {
  const sql = `SELECT id FROM data_source_entry WHERE app_id = $1 AND data_source_id = $2 AND id > $3
                  AND xmin = pg_current_xact_id()::xid LIMIT $4`;
  const idRows = await rows<{ id: number }>(executor, sql, [appId, id, after, max + 1]);
  return idRows.length > max ? null : idRows.map((row) => row.id);
}
