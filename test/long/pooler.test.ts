/** Tests the service behind PgBouncer in transaction mode. Runs only if PgBouncer is installed (`apt-get install pgbouncer`). */
import { expect } from "chai";
import { Client } from "pg";
import { type ConnectionPooler, hasPgbouncer, startPgbouncer } from "../harness/pgbouncer.js";
import { type OwnService, startTestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const describeWhereInstalled = (title: string, body: (this: Mocha.Suite) => void) => {
  if (hasPgbouncer()) describe(title, body);
  else process.stderr.write(`not run, because PgBouncer is not installed: ${title}\n`);
};

describeWhereInstalled("the service behind a pooler in transaction mode", function () {
  this.timeout(120_000);
  let service: OwnService;
  let pooler: ConnectionPooler;

  before(async () => {
    let direct = "";
    const environment: Record<string, string> = { RUNNER_CONCURRENCY: "2" };
    service = await startTestService(environment, async (url) => {
      direct = url;
      environment["DATABASE_DIRECT_URL"] = direct;
      pooler = await startPgbouncer(url);
      return pooler.urlThroughPooler(url);
    });
  });
  after(async () => {
    await service?.stopService();
    // PgBouncer holds connections to the database, so it stops before the database is dropped.
    await pooler?.stop();
    await service?.stop();
  });

  const actions = () => `/v3/apps/${service.appId}/actions`;
  const make = (name: string, code: string) =>
    service.rest("POST", actions(), { body: { name, active: true, code, triggers: [{ trigger: "manual" }] } });

  it("executes each of 60 calls with a result and 60 queued calls once", async () => {
    await make("hello", "async function execute(context) { console.log(1); return context.payload.n }");
    const numbers = Array.from({ length: 60 }, (_, n) => n);
    const answers = await Promise.all(
      numbers.map((n) => service.rest("POST", `${actions()}/hello/runWithResult`, { body: { n } })),
    );
    expect(answers.map(({ body }) => body.result)).to.deep.equal(numbers);
    const queued = await Promise.all(
      numbers.map((n) => service.rest("POST", `${actions()}/hello/run`, { body: { n } })),
    );
    expect(queued.map(({ http }) => http)).to.deep.equal(numbers.map(() => 202));
    await until(async () => {
      const [row] = await service.db.query("SELECT count(*)::int AS n FROM run WHERE state = 'completed'");
      return row.n === 120;
    }, 60_000);
    const [entries] = await service.db.query(
      "SELECT count(*)::int AS n, count(DISTINCT run_id)::int AS runs FROM execution_log",
    );
    expect(entries).to.deep.equal({ n: 120, runs: 120 });
  });

  it("receives notifications: an entry reaches its subscriber", async () => {
    const socket = service.socket();
    const next = socket.iterate({ query: `subscription { actionLogAdded(appId: ${service.appId}) { type } }` }).next();
    await new Promise<void>((resolve) => {
      socket.on("connected", () => resolve());
    });
    const received = next.then(
      ({ value }) => (value as { data: { actionLogAdded: { type: string } } }).data.actionLogAdded.type,
    );
    let done = false;
    void received.then(() => {
      done = true;
    });
    await until(async () => {
      await service.rest("POST", `${actions()}/hello/runWithResult`, { body: {} });
      return done;
    });
    expect(await received).to.equal("app.task.completed");
    await socket.dispose();
  });

  it("creates indexes, stores settings, and answers queries on data sources", async () => {
    const base = `/v1/apps/${service.appId}/data-sources`;
    const made = await service.rest("POST", base, {
      body: { name: "Seats", columns: [], indexes: [{ columns: ["Seat"], unique: true }], entries: [{ Seat: "A1" }] },
    });
    expect(made.http).to.equal(201);
    const again = await service.rest("POST", `${base}/Seats/entries`, { body: { data: { Seat: "A1" } } });
    expect(again.body.status).to.equal("ENTRY_ALREADY_EXISTS");
    const found = await service.rest("POST", `${base}/Seats/query`, { body: {} });
    expect(found.body.entries.length).to.equal(1);
  });

  it("does not start if it only has the pooler, and reports what is missing", async () => {
    const wrong = startTestService({ ROLES: "api" }, (url) => pooler.urlThroughPooler(url));
    expect(await wrong.catch((error: Error) => error.message)).to.match(
      /^DATABASE_URL points to a connection pooler; set DATABASE_DIRECT_URL/,
    );
  });

  it("is ready, and has sent its statements through the pooler", async () => {
    expect((await service.rest("GET", "/health/ready", { as: null })).body).to.deep.equal({ status: "READY" });
    const admin = new Client({
      connectionString: pooler.urlThroughPooler(service.databaseUrl.replace(/\/[^/]*$/, "/pgbouncer")),
    });
    await admin.connect();
    try {
      const { rows } = await admin.query("SHOW STATS");
      const name = new URL(service.databaseUrl).pathname.slice(1);
      const { total_xact_count: count } = rows.find(({ database }) => database === name);
      expect(Number(count)).to.be.greaterThan(100);
    } finally {
      await admin.end();
    }
  });
});
