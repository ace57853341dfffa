/** Duration of a page of the execution log over HTTP as the log grows, compared with pg reading the bare rows. */
import { Client } from "pg";
import { median, type Row, timeEach } from "../harness/figure.js";
import { type BenchService, startBenchService } from "../harness/service.js";

export const title = "a page of 50 entries of the execution log over HTTP, by the size of the log";

const SIZES = [10_000, 100_000, 1_000_000];
const CALLS = 40;
const WARM_UP = 10;
const LIMIT = 50;
const FLOOR = "the same rows by bare pg";
const DATA = JSON.stringify({ payload: null, result: { data: { order: 1 }, success: true } });

/** Entries of one app, a second apart, without their runs; `from` and `to` count entries. */
async function grow(db: Client, appId: number, from: number, to: number): Promise<void> {
  await db.query("SET statement_timeout = 0; SET synchronous_commit = off");
  await db.query(
    `INSERT INTO execution_log (app_id, task_id, run_id, type, data, payload_at, created_at)
     SELECT $1, n % 20, n, 'app.task.completed', $2, 12, now() - (${SIZES.at(-1)} - n) * interval '1 second'
     FROM generate_series($3::bigint + 1, $4) AS n`,
    [appId, DATA, from, to],
  );
  await db.query("VACUUM ANALYZE execution_log");
}

/** Milliseconds of the median call. */
async function timed(call: () => Promise<unknown>): Promise<number> {
  await timeEach(WARM_UP, call);
  return median(await timeEach(CALLS, call));
}

async function measure({ call, first }: BenchService, db: Client, size: number): Promise<Row[]> {
  const { appId } = first;
  const page = (options: object) => call("POST", `/v3/apps/${appId}/actions/logs`, { limit: LIMIT, ...options });
  const text = `SELECT * FROM execution_log WHERE app_id = $1 ORDER BY id DESC LIMIT ${LIMIT}`;
  const bare = await timed(() => db.query({ name: "bare", text, values: [appId] }));
  // Half of the log follows this cursor.
  const { nextCursor } = await page({ offset: size / 2 });
  const floor = { name: FLOOR, value: bare };
  const kinds: [string, object][] = [
    ["first page", {}],
    ["a page behind a cursor", { cursor: nextCursor }],
  ];
  const rows: Row[] = [];
  for (const [name, options] of kinds) {
    const value = await timed(() => page(options));
    const entries = size.toLocaleString("en");
    rows.push({
      name: `${name} of ${entries}, p50`,
      value,
      unit: "ms",
      floor,
      size: { line: name, of: "entries", value: size },
    });
  }
  return rows;
}

export async function run(): Promise<Row[]> {
  const service = await startBenchService({ ROLES: "api" });
  const db = new Client(service.databaseUrl);
  try {
    await db.connect();
    const rows: Row[] = [];
    for (const [at, size] of SIZES.entries()) {
      await grow(db, service.first.appId, SIZES[at - 1] ?? 0, size);
      rows.push(...(await measure(service, db, size)));
    }
    return rows;
  } finally {
    await db.end();
    await service.stop();
  }
}
