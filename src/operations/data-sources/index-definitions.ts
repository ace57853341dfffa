/**
 * Validates index definitions of editors and builds their SQL. The SQL has the same expressions as queries on entries,
 * so that PostgreSQL uses the index. Does not execute the SQL.
 */
import { createHash } from "node:crypto";
import pg from "pg";
import { isObject } from "../../rules/describe-value.js";
import {
  hasArrayOnPathSql,
  jsonTypesAlongPathSql,
  type Path,
  parseDocumentPath,
  type QueriedDocument,
  sortableValueSql,
  valueAtPathSql,
} from "../../rules/entry-query/path.js";
import { SqlStatement } from "../../rules/entry-query/statement.js";
import { refuseField } from "../../rules/fields.js";
import { createFlatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";
import type { DataSourceKey } from "./entry-rows.js";

/**
 * Definition of an index in a data source: one column path, or several. If `unique` is true, two entries cannot have
 * the same values in these columns.
 */
export type IndexDefinition = string | readonly string[] | { columns: readonly string[]; unique: boolean };

export const INDEXES_PER_DATA_SOURCE = 5;
const MAX_COLUMNS_PER_INDEX = 3;
const INDEX_SHAPE = createFlatShape(["columns", "unique"]);

/** Builds SQL that contains the values as literals, because PostgreSQL's CREATE INDEX accepts no parameters. */
class LiteralStatement extends SqlStatement {
  override bind(value: unknown, type: string): string {
    return `${pg.escapeLiteral(String(value))}::${type}`;
  }
}

const ENTRY_SQL_SOURCE: QueriedDocument = { documentSql: "doc", entryAlias: null, canSeeColumn: () => true };

export const listIndexColumnPaths = (definition: IndexDefinition): readonly string[] => {
  if (typeof definition === "string") return [definition];
  return "columns" in definition ? definition.columns : definition;
};

export const isUniqueIndex = (definition: IndexDefinition): boolean =>
  typeof definition === "object" && "unique" in definition && definition.unique;

function parseColumnPath(column: unknown, fieldPath: string): Path & { entryField: null } {
  const path = parseDocumentPath(column, fieldPath, { entryAlias: "" });
  if (path.entryField !== null)
    refuseField(
      fieldPath,
      "the path of a column in the data of entries; fields of the entry itself, such as id, need no index",
      column,
    );
  return path;
}

export const listIndexTopColumns = (definition: IndexDefinition): string[] =>
  listIndexColumnPaths(definition).map((column) => parseColumnPath(column, "indexes").segments[0]!);

function validateIndex(definition: unknown, fieldPath: string): IndexDefinition {
  const isNamed = isObject(definition);
  if (isNamed && !("columns" in definition))
    refuseField(fieldPath, "a column path, an array of column paths or {columns, unique}", definition);
  const input: unknown = isNamed ? definition["columns"] : definition;
  const columns: unknown[] = Array.isArray(input) ? input : [input];
  if (columns.length === 0 || columns.length > MAX_COLUMNS_PER_INDEX)
    refuseField(fieldPath, `an index of 1 to ${MAX_COLUMNS_PER_INDEX} columns`, definition);
  for (const column of columns) parseColumnPath(column, fieldPath);
  if (!isNamed) return definition as IndexDefinition;
  const unique = definition["unique"] ?? false;
  if (typeof unique !== "boolean") refuseField(`${fieldPath}.unique`, "true or false", unique);
  refuseUnknownFields(definition, INDEX_SHAPE, fieldPath);
  return { columns: columns as string[], unique };
}

/** Validates the index definitions in a request. @throws REQUEST_INVALID that names the invalid definition */
export function validateIndexes(requestedIndexes: unknown): IndexDefinition[] {
  if (!Array.isArray(requestedIndexes) || requestedIndexes.length > INDEXES_PER_DATA_SOURCE) {
    refuseField(
      "indexes",
      `an array of at most ${INDEXES_PER_DATA_SOURCE} indexes, ` +
        "each a column path, an array of column paths or {columns, unique}",
      requestedIndexes,
    );
  }
  return requestedIndexes.map((definition, index) => validateIndex(definition, `indexes[${index}]`));
}

const INDEX_NAME_PREFIX = "entry_ix_";

/** Returns the name of an index in the database. It contains a hash of the columns, not their names, so that it has no text of a caller. */
function createIndexName({ appId, id }: DataSourceKey, definition: IndexDefinition): string {
  const columns = createHash("sha256").update(JSON.stringify(listIndexColumnPaths(definition)));
  return `${INDEX_NAME_PREFIX}${appId}_${id}_${columns.digest("hex").slice(0, 16)}`;
}

const createUniqueIndexName = (key: DataSourceKey, definition: IndexDefinition): string =>
  `${createIndexName(key, definition)}_u`;

/** Returns the data source of an index or statistics object in the database by its name; null if the name has another form. */
export function parseIndexName(name: string): DataSourceKey | null {
  const nameMatch = new RegExp(`^${INDEX_NAME_PREFIX}(\\d+)_(\\d+)_`).exec(name);
  return nameMatch && { appId: Number(nameMatch[1]), id: Number(nameMatch[2]) };
}

/** Returns the columns of the unique index with this database name; null if none of the definitions has this name. */
export function findUniqueIndexColumns(
  key: DataSourceKey,
  requestedIndexes: readonly IndexDefinition[],
  name: string | undefined,
): readonly string[] | null {
  const uniqueIndex = requestedIndexes.find(
    (definition) => isUniqueIndex(definition) && createUniqueIndexName(key, definition) === name,
  );
  return uniqueIndex ? listIndexColumnPaths(uniqueIndex) : null;
}

export const isUniqueIndexName = (name: string): boolean => name.startsWith(INDEX_NAME_PREFIX) && name.endsWith("_u");

export interface IndexStatements {
  name: string;
  createSql: string;
  /** For a unique index: its column paths in the editor's definition. Missing for other objects. */
  unique?: readonly string[];
}

export const isStatisticsName = (name: string): boolean => /_s\d$/.test(name);

/** False for statistics and for the additional index for arrays: they do not count toward the maximum number of indexes. */
export const isCountedIndexName = (name: string): boolean => !/_(?:a|s\d)$/.test(name);

/**
 * Returns the SQL statements for one index definition. If the first path can lead through arrays, a second index contains the entries with
 * arrays. A unique definition gets one more index, in which null and missing values can repeat. Also creates statistics: each index covers
 * only one data source, and PostgreSQL's planner ignores the statistics of such indexes.
 */
export function createIndexStatements(key: DataSourceKey, definition: IndexDefinition): IndexStatements[] {
  const statement = new LiteralStatement();
  const paths = listIndexColumnPaths(definition).map((column) => parseColumnPath(column, "indexes"));
  const [name, first] = [createIndexName(key, definition), paths[0]!.segments];
  const whereClause = `WHERE app_id = ${Number(key.appId)} AND data_source_id = ${Number(key.id)}`;
  const keys = paths.map((path) => `(${sortableValueSql(path, ENTRY_SQL_SOURCE, statement)})`);
  const index = (suffix: string, sql: string, kind = "INDEX"): IndexStatements => ({
    name: name + suffix,
    createSql: `CREATE ${kind} CONCURRENTLY IF NOT EXISTS ${name}${suffix} ON data_source_entry ${sql}`,
  });
  const made = [index("", `(${[...keys, "id"].join(", ")}) ${whereClause}`)];
  const types = jsonTypesAlongPathSql(first, ENTRY_SQL_SOURCE, statement);
  if (types.length > 0)
    made.push(index("_a", `(id) ${whereClause} AND ${hasArrayOnPathSql(first, ENTRY_SQL_SOURCE, statement)}`));
  if (isUniqueIndex(definition)) {
    const values = paths.map((path) => `(NULLIF(${valueAtPathSql(path, ENTRY_SQL_SOURCE, statement)}, 'null'::jsonb))`);
    made.push({
      ...index("_u", `(${values.join(", ")}) ${whereClause}`, "UNIQUE INDEX"),
      unique: listIndexColumnPaths(definition),
    });
  }
  const indexedTypes = [...keys, ...types.map((type) => `(${type})`)];
  return [
    ...indexedTypes.map((expression, at) => {
      const statisticsName = `${name}_s${at}`;
      return {
        name: statisticsName,
        createSql: `CREATE STATISTICS IF NOT EXISTS ${statisticsName} ON ${expression} FROM data_source_entry`,
      };
    }),
    ...made,
  ];
}
