/** Digests of the database's tables, with which tests check that requests change nothing. */
import { rows } from "../../src/data/database.js";
import type { TestService } from "../harness/service.js";

/** Tables that the service writes at every request (times of last use, counted requests) or in the background. */
const ALWAYS_WRITTEN_TABLES = [
  "credential",
  "person_session",
  "person",
  "sign_in_failure",
  "instance",
  "alert_cursor",
  "media_orphan",
];

/** Returns a digest of the rows of each table, except the tables in ALWAYS_WRITTEN_TABLES. */
export async function tableStates({ db }: TestService): Promise<Map<string, string>> {
  const tables = await rows<{ name: string }>(
    db,
    "SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
  );
  const states = new Map<string, string>();
  for (const { name } of tables.filter((table) => !ALWAYS_WRITTEN_TABLES.includes(table.name))) {
    const sql = `SELECT coalesce(md5(string_agg(t::text, ' ' ORDER BY t::text)), '') AS state FROM "${name}" t`;
    const [found] = await rows<{ state: string }>(db, sql);
    states.set(name, found!.state);
  }
  return states;
}
