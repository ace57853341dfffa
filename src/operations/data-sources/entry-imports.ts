/** Imports: the rows of a file become entries while they arrive, in one transaction (contract, packages). */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { PoolClient } from "pg";
import { from as copyFrom } from "pg-copy-streams";
import type { EntityManager } from "typeorm";
import { rows as rowsOf } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { BULK_ENTRIES, IMPORT_LIMIT_MS } from "../../limits.js";
import { MetColumns } from "../../rules/entries/columns.js";
import { accessDenied } from "../../rules/entries/entry-access.js";
import { columnsOf, type EntryData } from "../../rules/entries/entry-input.js";
import { hashTurn } from "../records/hashes.js";
import type { IntakeLimiter } from "../records/intake.js";
import { type StoredDataSource, shareWholeSource } from "./data-source-rows.js";
import { type EntryChange, type EntryChanges, LISTED_ENTRIES } from "./entry-changes.js";
import { createEntryValidator, type ReadyEntry } from "./entry-judgement.js";
import type { Rights } from "./entry-rights.js";
import { insertedIds, insertTexts, newestId, removeEntriesExcept } from "./entry-statements.js";
import type { EntryVersions } from "./entry-versions.js";
import { isUniqueIndex } from "./index-definitions.js";
import type { CsvLayout } from "./row-streams.js";

/** Maximum number of concurrent large imports, because each holds a database connection until its last row. An app can have one. */
const IMPORTS_AT_ONCE = 3;
const RETRY_SECONDS = 10;

/** Characters that are sent to the database at once, and bytes after which the free disk space is checked again. */
const COPY_CHARACTERS = 256 * 1024;
const QUEUE_BYTES = 16 * 1024 * 1024;

const COPY_ENTRIES = "COPY data_source_entry (app_id, data_source_id, data) FROM STDIN";

export interface EntryImportOptions {
  rows: AsyncIterable<unknown>;
  /** False if the import replaces the current entries. */
  append: boolean;
  /** Name of the operation in the audit log. */
  operation: string;
  /** Form of the file, set while it is read. */
  layout?: CsvLayout;
}

export interface ImportResult {
  inserted: number;
  /** Columns in a CSV's header; for other formats the columns of the rows, in order of first appearance. */
  columns: string[];
  /** Delimiter of a CSV; null for other formats. */
  delimiter: string | null;
}

type ReadyEntries = AsyncGenerator<ReadyEntry & { bytes: number }>;

/** The received beginning of a file, and an iterator over the rest. */
interface ReceivedEntries {
  first: (ReadyEntry & { bytes: number })[];
  more: boolean;
  ready: ReadyEntries;
}

/** Returns the first entries, and whether more follow. */
async function takeEntries(readyEntries: ReadyEntries, max: number) {
  const first: (ReadyEntry & { bytes: number })[] = [];
  while (first.length <= max) {
    const { value, done } = await readyEntries.next();
    if (done) return { first, more: false };
    first.push(value);
  }
  return { first, more: true };
}

export type EntryImports = ReturnType<typeof createEntryImports>;

export function createEntryImports(options: { changes: EntryChanges; intake: IntakeLimiter; versions: EntryVersions }) {
  const { changes, intake, versions } = options;
  const importingApps = new Set<number>();

  /** @throws OVERLOADED */
  function enterImport(appId: number): () => void {
    if (importingApps.has(appId) || importingApps.size >= IMPORTS_AT_ONCE) {
      throw new ActionError("OVERLOADED", "too many imports are running, or one of this app is; try again later", {
        retryAfter: RETRY_SECONDS,
      });
    }
    importingApps.add(appId);
    return () => {
      importingApps.delete(appId);
    };
  }

  async function* prepareEntries(
    rights: Rights,
    source: StoredDataSource,
    wish: EntryImportOptions,
    met: MetColumns,
  ): ReadyEntries {
    const { trusted } = rights.as;
    const turn = hashTurn(source.appId, rights.writer.emitter);
    const validateEntry = createEntryValidator(source, "insert", {
      grant: rights.grant(source, "insert"),
      trusted,
      turn,
    });
    let row = 0;
    let uncheckedEntries = 0;
    for await (const input of wish.rows) {
      row += 1;
      const place = `entry ${row} of the import`;
      // The header of a CSV lists the columns, including one that is named `data`.
      const isCsv = wish.layout !== undefined && wish.layout.columns !== null;
      const data = isCsv ? (input as EntryData) : columnsOf(input, place);
      const readyEntry = await validateEntry(data, place);
      met.meet(data);
      const bytes = Buffer.byteLength(readyEntry.text);
      // The app's own imports are limited by the disk and its quota, those of pages by the page's quota.
      if (!trusted) intake.takeRows(rights.writer.emitter, source.appId, bytes);
      uncheckedEntries += bytes;
      if (uncheckedEntries > QUEUE_BYTES) {
        intake.checkRoom();
        uncheckedEntries = 0;
      }
      yield { ...readyEntry, bytes };
    }
  }

  /** Yields lines in COPY's text format. JSON escapes all tabs and line breaks. */
  async function* copyLines(
    change: EntryChange,
    first: readonly (ReadyEntry & { bytes: number })[],
    rest: ReadyEntries,
  ) {
    const { appId, id } = change.source;
    const rowStart = `${appId}\t${id}\t`;
    let text = "";
    const add = ({ data, text: json, bytes }: ReadyEntry & { bytes: number }) => {
      change.met.meet(data);
      change.addCounted({ inserted: 1 }, bytes);
      text += `${rowStart}${json.replaceAll("\\", "\\\\")}\n`;
    };
    for (const entry of first) add(entry);
    for await (const entry of rest) {
      add(entry);
      if (text.length < COPY_CHARACTERS) continue;
      yield text;
      text = "";
    }
    yield text;
  }

  async function copyAll(
    change: EntryChange,
    first: readonly (ReadyEntry & { bytes: number })[],
    rest: ReadyEntries,
  ): Promise<void> {
    const manager = change.executor as EntityManager;
    const client = (await manager.queryRunner!.connect()) as PoolClient;
    // The statement may take as long as the import, because it waits for the sender.
    await rowsOf(change.executor, `SET LOCAL statement_timeout = ${IMPORT_LIMIT_MS}`);
    await pipeline(Readable.from(copyLines(change, first, rest)), client.query(copyFrom(COPY_ENTRIES)));
    await rowsOf(change.executor, "SET LOCAL statement_timeout = DEFAULT");
  }

  async function storeEntries(
    change: EntryChange,
    { first, more, ready: readyEntries }: ReceivedEntries,
  ): Promise<void> {
    if (more) {
      const newest = await newestId(change.executor, change.source);
      await copyAll(change, first, readyEntries);
      const { inserted } = change.counts;
      if (inserted <= LISTED_ENTRIES) {
        change.addIds(await insertedIds(change.executor, change.source, newest, LISTED_ENTRIES));
      }
      return;
    }
    const stored = await insertTexts(
      change.executor,
      change.source,
      first.map(({ text }) => text),
    );
    for (const [at, { data, bytes }] of first.entries()) change.addInserted(stored[at]!.id, data, bytes);
  }

  async function removeOld(change: EntryChange): Promise<void> {
    change.addGone(await removeEntriesExcept(change.executor, change.source, [], change.room));
  }

  async function loadEntries(
    change: EntryChange,
    rights: Rights,
    wish: EntryImportOptions,
    received: ReceivedEntries,
  ): Promise<void> {
    const { append, operation } = wish;
    if (!append) await shareWholeSource(change.executor, change.source.appId, change.source.id);
    const storeVersion = () => versions.snapshot(change, rights.writer, operation);
    // Unique values are compared with the replaced entries, unless these are removed first. Then their rows stay locked while the file
    // arrives.
    if (!append && change.source.indexes.some(isUniqueIndex)) {
      await storeVersion();
      await removeOld(change);
      return storeEntries(change, received);
    }
    await storeEntries(change, received);
    // The file has arrived. Only now does the import lock rows that others write.
    if (!append || received.more) await storeVersion();
    if (!append) await removeOld(change);
  }

  /** True if the caller may remove all entries, as a replacing import does. The right to remove some entries is not enough. */
  function mayReplace(rights: Rights, source: StoredDataSource): void {
    const { required } = rights.grant(source, "delete");
    if (required.length > 0) throw accessDenied();
  }

  return {
    /**
     * Creates an entry for each row of the file, or none if a row is rejected.
     * @throws DATA_SOURCE_ACCESS_DENIED, REQUEST_INVALID that names the row, RATE_LIMIT_EXCEEDED, OVERLOADED
     */
    async import(rights: Rights, source: StoredDataSource, wish: EntryImportOptions): Promise<ImportResult> {
      rights.grant(source, "insert");
      if (!wish.append) mayReplace(rights, source);
      intake.checkRoom();
      const met = new MetColumns([]);
      const readyEntries = prepareEntries(rights, source, wish, met);
      // A small file has arrived completely before it uses a connection.
      const received = { ...(await takeEntries(readyEntries, BULK_ENTRIES)), ready: readyEntries };
      const leaveImport = received.more ? enterImport(source.appId) : () => undefined;
      try {
        return await changes.commit(source, rights.writer, async (change) => {
          change.operation = wish.operation;
          await loadEntries(change, rights, wish, received);
          const { columns = null, delimiter = null } = wish.layout ?? {};
          return { inserted: change.counts.inserted, columns: columns ?? met.added, delimiter };
        });
      } finally {
        leaveImport();
        // The import does not wait for the sender of the rest.
        await readyEntries.return(undefined);
      }
    },
  };
}
