/** Compares two database schemas: each statement that is valid for the earlier one must stay valid. */
import type { Db } from "../../src/data/database.js";

const CATALOGUE = `
  SELECT
    (SELECT json_agg(json_build_object('table', relname, 'column', attname, 'type', format_type(atttypid, atttypmod),
              'optional', NOT attnotnull OR atthasdef OR attidentity <> '' , 'generated', attgenerated <> ''))
       FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
      WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition) AS columns,
    (SELECT json_agg(json_build_object('table', relname, 'name', conname, 'kind', contype::text,
              'definition', pg_get_constraintdef(pg_constraint.oid)))
       FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
      WHERE relnamespace = 'public'::regnamespace AND NOT relispartition AND contype IN ('c', 'f', 'u', 'p', 'x')) AS constraints,
    (SELECT json_agg(json_build_object('table', relname, 'definition', regexp_replace(pg_get_indexdef(indexrelid), '^.* USING', 'USING')))
       FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
      WHERE indisunique AND relnamespace = 'public'::regnamespace AND NOT relispartition) AS unique_indexes,
    (SELECT json_agg(oid::regprocedure::text || ' -> ' || pg_get_function_result(oid)) FROM pg_proc
      WHERE pronamespace = 'public'::regnamespace AND prokind = 'f' AND pg_get_function_result(oid) <> 'trigger') AS functions,
    (SELECT json_agg(sequencename) FROM pg_sequences WHERE schemaname = 'public') AS sequences`;

export interface Catalogue {
  columns: { table: string; column: string; type: string; optional: boolean; generated: boolean }[];
  constraints: { table: string; name: string; kind: string; definition: string }[];
  unique_indexes: { table: string; definition: string }[];
  functions: string[] | null;
  sequences: string[];
}

export const catalogueOf = async (db: Db): Promise<Catalogue> => (await db.query(CATALOGUE))[0];

interface ValueCheck {
  frame: string;
  values: Set<string>;
}

/** Splits a check of the form `column = ANY (ARRAY['a'::text, …])` into its values and the text around them. */
function valueCheckOf({ table, definition }: { table: string; definition: string }): ValueCheck {
  const values = new Set(definition.match(/'(?:[^']|'')*'/g));
  return { frame: `${table} ${definition.replace(/ARRAY\[.*\]/, "ARRAY[]").replace(/ NOT VALID$/, "")}`, values };
}

/** True if this check of values extends a check in `before`: it allows all earlier values, so that no earlier statement fails. */
function allowsMoreValues(constraint: { table: string; definition: string }, before: Catalogue): boolean {
  if (!constraint.definition.includes("ARRAY[")) return false;
  const is = valueCheckOf(constraint);
  return before.constraints
    .map(valueCheckOf)
    .some((was) => was.frame === is.frame && [...was.values].every((value) => is.values.has(value)));
}

/**
 * Compares columns, constraints, unique indexes, functions and sequences. Returns each difference because of which a statement that is
 * valid in `before` could fail in `after`. Ignores new foreign keys.
 */
export function findBreakingDifferences(before: Catalogue, after: Catalogue): string[] {
  const tables = new Set(before.columns.map(({ table }) => table));
  const columnsByName = new Map(after.columns.map((column) => [`${column.table}.${column.column}`, column]));
  const columns = before.columns.flatMap((was) => {
    const name = `${was.table}.${was.column}`;
    const is = columnsByName.get(name);
    if (!is) return [`${name} is gone`];
    if (is.type !== was.type) return [`${name} was ${was.type} and is ${is.type}`];
    if (was.optional && !is.optional) return [`${name} must now be given`];
    return is.generated && !was.generated ? [`${name} may no longer be given`] : [];
  });
  const known = new Set(before.columns.map(({ table, column }) => `${table}.${column}`));
  const added = after.columns
    .filter(({ table, column, optional }) => tables.has(table) && !known.has(`${table}.${column}`) && !optional)
    .map(({ table, column }) => `${table}.${column} is new and must be given`);
  const earlierConstraints = new Set(before.constraints.map(({ table, definition }) => `${table} ${definition}`));
  const constraints = after.constraints
    .filter(({ table, definition }) => tables.has(table) && !earlierConstraints.has(`${table} ${definition}`))
    .filter((constraint) => constraint.kind !== "f" && !allowsMoreValues(constraint, before))
    .map(({ table, definition }) => `${table} has a new constraint: ${definition}`);
  const keyOf = ({ table, definition }: { table: string; definition: string }) => `${table} ${definition}`;
  const listMissing = (was: readonly string[], is: readonly string[]) => was.filter((item) => !is.includes(item));
  const indexes = listMissing(before.unique_indexes.map(keyOf), after.unique_indexes.map(keyOf)).map(
    (table) => `the unique index of ${table} is gone`,
  );
  const unique = listMissing(after.unique_indexes.map(keyOf), before.unique_indexes.map(keyOf))
    .filter((index) => tables.has(index.split(" ")[0]!))
    .map((index) => `${index} must now be unique`);
  const functions = listMissing(before.functions ?? [], after.functions ?? []).map(
    (name) => `the function ${name} is gone`,
  );
  const sequences = listMissing(before.sequences, after.sequences).map((name) => `the sequence ${name} is gone`);
  return [...columns, ...added, ...constraints, ...indexes, ...unique, ...functions, ...sequences];
}
