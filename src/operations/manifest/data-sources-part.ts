/**
 * Plans how an app's data sources must change to match a manifest. A manifest does not contain entries. manifests.ts
 * builds new indexes before the transaction that applies the manifest, and drops old indexes after it.
 */
import { isDeepStrictEqual } from "node:util";
import { rows, type SqlClient } from "../../data/database.js";
import { ActionError, type ManifestPathFault } from "../../errors.js";
import { DATA_SOURCES_PER_APP } from "../../limits.js";
import { type Caller, isPersonCaller } from "../../rules/access.js";
import {
  checkIsUsersFlagChange,
  parseDataSourceChange,
  parseNewDataSource,
} from "../../rules/entries/data-source-input.js";
import { listHashedColumns } from "../../rules/entries/hooks.js";
import { checkHookPlaceholders } from "../../rules/entries/sending-hooks.js";
import { DATA_SOURCE_FIELDS, type Manifest } from "../../rules/manifest.js";
import { DATA_SOURCE_COLUMNS_SQL, type StoredDataSource } from "../data-sources/data-source-rows.js";
import { validateIndexes } from "../data-sources/index-definitions.js";
import {
  type DataSourceDefinitionStore,
  hasEntries,
  type IndexReplacement,
  type NewDataSourceFields,
  rejectUniqueHashedIndexes,
} from "../data-sources/source-definitions.js";
import {
  type DefinitionsPlan,
  findRepeatedNameFaults,
  type ManifestApplyMode,
  type ManifestPlanContext,
  toPathFault,
  trimItemName,
} from "./definitions-plan.js";

type DataSourceItem = NonNullable<Manifest["dataSources"]>[number];

/** Returns the app's data sources, sorted by name. @param lock true to lock their rows until the transaction ends */
export async function readDataSources(executor: SqlClient, appId: number, lock = false): Promise<StoredDataSource[]> {
  const sql = `SELECT ${DATA_SOURCE_COLUMNS_SQL} FROM data_source WHERE app_id = $1 ORDER BY id ${lock ? "FOR NO KEY UPDATE" : ""}`;
  const sourceRows = await rows<StoredDataSource>(executor, sql, [appId]);
  return sourceRows.sort((a, b) => (a.name < b.name ? -1 : 1));
}

export const listDataSourceNames = ({ dataSources = [] }: Manifest): string[] =>
  dataSources.map(({ name }) => String(name).trim());

export function toDataSourceItem({
  name,
  columns,
  accessRules,
  hooks,
  indexes,
  isUsers,
}: StoredDataSource): DataSourceItem {
  return { name, columns, accessRules, hooks, indexes, isUsers } as unknown as DataSourceItem;
}

interface SourceWrite {
  currentSource: StoredDataSource | null;
  newDefinition: NewDataSourceFields;
  changedFields: string[];
}

type DefinableFields = Pick<NewDataSourceFields, (typeof COMPARED_FIELDS)[number]>;
const COMPARED_FIELDS = ["columns", "accessRules", "hooks", "indexes", "isUsers"] as const;

/** Plans how one data source is created or changed. @throws the errors of creating or changing a data source */
function planSourceWrite(
  caller: Caller,
  item: unknown,
  before: StoredDataSource | null,
  mode: ManifestApplyMode,
): SourceWrite {
  const fields = before
    ? parseDataSourceChange(item, validateIndexes, before.hooks)
    : parseNewDataSource(item, validateIndexes);
  const name = fields.name ?? before!.name;
  const mergesFields = before !== null && (!mode.prune || mode.keepsData);
  const columns = [
    ...new Set([...(fields.columns ?? []), ...(mergesFields || !fields.columns ? (before?.columns ?? []) : [])]),
  ];
  const input: DefinableFields = {
    columns,
    accessRules: fields.accessRules ?? before?.accessRules ?? [],
    hooks: fields.hooks ?? before?.hooks ?? [],
    indexes: fields.indexes ?? before?.indexes ?? [],
    isUsers: fields.isUsers ?? before?.isUsers ?? false,
  };
  const hashedColumns = [...new Set([...(before?.hashedColumns ?? []), ...listHashedColumns(input.hooks)])];
  rejectUniqueHashedIndexes(input.indexes, hashedColumns);
  const usersFlagChange = { before: before?.isUsers ?? false, mayMark: isPersonCaller(caller), hashed: hashedColumns };
  checkIsUsersFlagChange(input.isUsers, usersFlagChange);
  const changedFields = before
    ? COMPARED_FIELDS.filter((field) => !isDeepStrictEqual(input[field], before[field]))
    : [...COMPARED_FIELDS];
  if (changedFields.includes("hooks")) checkHookPlaceholders(input.hooks, columns, before?.hooks);
  return { currentSource: before, newDefinition: { name, ...input, hashedColumns }, changedFields };
}

export interface DataSourcesPlan extends DefinitionsPlan {
  /** IDs by name of the data sources that the app has after the manifest was applied. */
  idsByName: ReadonlyMap<string, number>;
  /** Changes of indexes, which manifests.ts makes outside of the transaction. */
  indexChanges: IndexReplacement[];
  /** Names of the data sources to create. An ID must be reserved for each before the plan is applied. */
  createdNames: string[];
  removedSources: StoredDataSource[];
}

/**
 * Plans how the app's data sources change.
 * @param reservedIds reserved IDs by name, for the data sources to create
 * @throws ActionError DATA_SOURCE_NOT_EMPTY if the plan would remove a data source with entries
 */
export async function planDataSourceChanges(
  definitions: DataSourceDefinitionStore,
  context: ManifestPlanContext,
  sourceItems: readonly DataSourceItem[] | undefined,
  currentSources: readonly StoredDataSource[],
  reservedIds: ReadonlyMap<string, number>,
): Promise<DataSourcesPlan> {
  const { manager, caller, appId, prune } = context;
  const items = sourceItems?.map(trimItemName);
  const currentByName = new Map(currentSources.map((dataSource) => [dataSource.name, dataSource]));
  const { writes, faults } = planSourceWrites(context, items ?? [], currentByName);
  const removedSources = items && prune ? await findRemovableSources(context, items, currentSources) : [];
  const createdSources = writes.filter(({ currentSource }) => currentSource === null);
  const count = currentSources.length - removedSources.length + createdSources.length;
  if (count > DATA_SOURCES_PER_APP) {
    const error = `an app can have at most ${DATA_SOURCES_PER_APP} data sources (got ${count} with this manifest)`;
    faults.push({ path: "dataSources", status: "REQUEST_INVALID", error });
  }
  const remainingSources = currentSources.filter((dataSource) => !removedSources.includes(dataSource));
  const ids = new Map([...reservedIds, ...remainingSources.map(({ name, id }): [string, number] => [name, id])]);
  const changes = writes.map(({ currentSource, newDefinition: { name } }) => ({
    ...{ kind: "dataSource" as const, name },
    changeKind: currentSource ? ("changed" as const) : ("created" as const),
  }));
  return {
    changes: [
      ...changes,
      ...removedSources.map(({ name }) => ({ kind: "dataSource" as const, name, changeKind: "removed" as const })),
    ],
    faults,
    requiredOperations: [
      ...(writes.length > 0 ? (["writeDataSources"] as const) : []),
      ...(removedSources.length > 0 ? (["removeDataSources"] as const) : []),
    ],
    idsByName: ids,
    indexChanges: writes.flatMap(({ currentSource, newDefinition: { name, indexes } }) => {
      const id = currentSource?.id ?? reservedIds.get(name);
      const hasSameIndexes = isDeepStrictEqual(indexes, currentSource?.indexes ?? []);
      return hasSameIndexes || id === undefined
        ? []
        : [{ key: { appId, id }, requestedIndexes: indexes, before: currentSource?.indexes ?? [] }];
    }),
    createdNames: createdSources.map(({ newDefinition }) => newDefinition.name),
    removedSources,
    async apply() {
      for (const { currentSource, newDefinition, changedFields } of writes) {
        const { hashedColumns: _, name, ...rest } = newDefinition;
        const input = Object.fromEntries(Object.entries(rest).filter(([field]) => changedFields.includes(field)));
        if (currentSource)
          await definitions.change(manager, caller, { appId, id: currentSource.id, precondition: undefined }, input);
        else await definitions.insert(manager, caller, appId, newDefinition, [], ids.get(name)!);
      }
      for (const source of removedSources) await definitions.removeEmpty(manager, caller, appId, source);
    },
  };
}

function planSourceWrites(
  { caller, prune, keepsData }: ManifestPlanContext,
  items: readonly DataSourceItem[],
  currentByName: ReadonlyMap<string, StoredDataSource>,
): { writes: SourceWrite[]; faults: ManifestPathFault[] } {
  const faults = findRepeatedNameFaults("dataSources", "name", items);
  const writes: SourceWrite[] = [];
  for (const [at, item] of items.entries()) {
    try {
      const write = planSourceWrite(caller, item, currentByName.get(item.name) ?? null, { prune, keepsData });
      if (write.changedFields.length > 0) writes.push(write);
    } catch (error) {
      faults.push(toPathFault(`dataSources[${at}]`, error, DATA_SOURCE_FIELDS));
    }
  }
  return { writes, faults };
}

/**
 * Returns the data sources that `prune` removes, because the manifest does not contain them. If `keepsData` is true, leaves out data
 * sources with entries.
 * @throws ActionError DATA_SOURCE_NOT_EMPTY if `keepsData` is false and one of the data sources has entries
 */
async function findRemovableSources(
  { manager, appId, keepsData }: ManifestPlanContext,
  items: readonly DataSourceItem[],
  currentSources: readonly StoredDataSource[],
): Promise<StoredDataSource[]> {
  const namesInManifest = new Set(items.map(({ name }) => name));
  const removedSources: StoredDataSource[] = [];
  for (const source of currentSources.filter(({ name }) => !namesInManifest.has(name))) {
    const containsEntries = await hasEntries(manager, appId, source.id);
    if (containsEntries && keepsData) continue;
    if (containsEntries) {
      const message = `the data source ${JSON.stringify(source.name)} is not in the manifest but has entries, so "prune" does not remove it; remove its entries first`;
      throw new ActionError("DATA_SOURCE_NOT_EMPTY", message);
    }
    removedSources.push(source);
  }
  return removedSources;
}
