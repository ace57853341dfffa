import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { openDatabase } from "../../src/data/database.js";
import { freshDatabase } from "../harness/postgres.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { createFirstCredentials } from "../harness/service.js";
import { until } from "../harness/until.js";
import { createEditor } from "../service/support.js";

const QUEUED_RUNS = 100_000;
const RUNNER_KILLS = 10;
/** Number of rows that one statement inserts. */
const ROWS_PER_INSERT = 10_000;
const RUNS_BETWEEN_KILLS = 200;
const CODE = 'async function execute() { console.log("ran"); return 1 }';

const SELECT_OUTCOMES = `
  SELECT state, coalesce(reason, '') AS reason, count(*)::int AS n FROM run WHERE action_id = $1 GROUP BY 1, 2 ORDER BY 1, 2`;
const SELECT_UNEXPECTED_RUNS = `
  SELECT (SELECT count(*)::int FROM run WHERE action_id = $1 AND finished_at IS NULL) AS unfinished,
         (SELECT count(*)::int FROM run WHERE action_id = $1 AND state IN ('completed', 'failed') AND started_at IS NOT NULL
             AND (SELECT count(*) FROM execution_log WHERE run_id = run.id) <> 1) AS unlogged,
         (SELECT count(*)::int FROM (SELECT run_id FROM execution_log GROUP BY run_id HAVING count(*) > 1) AS twice) AS "loggedTwice",
         (SELECT count(*)::int FROM (SELECT run_id FROM console_line GROUP BY run_id HAVING count(*) > 1) AS twice) AS "ranTwice",
         (SELECT count(*)::int FROM run WHERE action_id = $1 AND state = 'completed'
             AND NOT EXISTS (SELECT FROM console_line WHERE run_id = run.id)) AS "completedUnrun"`;

describe(`${QUEUED_RUNS} runs in the queue`, function () {
  this.timeout(1_200_000);

  it(`each end once while runners are killed ${RUNNER_KILLS} times, and a person then cancels the remaining ones`, async () => {
    const database = await freshDatabase();
    const folder = mkdtempSync(join(tmpdir(), "svc-backlog-"));
    const { appId, tokens } = await createFirstCredentials(database.url, folder);
    const db = await openDatabase(database.url, 2);
    const settings = { DATABASE_URL: database.url, SETTINGS_KEY: randomBytes(32).toString("base64") };
    const runner = () => startProcess({ ...settings, ROLES: "runner" });
    const api = startProcess({ ...settings, ROLES: "api" });
    const runners: ServiceProcess[] = [runner(), runner()];
    const killed: Promise<void>[] = [];
    try {
      const url = await api.ready();
      await Promise.all(runners.map((runner) => runner.ready()));
      const id = await createEditor(url, tokens.editor).create("work", CODE);
      // Fills most of the queue before a process claims the first run.
      for (let sent = 0; sent < QUEUED_RUNS; sent += ROWS_PER_INSERT) {
        await db.query(
          `INSERT INTO run (app_id, action_id, copy, trigger, payload, state)
           SELECT $1, $2, 'master', 'manual', '{}', 'queued' FROM generate_series(1, ${ROWS_PER_INSERT})`,
          [appId, id],
        );
      }
      const ended = async () =>
        (await db.query("SELECT count(*)::int AS n FROM run WHERE finished_at IS NOT NULL"))[0].n as number;
      for (let kill = 0; kill < RUNNER_KILLS; kill += 1) {
        const before = await ended();
        await until(async () => (await ended()) >= before + RUNS_BETWEEN_KILLS, 120_000);
        const [at, victim] = [kill % 2, runners[kill % 2]!];
        victim.signal("SIGKILL");
        await victim.ended;
        killed.push(victim.clean());
        runners[at] = runner();
      }
      await Promise.all(runners.map((runner) => runner.ready()));
      const before = await ended();
      await until(async () => (await ended()) >= before + RUNS_BETWEEN_KILLS, 120_000);
      const headers = { "auth-token": tokens.editor };
      for (let more = true; more; ) {
        const answer = await fetch(`${url}/v3/apps/${appId}/backlog/cancel`, { method: "POST", headers });
        ({ more } = (await answer.json()) as { more: boolean });
      }
      await until(async () => (await ended()) === QUEUED_RUNS, 120_000);
      const outcomes: { state: string; n: number }[] = await db.query(SELECT_OUTCOMES, [id]);
      process.stdout.write(`      ${JSON.stringify(outcomes)}\n`);
      expect(outcomes.reduce((sum, { n }) => sum + n, 0)).to.equal(QUEUED_RUNS);
      expect(new Set(outcomes.map(({ state }) => state))).to.deep.equal(new Set(["completed", "failed", "cancelled"]));
      const [unexpected] = await db.query(SELECT_UNEXPECTED_RUNS, [id]);
      expect(unexpected).to.deep.equal({ unfinished: 0, unlogged: 0, loggedTwice: 0, ranTwice: 0, completedUnrun: 0 });
    } finally {
      for (const started of [api, ...runners]) started.signal("SIGTERM");
      await Promise.all([api, ...runners].map(({ ended }) => ended));
      await Promise.all([...killed, ...[api, ...runners].map((started) => started.clean())]);
      await db.destroy();
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
