/**
 * Runs the transactions that change entries. Each transaction writes the entries, their log events and the new counts, and notifies
 * subscribers.
 */
import type { EntityManager } from "typeorm";
import { type Db, findViolatedUniqueIndex, isInvalidDataError, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { BULK_WRITE_THRESHOLD_ENTRIES, ENTRIES_PER_DATA_SOURCE } from "../../limits.js";
import { isPageCaller } from "../../rules/access.js";
import { NewColumnCollector } from "../../rules/entries/columns.js";
import {
  createBulkChangeEvent,
  createEntryEvent,
  ENTRIES_CHANGED_AUDIT_TYPE,
  type EntryEvent,
  summarizeEntryChange,
} from "../../rules/entries/entry-events.js";
import type { HookVerb } from "../../rules/entries/sending-hooks.js";
import { NEXT_UPDATED_AT_SQL } from "../../rules/precondition.js";
import type { LogEventCause, LogEventStore } from "../records/log-events.js";
import { runEntryChangeInSlot } from "../settings/app-lock.js";
import type { DataSourceRows, StoredDataSource } from "./data-source-rows.js";
import type { StoredEntry } from "./entry.js";
import { requireEntryQuota } from "./entry-quota.js";
import type { DeletedEntries } from "./entry-statements.js";
import type { HookMessageBuilder, HookMessageCollector } from "./hook-messages.js";
import { findUniqueIndexColumns, isUniqueIndexName } from "./index-definitions.js";

/** PostgreSQL notification channel. A message is `appId:dataSourceId` of a data source whose entries have changed. */
export const ENTRY_CHANNEL = "svc_entry";

/** Maximum number of entries that the record of one change lists. After a larger change, subscribers must read all entries again. */
export const MAX_CHANGED_ENTRIES_LISTED = 10_000;
/** Maximum size of the earlier states of entries in the record of one change. After a larger change, subscribers read all entries. */
const EARLIER_STATES_MAX_BYTES = 2 * 1024 * 1024;

const ADD_NEW_COLUMNS = `
  UPDATE data_source SET updated_at = ${NEXT_UPDATED_AT_SQL}, columns = columns || (
    SELECT coalesce(jsonb_agg(name ORDER BY place), '[]') FROM jsonb_array_elements_text($3::jsonb) WITH ORDINALITY AS met (name, place)
     WHERE NOT columns @> jsonb_build_array(name))
   WHERE app_id = $1 AND id = $2 AND NOT columns @> $3::jsonb`;

/**
 * Updates the counts of the data source, stores the change and its audit entry, and notifies subscribers. Locks the data source before the
 * counts: a removal uses this order too, so no deadlock can occur. The change gets its ID while the counts are locked. So a subscriber that
 * sees a change also sees all changes with lower IDs.
 */
const UPDATE_SOURCE_SIZE = `
  WITH source AS MATERIALIZED (
    SELECT app_id, id FROM data_source WHERE app_id = $1 AND id = $2 FOR KEY SHARE),
  tally AS (
    INSERT INTO data_source_tally (app_id, data_source_id, entries, bytes)
    SELECT app_id, id, $3::bigint, $4::bigint FROM source
    ON CONFLICT (app_id, data_source_id) DO UPDATE
      SET entries = data_source_tally.entries + excluded.entries, bytes = data_source_tally.bytes + excluded.bytes
    RETURNING entries, bytes),
  change AS (
    INSERT INTO data_source_change (app_id, data_source_id, bulk, inserted, replaced)
    SELECT $1, $2, $5, $6::bigint[], $7::json FROM tally),
  audited AS (
    INSERT INTO audit_entry (app_id, type, person_id, credential_id, data)
    SELECT $1, '${ENTRIES_CHANGED_AUDIT_TYPE}', $9, $10, $8::json FROM tally WHERE $8::json IS NOT NULL)
  SELECT entries, pg_notify('${ENTRY_CHANNEL}', $1 || ':' || $2),
         (SELECT coalesce(sum(bytes), 0) FROM data_source_tally
           WHERE app_id = $1 AND data_source_id <> $2)::float8 + bytes AS bytes
    FROM tally`;

/** `emitter` is stored as the source of log events. `userEmail` is the address of the user who is signed in to the page, if any. */
export interface EntryWritingCaller {
  emitter: LogEventCause;
  userEmail: string | null;
  /** Returns true if an error message may contain the column's name, because the caller can access the column. */
  mayNameColumn(source: StoredDataSource, column: string): boolean;
}

interface EntryLogEvent {
  event: EntryEvent;
  id: number;
  columns: readonly string[];
}

/** Collects the changes of one transaction: number and IDs of the written entries, and their states before the change. */
export class EntryChangeCollector {
  readonly newColumns: NewColumnCollector;
  readonly logEvents: EntryLogEvent[] = [];
  readonly insertedIds: number[] = [];
  /** States of the changed entries before the change, each as JSON text. */
  readonly earlierStates: string[] = [];
  private replacedBytes = 0;
  /** Name of an operation, such as an import, that gets one log event for all its entries; otherwise null. */
  operation: string | null = null;
  counts = { inserted: 0, updated: 0, deleted: 0 };
  bytes = 0;

  constructor(
    readonly executor: SqlClient,
    readonly source: StoredDataSource,
    private readonly messages: HookMessageCollector,
  ) {
    this.newColumns = new NewColumnCollector(source.columns);
  }

  /** True if the change gets one log event for all its entries, and no hook sends messages about it. */
  get isBulk(): boolean {
    const { inserted, updated, deleted } = this.counts;
    return this.operation !== null || inserted + updated + deleted > BULK_WRITE_THRESHOLD_ENTRIES;
  }

  /** True if messages to subscribers list the changed entries. If false, subscribers must read all entries again. */
  get listsEntries(): boolean {
    const { inserted, updated, deleted } = this.counts;
    const areAllListed = this.insertedIds.length === inserted && this.earlierStates.length === updated + deleted;
    return areAllListed && inserted + updated + deleted <= MAX_CHANGED_ENTRIES_LISTED;
  }

  /** Number of entries, and bytes of their earlier states, that the record of the change can still list. */
  get remainingCapacity(): { entries: number; bytes: number } {
    const { inserted, updated, deleted } = this.counts;
    const entries = MAX_CHANGED_ENTRIES_LISTED - inserted - updated - deleted;
    return { entries: Math.max(0, entries), bytes: Math.max(0, EARLIER_STATES_MAX_BYTES - this.replacedBytes) };
  }

  addInserted(id: number, data: Record<string, unknown>, bytes: number): void {
    this.counts.inserted += 1;
    this.bytes += bytes;
    this.newColumns.addColumnsOf(data);
    if (this.insertedIds.length < MAX_CHANGED_ENTRIES_LISTED) this.insertedIds.push(id);
    if (this.logEvents.length >= BULK_WRITE_THRESHOLD_ENTRIES) return;
    this.messages.add("insert", id, data);
    this.logEvents.push({ event: "create", id, columns: Object.keys(data) });
  }

  /** Adds a changed entry. @param columns columns that the request has written @param bytes size of the entry minus its earlier size */
  addUpdated(before: StoredEntry, data: Record<string, unknown>, columns: readonly string[], bytes: number): void {
    this.counts.updated += 1;
    this.bytes += bytes;
    this.newColumns.addColumnsOf(data);
    this.addEarlierState(before, false);
    if (this.logEvents.length >= BULK_WRITE_THRESHOLD_ENTRIES) return;
    this.messages.add("update", before.id, data);
    this.logEvents.push({ event: "update", id: before.id, columns });
  }

  addRemoved(before: StoredEntry, bytes: number): void {
    this.counts.deleted += 1;
    this.bytes -= bytes;
    this.addEarlierState(before, true);
    if (this.logEvents.length < BULK_WRITE_THRESHOLD_ENTRIES) {
      this.logEvents.push({ event: "delete", id: before.id, columns: Object.keys(before.data) });
    }
  }

  /** Adds removed entries. @param lastStates last state of each entry as JSON text; null if these states exceed `remainingCapacity` */
  addRemovedBatch({ count, bytes, lastStates }: DeletedEntries): void {
    this.addCounted({ deleted: count }, -bytes);
    for (const stateText of lastStates ?? []) {
      this.replacedBytes += stateText.length;
      this.earlierStates.push(stateText);
    }
  }

  addInsertedBatch(ids: readonly number[] | null, counts: { count: number; bytes: number }): void {
    this.addCounted({ inserted: counts.count }, counts.bytes);
    this.addIds(ids);
  }

  /** Adds the IDs of inserted entries whose number was already added with `addCounted`. */
  addIds(ids: readonly number[] | null): void {
    for (const id of ids ?? []) this.insertedIds.push(id);
  }

  /** Counts entries of a large change without storing their IDs. */
  addCounted(counts: Partial<typeof this.counts>, bytes: number): void {
    for (const [name, count] of Object.entries(counts)) this.counts[name as keyof typeof this.counts] += count;
    this.bytes += bytes;
  }

  private addEarlierState({ id, data, order, createdAt, updatedAt }: StoredEntry, removed: boolean): void {
    if (this.replacedBytes > EARLIER_STATES_MAX_BYTES || this.earlierStates.length >= MAX_CHANGED_ENTRIES_LISTED)
      return;
    const stateText = JSON.stringify({ id, data, order, createdAt, updatedAt, removed });
    this.replacedBytes += stateText.length;
    if (this.replacedBytes <= EARLIER_STATES_MAX_BYTES) this.earlierStates.push(stateText);
  }
}

/** Returns the error for a duplicate value. Its message names the columns if the caller can access all of them, but never the value. */
function createDuplicateError(
  source: StoredDataSource,
  { mayNameColumn }: EntryWritingCaller,
  index: string | undefined,
): ActionError {
  const columns = findUniqueIndexColumns(source, source.indexes, index);
  if (!columns?.every((column) => mayNameColumn(source, column))) return new ActionError("ENTRY_ALREADY_EXISTS");
  const names = columns.map((column) => JSON.stringify(column)).join(", ");
  return new ActionError("ENTRY_ALREADY_EXISTS", `an entry with the same ${names} already exists`, { columns });
}

function toWriteError(error: unknown, source: StoredDataSource, writer: EntryWritingCaller): unknown {
  const duplicateIndex = findViolatedUniqueIndex(error);
  if (duplicateIndex !== null && isUniqueIndexName(duplicateIndex))
    return createDuplicateError(source, writer, duplicateIndex);
  if (!isInvalidDataError(error)) return error;
  return new ActionError(
    "REQUEST_INVALID",
    "a value of an entry is too large for the database, or for the index of its column; store a shorter value",
  );
}

interface EntryChangeTransactionsOptions {
  db: Db;
  logEvents: LogEventStore;
  sources: DataSourceRows;
  messenger: HookMessageBuilder;
  /** Maximum total size of one app's entries in bytes; 0 for no limit. */
  quotaBytes: number;
}

export class EntryChangeTransactions {
  constructor(private readonly options: EntryChangeTransactionsOptions) {}

  private async emitEntryEvent(
    change: EntryChangeCollector,
    { emitter, userEmail }: EntryWritingCaller,
  ): Promise<void> {
    const { executor, source, logEvents: events, counts, operation } = change;
    const eventSubject = {
      userId: emitter.personId,
      appNotificationId: null,
      sessionId: null,
      dataSourceId: source.id,
    };
    const store = (event: { type: string; data: Record<string, unknown> }, dataSourceEntryId: number | null) =>
      this.options.logEvents.store(emitter, source.appId, { ...event, ...eventSubject, dataSourceEntryId }, executor);
    if (change.isBulk) {
      const columns = [...source.columns, ...change.newColumns.added];
      await store(createBulkChangeEvent({ operation: operation ?? "commit", ...counts }, columns, userEmail), null);
      return;
    }
    for (const { event, id, columns } of events) await store(createEntryEvent(event, columns, userEmail), id);
  }

  private async finishChange(change: EntryChangeCollector, { emitter }: EntryWritingCaller): Promise<void> {
    const { quotaBytes } = this.options;
    const { executor, source, counts, newColumns, bytes } = change;
    const sourceKey = [source.appId, source.id];
    if (newColumns.added.length > 0)
      await rows(executor, ADD_NEW_COLUMNS, [...sourceKey, JSON.stringify(newColumns.added)]);
    const addedEntries = counts.inserted - counts.deleted;
    const subscriberNotice = change.listsEntries
      ? [false, change.insertedIds, `[${change.earlierStates.join(",")}]`]
      : [true, [], "[]"];
    // Writes by pages get no entry in the audit log, only log events, so that visitors cannot fill the audit log.
    const auditDataJson = isPageCaller(emitter) ? null : JSON.stringify(summarizeEntryChange(source.id, change));
    const by = [auditDataJson, emitter.personId, emitter.credentialId || null];
    const values = [...sourceKey, addedEntries, bytes, ...subscriberNotice, ...by];
    const [tally] = await rows<{ entries: number; bytes: number }>(executor, UPDATE_SOURCE_SIZE, values);
    if (!tally) throw new ActionError("DATA_SOURCE_NOT_FOUND");
    if (addedEntries > 0 && tally.entries > ENTRIES_PER_DATA_SOURCE) {
      const message =
        `a data source can have at most ${ENTRIES_PER_DATA_SOURCE} entries (got ${tally.entries} with this change); ` +
        "remove entries first";
      throw new ActionError("REQUEST_INVALID", message);
    }
    await requireEntryQuota(executor, quotaBytes, {
      appId: source.appId,
      addedBytes: bytes,
      totalBytes: tally.bytes,
    });
  }

  /**
   * Runs `work` in a transaction. The same transaction stores the log events, the messages of hooks and the new counts, and notifies
   * subscribers.
   * @param sendingVerbs operations ("insert", "update") for which hooks send messages about this change
   * @throws the errors of `work`; REQUEST_INVALID if the change exceeds a quota or a limit, ENTRY_ALREADY_EXISTS, DATA_SOURCE_NOT_FOUND,
   *   RATE_LIMIT_EXCEEDED
   */
  async commit<T>(
    source: StoredDataSource,
    writer: EntryWritingCaller,
    work: (change: EntryChangeCollector) => Promise<T>,
    sendingVerbs: readonly HookVerb[] = [],
  ): Promise<T> {
    const { db, sources, messenger } = this.options;
    let columnsAdded = false;
    const messages = await messenger.createCollector(source, sendingVerbs, writer.emitter);
    const applyChange = async (manager: EntityManager) => {
      const made = new EntryChangeCollector(manager, source, messages);
      const done = await work(made);
      const { inserted, updated, deleted } = made.counts;
      if (inserted + updated + deleted === 0 && made.operation === null) return done;
      await this.emitEntryEvent(made, writer);
      if (!made.isBulk) await messages.store(manager);
      await this.finishChange(made, writer);
      columnsAdded = made.newColumns.added.length > 0;
      if (columnsAdded) await sources.notifyChanged(manager, source.appId);
      return done;
    };
    const result = await runEntryChangeInSlot(db, source.appId, () => db.transaction(applyChange)).catch(
      (error: unknown) => {
        throw toWriteError(error, source, writer);
      },
    );
    if (columnsAdded) sources.clearCache();
    return result;
  }
}

/**
 * Inserts the counts of a new data source. Changes with IDs up to `forgotten` are not stored. This ID is new, so that a position from an
 * earlier data source with the same name causes a `reset`.
 */
const INSERT_SOURCE_SIZE = `
  WITH tally AS (
    INSERT INTO data_source_tally (app_id, data_source_id, entries, bytes, forgotten)
    VALUES ($1, $2, $3, $4, nextval(pg_get_serial_sequence('data_source_change', 'id'))) RETURNING bytes)
  SELECT (SELECT coalesce(sum(bytes), 0) FROM data_source_tally WHERE app_id = $1)::float8 + bytes AS bytes FROM tally`;

/**
 * Stores the counts of a new data source with its first entries. These entries cause no log events. Call it after all
 * other statements that can wait for a lock, see `requireEntryQuota`.
 * @throws REQUEST_INVALID if the entries exceed the app's quota
 */
export async function insertInitialEntryCounts(
  executor: SqlClient,
  { appId, id }: StoredDataSource,
  texts: readonly string[],
  quotaBytes: number,
): Promise<void> {
  const addedBytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  const [tally] = await rows<{ bytes: number }>(executor, INSERT_SOURCE_SIZE, [appId, id, texts.length, addedBytes]);
  await requireEntryQuota(executor, quotaBytes, { appId, addedBytes, totalBytes: tally!.bytes });
}
