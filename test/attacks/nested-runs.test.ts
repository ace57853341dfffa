/** Tests apps whose runs sleep, or wait for one or for dozens of other runs, beside a normal app. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { readConfig } from "../../src/config.js";
import { type Service, startService } from "../../src/service.js";
import { longTest, runsAll, sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { issueTaskToken } from "../harness/task-token.js";
import { until } from "../harness/until.js";

const CODE = {
  quick: "return 'done';",
  sleep: "await new Promise((resolve) => setTimeout(resolve, 100_000));",
  crowd: `
    const one = () => Svc.App.V3.Actions.runWithResult(payload.name, {});
    return Promise.all(Array.from({ length: payload.count }, one));`,
  chain: `
    return payload.left === 0 ? 0 : 1 + await Svc.App.V3.Actions.runWithResult('chain', { left: payload.left - 1 });`,
};

async function createActions(service: TestService, app: number): Promise<void> {
  for (const [name, body] of Object.entries(CODE)) {
    const code = `async function execute({ payload }) { ${body} }`;
    const fields = { name, code, active: true, triggers: [{ trigger: "manual" }] };
    const { http } = await service.rest("POST", `/v3/apps/${app}/actions`, { as: "admin", body: fields });
    expect(http).to.equal(201);
  }
}

async function appOf(service: TestService, name: string): Promise<number> {
  const { app } = (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name } })).body;
  await createActions(service, app.id);
  return app.id;
}

const ask = (service: TestService, app: number, name: string, body: object = {}) =>
  service.rest("POST", `/v3/apps/${app}/actions/${name}`, { as: "admin", body });

async function count(service: TestService, app: number, state: string): Promise<number> {
  const counted = "SELECT count(*) FROM run WHERE app_id = $1 AND state = $2";
  return (await service.db.query(counted, [app, state]))[0].count;
}

describe("an app with few runs", () => {
  let service: TestService;
  const hostileAppIds: number[] = [];
  let neighbourAppId: number;
  beforeEach(async () => {
    service = await startTestService({ ROLES: "api,runner", RUNNER_CONCURRENCY: "4", SHUTDOWN_GRACE_MS: "1" });
    for (const name of ["A", "B", "C"]) hostileAppIds.push(await appOf(service, name));
    neighbourAppId = await appOf(service, "Neighbour");
  });
  afterEach(async () => {
    hostileAppIds.length = 0;
    await service.stop();
  });

  /** Expects that runs of the normal app succeed, and that no run of the other apps has finished. */
  async function expectNeighbourServed(): Promise<void> {
    for (let call = 0; call < 3; call += 1) {
      const { http, body } = await ask(service, neighbourAppId, "quick/runWithResult");
      expect([http, body.result]).to.deep.equal([200, "done"]);
    }
    const [{ ended }] = await service.db.query(
      "SELECT count(*) AS ended FROM run WHERE app_id <> $1 AND finished_at IS NOT NULL",
      [neighbourAppId],
    );
    expect(ended).to.equal(0);
  }

  longTest("is served while three apps fill all slots with runs that sleep", async () => {
    for (const app of hostileAppIds) for (let run = 0; run < 8; run += 1) await ask(service, app, "sleep/run");
    await expectNeighbourServed();
  });

  longTest(
    "is served while runs of three apps each wait for 45 sleeping runs, of which an app gets a few slots at a time",
    async () => {
      for (const app of hostileAppIds) {
        const { runId } = (await ask(service, app, "sleep/run")).body;
        const as = await issueTaskToken(service.db, app, runId);
        const path = `/v3/apps/${app}/actions/sleep/runWithResult`;
        for (let child = 0; child < 45; child += 1) void service.rest("POST", path, { as }).catch(() => null);
      }
      const accepted = async (app: number) =>
        (await count(service, app, "queued")) + (await count(service, app, "running"));
      for (const app of hostileAppIds) await until(async () => (await accepted(app)) === 46);
      // Of the 46 runs of each app, only a few run at the same time. The others wait.
      for (const app of hostileAppIds) expect(await count(service, app, "running")).to.be.within(1, 6);
      await expectNeighbourServed();
    },
  );
});

describe("runs that wait for runs", () => {
  let service: TestService;
  let runner: Service | null = null;
  before(async () => {
    const SETTINGS_KEY = randomBytes(32).toString("base64");
    service = await startTestService({ ROLES: "api", SETTINGS_KEY });
    await createActions(service, 1);
    const environment = { PORT: "0", DATABASE_URL: service.databaseUrl, LOG_LEVEL: "silent", SETTINGS_KEY };
    runner = await startService(
      readConfig({ ...environment, ROLES: "runner", RUNNER_CONCURRENCY: "1", PUBLIC_URL: service.url }),
    );
  });
  after(async () => {
    await runner?.stop();
    await service.stop();
  });

  it("can run on a runner that is full of waiting runs, from another process, to the maximum depth of a chain", async () => {
    const left = runsAll() ? 8 : 3;
    const answers = sampleOf([1, 2, 3], 0, 3).map(() => ask(service, 1, "chain/runWithResult", { left }));
    for (const { body } of await Promise.all(answers)) expect(body.result).to.equal(left);
  });

  longTest("are all executed, one after another, if one run waits for dozens of them", async () => {
    const { body } = await ask(service, 1, "crowd/runWithResult", { name: "quick", count: 30 });
    expect(body.result).to.deep.equal(Array(30).fill("done"));
  });
});
