/** Lists the tables, partitions and sequences that a backup contains. */

import type { Client } from "pg";
import pg from "pg";

/**
 * Tables that no backup contains: `instance` and `rate_window` describe running processes, and the manifest has the
 * migrations.
 */
const LEFT_OUT = ["migration", "instance", "rate_window"];

/** A table with its stored columns; computed columns are left out. */
export interface Table {
  name: string;
  columns: string[];
}

/** Bounds of a partition: IDs from `low` up to but not including `high`. Null means no bound. */
export type PartitionBounds = [low: number | null, high: number | null];

/**
 * Matches the names of the service's tables, columns and sequences. Tables of other programs in the same database are
 * not backed up.
 */
const NAME = /^[a-z][a-z0-9_]{0,62}$/;
export const isTableName = (value: unknown): value is string => typeof value === "string" && NAME.test(value);

export const quoteName = pg.escapeIdentifier;

/** Session settings that make PostgreSQL write each value as the same text in every version and on every machine. */
export const PLAIN_VALUES = `
  SET LOCAL client_encoding = 'UTF8'; SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL IntervalStyle = 'postgres';
  SET LOCAL TimeZone = 'UTC'; SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1;
  SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL row_security = off`;

const TABLES = `
  SELECT relname AS name, json_agg(attname ORDER BY attnum) AS columns
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
   WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> ALL ($1)
     AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')
   GROUP BY relname ORDER BY relname`;

const SELECT_REFERENCES = `
  SELECT source.relname AS "from", target.relname AS "to"
    FROM pg_constraint JOIN pg_class AS source ON source.oid = conrelid JOIN pg_class AS target ON target.oid = confrelid
   WHERE contype = 'f' AND source.oid <> target.oid AND source.relnamespace = 'public'::regnamespace`;

/** Sorts tables so that a referenced table comes before the tables that refer to it. */
function inOrder(tables: readonly Table[], references: readonly { from: string; to: string }[]): Table[] {
  const doneTables = new Set<Table>();
  const put = (table: Table, path: readonly Table[]): void => {
    if (doneTables.has(table) || path.includes(table)) return;
    for (const { from, to } of references) {
      const referencedTable = from === table.name && tables.find(({ name }) => name === to);
      if (referencedTable) put(referencedTable, [...path, table]);
    }
    doneTables.add(table);
  };
  for (const table of tables) put(table, []);
  return [...doneTables];
}

/** Reads every table of a backup. Referenced tables come before the tables that refer to them. */
export async function readTables(client: Client): Promise<Table[]> {
  const { rows: tables } = await client.query<Table>(TABLES, [LEFT_OUT]);
  const { rows: references } = await client.query<{ from: string; to: string }>(SELECT_REFERENCES);
  const namedTables = tables.filter(({ name, columns }) => isTableName(name) && columns.every(isTableName));
  return inOrder(namedTables, references);
}

const SELECT_PARTITIONS = `
  SELECT parent.relname AS table, child.relname AS name,
         substring(bound FROM 'FROM \\(''?(-?\\d+)')::bigint AS low, substring(bound FROM 'TO \\(''?(-?\\d+)')::bigint AS high
    FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid JOIN pg_class AS parent ON parent.oid = inhparent
    CROSS JOIN LATERAL (SELECT pg_get_expr(child.relpartbound, child.oid) AS bound) AS bounds
   WHERE parent.relkind = 'p' AND parent.relnamespace = 'public'::regnamespace ORDER BY parent.relname, low NULLS FIRST`;

export interface Partition {
  table: string;
  name: string;
  low: number | null;
  high: number | null;
}

export const readPartitions = async (client: Client): Promise<Partition[]> =>
  (await client.query<Partition>(SELECT_PARTITIONS)).rows;

/**
 * Position of a sequence. `last` is the last returned number if `called` is true, otherwise the first number to return.
 */
export interface Sequence {
  name: string;
  last: number;
  called: boolean;
}

/** Reads all sequences except that of the migrations. No sequence of the service exceeds JSON's safe integers. */
export async function readSequences(client: Client): Promise<Sequence[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT sequencename AS name FROM pg_sequences
      WHERE schemaname = 'public' AND sequencename <> 'migration_id_seq' ORDER BY sequencename`,
  );
  const sequences: Sequence[] = [];
  for (const { name } of rows.filter((row) => isTableName(row.name))) {
    const state = await client.query<Omit<Sequence, "name">>(
      `SELECT last_value AS last, is_called AS called FROM public.${quoteName(name)}`,
    );
    if (Number.isSafeInteger(state.rows[0]!.last)) sequences.push({ name, ...state.rows[0]! });
  }
  return sequences;
}

/** Reads the names of the applied migrations. Returns null if the database does not belong to the service. */
export async function readMigrations(client: Client): Promise<string[] | null> {
  const { rows } = await client.query<{ there: boolean }>(
    "SELECT to_regclass('public.migration') IS NOT NULL AS there",
  );
  if (!rows[0]!.there) return null;
  return (await client.query<{ name: string }>("SELECT name FROM public.migration ORDER BY id")).rows.map(
    ({ name }) => name,
  );
}
