/**
 * Indexes that editors ask for: made and dropped beside the requests, on the very expressions that where and order are compiled to.
 * Knows no caller, and not where the wishes are kept.
 */
import { createHash } from "node:crypto";
import pg from "pg";
import type { Logger } from "pino";
import { ActionError } from "../../errors.js";
import { createClient } from "../../postgres.js";
import { refuse } from "../../rules/entry-query/judge.js";
import { arrayAt, keyAt, type Path, parsePath, type Source, typesOnTheWay } from "../../rules/entry-query/path.js";
import { Statement } from "../../rules/entry-query/statement.js";
import type { DataSourceKey } from "./entry-rows.js";

/** One column's path or several. */
export type IndexWish = string | readonly string[];

export type IndexState = "ready" | "missing";

/** Each is looked at by the planner of every query on entries, whoever asks: a hundred of them cost each query 0.8 ms. */
export const INDEXES_PER_DATA_SOURCE = 5;
export const INDEXES_PER_APP = 20;
export const INDEXES_MAX = 100;
const COLUMNS_MAX = 3;

/** Definitions take no parameters: the same expressions, with their values written into them. */
class Definition extends Statement {
  override bind(value: unknown, type: string): string {
    return `${pg.escapeLiteral(String(value))}::${type}`;
  }
}

const ENTRY: Source = { doc: "doc", entry: null, sees: () => true };

const columnsOf = (wish: IndexWish): readonly string[] => (typeof wish === "string" ? [wish] : wish);

/** @throws REQUEST_INVALID naming what is no column of an index */
export function checkIndexes(wishes: unknown, place = "indexes"): IndexWish[] {
  if (!Array.isArray(wishes) || wishes.length > INDEXES_PER_DATA_SOURCE) {
    refuse(place, `an array of at most ${INDEXES_PER_DATA_SOURCE} columns or lists of columns`, wishes);
  }
  for (const [at, wish] of wishes.entries()) {
    const columns: unknown[] = Array.isArray(wish) ? wish : [wish];
    if (columns.length === 0 || columns.length > COLUMNS_MAX)
      refuse(`${place}[${at}]`, `1 to ${COLUMNS_MAX} columns`, wish);
    for (const column of columns) pathOf(column, `${place}[${at}]`);
  }
  return wishes;
}

function pathOf(column: unknown, place: string): Path & { own: null } {
  const path = parsePath(column, place, { entry: "" });
  if (path.own !== null) refuse(place, "a column; the entry's own fields need no index", column);
  return path;
}

/** Nothing that a caller wrote is in it. */
function nameOf({ appId, id }: DataSourceKey, wish: IndexWish): string {
  const hash = createHash("sha256")
    .update(JSON.stringify(columnsOf(wish)))
    .digest("hex")
    .slice(0, 16);
  return `entry_ix_${appId}_${id}_${hash}`;
}

/** What is made for a wish, each by its name; of one kind of thing the names begin alike. */
interface Made {
  name: string;
  create: string;
}

/**
 * An index of the values that stand directly at the paths; where arrays may be on the way to the first, one of the entries that have
 * some, which are looked through one by one. And figures of what the expressions hold: the planner takes none from an index that is
 * of one data source alone, and would guess.
 */
function definitions(key: DataSourceKey, wish: IndexWish): Made[] {
  const statement = new Definition();
  const paths = columnsOf(wish).map((column) => pathOf(column, "indexes"));
  const [name, first] = [nameOf(key, wish), paths[0]!.segments];
  const part = `WHERE app_id = ${Number(key.appId)} AND data_source_id = ${Number(key.id)}`;
  const keys = paths.map((path) => `(${keyAt(path, ENTRY, statement)})`);
  const index = (suffix: string, sql: string): Made => ({
    name: name + suffix,
    create: `CREATE INDEX CONCURRENTLY IF NOT EXISTS ${name}${suffix} ON data_source_entry ${sql}`,
  });
  const made = [index("", `(${[...keys, "id"].join(", ")}) ${part}`)];
  const types = typesOnTheWay(first, ENTRY, statement);
  if (types.length > 0) made.push(index("_a", `(id) ${part} AND ${arrayAt(first, ENTRY, statement)}`));
  const figures = [...keys, ...types.map((type) => `(${type})`)];
  return [
    ...figures.map((expression, at) => {
      const figure = `${name}_s${at}`;
      return {
        name: figure,
        create: `CREATE STATISTICS IF NOT EXISTS ${figure} ON ${expression} FROM data_source_entry`,
      };
    }),
    ...made,
  ];
}

const isFigure = (name: string): boolean => /_s\d$/.test(name);

export type EntryIndexes = ReturnType<typeof createEntryIndexes>;

export function createEntryIndexes({ url, log }: { url: string; log: Logger }) {
  /** One at a time in this process: each is work for the whole table. */
  let last: Promise<unknown> = Promise.resolve();

  async function alone<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const turn = last.then(async () => {
      const client = createClient(url, "svc-app-actions indexes");
      await client.connect();
      return work(client).finally(() => client.end());
    });
    last = turn.catch(() => undefined);
    return turn;
  }

  /** What there is for the data source, and whether it is whole. */
  async function existing(client: pg.Client, key: DataSourceKey): Promise<Map<string, boolean>> {
    const { rows } = await client.query<{ name: string; valid: boolean }>(
      `SELECT relname AS name, indisvalid AS valid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE indrelid = 'data_source_entry'::regclass AND relname LIKE $1
       UNION ALL
       SELECT stxname, true FROM pg_statistic_ext WHERE stxrelid = 'data_source_entry'::regclass AND stxname LIKE $1`,
      [`entry\\_ix\\_${key.appId}\\_${key.id}\\_%`],
    );
    return new Map(rows.map(({ name, valid }) => [name, valid]));
  }

  async function checkRoom(client: pg.Client, key: DataSourceKey, more: number): Promise<void> {
    const { rows } = await client.query<{ all: number; app: number }>(
      `SELECT count(*) AS all, count(*) FILTER (WHERE relname LIKE $1) AS app FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE indrelid = 'data_source_entry'::regclass AND relname LIKE 'entry\\_ix\\_%' AND relname NOT LIKE '%\\_a'`,
      [`entry\\_ix\\_${key.appId}\\_%`],
    );
    const { all, app } = rows[0]!;
    if (app + more > INDEXES_PER_APP) {
      throw new ActionError("REQUEST_INVALID", `an app may have ${INDEXES_PER_APP} indexes on its data sources`);
    }
    if (all + more > INDEXES_MAX) {
      throw new ActionError("REQUEST_INVALID", `the service has as many indexes on entries as it may, ${INDEXES_MAX}`);
    }
  }

  const dropAll = async (client: pg.Client, names: Iterable<string>) => {
    for (const name of names) {
      await client.query(
        `DROP ${isFigure(name) ? "STATISTICS" : "INDEX CONCURRENTLY"} IF EXISTS ${pg.escapeIdentifier(name)}`,
      );
    }
  };

  return {
    /**
     * Makes what is wished for and drops what is not any more; takes as long as the entries are many, and holds up no request. One that
     * cannot be made, for a value is too long to be a key of it, is left away.
     * @throws REQUEST_INVALID where an app or the service has too many
     */
    apply: (key: DataSourceKey, wishes: readonly IndexWish[]): Promise<void> =>
      alone(async (client) => {
        const held = await existing(client, key);
        const wished = wishes.flatMap((wish) => definitions(key, wish));
        const names = new Set(wished.map(({ name }) => name));
        // One that is not valid was left by a process that ended while it made it.
        await dropAll(
          client,
          [...held].flatMap(([name, valid]) => (names.has(name) && valid ? [] : [name])),
        );
        const missing = wished.filter(({ name }) => held.get(name) !== true);
        await checkRoom(client, key, missing.filter(({ name }) => !/_(?:a|s\d)$/.test(name)).length);
        for (const { name, create } of missing) {
          try {
            await client.query(create);
          } catch (error) {
            log.warn({ err: error, index: name }, "an index on entries could not be made");
            await dropAll(client, [name]);
          }
        }
        if (missing.length > 0) await client.query("ANALYZE data_source_entry");
      }),

    /** Of a data source that is gone. */
    drop: (key: DataSourceKey): Promise<void> =>
      alone(async (client) => dropAll(client, (await existing(client, key)).keys())),

    /** Which of the wishes queries use by now. */
    states: (key: DataSourceKey, wishes: readonly IndexWish[]): Promise<IndexState[]> =>
      alone(async (client) => {
        const held = await existing(client, key);
        return wishes.map((wish) => (definitions(key, wish).every(({ name }) => held.get(name)) ? "ready" : "missing"));
      }),

    /** When nothing is under way any more. */
    idle: (): Promise<unknown> => last,
  };
}
