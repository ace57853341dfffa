/**
 * Stores definitions of data sources (name, columns, access rules, hooks, indexes) in the caller's transaction. Builds and drops the
 * indexes of data sources outside of this transaction.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { type Caller, isPersonCaller } from "../../rules/access.js";
import { checkIsUsersFlagChange, type DataSourceFields } from "../../rules/entries/data-source-input.js";
import { listHashedColumns } from "../../rules/entries/hooks.js";
import { type ExpectedVersions, NEXT_UPDATED_AT_SQL } from "../../rules/precondition.js";
import { recordChange } from "../records/audit.js";
import {
  checkDataSource,
  DATA_SOURCE_COLUMNS_SQL,
  type DataSourceRows,
  deleteDataSourceRow,
  lockDataSource,
  lockDataSourceForRemoval,
  lockDataSourceForRename,
  type StoredDataSource,
} from "./data-source-rows.js";
import { insertInitialEntryCounts } from "./entry-changes.js";
import type { EntryIndexes, IndexChange, RemovedDataSources } from "./entry-indexes.js";
import { insertEntriesAsJson } from "./entry-statements.js";
import { type IndexDefinition, isUniqueIndex, listIndexTopColumns } from "./index-definitions.js";

const INSERT_DATA_SOURCE = `
  INSERT INTO data_source (id, app_id, organization_id, name, columns, access_rules, hooks, hashed_columns, indexes, is_users)
  OVERRIDING SYSTEM VALUE
  SELECT coalesce($9::integer, nextval(pg_get_serial_sequence('data_source', 'id'))), id, organization_id, $2, $3, $4, $5, $6, $7, $8
    FROM app WHERE id = $1 RETURNING ${DATA_SOURCE_COLUMNS_SQL}`;

/* Updates a data source. Hashed columns stay in `hashed_columns` and so stay hidden, even if their hook is removed. */
const UPDATE_DATA_SOURCE = `
  UPDATE data_source
     SET name = coalesce($3, name), columns = coalesce($4, columns), access_rules = coalesce($5, access_rules),
         hooks = coalesce($6, hooks),
         hashed_columns = (SELECT coalesce(jsonb_agg(DISTINCT hashed), '[]') FROM jsonb_array_elements(hashed_columns || $7::jsonb) AS hashed),
         indexes = coalesce($8, indexes), is_users = coalesce($9, is_users),
         updated_at = ${NEXT_UPDATED_AT_SQL}
   WHERE app_id = $1 AND id = $2 RETURNING ${DATA_SOURCE_COLUMNS_SQL}`;

const RESERVE_IDS = `
  SELECT nextval(pg_get_serial_sequence('data_source', 'id'))::int AS id FROM generate_series(1, $1::int)`;

/** Returns null for undefined, so that the SQL keeps the old value of the column. */
const toJsonParameter = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value));

/** Maximum wait for the build of indexes that are not unique. A longer build continues in the background: it can take minutes. */
const INDEX_WAIT_MS = 3_000;

export type NewDataSourceFields = Pick<
  StoredDataSource,
  "name" | "columns" | "accessRules" | "hooks" | "hashedColumns" | "indexes" | "isUsers"
>;

/**
 * Rejects unique indexes on hashed columns. Equal values have different hashes, so such an index would never find duplicates.
 * @throws ActionError REQUEST_INVALID
 */
export function rejectUniqueHashedIndexes(
  requestedIndexes: readonly IndexDefinition[],
  hashed: readonly string[],
): void {
  const column = requestedIndexes
    .filter(isUniqueIndex)
    .flatMap(listIndexTopColumns)
    .find((column) => hashed.includes(column));
  if (column === undefined) return;
  throw new ActionError(
    "REQUEST_INVALID",
    `the column ${JSON.stringify(column)} is hashed, so it cannot have a unique index`,
  );
}

/** New index definitions of a data source (`requestedIndexes`), and the definitions that they replace (`before`). */
export interface IndexReplacement extends IndexChange {
  before: readonly IndexDefinition[];
}

export type DataSourceIdAndName = Pick<StoredDataSource, "id" | "name">;

export async function hasEntries(executor: SqlClient, appId: number, id: number): Promise<boolean> {
  const sql = "SELECT FROM data_source_entry WHERE app_id = $1 AND data_source_id = $2 LIMIT 1";
  return (await rows(executor, sql, [appId, id])).length > 0;
}

interface DataSourceDefinitionStoreOptions {
  sources: DataSourceRows;
  indexes: EntryIndexes;
  /** Maximum total size of one app's entries in bytes; 0 for no limit. */
  quotaBytes: number;
  log: Logger;
}

export class DataSourceDefinitionStore {
  constructor(private readonly options: DataSourceDefinitionStoreOptions) {}

  /** Creates and drops indexes. Waits for at most INDEX_WAIT_MS. A longer build continues in the background; its failure is only logged. */
  private async applyIndexes(changes: readonly IndexChange[]): Promise<void> {
    const { indexes, log } = this.options;
    const indexesApplied = indexes.applyAll(changes, async () => undefined);
    const keys = changes.map(({ key }) => key);
    indexesApplied.catch((error: unknown) =>
      log.warn({ err: error, keys }, "an index of a data source could not be created"),
    );
    const waitController = new AbortController();
    // The abort of `waitController` rejects this delay. The rejection is ignored.
    const waitLimit = delay(INDEX_WAIT_MS, undefined, { signal: waitController.signal, ref: false }).catch(
      () => undefined,
    );
    await Promise.race([indexesApplied, waitLimit]).finally(() => waitController.abort());
  }

  /** Reserves IDs for data sources that the transaction inserts later. */
  async reserveIds(executor: SqlClient, count: number): Promise<number[]> {
    return (await rows<{ id: number }>(executor, RESERVE_IDS, [count])).map(({ id }) => id);
  }

  /**
   * Inserts a data source with its first entries.
   * @param texts data of each entry as JSON text
   * @param id a reserved ID; null if the database must choose an ID
   * @throws REQUEST_INVALID if the entries exceed the app's quota, APP_NOT_FOUND
   */
  async insert(
    executor: SqlClient,
    caller: Caller,
    appId: number,
    definition: NewDataSourceFields,
    texts: readonly string[],
    id: number | null = null,
  ): Promise<StoredDataSource> {
    const { name, columns, accessRules, hooks, hashedColumns, indexes: requestedIndexes, isUsers } = definition;
    const jsonLists = [columns, accessRules, hooks, hashedColumns, requestedIndexes].map(toJsonParameter);
    const [source] = await rows<StoredDataSource>(executor, INSERT_DATA_SOURCE, [
      appId,
      name,
      ...jsonLists,
      isUsers,
      id,
    ]);
    if (!source) throw new ActionError("APP_NOT_FOUND");
    await insertEntriesAsJson(executor, source, texts);
    await recordChange(executor, caller, { appId, type: "dataSource.create", data: { id: source.id, name } });
    await this.options.sources.notifyChanged(executor, appId);
    await insertInitialEntryCounts(executor, source, texts, this.options.quotaBytes);
    return source;
  }

  /**
   * Changes those properties of the data source that `fields` contains. Other properties keep their values.
   * @throws DATA_SOURCE_NOT_FOUND, RESOURCE_CHANGED; REQUEST_INVALID if a unique index would have a hashed column; the
   *   errors of `checkIsUsersFlagChange`
   */
  async change(
    executor: SqlClient,
    caller: Caller,
    { appId, id, precondition }: { appId: number; id: number; precondition: ExpectedVersions },
    fields: DataSourceFields<IndexDefinition[]>,
  ): Promise<StoredDataSource> {
    const { name: currentName } = await checkDataSource(executor, appId, id, undefined);
    const isRenamed = fields.name !== undefined && fields.name !== currentName;
    const before = await (isRenamed ? lockDataSourceForRename : lockDataSource)(executor, appId, id, precondition);
    const { name, columns, accessRules, hooks, indexes: requestedIndexes, isUsers = null } = fields;
    const jsonLists = [columns, accessRules, hooks, listHashedColumns(hooks ?? []), requestedIndexes].map(
      toJsonParameter,
    );
    const [after] = await rows<StoredDataSource>(executor, UPDATE_DATA_SOURCE, [
      appId,
      id,
      name ?? null,
      ...jsonLists,
      isUsers,
    ]);
    // Checks again, because another request may have added a hash hook or a unique index, or changed `isUsers`, since the first check.
    const { hashedColumns } = after!;
    checkIsUsersFlagChange(fields.isUsers, {
      before: before.isUsers,
      mayMark: isPersonCaller(caller),
      hashed: hashedColumns,
    });
    rejectUniqueHashedIndexes(after!.indexes, hashedColumns);
    await recordChange(executor, caller, {
      appId,
      type: "dataSource.update",
      data: { id, fields: Object.keys(fields) },
    });
    await this.options.sources.notifyChanged(executor, appId);
    return after!;
  }

  /**
   * Deletes a data source that has no entries. First locks the data source, so that no other transaction can insert entries.
   * @throws DATA_SOURCE_NOT_EMPTY if it has entries
   */
  async removeEmpty(
    executor: SqlClient,
    caller: Caller,
    appId: number,
    { id, name }: DataSourceIdAndName,
  ): Promise<void> {
    await lockDataSourceForRemoval(executor, appId, id);
    if (await hasEntries(executor, appId, id)) {
      throw new ActionError(
        "DATA_SOURCE_NOT_EMPTY",
        `the data source ${JSON.stringify(name)} has entries; remove them before you remove the data source`,
      );
    }
    await deleteDataSourceRow(executor, appId, id, undefined);
    await recordChange(executor, caller, { appId, type: "dataSource.delete", data: { id, name } });
    await this.options.sources.notifyChanged(executor, appId);
  }

  /**
   * Drops the indexes of a removed data source, or of all data sources of a removed app. Does so in the background,
   * because dropping an index waits for all queries that use the table.
   */
  dropIndexes(key: RemovedDataSources): void {
    const { indexes, log } = this.options;
    indexes
      .drop(key)
      .catch((error: unknown) =>
        log.warn({ err: error, ...key }, "the indexes of a removed data source could not be dropped"),
      );
  }

  /**
   * Changes the indexes, and calls `save`, which stores the definitions. If a unique index is requested, new indexes are built before `save`,
   * and old ones are dropped after it. Otherwise, `save` is called last, and new indexes may still be built in the background. After an
   * error, the old indexes are restored.
   * @throws REQUEST_INVALID for too many indexes, ENTRY_ALREADY_EXISTS, errors of `save`
   */
  async withIndexes(changes: readonly IndexReplacement[], save: () => Promise<unknown>): Promise<void> {
    if (changes.length === 0) {
      await save();
      return;
    }
    if (changes.some(({ requestedIndexes }) => requestedIndexes.some(isUniqueIndex)))
      return this.options.indexes.applyAll(changes, save);
    try {
      await this.applyIndexes(changes);
      await save();
    } catch (error) {
      await this.applyIndexes(changes.map(({ key, before }) => ({ key, requestedIndexes: before })));
      throw error;
    }
  }
}
