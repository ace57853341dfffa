/** Lists the tables, partitions and sequences that a backup contains. */

import type { Client } from "pg";
import pg from "pg";

/** Tables that no backup contains. `instance` and `rate_window` describe running processes. The migrations are in the manifest instead. */
const EXCLUDED_TABLES = ["migration", "instance", "rate_window"];

/** A table and its columns. Computed columns are not listed, because their values cannot be inserted. */
export interface BackupTable {
  name: string;
  columns: string[];
}

/** Bounds of a partition: IDs from `low` (inclusive) to `high` (exclusive). Null means that there is no bound. */
export type PartitionBounds = [low: number | null, high: number | null];

/** Matches names that can belong to the service. Other tables belong to other programs in the same database, and are not backed up. */
const TABLE_NAME_PATTERN = /^[a-z][a-z0-9_]{0,62}$/;
export const isTableName = (value: unknown): value is string =>
  typeof value === "string" && TABLE_NAME_PATTERN.test(value);

export const quoteName = pg.escapeIdentifier;

/**
 * SQL that changes settings for one transaction. PostgreSQL then writes values as the same text on every machine and in every version. It
 * has no time limits, and fails if row security would hide rows.
 */
export const PORTABLE_FORMAT_SETTINGS_SQL = `
  SET LOCAL client_encoding = 'UTF8'; SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL IntervalStyle = 'postgres';
  SET LOCAL TimeZone = 'UTC'; SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1;
  SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL row_security = off`;

const SELECT_TABLES = `
  SELECT relname AS name, json_agg(attname ORDER BY attnum) AS columns
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
   WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> ALL ($1)
     AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')
   GROUP BY relname ORDER BY relname`;

const SELECT_REFERENCES = `
  SELECT source.relname AS "from", target.relname AS "to", conname AS name
    FROM pg_constraint JOIN pg_class AS source ON source.oid = conrelid JOIN pg_class AS target ON target.oid = confrelid
   WHERE contype = 'f' AND source.oid <> target.oid AND source.relnamespace = 'public'::regnamespace`;

/** Foreign key. */
interface TableReference {
  from: string;
  to: string;
  name: string;
}

function sortByReferences(tables: readonly BackupTable[], references: readonly TableReference[]): BackupTable[] {
  const sortedTables = new Set<BackupTable>();
  const addAfterReferences = (table: BackupTable, path: readonly BackupTable[]): void => {
    if (sortedTables.has(table) || path.includes(table)) return;
    for (const { from, to } of references) {
      const referencedTable = from === table.name && tables.find(({ name }) => name === to);
      if (referencedTable) addAfterReferences(referencedTable, [...path, table]);
    }
    sortedTables.add(table);
  };
  for (const table of tables) addAfterReferences(table, []);
  return [...sortedTables];
}

/**
 * Reads the names and columns of all tables to back up. Each table comes after the tables that its foreign keys refer to. Exception: some
 * foreign keys form a cycle. `listEarlyReferences` returns the keys for which this order is wrong.
 */
export async function readTables(client: Client): Promise<BackupTable[]> {
  const { rows: tables } = await client.query<BackupTable>(SELECT_TABLES, [EXCLUDED_TABLES]);
  const { rows: references } = await client.query<TableReference>(SELECT_REFERENCES);
  const serviceTables = tables.filter(({ name, columns }) => isTableName(name) && columns.every(isTableName));
  return sortByReferences(serviceTables, references);
}

/** Returns the foreign keys whose rows, in this order of the tables, are loaded before the rows that they refer to. */
export async function listEarlyReferences(
  client: Client,
  tables: readonly BackupTable[],
): Promise<{ from: string; name: string }[]> {
  const { rows: references } = await client.query<TableReference>(SELECT_REFERENCES);
  const positions = new Map(tables.map(({ name }, position) => [name, position]));
  return references.filter(({ from, to }) => positions.get(from)! < positions.get(to)!);
}

const SELECT_PARTITIONS = `
  SELECT parent.relname AS table, child.relname AS name,
         substring(bound FROM 'FROM \\(''?(-?\\d+)')::bigint AS low, substring(bound FROM 'TO \\(''?(-?\\d+)')::bigint AS high
    FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid JOIN pg_class AS parent ON parent.oid = inhparent
    CROSS JOIN LATERAL (SELECT pg_get_expr(child.relpartbound, child.oid) AS bound) AS bounds
   WHERE parent.relkind = 'p' AND parent.relnamespace = 'public'::regnamespace ORDER BY parent.relname, low NULLS FIRST`;

export interface BackupPartition {
  table: string;
  name: string;
  low: number | null;
  high: number | null;
}

export const readPartitions = async (client: Client): Promise<BackupPartition[]> =>
  (await client.query<BackupPartition>(SELECT_PARTITIONS)).rows;

/**
 * Position of a sequence. If `called` is true, `last` is the last number that the sequence returned. Otherwise `last` is the first number
 * that the sequence will return.
 */
export interface BackupSequence {
  name: string;
  /** A string if the number is not a safe integer in JavaScript. */
  last: number | string;
  called: boolean;
}

/** Reads the positions of all sequences except that of the table of migrations. */
export async function readSequences(client: Client): Promise<BackupSequence[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT sequencename AS name FROM pg_sequences
      WHERE schemaname = 'public' AND sequencename <> 'migration_id_seq' ORDER BY sequencename`,
  );
  const sequences: BackupSequence[] = [];
  for (const { name } of rows.filter((row) => isTableName(row.name))) {
    const state = await client.query<{ last: string; called: boolean }>(
      `SELECT last_value::text AS last, is_called AS called FROM public.${quoteName(name)}`,
    );
    const { last, called } = state.rows[0]!;
    const number = Number(last);
    sequences.push({ name, last: Number.isSafeInteger(number) ? number : last, called });
  }
  return sequences;
}

/**
 * Reads the names of the applied migrations. Returns null if the table of migrations does not exist: the database is not one of this
 * service.
 */
export async function readMigrations(client: Client): Promise<string[] | null> {
  const { rows } = await client.query<{ exists: boolean }>(
    "SELECT to_regclass('public.migration') IS NOT NULL AS \"exists\"",
  );
  if (!rows[0]!.exists) return null;
  return (await client.query<{ name: string }>("SELECT name FROM public.migration ORDER BY id")).rows.map(
    ({ name }) => name,
  );
}
