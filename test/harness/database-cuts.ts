/** Cuts the database connections of a service after random numbers of bytes. Returns the service's responses and the state of the runs. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Db, openDatabase } from "../../src/data/database.js";
import { CALLED_ACTIONS, createRequests, createResponseCounts, type ResponseCounts } from "./callers.js";
import { startCuttingProxy } from "./cutting-proxy.js";
import { freshDatabase } from "./postgres.js";
import { startProcess } from "./process.js";
import { insertPublishedActions } from "./published-actions.js";
import { createFirstCredentials } from "./service.js";
import { until } from "./until.js";

const CALLERS = 24;
/** Number of callers that also run actions. The other callers only read and write. */
const RUNNING_CALLERS = 6;
const SETTLE_LIMIT_MS = 60_000;
const READY_LIMIT_MS = 10_000;

export interface CutsOutcome {
  cuts: number;
  /** Exit code or signal of the process; null while it is alive. */
  ended: object | null;
  stderr: string;
  answers: ResponseCounts["counts"];
  /** Number of 503 responses without Retry-After. */
  withoutRetryAfter: number;
  /** IDs of acknowledged runs that have no row in `run`. */
  unknownRuns: number[];
  /** Number of runs by state. */
  runCountsByState: Record<string, number>;
  /** Number of runs, except skipped ones, that do not have exactly one log entry. */
  unlogged: number;
  /** Number of database sessions that stay idle in a transaction, plus number of advisory locks that are not released. */
  openTransactionsAndLocks: number;
  /** Milliseconds from the end of the cuts until the service was ready; NaN if the process has ended. */
  readyMs: number;
  /** Result of a run after the cuts; null if the process has ended. */
  after: unknown;
}

async function waitUntilRunsEnd(db: Db): Promise<void> {
  await db.query("DELETE FROM schedule");
  const ended = async () => (await db.query("SELECT 1 FROM run WHERE finished_at IS NULL LIMIT 1")).length === 0;
  await until(ended, SETTLE_LIMIT_MS);
}

async function checkRuns(db: Db, acknowledged: number[]) {
  const runs: { state: string; count: number }[] = await db.query("SELECT state, count(*) FROM run GROUP BY state");
  const known = new Set((await db.query("SELECT id FROM run")).map(({ id }: { id: number }) => id));
  const [{ unlogged }] = await db.query(
    `SELECT count(*) AS unlogged FROM run WHERE state <> 'skipped'
        AND (SELECT count(*) FROM execution_log WHERE run_id = run.id) <> 1`,
  );
  const left = async () =>
    (
      await db.query(
        `SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%')
              + (SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
                  WHERE d.datname = current_database() AND locktype = 'advisory') AS count`,
      )
    )[0].count as number;
  // Waits, because PostgreSQL ends the session of a cut connection with a delay, and because the service also opens short transactions.
  const none = until(async () => (await left()) === 0);
  return {
    unknownRuns: acknowledged.filter((id) => !known.has(id)),
    runCountsByState: Object.fromEntries(runs.map(({ state, count }) => [state, count])),
    unlogged,
    openTransactionsAndLocks: await none.then(() => 0, left),
  };
}

export async function cutDatabaseConnections(count: number): Promise<CutsOutcome> {
  const database = await freshDatabase();
  const folder = mkdtempSync(join(tmpdir(), "svc-cuts-"));
  const { appId, tokens } = await createFirstCredentials(database.url, folder);
  const db = await openDatabase(database.url, 2);
  const proxy = await startCuttingProxy(database.url);
  const SETTINGS_KEY = randomBytes(32).toString("base64");
  const service = startProcess({ DATABASE_URL: proxy.url, SETTINGS_KEY, RUNNER_CONCURRENCY: "4" });
  try {
    const url = await service.ready();
    const ticking = { name: "ticking", triggers: [{ trigger: "schedule" as const }], frequency: "*/2 * * * *" };
    await insertPublishedActions(db, appId, [...CALLED_ACTIONS, ticking]);
    let ended: object | null = null;
    void service.ended.then((end) => (ended = end));
    const answers = createResponseCounts();
    const { runs, others, runWithResult } = createRequests({ url: () => url, appId, token: tokens.editor }, answers);
    proxy.cut();
    const over = () => ended !== null || proxy.cuts() >= count;
    const callers = Array.from({ length: CALLERS }, async (_, at) => {
      // Most callers only read and write, because runs of all callers would wait for each other.
      const requests = at < RUNNING_CALLERS ? [...runs, ...others] : others;
      for (let n = at; !over(); n += 1) await requests[n % requests.length]!();
    });
    const ticks = (async () => {
      while (!over()) {
        await db.query("UPDATE schedule SET next_tick = now() - interval '1 second'");
        await delay(1_000);
      }
    })();
    await Promise.all([...callers, ticks]).catch((error) => {
      if (!ended) throw error;
    });
    proxy.restore();
    const reconnectedAt = performance.now();
    const readyMs = ended
      ? Number.NaN
      : await until(async () => (await fetch(`${url}/health/ready`)).ok, READY_LIMIT_MS).then(
          () => performance.now() - reconnectedAt,
        );
    if (!ended) await waitUntilRunsEnd(db);
    const after = ended ? null : (await runWithResult()).result;
    const { counts, withoutRetryAfter, acknowledged } = answers;
    const verdict = await checkRuns(db, acknowledged);
    const seen = { cuts: proxy.cuts(), ended, stderr: service.stderr(), answers: counts, withoutRetryAfter };
    return { ...seen, ...verdict, readyMs, after };
  } finally {
    service.signal("SIGTERM");
    await service.ended;
    await service.clean();
    await proxy.stop();
    await db.destroy();
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  }
}
