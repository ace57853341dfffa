/** Imports: the rows of a file become entries, all or none, as they come in (contract, packages). Knows no format and no transport. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { PoolClient } from "pg";
import { from as copyFrom } from "pg-copy-streams";
import type { EntityManager } from "typeorm";
import { rows as rowsOf } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { BULK_ENTRIES, IMPORT_LIMIT_MS } from "../../limits.js";
import { MetColumns } from "../../rules/entries/columns.js";
import { denied } from "../../rules/entries/entry-access.js";
import { columnsOf, type EntryData } from "../../rules/entries/entry-input.js";
import { hashTurn } from "../records/hashes.js";
import type { Intake } from "../records/intake.js";
import { type StoredDataSource, shareWholeSource } from "./data-source-rows.js";
import { type EntryChange, type EntryChanges, LISTED_ENTRIES } from "./entry-changes.js";
import { createJudge, type ReadyEntry } from "./entry-judgement.js";
import type { Rights } from "./entry-rights.js";
import { insertedIds, insertTexts, newestId, removeOthers } from "./entry-statements.js";
import type { EntryVersions } from "./entry-versions.js";
import { isUnique } from "./index-definitions.js";
import type { Layout } from "./row-streams.js";

/** Large ones: each holds a connection of the pool until its last row, and one app holds one. */
const AT_ONCE = 3;
const RETRY_SECONDS = 10;

/** Text that goes to the database at once, and after how many bytes the disk is looked at. */
const COPY_CHARACTERS = 256 * 1024;
const ROOM_BYTES = 16 * 1024 * 1024;

const COPY = "COPY data_source_entry (app_id, data_source_id, data) FROM STDIN";

export interface ImportWish {
  rows: AsyncIterable<unknown>;
  /** false: what stands now is replaced. */
  append: boolean;
  /** What the log calls it. */
  operation: string;
  /** Of a file, filled while it is read. */
  layout?: Layout;
}

export interface Imported {
  inserted: number;
  /** A CSV's header; else the columns of the rows, in the order of their first appearance. */
  columns: string[];
  /** Of a CSV; null for other formats. */
  delimiter: string | null;
}

type Ready = AsyncGenerator<ReadyEntry & { bytes: number }>;

/** What has come in of a file, and the rest of it. */
interface Came {
  first: (ReadyEntry & { bytes: number })[];
  more: boolean;
  ready: Ready;
}

/** The first entries, and whether there are more behind them. */
async function take(ready: Ready, most: number) {
  const first: (ReadyEntry & { bytes: number })[] = [];
  while (first.length <= most) {
    const { value, done } = await ready.next();
    if (done) return { first, more: false };
    first.push(value);
  }
  return { first, more: true };
}

export type EntryImports = ReturnType<typeof createEntryImports>;

export function createEntryImports(options: { changes: EntryChanges; intake: Intake; versions: EntryVersions }) {
  const { changes, intake, versions } = options;
  const working = new Set<number>();

  /** @throws OVERLOADED */
  function enter(appId: number): () => void {
    if (working.has(appId) || working.size >= AT_ONCE) {
      throw new ActionError("OVERLOADED", "other imports are under way", { retryAfter: RETRY_SECONDS });
    }
    working.add(appId);
    return () => {
      working.delete(appId);
    };
  }

  async function* readied(rights: Rights, source: StoredDataSource, wish: ImportWish, met: MetColumns): Ready {
    const { trusted } = rights.as;
    const turn = hashTurn(source.appId, rights.writer.emitter);
    const judge = createJudge(source, "insert", { grant: rights.grant(source, "insert"), trusted, turn });
    let row = 0;
    let unlooked = 0;
    for await (const given of wish.rows) {
      row += 1;
      const place = `entry ${row} of the import`;
      // The header of a CSV names columns, `data` too.
      const isCsv = wish.layout !== undefined && wish.layout.columns !== null;
      const data = isCsv ? (given as EntryData) : columnsOf(given, place);
      const ready = await judge(data, place);
      met.meet(data);
      const bytes = Buffer.byteLength(ready.text);
      // What the app itself brings is bounded by the disk and its quota; what pages bring by theirs.
      if (!trusted) intake.take(rights.writer.emitter, source.appId, bytes);
      unlooked += bytes;
      if (unlooked > ROOM_BYTES) {
        intake.checkRoom();
        unlooked = 0;
      }
      yield { ...ready, bytes };
    }
  }

  /** Lines of COPY's text format: JSON has no tab and no line break that is not escaped. */
  async function* copyLines(change: EntryChange, first: readonly (ReadyEntry & { bytes: number })[], rest: Ready) {
    const { appId, id } = change.source;
    const head = `${appId}\t${id}\t`;
    let text = "";
    const add = ({ data, text: json, bytes }: ReadyEntry & { bytes: number }) => {
      change.met.meet(data);
      change.addCounted({ inserted: 1 }, bytes);
      text += `${head}${json.replaceAll("\\", "\\\\")}\n`;
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
    rest: Ready,
  ): Promise<void> {
    const manager = change.executor as EntityManager;
    const client = (await manager.queryRunner!.connect()) as PoolClient;
    // The file comes as fast as its sender sends: the statement has as long as the import.
    await rowsOf(change.executor, `SET LOCAL statement_timeout = ${IMPORT_LIMIT_MS}`);
    await pipeline(Readable.from(copyLines(change, first, rest)), client.query(copyFrom(COPY)));
    await rowsOf(change.executor, "SET LOCAL statement_timeout = DEFAULT");
  }

  async function store(change: EntryChange, { first, more, ready }: Came): Promise<void> {
    if (more) {
      const newest = await newestId(change.executor, change.source);
      await copyAll(change, first, ready);
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
    change.addGone(await removeOthers(change.executor, change.source, [], change.room));
  }

  async function load(change: EntryChange, rights: Rights, wish: ImportWish, came: Came): Promise<void> {
    const { append, operation } = wish;
    if (!append) await shareWholeSource(change.executor, change.source.appId, change.source.id);
    const keep = () => versions.snapshot(change, rights.writer, operation);
    // What is to be unique is compared with what goes, unless that has gone first: then its rows are locked while the file comes in.
    if (!append && change.source.indexes.some(isUnique)) {
      await keep();
      await removeOld(change);
      return store(change, came);
    }
    await store(change, came);
    // The file has come in: only now is anything locked that others write to.
    if (!append || came.more) await keep();
    if (!append) await removeOld(change);
  }

  /** To replace is to remove what is not named: a right over some of the entries is none over all. */
  function mayReplace(rights: Rights, source: StoredDataSource): void {
    const { required } = rights.grant(source, "delete");
    if (required.length > 0) throw denied();
  }

  return {
    /**
     * Makes an entry of each row, and of none where one is refused.
     * @throws DATA_SOURCE_ACCESS_DENIED, REQUEST_INVALID naming the row, RATE_LIMIT_EXCEEDED, OVERLOADED
     */
    async import(rights: Rights, source: StoredDataSource, wish: ImportWish): Promise<Imported> {
      rights.grant(source, "insert");
      if (!wish.append) mayReplace(rights, source);
      intake.checkRoom();
      const met = new MetColumns([]);
      const ready = readied(rights, source, wish, met);
      // What is small has come in whole before a connection is taken for it, however slowly it came.
      const came = { ...(await take(ready, BULK_ENTRIES)), ready };
      const leave = came.more ? enter(source.appId) : () => undefined;
      try {
        return await changes.commit(source, rights.writer, async (change) => {
          change.operation = wish.operation;
          await load(change, rights, wish, came);
          const { columns = null, delimiter = null } = wish.layout ?? {};
          return { inserted: change.counts.inserted, columns: columns ?? met.added, delimiter };
        });
      } finally {
        leave();
        // Does not wait for the sender of the rest.
        await ready.return(undefined);
      }
    },
  };
}
