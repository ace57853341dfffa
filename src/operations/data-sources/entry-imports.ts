/**
 * Imports a file: each row becomes an entry. One transaction stores all rows. For a large file, the transaction starts before the service
 * has received the whole file.
 */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { PoolClient } from "pg";
import { from as copyFrom } from "pg-copy-streams";
import type { EntityManager } from "typeorm";
import { rows as rowsOf } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { BULK_WRITE_THRESHOLD_ENTRIES, ENTRY_IMPORT_TIMEOUT_MS } from "../../limits.js";
import { NewColumnCollector } from "../../rules/entries/columns.js";
import { createAccessDeniedError } from "../../rules/entries/entry-access.js";
import { type EntryData, parseEntryData } from "../../rules/entries/entry-input.js";
import { createHashQueueKey } from "../records/hashes.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { lockEntryReplacementShared, type StoredDataSource } from "./data-source-rows.js";
import type { DataSourceSnapshots } from "./data-source-snapshots.js";
import {
  type EntryChangeCollector,
  type EntryChangeTransactions,
  MAX_CHANGED_ENTRIES_LISTED,
} from "./entry-changes.js";
import type { CallerEntryRights } from "./entry-rights.js";
import {
  insertEntriesAsJson,
  readInsertedEntryIds,
  readNewestEntryId,
  removeEntriesExcept,
} from "./entry-statements.js";
import { createEntryValidator, type StorableEntry } from "./entry-validation.js";
import { isUniqueIndex } from "./index-definitions.js";
import type { CsvLayout } from "./row-streams.js";

/** Maximum number of simultaneous large imports in this process. Each occupies a database connection until the file has been stored. */
const MAX_CONCURRENT_IMPORTS = 3;
/** Value of `retryAfter`: seconds after which a client should repeat an import that found no free slot. */
const RETRY_SECONDS = 10;

const COPY_CHUNK_CHARACTERS = 256 * 1024;
/** Number of bytes after which an import checks again that the disk and the queue of writes have enough space. */
const SPACE_CHECK_BYTES = 16 * 1024 * 1024;

const COPY_ENTRIES = "COPY data_source_entry (app_id, data_source_id, data) FROM STDIN";

export interface EntryImportOptions {
  rows: AsyncIterable<unknown>;
  /** True to keep the existing entries of the data source; false to replace them. */
  keepsExisting: boolean;
  /** Name of the operation in the log event, in the audit log and in the snapshot of the entries from before the import. */
  operation: string;
  /** Object into which the reader writes the columns and the delimiter of a CSV file while it reads the file. */
  layout?: CsvLayout;
}

export interface EntryImportResult {
  inserted: number;
  /** Column names in the order of the header of a CSV file. For other formats, in the order in which they first occur in rows. */
  columns: string[];
  /** Delimiter of the imported CSV file; null for other formats. */
  delimiter: string | null;
}

type PreparedEntries = AsyncGenerator<StorableEntry & { bytes: number }>;

interface ReceivedEntries {
  firstEntries: (StorableEntry & { bytes: number })[];
  /** True if the file has more than BULK_WRITE_THRESHOLD_ENTRIES entries. */
  hasMore: boolean;
  remainingEntries: PreparedEntries;
}

async function readFirstEntries(preparedEntries: PreparedEntries, max: number) {
  const firstEntries: (StorableEntry & { bytes: number })[] = [];
  while (firstEntries.length <= max) {
    const { value, done } = await preparedEntries.next();
    if (done) return { firstEntries: firstEntries, hasMore: false };
    firstEntries.push(value);
  }
  return { firstEntries: firstEntries, hasMore: true };
}

interface EntryImportsOptions {
  changes: EntryChangeTransactions;
  receivedDataLimiter: ReceivedDataLimiter;
  snapshots: DataSourceSnapshots;
}

/** Yields lines of COPY's text format. Only backslashes are escaped, because JSON text contains no raw tabs and line breaks. */
async function* copyLines(
  change: EntryChangeCollector,
  firstEntries: readonly (StorableEntry & { bytes: number })[],
  remainingEntries: PreparedEntries,
) {
  const { appId, id } = change.source;
  const rowStart = `${appId}\t${id}\t`;
  let text = "";
  const add = ({ data, text: json, bytes }: StorableEntry & { bytes: number }) => {
    change.newColumns.addColumnsOf(data);
    change.addCounted({ inserted: 1 }, bytes);
    text += `${rowStart}${json.replaceAll("\\", "\\\\")}\n`;
  };
  for (const entry of firstEntries) add(entry);
  for await (const entry of remainingEntries) {
    add(entry);
    if (text.length < COPY_CHUNK_CHARACTERS) continue;
    yield text;
    text = "";
  }
  yield text;
}

async function copyEntries(
  change: EntryChangeCollector,
  firstEntries: readonly (StorableEntry & { bytes: number })[],
  remainingEntries: PreparedEntries,
): Promise<void> {
  const manager = change.executor as EntityManager;
  const client = (await manager.queryRunner!.connect()) as PoolClient;
  // The COPY statement waits until the client has sent the whole file, so it gets the time limit of an import.
  await rowsOf(change.executor, `SET LOCAL statement_timeout = ${ENTRY_IMPORT_TIMEOUT_MS}`);
  await pipeline(
    Readable.from(copyLines(change, firstEntries, remainingEntries)),
    client.query(copyFrom(COPY_ENTRIES)),
  );
  await rowsOf(change.executor, "SET LOCAL statement_timeout = DEFAULT");
}

async function storeEntries(
  change: EntryChangeCollector,
  { firstEntries, hasMore, remainingEntries }: ReceivedEntries,
): Promise<void> {
  if (hasMore) {
    const newestEntryId = await readNewestEntryId(change.executor, change.source);
    await copyEntries(change, firstEntries, remainingEntries);
    const { inserted } = change.counts;
    if (inserted <= MAX_CHANGED_ENTRIES_LISTED) {
      change.addIds(
        await readInsertedEntryIds(change.executor, change.source, newestEntryId, MAX_CHANGED_ENTRIES_LISTED),
      );
    }
    return;
  }
  const stored = await insertEntriesAsJson(
    change.executor,
    change.source,
    firstEntries.map(({ text }) => text),
  );
  for (const [at, { data, bytes }] of firstEntries.entries()) change.addInserted(stored[at]!.id, data, bytes);
}

async function removeExistingEntries(change: EntryChangeCollector): Promise<void> {
  change.addRemovedBatch(await removeEntriesExcept(change.executor, change.source, [], change.remainingCapacity));
}

/** Checks that the caller may remove all entries. An import that replaces entries needs this right. @throws DATA_SOURCE_ACCESS_DENIED */
function requireReplaceRight(rights: CallerEntryRights, source: StoredDataSource): void {
  const { requiredColumns: required } = rights.requirePermissions(source, "delete");
  if (required.length > 0) throw createAccessDeniedError();
}

export class EntryImports {
  private readonly importingApps = new Set<number>();

  constructor(private readonly options: EntryImportsOptions) {}

  /** Takes a slot, and returns a function that frees it. @throws OVERLOADED if no slot is free, or if the app already uses one */
  private acquireImportSlot(appId: number): () => void {
    if (this.importingApps.has(appId) || this.importingApps.size >= MAX_CONCURRENT_IMPORTS) {
      throw new ActionError(
        "OVERLOADED",
        `this app already runs a large import, or all apps together already run ${MAX_CONCURRENT_IMPORTS} large imports; try again later`,
        {
          retryAfter: RETRY_SECONDS,
        },
      );
    }
    this.importingApps.add(appId);
    return () => {
      this.importingApps.delete(appId);
    };
  }

  private async *prepareEntries(
    rights: CallerEntryRights,
    source: StoredDataSource,
    importOptions: EntryImportOptions,
    newColumns: NewColumnCollector,
  ): PreparedEntries {
    const { receivedDataLimiter } = this.options;
    const { isTrusted: trusted } = rights.caller;
    const queueKey = createHashQueueKey(source.appId, rights.writer.emitter);
    const validateEntry = createEntryValidator(source, "insert", {
      grant: rights.requirePermissions(source, "insert"),
      trusted,
      queueKey,
    });
    let row = 0;
    let uncheckedBytes = 0;
    for await (const input of importOptions.rows) {
      row += 1;
      const label = `entry ${row} of the import`;
      // In JSON, a row may have its columns in the member `data`. In a CSV file, `data` is a column like any other.
      const isCsv = importOptions.layout !== undefined && importOptions.layout.columns !== null;
      const data = isCsv ? (input as EntryData) : parseEntryData(input, label);
      const preparedEntry = await validateEntry(data, label);
      newColumns.addColumnsOf(data);
      const bytes = Buffer.byteLength(preparedEntry.text);
      // Only imports by pages count in the limit of received data. The disk space and the app's quota limit all imports.
      if (!trusted) receivedDataLimiter.countRows(rights.writer.emitter, source.appId, bytes);
      uncheckedBytes += bytes;
      if (uncheckedBytes > SPACE_CHECK_BYTES) {
        receivedDataLimiter.checkSpace();
        uncheckedBytes = 0;
      }
      yield { ...preparedEntry, bytes };
    }
  }

  private async loadEntries(
    change: EntryChangeCollector,
    rights: CallerEntryRights,
    importOptions: EntryImportOptions,
    received: ReceivedEntries,
  ): Promise<void> {
    const { keepsExisting, operation } = importOptions;
    if (!keepsExisting) await lockEntryReplacementShared(change.executor, change.source.appId, change.source.id);
    const takeSnapshot = () => this.options.snapshots.snapshot(change, rights.writer, operation);
    // With a unique index, existing entries must be removed first, because new entries may have the same values.
    if (!keepsExisting && change.source.indexes.some(isUniqueIndex)) {
      await takeSnapshot();
      await removeExistingEntries(change);
      return storeEntries(change, received);
    }
    await storeEntries(change, received);
    // Locks existing entries only after the file was received, so that other requests that write them do not wait for the upload.
    if (!keepsExisting || received.hasMore) await takeSnapshot();
    if (!keepsExisting) await removeExistingEntries(change);
  }

  /**
   * Creates an entry for each row of the file. If one row is invalid, creates no entry.
   * @throws DATA_SOURCE_ACCESS_DENIED, REQUEST_INVALID (for an invalid row, names the row), PAYLOAD_TOO_LARGE, ENTRY_ALREADY_EXISTS,
   *   RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async import(
    rights: CallerEntryRights,
    source: StoredDataSource,
    importOptions: EntryImportOptions,
  ): Promise<EntryImportResult> {
    const { changes, receivedDataLimiter } = this.options;
    rights.requirePermissions(source, "insert");
    if (!importOptions.keepsExisting) requireReplaceRight(rights, source);
    receivedDataLimiter.checkSpace();
    const newColumns = new NewColumnCollector([]);
    const preparedEntries = this.prepareEntries(rights, source, importOptions, newColumns);
    // Receives the beginning of the file before the import uses a database connection. A small file is then completely received.
    const received = {
      ...(await readFirstEntries(preparedEntries, BULK_WRITE_THRESHOLD_ENTRIES)),
      remainingEntries: preparedEntries,
    };
    const releaseImportSlot = received.hasMore ? this.acquireImportSlot(source.appId) : () => undefined;
    try {
      return await changes.commit(source, rights.writer, async (change) => {
        change.operation = importOptions.operation;
        await this.loadEntries(change, rights, importOptions, received);
        const { columns = null, delimiter = null } = importOptions.layout ?? {};
        return { inserted: change.counts.inserted, columns: columns ?? newColumns.added, delimiter };
      });
    } finally {
      releaseImportSlot();
      // Stops reading the file, so that a failed import does not wait for the rest of the file.
      await preparedEntries.return(undefined);
    }
  }
}
