import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { openDatabase } from "../../src/data/database.js";
import { type CuttingProxy, startCuttingProxy } from "../harness/cutting-proxy.js";
import { freshDatabase } from "../harness/postgres.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

/** Maximum time of a response in milliseconds: the longest statement, plus the time after which a silent database counts as lost. */
const ANSWER_LIMIT_MS = 50_000;

describe("a connection to the database that is idle", () => {
  it("stays open while it is idle for 50 s, and the next statement uses it", async () => {
    const database = await freshDatabase();
    const db = await openDatabase(database.url, 1);
    const pid = async () => (await db.query("SELECT pg_backend_pid() AS pid"))[0].pid;
    const before = await pid();
    await delay(ANSWER_LIMIT_MS);
    expect(await pid()).to.equal(before);
    await db.destroy();
    await database.drop();
  });
});

describe("a database that stops responding", () => {
  let proxy: CuttingProxy;
  let service: TestService;

  before(async () => {
    service = await startTestService({}, async (databaseUrl) => {
      proxy = await startCuttingProxy(databaseUrl);
      return proxy.url;
    });
  });
  after(async () => {
    proxy.restore();
    await service.stop();
    await proxy.stop();
  });

  const ready = async () => (await fetch(`${service.url}/health/ready`)).ok;

  it("makes callers wait at most 50 s for a 503; the service is not ready, and is ready again after the outage", async () => {
    const ask = () => service.rest("GET", `/v3/apps/${service.appId}/actions`);
    expect((await ask()).http).to.equal(200);
    proxy.stopForwarding();
    const startedAt = performance.now();
    const answers = await Promise.all(Array.from({ length: 20 }, ask));
    expect(performance.now() - startedAt).to.be.below(ANSWER_LIMIT_MS);
    expect(answers.map(({ http }) => http)).to.deep.equal(Array(20).fill(503));
    expect(await ready()).to.equal(false);
    proxy.restore();
    await until(ready, 15_000);
    expect((await ask()).http).to.equal(200);
  });
});
