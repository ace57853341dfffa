/** Migrates the schema of a large database while a service runs. It partitions three tables, but requests do not wait for it. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { Client } from "pg";
import { migrateDatabase } from "../../src/data/database.js";
import { CALLED_ACTIONS, createRequests, createResponseCounts, type ResponseCounts } from "../harness/callers.js";
import { emptyDatabase, type FreshDatabase } from "../harness/postgres.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { checkOutReleaseBefore, type Release } from "../harness/release-before.js";
import { sendRequestsUntil } from "../harness/unrest.js";

/** Number of rows in each of TABLES. LOG_ENTRIES=100000 is quicker. */
const ROWS = Number(process.env["LOG_ENTRIES"] ?? 3_000_000);
const LAST_MIGRATION_WITHOUT_PARTITIONS = "RunHistory1763600175000";
const TABLES = ["run", "execution_log", "log_event"];
/** Maximum wait of a caller in milliseconds. The migration tries to get its locks for half a second at a time. */
const WAIT_MAX_MS = 3_000;

const FILL_TABLES = `
  INSERT INTO run (app_id, action_id, copy, trigger, payload, state, queued_at, finished_at)
    SELECT $1, 1 + n % 20, 'production', 'manual', '{"order":1}', 'completed', at, at FROM ONCE;
  INSERT INTO execution_log (app_id, task_id, run_id, type, data, created_at)
    SELECT $1, 1 + n % 20, n, 'app.task.completed', '{"payload":{"order":1},"result":{"data":1,"success":true}}', at FROM ONCE;
  INSERT INTO log_event (app_id, request_id, type, data, created_at)
    SELECT $1, gen_random_uuid(), 'dataSource.entry.create', '{"order":1}', at FROM ONCE`;

describe(`the schema of a database with ${ROWS} runs`, function () {
  this.timeout(3_600_000);
  let release: Release;
  let database: FreshDatabase;
  let client: Client;
  let old: ServiceProcess;
  let url: string;
  let appId: number;
  let token: string;
  const settingsKey = randomBytes(32).toString("base64");

  before(async () => {
    release = checkOutReleaseBefore(LAST_MIGRATION_WITHOUT_PARTITIONS);
    database = await emptyDatabase();
    old = startProcess(environment(), undefined, release.root);
    url = await old.ready();
    ({
      appId,
      tokens: { editor: token },
    } = release.createFirstCredentials(database.url, old.dataDir));
    client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query("SET synchronous_commit = off");
  });
  after(async () => {
    await client?.end();
    old?.signal("SIGTERM");
    await old?.ended;
    await old?.clean();
    await database?.drop();
    release?.remove();
  });

  /** Variables with which the service removes no old rows, neither by their age nor by their size. */
  const environment = () => ({
    DATABASE_URL: database.url,
    SETTINGS_KEY: settingsKey,
    ...{ LOG_RETENTION_DAYS: "36500", LOG_MAX_MB: "0" },
  });

  async function call(method: string, path: string, body?: object) {
    const headers = { "auth-token": token, "content-type": "application/json" };
    const answer = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    expect(answer.status, `${method} ${path}`).to.be.within(200, 299);
    return answer.json();
  }

  async function fill(): Promise<void> {
    const rowSource = `generate_series(1, ${ROWS}) AS n, LATERAL (SELECT now() - interval '20 days' * (1 - n / ${ROWS}.0) AS at) AS moment`;
    for (const statement of FILL_TABLES.split(";")) {
      await client.query(statement.replace("ONCE", rowSource).replaceAll("$1", String(appId)));
    }
    await client.query("ANALYZE");
  }

  async function counts(): Promise<number[]> {
    const list = TABLES.map((table) => `(SELECT count(*)::int FROM ${table})`).join();
    return (await client.query(`SELECT ARRAY[${list}] AS counts`)).rows[0].counts;
  }

  /** Starts one caller that starts runs, and another that uses the rest of the API. Collects the responses and the longest duration. */
  function startCallers() {
    let longest = 0;
    let over = false;
    const timed = (request: () => Promise<{ status?: string }>) => () => {
      const startedAt = performance.now();
      return request().finally(() => {
        longest = Math.max(longest, performance.now() - startedAt);
      });
    };
    const [runs, others]: ResponseCounts[] = [createResponseCounts(), createResponseCounts()];
    const target = { url: () => url, appId, token };
    const asking = Promise.all([
      sendRequestsUntil(createRequests(target, runs!).runs.map(timed), runs!, () => over),
      sendRequestsUntil(createRequests(target, others!).others.map(timed), others!, () => over),
    ]);
    return {
      async stop() {
        over = true;
        await asking;
        return { runs: runs!, others: others!, longest };
      },
    };
  }

  it(`is migrated under load: no caller waits for ${WAIT_MAX_MS} ms, only runs may be rejected, and no row is lost`, async () => {
    await call("POST", `/v1/apps/${appId}/publish`);
    for (const fields of CALLED_ACTIONS) {
      const body = { ...fields, code: "async function execute() { return 1; }", active: true };
      const { action } = (await call("POST", `/v3/apps/${appId}/actions`, body)) as { action: { id: number } };
      await call("POST", `/v3/apps/${appId}/actions/${action.id}/publish`);
    }
    await fill();
    const before = await counts();
    const callers = startCallers();
    const startedAt = performance.now();
    await migrateDatabase(database.url).catch(async (error: unknown) => {
      await callers.stop();
      throw error;
    });
    const durationMs = performance.now() - startedAt;
    const { runs, others, longest } = await callers.stop();
    process.stdout.write(
      `      changed in ${(durationMs / 1000).toFixed(1)} s; longest answer ${longest.toFixed(0)} ms; runs ${JSON.stringify(runs.counts)}, others ${JSON.stringify(others.counts)}\n`,
    );
    expect(Object.keys(others.counts).filter((status) => !status.startsWith("2"))).to.deep.equal([]);
    // After the partitioning, a process of the previous release starts no runs and responds with 500, as docs/operate/upgrading.md says.
    expect(Object.keys(runs.counts).filter((status) => !/^2|^500 INTERNAL_ERROR$/.test(status))).to.deep.equal([]);
    expect(longest).to.be.below(WAIT_MAX_MS);
    const acknowledged = [...new Set(runs.acknowledged)];
    const after = await counts();
    for (const [at, table] of TABLES.entries()) expect(after[at], table).to.be.at.least(before[at]!);
    const found = "SELECT count(*)::int AS count FROM run WHERE id = ANY ($1::bigint[])";
    expect((await client.query(found, [acknowledged])).rows[0].count).to.equal(acknowledged.length);
    await expectServed();
  });

  /** Starts this release on the migrated database. Expects that a new run has the next ID, and that the last old run is still listed. */
  async function expectServed(): Promise<void> {
    const current = startProcess(environment());
    try {
      url = await current.ready();
      const [{ last }] = (await client.query("SELECT max(id)::int AS last FROM run")).rows;
      const { runId } = (await call("POST", `/v3/apps/${appId}/actions/subject/runWithResult`, {})) as {
        runId: number;
      };
      expect(runId).to.equal(last + 1);
      const { runs } = (await call("GET", `/v3/apps/${appId}/runs?limit=2`)) as { runs: { id: number }[] };
      expect(runs.map(({ id }) => id)).to.deep.equal([runId, last]);
    } finally {
      current.signal("SIGTERM");
      await current.ended;
      await current.clean();
    }
  }
});
