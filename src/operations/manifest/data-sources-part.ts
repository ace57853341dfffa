/**
 * Plans the changes to an app's data sources that a manifest requires. A manifest does not contain entries. Indexes are
 * built and dropped outside of the transaction that applies the manifest.
 */
import { isDeepStrictEqual } from "node:util";
import { type Executor, rows } from "../../data/database.js";
import { ActionError, type PathFault } from "../../errors.js";
import { DATA_SOURCES_PER_APP } from "../../limits.js";
import { type Caller, isPersonCaller } from "../../rules/access.js";
import {
  checkIsUsersChange,
  parseDataSourceChange,
  parseNewDataSource,
} from "../../rules/entries/data-source-input.js";
import { hashedColumnsOf } from "../../rules/entries/hooks.js";
import { checkPlaceholders } from "../../rules/entries/sending-hooks.js";
import { DATA_SOURCE_FIELDS, type Manifest } from "../../rules/manifest.js";
import { DATA_SOURCE_COLUMNS, type StoredDataSource } from "../data-sources/data-source-rows.js";
import { validateIndexes } from "../data-sources/index-definitions.js";
import {
  hasEntries,
  type IndexReplacement,
  rejectUniqueHashedIndexes,
  type SourceDefinition,
  type SourceDefinitions,
} from "../data-sources/source-definitions.js";
import { type ApplyMode, type PartPlan, type PlanContext, repeatedNames, toFault } from "./part.js";

type Item = NonNullable<Manifest["dataSources"]>[number];

/** Returns the app's data sources, sorted by name. @param lock true to lock them until the transaction ends */
export async function storedSources(executor: Executor, appId: number, lock = false): Promise<StoredDataSource[]> {
  const sql = `SELECT ${DATA_SOURCE_COLUMNS} FROM data_source WHERE app_id = $1 ORDER BY id ${lock ? "FOR NO KEY UPDATE" : ""}`;
  const sourceRows = await rows<StoredDataSource>(executor, sql, [appId]);
  return sourceRows.sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function sourceItem({ name, columns, accessRules, hooks, indexes, isUsers }: StoredDataSource): Item {
  return { name, columns, accessRules, hooks, indexes, isUsers } as unknown as Item;
}

interface SourceWrite {
  before: StoredDataSource | null;
  after: SourceDefinition;
  fields: string[];
}

type DefinableFields = Pick<SourceDefinition, (typeof COMPARED_FIELDS)[number]>;
const COMPARED_FIELDS = ["columns", "accessRules", "hooks", "indexes", "isUsers"] as const;

/**
 * Validates one data source of the manifest, and determines the fields that change. @throws the errors of creating or
 * changing a data source
 */
function writeOf(caller: Caller, item: unknown, before: StoredDataSource | null, mode: ApplyMode): SourceWrite {
  const fields = before ? parseDataSourceChange(item, validateIndexes) : parseNewDataSource(item, validateIndexes);
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
  const hashedColumns = [...new Set([...(before?.hashedColumns ?? []), ...hashedColumnsOf(input.hooks)])];
  rejectUniqueHashedIndexes(input.indexes, hashedColumns);
  const isUsers = { before: before?.isUsers ?? false, mayMark: isPersonCaller(caller), hashed: hashedColumns };
  checkIsUsersChange(input.isUsers, isUsers);
  const changedFields = before
    ? COMPARED_FIELDS.filter((field) => !isDeepStrictEqual(input[field], before[field]))
    : [...COMPARED_FIELDS];
  if (changedFields.includes("hooks")) checkPlaceholders(input.hooks, columns);
  return { before, after: { name, ...input, hashedColumns }, fields: changedFields };
}

export interface SourcesPlan extends PartPlan {
  /** IDs by name of the data sources that exist after the manifest has been applied. */
  ids: ReadonlyMap<string, number>;
  /** Changes of indexes, which are built and dropped outside of the transaction. */
  indexes: IndexReplacement[];
  /** Names of the data sources that are created. Their IDs must be reserved before the plan is applied. */
  created: string[];
  /** Data sources that are removed when the plan is applied. */
  removed: StoredDataSource[];
}

/**
 * Plans the changes of data sources.
 * @param reserved reserved IDs by name, for the data sources that are created
 * @throws ActionError DATA_SOURCE_NOT_EMPTY if a data source with entries would be removed
 */
export async function planSources(
  definitions: SourceDefinitions,
  context: PlanContext,
  items: readonly Item[] | undefined,
  current: readonly StoredDataSource[],
  reserved: ReadonlyMap<string, number>,
): Promise<SourcesPlan> {
  const { manager, caller, appId, prune } = context;
  const currentByName = new Map(current.map((dataSource) => [dataSource.name, dataSource]));
  const { writes, faults } = writesOf(context, items ?? [], currentByName);
  const removedSources = items && prune ? await removableSources(context, items, current) : [];
  const createdSources = writes.filter(({ before }) => before === null);
  const count = current.length - removedSources.length + createdSources.length;
  if (count > DATA_SOURCES_PER_APP) {
    const error = `an app can have at most ${DATA_SOURCES_PER_APP} data sources (with this manifest: ${count})`;
    faults.push({ path: "dataSources", status: "REQUEST_INVALID", error });
  }
  const remainingSources = current.filter((dataSource) => !removedSources.includes(dataSource));
  const ids = new Map([...reserved, ...remainingSources.map(({ name, id }): [string, number] => [name, id])]);
  const changes = writes.map(({ before, after: { name } }) => ({
    ...{ kind: "dataSource" as const, name },
    verb: before ? ("changed" as const) : ("created" as const),
  }));
  return {
    changes: [
      ...changes,
      ...removedSources.map(({ name }) => ({ kind: "dataSource" as const, name, verb: "removed" as const })),
    ],
    faults,
    requiredOperations: [
      ...(writes.length > 0 ? (["writeDataSources"] as const) : []),
      ...(removedSources.length > 0 ? (["removeDataSources"] as const) : []),
    ],
    ids,
    indexes: writes.flatMap(({ before, after: { name, indexes: requestedIndexes } }) => {
      const id = before?.id ?? reserved.get(name);
      const hasSameIndexes = isDeepStrictEqual(requestedIndexes, before?.indexes ?? []);
      return hasSameIndexes || id === undefined
        ? []
        : [{ key: { appId, id }, requestedIndexes, before: before?.indexes ?? [] }];
    }),
    created: createdSources.map(({ after }) => after.name),
    removed: removedSources,
    async apply() {
      for (const { before, after, fields } of writes) {
        const { hashedColumns: _, name, ...rest } = after;
        const input = Object.fromEntries(Object.entries(rest).filter(([field]) => fields.includes(field)));
        if (before) await definitions.change(manager, caller, { appId, id: before.id, precondition: undefined }, input);
        else await definitions.insert(manager, caller, appId, after, [], ids.get(name)!);
      }
      for (const source of removedSources) await definitions.removeEmpty(manager, caller, appId, source);
    },
  };
}

function writesOf(
  { caller, prune, keepsData }: PlanContext,
  items: readonly Item[],
  currentByName: ReadonlyMap<string, StoredDataSource>,
): { writes: SourceWrite[]; faults: PathFault[] } {
  const faults = repeatedNames("dataSources", "name", items);
  const writes: SourceWrite[] = [];
  for (const [at, item] of items.entries()) {
    try {
      // Stored names are trimmed, so the name is trimmed before the comparison.
      const name = typeof item.name === "string" ? item.name.trim() : "";
      const write = writeOf(caller, item, currentByName.get(name) ?? null, { prune, keepsData });
      if (write.fields.length > 0) writes.push(write);
    } catch (error) {
      faults.push(toFault(`dataSources[${at}]`, error, DATA_SOURCE_FIELDS));
    }
  }
  return { writes, faults };
}

/**
 * Returns the data sources that pruning removes: those that are not in the manifest. @throws DATA_SOURCE_NOT_EMPTY if
 * one has entries
 */
async function removableSources(
  { manager, appId, keepsData }: PlanContext,
  items: readonly Item[],
  current: readonly StoredDataSource[],
): Promise<StoredDataSource[]> {
  const namesInManifest = new Set(items.map(({ name }) => String(name).trim()));
  const removedSources: StoredDataSource[] = [];
  for (const source of current.filter(({ name }) => !namesInManifest.has(name))) {
    const isFull = await hasEntries(manager, appId, source.id);
    if (isFull && keepsData) continue;
    if (isFull) {
      const message = `the data source ${JSON.stringify(source.name)} is not in the manifest but has entries, so "prune" does not remove it; remove its entries first`;
      throw new ActionError("DATA_SOURCE_NOT_EMPTY", message);
    }
    removedSources.push(source);
  }
  return removedSources;
}
