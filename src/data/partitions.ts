/** Reads the partitions of a table, with their ranges of IDs, from PostgreSQL's catalogue. */
import { rows, type SqlClient } from "./database.js";

/** Partition for IDs from `low` up to, but not including, `high`; null means no bound. */
export interface Partition {
  name: string;
  low: number | null;
  high: number | null;
}

const SELECT_PARTITIONS = `
  SELECT child.relname AS name, substring(bound FROM 'FROM \\(''?(-?\\d+)')::bigint AS low,
         substring(bound FROM 'TO \\(''?(-?\\d+)')::bigint AS high
    FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
    CROSS JOIN LATERAL (SELECT pg_get_expr(child.relpartbound, child.oid) AS bound) AS bounds
   WHERE inhparent = $1::regclass ORDER BY low NULLS FIRST`;

/** Returns the partitions of a table, the lowest IDs first. */
export const listPartitions = (db: SqlClient, table: string): Promise<Partition[]> =>
  rows<Partition>(db, SELECT_PARTITIONS, [table]);
