/** Data sources themselves: made, changed and removed, with their first entries (contract, packages). Knows no where. */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { DataSource as Database } from "typeorm";
import { isDuplicate, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { DATA_SOURCES_PER_APP } from "../../limits.js";
import { type Caller, isPerson } from "../../rules/access.js";
import { MetColumns } from "../../rules/entries/columns.js";
import {
  checkUsersMark,
  type DataSourceFields,
  parseDataSourceChange,
  parseNewDataSource,
} from "../../rules/entries/data-source-input.js";
import type { EntryData } from "../../rules/entries/entry-input.js";
import { hashedBy } from "../../rules/entries/hooks.js";
import { checkPlaceholders } from "../../rules/entries/sending-hooks.js";
import type { Reserve } from "../../rules/page.js";
import { NEXT_UPDATED_AT, type Precondition } from "../../rules/precondition.js";
import type { Reference } from "../../rules/reference.js";
import { audit } from "../records/audit.js";
import { type HashTurn, hashTurn } from "../records/hashes.js";
import type { Intake } from "../records/intake.js";
import {
  checkSource,
  type DataSourceRows,
  type DataSourceView,
  deleteSource,
  FIELDS,
  lockSource,
  lockWholeSource,
  type StoredDataSource,
  viewOf,
} from "./data-source-rows.js";
import { type EntryChange, finishNew } from "./entry-changes.js";
import type { EntryIndexes } from "./entry-indexes.js";
import { createJudge, type ReadyEntry } from "./entry-judgement.js";
import { insertTexts, removeOthers } from "./entry-statements.js";
import { checkIndexes, type IndexWish, isUnique, topColumnsOf } from "./index-definitions.js";

const LIST = `SELECT ${FIELDS} FROM data_source WHERE app_id = $1 ORDER BY id`;

const SIZE = `
  SELECT coalesce(sum(octet_length(name) + octet_length(columns::text) + octet_length(access_rules::text) + octet_length(hooks::text)), 0)::float8
         AS bytes FROM data_source WHERE app_id = $1`;

const CREATE = `
  INSERT INTO data_source (app_id, organization_id, name, columns, access_rules, hooks, hashed_columns, indexes, is_users)
  SELECT id, organization_id, $2, $3, $4, $5, $6, $7, $8 FROM app WHERE id = $1 RETURNING ${FIELDS}`;

/* What has been hashed stays hidden, whatever becomes of the hook. */
const UPDATE = `
  UPDATE data_source
     SET name = coalesce($3, name), columns = coalesce($4, columns), access_rules = coalesce($5, access_rules),
         hooks = coalesce($6, hooks),
         hashed_columns = (SELECT coalesce(jsonb_agg(DISTINCT one), '[]') FROM jsonb_array_elements(hashed_columns || $7::jsonb) AS one),
         indexes = coalesce($8, indexes), is_users = coalesce($9, is_users),
         updated_at = ${NEXT_UPDATED_AT}
   WHERE app_id = $1 AND id = $2 RETURNING ${FIELDS}`;

type Key = Pick<StoredDataSource, "appId" | "id">;

const EVERYTHING = { mayTouch: () => true, required: [], tests: {}, fingerprint: "everything" };

/** The lists as the statements take them; null: as it was. */
const asJson = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value));

function nameTaken(error: unknown): unknown {
  if (!isDuplicate(error)) return error;
  return new ActionError("NAME_ALREADY_EXISTS", "another data source of this app has that name");
}

/** An index of millions of entries takes minutes: so long a request waits to hear that it is refused. */
const INDEX_WAIT_MS = 3_000;

/** The data source to change, and the states that the change may start from. */
export interface DataSourceTarget {
  appId: number;
  ref: Reference;
  precondition?: Precondition;
}

export type DataSources = ReturnType<typeof createDataSources>;

export function createDataSources(options: {
  db: Database;
  sources: DataSourceRows;
  intake: Intake;
  indexes: EntryIndexes;
  log: Logger;
}) {
  const { db, sources, intake, indexes, log } = options;

  /**
   * Makes and drops what is wished for, behind the answer where that takes long; a unique index is waited for, and holds from the answer
   * on. @throws REQUEST_INVALID for too many, ENTRY_ALREADY_EXISTS, what `save` throws
   */
  async function index(key: Key, wishes: readonly IndexWish[], save: () => Promise<unknown>): Promise<void> {
    if (wishes.some(isUnique)) return indexes.apply(key, wishes, save);
    const done = indexes.apply(key, wishes);
    done.catch((error: unknown) => log.warn({ err: error, ...key }, "an index could not be made"));
    const waited = new AbortController();
    const enough = delay(INDEX_WAIT_MS, undefined, { signal: waited.signal, ref: false }).catch(() => undefined);
    await Promise.race([done, enough]).finally(() => waited.abort());
    await save();
  }

  /** Hashes of the same value differ: an index of them would keep nothing unique. @throws REQUEST_INVALID */
  function checkUnique(wishes: readonly IndexWish[], hashed: readonly string[]): void {
    const column = wishes
      .filter(isUnique)
      .flatMap(topColumnsOf)
      .find((one) => hashed.includes(one));
    if (column === undefined) return;
    throw new ActionError("REQUEST_INVALID", `${JSON.stringify(column)} is hashed: its values cannot be unique`);
  }

  async function judged(
    source: Pick<StoredDataSource, "hooks" | "hashedColumns">,
    entries: readonly EntryData[],
    turn: HashTurn,
  ): Promise<ReadyEntry[]> {
    const judge = createJudge(source, "insert", { grant: EVERYTHING, trusted: true, turn });
    const made: ReadyEntry[] = [];
    for (const [at, data] of entries.entries()) {
      made.push(await judge(data, `entries[${at}]`));
    }
    return made;
  }

  async function checkCount(appId: number): Promise<void> {
    const [held] = await rows<{ count: number }>(db, "SELECT count(*) FROM data_source WHERE app_id = $1", [appId]);
    if (held!.count < DATA_SOURCES_PER_APP) return;
    throw new ActionError("REQUEST_INVALID", `an app may have ${DATA_SOURCES_PER_APP} data sources`);
  }

  return {
    /** @throws what `reserve` throws, which is asked before they are read */
    async list(appId: number, reserve?: Reserve): Promise<DataSourceView[]> {
      const [held] = await rows<{ bytes: number }>(db, SIZE, [appId]);
      await reserve?.(held!.bytes);
      return (await rows<StoredDataSource>(db, LIST, [appId])).map(viewOf);
    },

    /** @throws DATA_SOURCE_NOT_FOUND */
    async get(appId: number, ref: Reference): Promise<DataSourceView> {
      return viewOf(await sources.find(appId, ref));
    },

    /** @throws NAME_ALREADY_EXISTS, NAME_REQUIRED, NAME_EMPTY, NAME_TOO_LONG, REQUEST_INVALID, RATE_LIMIT_EXCEEDED, OVERLOADED */
    async create(caller: Caller, appId: number, body: unknown): Promise<DataSourceView> {
      const { name, columns = [], accessRules = [], hooks = [], entries, ...more } = parseNewDataSource(body);
      const wishes = checkIndexes(more.indexes ?? []);
      const hashedColumns = [...new Set(hashedBy(hooks))];
      checkUnique(wishes, hashedColumns);
      const { isUsers = false } = more;
      checkUsersMark(isUsers, { before: false, mayMark: isPerson(caller), hashed: hashedColumns });
      await checkCount(appId);
      const first = await judged({ hooks, hashedColumns }, entries, hashTurn(appId, caller));
      intake.take(caller, appId, Buffer.byteLength(JSON.stringify(body)), entries.length + 1);
      const met = new MetColumns(columns);
      for (const { data } of first) met.meet(data);
      checkPlaceholders(hooks, [...columns, ...met.added]);
      const values = [
        name,
        asJson([...columns, ...met.added]),
        asJson(accessRules),
        asJson(hooks),
        asJson(hashedColumns),
        asJson(wishes),
        isUsers,
      ];
      const made = await db
        .transaction(async (manager) => {
          const [source] = await rows<StoredDataSource>(manager, CREATE, [appId, ...values]);
          const texts = first.map(({ text }) => text);
          await insertTexts(manager, source!, texts);
          await finishNew(manager, source!, texts);
          await audit(manager, caller, { appId, type: "dataSource.create", data: { id: source!.id, name } });
          await sources.announce(manager, appId);
          return source!;
        })
        .catch((error: unknown) => {
          throw nameTaken(error);
        });
      sources.forget();
      if (wishes.length > 0) {
        await index(made, wishes, async () => undefined).catch(async (error: unknown) => {
          await this.remove(caller, { appId, ref: { id: made.id } });
          throw error;
        });
      }
      return this.get(appId, made);
    },

    /**
     * Changes the fields that are given.
     * @throws as `create`; DATA_SOURCE_NOT_FOUND, RESOURCE_CHANGED
     */
    async update(
      caller: Caller,
      { appId, ref, precondition }: DataSourceTarget,
      body: unknown,
    ): Promise<DataSourceView> {
      const fields = parseDataSourceChange(body);
      const wishes = fields.indexes === undefined ? undefined : checkIndexes(fields.indexes ?? []);
      const { id, indexes: before, hashedColumns, columns, isUsers } = await sources.find(appId, ref);
      const hashed = [...hashedColumns, ...hashedBy(fields.hooks ?? [])];
      checkUnique(wishes ?? before, hashed);
      checkPlaceholders(fields.hooks ?? [], fields.columns ?? columns);
      checkUsersMark(fields.isUsers, { before: isUsers, mayMark: isPerson(caller), hashed });
      intake.take(caller, appId, Buffer.byteLength(JSON.stringify(body)));
      const target = { appId, id, precondition };
      const save = () => db.transaction((manager) => change(manager, caller, target, { ...fields, indexes: wishes }));
      try {
        if (!wishes) await save();
        // First the indexes, for they may be refused; what is refused afterwards takes them back.
        else await index({ appId, id }, wishes, save);
      } catch (error) {
        if (wishes && !wishes.some(isUnique)) await index({ appId, id }, before, async () => undefined);
        throw nameTaken(error);
      }
      sources.forget();
      return this.get(appId, { id });
    },

    /** Removes it with its entries and snapshots. @throws DATA_SOURCE_NOT_FOUND, RESOURCE_CHANGED */
    async remove(caller: Caller, { appId, ref, precondition }: DataSourceTarget): Promise<void> {
      const source = await sources.find(appId, ref);
      await db.transaction(async (manager) => {
        await lockWholeSource(manager, appId, source.id);
        await checkSource(manager, appId, source.id, precondition);
        // In batches: one statement for millions of entries would exceed the statement timeout.
        await removeOthers(manager, source, []);
        // Last, because an update of an entry also locks the entry before the data source: the other order deadlocks.
        await deleteSource(manager, appId, source.id, precondition);
        await audit(manager, caller, { appId, type: "dataSource.delete", data: { id: source.id, name: source.name } });
        await sources.announce(manager, appId);
      });
      sources.forget();
      // It waits for all who read: nobody is to wait for it.
      indexes
        .drop(source)
        .catch((error: unknown) => log.warn({ err: error, id: source.id }, "indexes could not be dropped"));
    },
  };

  async function change(
    manager: EntryChange["executor"],
    caller: Caller,
    { appId, id, precondition }: { appId: number; id: number; precondition: Precondition },
    fields: DataSourceFields,
  ): Promise<StoredDataSource> {
    await lockSource(manager, appId, id, precondition);
    const { name, columns, accessRules, hooks, indexes, isUsers = null } = fields;
    const lists = [columns, accessRules, hooks, hashedBy(hooks ?? []), indexes].map(asJson);
    const values = [name ?? null, ...lists, isUsers];
    const [after] = await rows<StoredDataSource>(manager, UPDATE, [appId, id, ...values]);
    await audit(manager, caller, { appId, type: "dataSource.update", data: { id, fields: Object.keys(fields) } });
    await sources.announce(manager, appId);
    return after!;
  }
}
