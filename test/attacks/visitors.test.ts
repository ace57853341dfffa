/** Tests a visitor who has the token of an app's page: what this visitor can read and change. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { createTokenBucket } from "../../src/engine/token-bucket.js";
import { startTestService, type TestService } from "../harness/service.js";

describe("a visitor", () => {
  let service: TestService;
  let visitor: string;
  let appUser: string;
  before(async () => {
    service = await startTestService({ ROLES: "api", RATE_LIMIT_RUN: "30" });
    const tokens = `/v1/apps/${service.appId}/tokens`;
    visitor = (await service.rest("POST", tokens, { body: { kind: "live" } })).body.token;
    appUser = service.tokens.live;
  });
  after(() => service.stop());

  /** Sends requests for runs of an action that does not exist. Returns the number of requests below the rate limit, which get 404. */
  async function countAllowedRuns(as: string, requests: number): Promise<number> {
    const answers = [];
    for (let sent = 0; sent < requests; sent += 1) {
      answers.push((await service.rest("POST", `/v3/apps/${service.appId}/actions/none/run`, { as, body: {} })).http);
    }
    return answers.filter((http) => http === 404).length;
  }
  const resetRateLimits = () => service.db.query("TRUNCATE rate_window");

  it("can use an app's 30 runs a minute; editors and back ends have a third of that in addition", async () => {
    await resetRateLimits();
    expect(await countAllowedRuns(visitor, 32)).to.equal(30);
    expect(await countAllowedRuns("api", 12)).to.equal(10);
    const { body, headers } = await service.rest("POST", `/v3/apps/${service.appId}/actions/none/run`, {
      as: visitor,
      body: {},
    });
    expect(body.status).to.equal("RATE_LIMIT_EXCEEDED");
    expect(Number(headers.get("retry-after"))).to.be.within(1, 60);
  });

  it("differs from an app user with an own token, who can use all 30 runs; visitors together have no more than 30", async () => {
    await resetRateLimits();
    expect(await countAllowedRuns(appUser, 32)).to.equal(30);
    expect(await countAllowedRuns(visitor, 1)).to.equal(0);
  });

  it("shares the 30 runs with editors and back ends while visitors use less than two thirds", async () => {
    await resetRateLimits();
    expect(await countAllowedRuns(visitor, 15)).to.equal(15);
    expect(await countAllowedRuns("api", 17)).to.equal(15);
    expect(await countAllowedRuns(visitor, 1)).to.equal(0);
  });

  it("does not reduce the 30 runs of the app's own credentials if visitors run nothing", async () => {
    await resetRateLimits();
    expect(await countAllowedRuns("api", 32)).to.equal(30);
  });

  it("reads only the name of the app, and nothing for its editors, over REST and GraphQL", async () => {
    const hooks = { onOpen: "https://internal.example" };
    await service.rest("PUT", `/v1/apps/${service.appId}`, { body: { hooks, dependencies: ["svc-csv"] } });
    const secret = { organizationId: null, hooks: null, dependencies: null };
    for (const as of [visitor, appUser]) {
      const [app] = (await service.rest("GET", "/v1/apps", { as })).body.apps;
      expect(app).to.include({ id: service.appId, ...secret });
      const query = "{ apps { id name organizationId hooks dependencies } }";
      const { data } = await service.graphql(query, {}, { as });
      expect(data.apps[0]).to.include({ id: service.appId, ...secret });
    }
    const [app] = (await service.rest("GET", "/v1/apps")).body.apps;
    expect(app).to.deep.include({ organizationId: service.organizationId, hooks, dependencies: ["svc-csv"] });
  });
});

describe("what an app's own credentials store", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api", INTAKE_QUOTA_MB: "1" });
  });
  after(() => service.stop());

  it("counts in bytes for the fields of the app and for each of their snapshots", async () => {
    const app = `/v1/apps/${service.appId}`;
    const hooks = { text: randomBytes(150_000).toString("hex") };
    expect((await service.rest("PUT", app, { body: { hooks } })).http).to.equal(200);
    expect((await service.rest("POST", `${app}/versions`)).http).to.equal(201);
    expect((await service.rest("POST", `${app}/versions`)).http).to.equal(201);
    const refused = [
      await service.rest("POST", `${app}/versions`),
      await service.rest("PUT", app, { body: { hooks } }),
      await service.rest("PUT", `/v1/admin/apps/${service.appId}`, { as: "admin", body: { hooks } }),
    ];
    expect(refused.map(({ http, body }) => [http, body.status])).to.deep.equal(
      Array(3).fill([429, "RATE_LIMIT_EXCEEDED"]),
    );
    const { body } = await service.rest("GET", `${app}/versions`);
    expect(body.pagination.total).to.equal(2);
  });
});

describe("a limit per address", () => {
  it("is not reset for one address by any number of other addresses", () => {
    const bucket = createTokenBucket({ limit: 2, windowMs: 3_600_000, keysMax: 10 });
    expect([bucket.takeTokens("own"), bucket.takeTokens("own")]).to.deep.equal([0, 0]);
    for (let other = 0; other < 1_000; other += 1) bucket.takeTokens(`address ${other}`);
    expect(bucket.takeTokens("own")).to.be.above(0);
  });

  it("counts addresses beyond those that it remembers as one", () => {
    const bucket = createTokenBucket({ limit: 2, windowMs: 3_600_000, keysMax: 10 });
    const passed = Array.from({ length: 1_000 }, (_, at) => bucket.takeTokens(`address ${at}`)).filter(
      (wait) => wait === 0,
    );
    expect(passed).to.have.length(12);
  });
});
