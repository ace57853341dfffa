/** Operations on data sources: list, create with first entries, change and remove. */
import type { EntityManager } from "typeorm";
import { type Db, isUniqueViolation, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { DATA_SOURCES_PER_APP } from "../../limits.js";
import { type Caller, isPersonCaller } from "../../rules/access.js";
import { NewColumnCollector } from "../../rules/entries/columns.js";
import {
  checkIsUsersFlagChange,
  parseDataSourceChange,
  parseNewDataSource,
} from "../../rules/entries/data-source-input.js";
import type { EntryData } from "../../rules/entries/entry-input.js";
import { listHashedColumns } from "../../rules/entries/hooks.js";
import { checkHookPlaceholders } from "../../rules/entries/sending-hooks.js";
import type { ReserveResponseBytes } from "../../rules/page.js";
import type { ExpectedVersions } from "../../rules/precondition.js";
import type { IdOrName } from "../../rules/reference.js";
import { recordChange } from "../records/audit.js";
import { createHashQueueKey, type HashQueueKey } from "../records/hashes.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { runAppChangeInSlot, transactWithAppLock } from "../settings/app-lock.js";
import {
  checkDataSource,
  DATA_SOURCE_COLUMNS_SQL,
  type DataSourceRows,
  type DataSourceView,
  deleteDataSourceRow,
  lockDataSourceForRemoval,
  lockEntryReplacement,
  type StoredDataSource,
  toDataSourceView,
} from "./data-source-rows.js";
import { removeEntriesExcept } from "./entry-statements.js";
import { createEntryValidator, type StorableEntry } from "./entry-validation.js";
import { validateIndexes } from "./index-definitions.js";
import { type DataSourceDefinitionStore, hasEntries, rejectUniqueHashedIndexes } from "./source-definitions.js";

const LIST_DATA_SOURCES = `SELECT ${DATA_SOURCE_COLUMNS_SQL} FROM data_source WHERE app_id = $1 ORDER BY id`;

const SELECT_TOTAL_SIZE = `
  SELECT coalesce(sum(octet_length(name) + octet_length(columns::text) + octet_length(access_rules::text) + octet_length(hooks::text)), 0)::float8
         AS bytes FROM data_source WHERE app_id = $1`;

/**
 * Maximum number of rounds in which a removal deletes entries, because other requests can insert entries between two rounds. Entries that
 * remain after the last round are deleted together with the data source's row.
 */
const REMOVAL_ROUNDS_MAX = 20;

const UNRESTRICTED_GRANT = {
  mayAccessColumn: () => true,
  requiredColumns: [],
  conditions: {},
  fingerprint: "everything",
};

/** Converts the database's error for a duplicate name to NAME_ALREADY_EXISTS. Returns other errors unchanged. */
export function toNameTakenError(error: unknown): unknown {
  if (!isUniqueViolation(error)) return error;
  return new ActionError(
    "NAME_ALREADY_EXISTS",
    "another data source of this app already has this name; choose another name",
  );
}

/** The data source to change. If the data source's ETag is not in `precondition`, the change is rejected. */
export interface DataSourceChangeTarget {
  appId: number;
  ref: IdOrName;
  precondition?: ExpectedVersions;
}

/**
 * Removes all entries, then locks the data source's row. If other requests inserted entries before this lock, unlocks the row and starts
 * again: a removal that waits for a locked entry could deadlock while it holds the row.
 */
async function removeAllEntries(executor: SqlClient, source: StoredDataSource): Promise<void> {
  for (let rounds = 1; ; rounds += 1) {
    await removeEntriesExcept(executor, source, [], { entries: -1, bytes: 0 });
    await rows(executor, "SAVEPOINT unlocked_source");
    await lockDataSourceForRemoval(executor, source.appId, source.id);
    if (rounds === REMOVAL_ROUNDS_MAX || !(await hasEntries(executor, source.appId, source.id))) return;
    await rows(executor, "ROLLBACK TO SAVEPOINT unlocked_source");
  }
}

interface DataSourcesOptions {
  db: Db;
  sources: DataSourceRows;
  definitions: DataSourceDefinitionStore;
  receivedDataLimiter: ReceivedDataLimiter;
}

/**
 * Checks that the app can have another data source. The transaction must have locked the app, so that no other request adds a data source
 * after this check.
 */
async function requireDataSourceCapacity(executor: SqlClient, appId: number): Promise<void> {
  const sql = "SELECT count(*) FROM data_source WHERE app_id = $1";
  const [countRow] = await rows<{ count: number }>(executor, sql, [appId]);
  if (countRow!.count < DATA_SOURCES_PER_APP) return;
  throw new ActionError(
    "REQUEST_INVALID",
    `this app already has the maximum of ${DATA_SOURCES_PER_APP} data sources; remove one first`,
  );
}

async function validateEntries(
  source: Pick<StoredDataSource, "hooks" | "hashedColumns">,
  entries: readonly EntryData[],
  queueKey: HashQueueKey,
): Promise<StorableEntry[]> {
  const validateEntry = createEntryValidator(source, "insert", { grant: UNRESTRICTED_GRANT, trusted: true, queueKey });
  const storableEntries: StorableEntry[] = [];
  for (const [at, data] of entries.entries()) {
    storableEntries.push(await validateEntry(data, `entries[${at}]`));
  }
  return storableEntries;
}

export class DataSources {
  constructor(private readonly options: DataSourcesOptions) {}

  /** Lists the app's data sources. @param reserve reserves memory for the response; gets its approximate size in bytes */
  async list(appId: number, reserve?: ReserveResponseBytes): Promise<DataSourceView[]> {
    const { db } = this.options;
    const [sizeRow] = await rows<{ bytes: number }>(db, SELECT_TOTAL_SIZE, [appId]);
    await reserve?.(sizeRow!.bytes);
    return (await rows<StoredDataSource>(db, LIST_DATA_SOURCES, [appId])).map(toDataSourceView);
  }

  async get(appId: number, ref: IdOrName): Promise<DataSourceView> {
    return toDataSourceView(await this.options.sources.find(appId, ref));
  }

  /**
   * Creates a data source, with entries if the body contains them.
   * @throws NAME_ALREADY_EXISTS, NAME_REQUIRED, NAME_EMPTY, NAME_TOO_LONG, REQUEST_INVALID, ENTRY_ALREADY_EXISTS, RATE_LIMIT_EXCEEDED,
   *   OVERLOADED
   */
  async create(caller: Caller, appId: number, body: unknown): Promise<DataSourceView> {
    const { db, sources, definitions, receivedDataLimiter } = this.options;
    const fields = parseNewDataSource(body, validateIndexes);
    const {
      name,
      columns = [],
      accessRules = [],
      hooks = [],
      indexes: requestedIndexes = [],
      entries,
      ...more
    } = fields;
    const hashedColumns = [...new Set(listHashedColumns(hooks))];
    rejectUniqueHashedIndexes(requestedIndexes, hashedColumns);
    const { isUsers = false } = more;
    checkIsUsersFlagChange(isUsers, { before: false, mayMark: isPersonCaller(caller), hashed: hashedColumns });
    const firstEntries = await validateEntries({ hooks, hashedColumns }, entries, createHashQueueKey(appId, caller));
    receivedDataLimiter.countRows(caller, appId, Buffer.byteLength(JSON.stringify(body)), entries.length + 1);
    const newColumns = new NewColumnCollector(columns);
    for (const { data } of firstEntries) newColumns.addColumnsOf(data);
    const allColumns = [...columns, ...newColumns.added];
    checkHookPlaceholders(hooks, allColumns);
    const definition = {
      name,
      columns: allColumns,
      accessRules,
      hooks,
      hashedColumns,
      indexes: requestedIndexes,
      isUsers,
    };
    const created = await transactWithAppLock(db, appId, async (manager) => {
      await requireDataSourceCapacity(manager, appId);
      const entryTexts = firstEntries.map(({ text }) => text);
      return definitions.insert(manager, caller, appId, definition, entryTexts);
    }).catch((error: unknown) => {
      throw toNameTakenError(error);
    });
    sources.clearCache();
    if (requestedIndexes.length > 0) {
      await definitions
        .withIndexes([{ key: created, requestedIndexes, before: [] }], async () => undefined)
        .catch(async (error: unknown) => {
          await this.remove(caller, { appId, ref: { id: created.id } });
          throw error;
        });
    }
    return this.get(appId, created);
  }

  /**
   * Changes the fields of a data source that are in the body. Other fields keep their values.
   * @throws the errors of `create`; DATA_SOURCE_NOT_FOUND, RESOURCE_CHANGED
   */
  async update(
    caller: Caller,
    { appId, ref, precondition }: DataSourceChangeTarget,
    body: unknown,
  ): Promise<DataSourceView> {
    const { db, sources, definitions, receivedDataLimiter } = this.options;
    const { id, indexes: before, hooks, hashedColumns, columns, isUsers } = await sources.find(appId, ref);
    const fields = parseDataSourceChange(body, validateIndexes, hooks);
    const { indexes: requestedIndexes } = fields;
    const hashed = [...hashedColumns, ...listHashedColumns(fields.hooks ?? [])];
    rejectUniqueHashedIndexes(requestedIndexes ?? before, hashed);
    checkHookPlaceholders(fields.hooks ?? [], fields.columns ?? columns, hooks);
    checkIsUsersFlagChange(fields.isUsers, { before: isUsers, mayMark: isPersonCaller(caller), hashed });
    receivedDataLimiter.countRows(caller, appId, Buffer.byteLength(JSON.stringify(body)));
    const target = { appId, id, precondition };
    const saveDefinition = () =>
      runAppChangeInSlot(db, appId, () =>
        db.transaction((manager) => definitions.change(manager, caller, target, fields)),
      );
    try {
      const key = { appId, id };
      await definitions.withIndexes(requestedIndexes ? [{ key, requestedIndexes, before }] : [], saveDefinition);
    } catch (error) {
      throw toNameTakenError(error);
    }
    sources.clearCache();
    return this.get(appId, { id });
  }

  /**
   * Deletes the data source with its entries and snapshots.
   * @throws ActionError DATA_SOURCE_NOT_FOUND, RESOURCE_CHANGED
   */
  async remove(caller: Caller, { appId, ref, precondition }: DataSourceChangeTarget): Promise<void> {
    const { db, sources, definitions } = this.options;
    const source = await sources.find(appId, ref);
    const removeSource = async (manager: EntityManager) => {
      await lockEntryReplacement(manager, appId, source.id);
      await checkDataSource(manager, appId, source.id, precondition);
      await removeAllEntries(manager, source);
      // Deletes the data source's row last, because an update of an entry also locks this row last. The opposite order could deadlock.
      await deleteDataSourceRow(manager, appId, source.id, precondition);
      await recordChange(manager, caller, {
        appId,
        type: "dataSource.delete",
        data: { id: source.id, name: source.name },
      });
      await sources.notifyChanged(manager, appId);
    };
    await runAppChangeInSlot(db, appId, () => db.transaction(removeSource));
    sources.clearCache();
    definitions.dropIndexes(source);
  }
}
