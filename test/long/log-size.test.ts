/**
 * Compares the time to list log entries of a long log with that of a short log (by default, a thousandth of the entries). The measurements
 * alternate between both logs, so that only the ratio counts.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Client } from "pg";
import { readConfig } from "../../src/config.js";
import { openDatabase } from "../../src/data/database.js";
import { ExecutionLogs } from "../../src/operations/records/execution-logs.js";
import { RunSearch } from "../../src/operations/records/run-words.js";
import { Partitions } from "../../src/operations/upkeep/partitions.js";
import { createRowCursor } from "../../src/rules/page.js";
import { startService } from "../../src/service.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { createFirstCredentials } from "../harness/service.js";
import { until } from "../harness/until.js";

const SMALL_LOG_ENTRIES = 10_000;
/** Number of entries in the long log. LOG_ENTRIES=1000000 is quicker. */
const LARGE_LOG_ENTRIES = Number(process.env["LOG_ENTRIES"] ?? 10_000_000);
/** URL of a database that already has the long log, but no app. By default, the test fills a new database. The test deletes the log. */
const GROWN_DATABASE_URL = process.env["LOG_DATABASE"];
const DAYS = 30;
const ROUNDS = 200;
const ACTIONS = 20;
/** Number of callers that run actions while partitions are dropped. */
const CALLERS = 4;
const QUIET_RUNS = 1_000;

interface FilledLog extends ConnectedDatabase {
  size: number;
  dataDir: string;
  token: string;
  logs: ExecutionLogs;
  words: RunSearch;
}

/** Inserts runs of the last 30 days with their log entries and search words. One in fifty failed; one in 10,000 has the word `rare`. */
async function fill(url: string, size: number): Promise<void> {
  const chunk = Math.ceil(size / DAYS);
  // A client of its own, because the connections of `Db` end a statement after 30 seconds.
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query("SET statement_timeout = 0; SET synchronous_commit = off");
  for (const table of ["run", "console_line", "run_search", "execution_log"]) {
    // Creates one partition for each day, in place of the two partitions that the migration has created.
    await client.query(`DROP TABLE ${table}_p1, ${table}_rest`);
    for (let day = 0; day < DAYS; day += 1) {
      const low = day === 0 ? "MINVALUE" : day * chunk + 1;
      const high = (day + 1) * chunk + 1;
      await client.query(`CREATE TABLE ${table}_d${day} PARTITION OF ${table} FOR VALUES FROM (${low}) TO (${high})`);
    }
    await client.query(
      `CREATE TABLE ${table}_rest PARTITION OF ${table} FOR VALUES FROM (${DAYS * chunk + 1}) TO (MAXVALUE)`,
    );
  }
  for (let day = 0; day < DAYS; day += 1) {
    const numbers = `generate_series(${day * chunk + 1}, ${Math.min((day + 1) * chunk, size)}) AS n`;
    const at = `now() - ${DAYS - day} * interval '1 day' + (n - ${day * chunk}) * interval '86000 seconds' / ${chunk}`;
    await client.query(`
      INSERT INTO run (id, app_id, action_id, copy, trigger, payload, state, queued_at, finished_at, log_id)
        SELECT n, 1, n % ${ACTIONS}, 'production', 'manual', '{"order":1}', CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'completed' END,
               ${at}, ${at}, n FROM ${numbers};
      INSERT INTO execution_log (id, app_id, task_id, run_id, type, data, payload_at, created_at)
        SELECT n, 1, n % ${ACTIONS}, n, CASE WHEN n % 50 = 0 THEN 'app.task.failed' ELSE 'app.task.completed' END,
               '{"payload":null,"result":{"data":{"order":1},"success":true}}', 12, ${at} FROM ${numbers};
      INSERT INTO run_search (run_id, words)
        SELECT n, array_to_tsvector(ARRAY['@1', 'order', 'result', 'n' || n] ||
               CASE WHEN n % 10000 = 0 THEN ARRAY['rare'] ELSE '{}' END) FROM ${numbers}`);
  }
  for (const table of ["run", "execution_log"]) {
    await client.query(`SELECT setval('${table}_id_seq', ${size})`);
    await client.query(`VACUUM ANALYZE ${table}`);
  }
  await client.query("VACUUM ANALYZE run_search");
  // Marks all words as indexed, so that no service starts to index them.
  await client.query("UPDATE run_search_mark SET newest = now(), oldest = '-infinity'");
  await client.end();
}

async function connectToDatabase(url: string): Promise<ConnectedDatabase> {
  const db = await openDatabase(url, 10);
  return { db, url, stop: () => db.destroy() };
}

async function createLog(size: number, url?: string): Promise<FilledLog> {
  const database = await (url ? connectToDatabase(url) : connectedDatabase(10));
  const { db } = database;
  const dataDir = mkdtempSync(join(tmpdir(), "svc-log-size-"));
  const { tokens } = await createFirstCredentials(database.url, dataDir);
  if (!url) await fill(database.url, size);
  const stop = () => database.stop().finally(() => rmSync(dataDir, { recursive: true, force: true }));
  return {
    ...database,
    stop,
    size,
    dataDir,
    token: tokens.editor,
    logs: new ExecutionLogs(db),
    words: new RunSearch(db),
  };
}

/** Starts a service on the database of a log, and callers that run an action repeatedly. Collects the start and end time of each run. */
async function startRuns({ url: databaseUrl, dataDir, token }: FilledLog) {
  const service = await startService(
    readConfig({
      ...{ PORT: "0", DATABASE_URL: databaseUrl, DATA_DIR: dataDir, LOG_LEVEL: "silent", NPM_PACKAGES: "off" },
      ...{ RATE_LIMIT_MANAGE: "0", RATE_LIMIT_RUN: "0", LOG_RETENTION_DAYS: "36500" },
    }),
  );
  const actions = `${service.url}/v3/apps/1/actions`;
  const post = async (url: string, body: object) => {
    const headers = { "auth-token": token, "content-type": "application/json" };
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    expect(answer.ok, await answer.text()).to.equal(true);
  };
  const code = "async function execute(context) { return context.payload }";
  await post(actions, { name: "work", active: true, code, triggers: [{ trigger: "manual" }] });
  const runs: { startedAt: number; ended: number }[] = [];
  let over = false;
  const call = async () => {
    while (!over) {
      const startedAt = performance.now();
      await post(`${actions}/work/runWithResult`, { n: 1 });
      runs.push({ startedAt, ended: performance.now() });
    }
  };
  const callers = Promise.all(Array.from({ length: CALLERS }, call));
  return {
    runs,
    async stop() {
      over = true;
      await callers.finally(() => service.stop());
    },
  };
}

const p95 = (times: number[]) => times.sort((a, b) => a - b)[Math.floor(times.length * 0.95)]!;

describe(`a log of ${LARGE_LOG_ENTRIES} entries beside one of ${SMALL_LOG_ENTRIES}`, function () {
  this.timeout(7_200_000);
  let small: FilledLog;
  let large: FilledLog;

  before(async () => {
    small = await createLog(SMALL_LOG_ENTRIES);
    large = await createLog(LARGE_LOG_ENTRIES, GROWN_DATABASE_URL);
  });
  after(async () => {
    await small?.stop();
    await large?.stop();
  });

  const lists: Record<string, (of: FilledLog) => Promise<number>> = {
    "the first page": async ({ logs }) => (await logs.list(1, {})).logs.length,
    "the last page by its cursor": async ({ logs }) =>
      (await logs.list(1, { cursor: createRowCursor(51) })).logs.length,
    "one action": async ({ logs }) => (await logs.list(1, { id: 7 })).logs.length,
    failures: async ({ logs }) => (await logs.list(1, { where: { type: "app.task.failed" } })).logs.length,
    "a word of every run": async ({ words }) => (await words.find(1, "order", { limit: 50 })).length,
    "a word of one run": async ({ words, size }) => (await words.find(1, `n${size / 2}`, { limit: 50 })).length,
    "a rare word": async ({ words }) => Math.min(1, (await words.find(1, "rare", { limit: 50 })).length),
  };

  for (const [name, list] of Object.entries(lists)) {
    it(`makes a list at most twice as slow: ${name}`, async () => {
      const times = new Map<FilledLog, number[]>([
        [small, []],
        [large, []],
      ]);
      for (let round = 0; round < ROUNDS + 20; round += 1) {
        const found: number[] = [];
        for (const [sized, durations] of times) {
          const start = performance.now();
          found.push(await list(sized));
          // During the first calls, PostgreSQL still plans the statements.
          if (round >= 20) durations.push(performance.now() - start);
        }
        expect(found[0], "both find as much").to.equal(found[1]);
      }
      const [before, after] = [p95(times.get(small)!), p95(times.get(large)!)];
      process.stdout.write(
        `      p95 ${before.toFixed(2)} ms, ${after.toFixed(2)} ms: ${(after / before).toFixed(2)} times\n`,
      );
      expect(after).to.be.below(before * 2);
    });
  }

  it("is deleted in under ten seconds, which makes the p95 of runs at most 20 % longer", async () => {
    const beside = await startRuns(large);
    const { runs } = beside;
    // During the first calls, the browser still creates pages.
    await until(() => runs.length > QUIET_RUNS, 300_000);
    const start = performance.now();
    // With this retention, all partitions are too old.
    expect(await new Partitions({ db: large.db, days: -2 }).dropOldPartitions()).to.be.at.least(2 * (DAYS - 1));
    const end = performance.now();
    const ended = runs.length;
    await until(() => runs.length > ended + QUIET_RUNS, 300_000);
    await beside.stop();
    const runsDuring = runs.filter((run) => run.ended > start && run.startedAt < end);
    // The comparison uses runs before and after the deletion, because the speed of the machine varies over time.
    const quiet = runs.slice(QUIET_RUNS / 5).filter((run) => run.ended <= start || run.startedAt >= end);
    const timesOf = (measuredRuns: typeof runs) => measuredRuns.map((run) => run.ended - run.startedAt);
    const [p95Otherwise, p95During] = [p95(timesOf(quiet)), p95(timesOf(runsDuring))];
    const seconds = (end - start) / 1_000;
    process.stdout.write(
      `      dropped in ${seconds.toFixed(1)} s; p95 of ${quiet.length} runs before and after ${p95Otherwise.toFixed(1)} ms, of ${runsDuring.length} meanwhile ${p95During.toFixed(1)} ms: ${(p95During / p95Otherwise).toFixed(2)} times\n`,
    );
    expect(seconds).to.be.below(10);
    expect(runsDuring.length).to.be.above(CALLERS);
    expect(p95During).to.be.below(p95Otherwise * 1.2);
    expect(
      (await large.db.query("SELECT count(*)::int AS n FROM execution_log WHERE id <= $1", [LARGE_LOG_ENTRIES]))[0].n,
    ).to.equal(0);
  });
});
