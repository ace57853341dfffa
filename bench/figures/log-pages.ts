/**
 * Measures how long a page of the execution log takes over HTTP, for several sizes of the log. The baseline is a bare query by pg for the
 * newest entries.
 */
import { Client } from "pg";
import { computeMedian, type FigureRow, timeCalls } from "../harness/figure.js";
import { type BenchService, startBenchService } from "../harness/service.js";

export const title = "a page of 50 entries of the execution log over HTTP, by the size of the log";

const LOG_SIZES = [10_000, 100_000, 1_000_000];
const CALL_COUNT = 40;
const WARM_UP_CALLS = 10;
const PAGE_LIMIT = 50;
const BASELINE_NAME = "the query alone, by pg";
const ENTRY_DATA = JSON.stringify({ payload: null, result: { data: { order: 1 }, success: true } });

/** Inserts `to - from` log entries of one app, a second apart. Their runs do not exist. */
async function insertEntries(db: Client, appId: number, from: number, to: number): Promise<void> {
  await db.query("SET statement_timeout = 0; SET synchronous_commit = off");
  await db.query(
    `INSERT INTO execution_log (app_id, task_id, run_id, type, data, payload_at, created_at)
     SELECT $1, n % 20, n, 'app.task.completed', $2, 12, now() - (${LOG_SIZES.at(-1)} - n) * interval '1 second'
     FROM generate_series($3::bigint + 1, $4) AS n`,
    [appId, ENTRY_DATA, from, to],
  );
  await db.query("VACUUM ANALYZE execution_log");
}

/** Returns the median duration of the call, in milliseconds. */
async function measureMedianDuration(call: () => Promise<unknown>): Promise<number> {
  await timeCalls(WARM_UP_CALLS, call);
  return computeMedian(await timeCalls(CALL_COUNT, call));
}

async function measurePages({ call, first }: BenchService, db: Client, size: number): Promise<FigureRow[]> {
  const { appId } = first;
  const readPage = (options: object) =>
    call("POST", `/v3/apps/${appId}/actions/logs`, { limit: PAGE_LIMIT, ...options });
  const text = `SELECT * FROM execution_log WHERE app_id = $1 ORDER BY id DESC LIMIT ${PAGE_LIMIT}`;
  const bareDuration = await measureMedianDuration(() => db.query({ name: "bare", text, values: [appId] }));
  // The cursor leads to a page in the middle of the log: half of the entries are older.
  const { nextCursor } = await readPage({ offset: size / 2 });
  const floor = { name: BASELINE_NAME, value: bareDuration };
  const pageVariants: [string, object][] = [
    ["first page", {}],
    ["page in the middle, by cursor", { cursor: nextCursor }],
  ];
  const rows: FigureRow[] = [];
  for (const [name, options] of pageVariants) {
    const value = await measureMedianDuration(() => readPage(options));
    const entries = size.toLocaleString("en");
    rows.push({
      name: `${name}, ${entries} entries, p50`,
      value,
      unit: "ms",
      floor,
      size: { line: name, of: "entries", value: size },
    });
  }
  return rows;
}

export async function run(): Promise<FigureRow[]> {
  const service = await startBenchService({ ROLES: "api" });
  const db = new Client(service.databaseUrl);
  try {
    await db.connect();
    const rows: FigureRow[] = [];
    for (const [sizeIndex, size] of LOG_SIZES.entries()) {
      await insertEntries(db, service.first.appId, LOG_SIZES[sizeIndex - 1] ?? 0, size);
      rows.push(...(await measurePages(service, db, size)));
    }
    return rows;
  } finally {
    await db.end();
    await service.stop();
  }
}
