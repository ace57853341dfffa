/** Validates index definitions of editors and builds their SQL, with the expressions that queries use. Executes nothing. */
import { createHash } from "node:crypto";
import pg from "pg";
import { isObject } from "../../rules/described.js";
import {
  arrayAt,
  jsonTypesAlongPath,
  keyAt,
  type Path,
  parsePath,
  type Source,
  valueAt,
} from "../../rules/entry-query/path.js";
import { Statement } from "../../rules/entry-query/statement.js";
import { refuseField } from "../../rules/fields.js";
import { flatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";
import type { DataSourceKey } from "./entry-rows.js";

/** Requested index: the path of one column or of several. With `unique`, no two entries have the same values in these columns. */
export type IndexDefinition = string | readonly string[] | { columns: readonly string[]; unique: boolean };

export const INDEXES_PER_DATA_SOURCE = 5;
const COLUMNS_MAX = 3;
const WISH_SHAPE = flatShape(["columns", "unique"]);

/** Builds SQL of index definitions with literal values, because such statements cannot have parameters. */
class Definition extends Statement {
  override bind(value: unknown, type: string): string {
    return `${pg.escapeLiteral(String(value))}::${type}`;
  }
}

const ENTRY: Source = { doc: "doc", entry: null, sees: () => true };

export const columnsOf = (definition: IndexDefinition): readonly string[] => {
  if (typeof definition === "string") return [definition];
  return "columns" in definition ? definition.columns : definition;
};

export const isUniqueIndex = (definition: IndexDefinition): boolean =>
  typeof definition === "object" && "unique" in definition && definition.unique;

function pathOf(column: unknown, place: string): Path & { own: null } {
  const path = parsePath(column, place, { entry: "" });
  if (path.own !== null) refuseField(place, "a column; the entry's own fields need no index", column);
  return path;
}

/** Returns the top-level columns of the index. */
export const topColumnsOf = (definition: IndexDefinition): string[] =>
  columnsOf(definition).map((column) => pathOf(column, "indexes").segments[0]!);

function checkWish(definition: unknown, place: string): IndexDefinition {
  const isNamed = isObject(definition);
  if (isNamed && !("columns" in definition))
    refuseField(place, "a column, a list of columns or {columns, unique}", definition);
  const input: unknown = isNamed ? definition["columns"] : definition;
  const columns: unknown[] = Array.isArray(input) ? input : [input];
  if (columns.length === 0 || columns.length > COLUMNS_MAX)
    refuseField(place, `1 to ${COLUMNS_MAX} columns`, definition);
  for (const column of columns) pathOf(column, place);
  if (!isNamed) return definition as IndexDefinition;
  const unique = definition["unique"] ?? false;
  if (typeof unique !== "boolean") refuseField(`${place}.unique`, "true or false", unique);
  refuseUnknownFields(definition, WISH_SHAPE, place);
  return { columns: columns as string[], unique };
}

/** Returns the normal form of index definitions. @throws ActionError REQUEST_INVALID that names the invalid index */
export function checkIndexes(wishes: unknown): IndexDefinition[] {
  if (!Array.isArray(wishes) || wishes.length > INDEXES_PER_DATA_SOURCE) {
    refuseField("indexes", `an array of at most ${INDEXES_PER_DATA_SOURCE} columns or lists of columns`, wishes);
  }
  return wishes.map((definition, index) => checkWish(definition, `indexes[${index}]`));
}

const PREFIX = "entry_ix_";

/** Returns the index's name in the database, which contains no text of a caller. */
function nameOf({ appId, id }: DataSourceKey, definition: IndexDefinition): string {
  const columns = createHash("sha256").update(JSON.stringify(columnsOf(definition)));
  return `${PREFIX}${appId}_${id}_${columns.digest("hex").slice(0, 16)}`;
}

const uniqueNameOf = (key: DataSourceKey, definition: IndexDefinition): string => `${nameOf(key, definition)}_u`;

/** Returns the data source of an index or of statistics; null for other names. */
export function keyOfName(name: string): DataSourceKey | null {
  const nameMatch = new RegExp(`^${PREFIX}(\\d+)_(\\d+)_`).exec(name);
  return nameMatch && { appId: Number(nameMatch[1]), id: Number(nameMatch[2]) };
}

/** Returns the columns of the unique index with that name; null if there is none. */
export function uniqueColumns(
  key: DataSourceKey,
  wishes: readonly IndexDefinition[],
  name: string | undefined,
): readonly string[] | null {
  const uniqueWish = wishes.find((definition) => isUniqueIndex(definition) && uniqueNameOf(key, definition) === name);
  return uniqueWish ? columnsOf(uniqueWish) : null;
}

/** True if a unique index has that name. */
export const isUniqueName = (name: string): boolean => name.startsWith(PREFIX) && name.endsWith("_u");

/** SQL statements of one definition by the name of the database object. */
export interface IndexStatements {
  name: string;
  create: string;
  /** Columns of a unique index as written. */
  unique?: readonly string[];
}

export const isStatistics = (name: string): boolean => /_s\d$/.test(name);

/** True if the object counts as an index. Statistics and indexes of lists belong to an index that counts. */
export const isCountedIndex = (name: string): boolean => !/_(?:a|s\d)$/.test(name);

/**
 * Returns an index of the values directly at the paths. If the way to the first value may contain arrays, also returns an index of the
 * entries that have some, which are searched one by one. Also returns statistics of the expressions, because the planner takes none from an
 * index of only one data source, and would guess. A unique index is separate: missing values and null are SQL's null there, which equals
 * nothing.
 */
export function indexStatements(key: DataSourceKey, definition: IndexDefinition): IndexStatements[] {
  const statement = new Definition();
  const paths = columnsOf(definition).map((column) => pathOf(column, "indexes"));
  const [name, first] = [nameOf(key, definition), paths[0]!.segments];
  const whereClause = `WHERE app_id = ${Number(key.appId)} AND data_source_id = ${Number(key.id)}`;
  const keys = paths.map((path) => `(${keyAt(path, ENTRY, statement)})`);
  const index = (suffix: string, sql: string, kind = "INDEX"): IndexStatements => ({
    name: name + suffix,
    create: `CREATE ${kind} CONCURRENTLY IF NOT EXISTS ${name}${suffix} ON data_source_entry ${sql}`,
  });
  const made = [index("", `(${[...keys, "id"].join(", ")}) ${whereClause}`)];
  const types = jsonTypesAlongPath(first, ENTRY, statement);
  if (types.length > 0) made.push(index("_a", `(id) ${whereClause} AND ${arrayAt(first, ENTRY, statement)}`));
  if (isUniqueIndex(definition)) {
    const values = paths.map((path) => `(NULLIF(${valueAt(path, ENTRY, statement)}, 'null'::jsonb))`);
    made.push({
      ...index("_u", `(${values.join(", ")}) ${whereClause}`, "UNIQUE INDEX"),
      unique: columnsOf(definition),
    });
  }
  const indexedTypes = [...keys, ...types.map((type) => `(${type})`)];
  return [
    ...indexedTypes.map((expression, at) => {
      const statisticsName = `${name}_s${at}`;
      return {
        name: statisticsName,
        create: `CREATE STATISTICS IF NOT EXISTS ${statisticsName} ON ${expression} FROM data_source_entry`,
      };
    }),
    ...made,
  ];
}
