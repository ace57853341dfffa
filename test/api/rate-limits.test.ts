/** Tests rate limits through REST and GraphQL, with two services on one database. */
import { expect } from "chai";
import { readConfig } from "../../src/config.js";
import { type Service, startService } from "../../src/service.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";

const LIMITS = {
  SETTINGS_KEY: Buffer.alloc(32, 7).toString("base64"),
  RATE_LIMIT_MANAGE: "60",
  RATE_LIMIT_RUN: "30",
  RATE_LIMIT_PUBLISH: "10",
  RATE_LIMIT_COMMUNICATE: "20",
};
const UNKNOWN_ID = 2_000_000_000;

describe("the rate limits", () => {
  let service: TestService;
  let second: Service;

  before(async () => {
    service = await startTestService({ ROLES: "api", ...LIMITS });
    const { databaseUrl, dataDir } = service;
    second = await startService(
      readConfig({
        PORT: "0",
        DATABASE_URL: databaseUrl,
        DATA_DIR: dataDir,
        ROLES: "api",
        LOG_LEVEL: "silent",
        ...LIMITS,
      }),
    );
  });
  after(async () => {
    await second?.stop();
    await service.stop();
  });
  beforeEach(() => service.db.query("DELETE FROM rate_window"));

  const actions = () => `/v3/apps/${service.appId}/actions`;

  const statusAtSecondService = async (method: string, path: string): Promise<number> =>
    (await fetch(second.url + path, { method, headers: { "auth-token": service.tokens.editor } })).status;

  const CLASSES: [string, number, string, (path: string) => string, number][] = [
    ["get, getById, create, update, remove, versions", 60, "GET", (path) => path, 200],
    ["run, runWithResult", 30, "POST", (path) => `${path}/nobody/run`, 404],
    ["publish, unpublish, restore", 10, "POST", (path) => `${path}/${UNKNOWN_ID}/publish`, 404],
  ];
  for (const [operations, limit, method, pathOf, otherwise] of CLASSES) {
    it(`${operations}: ${limit} in 60 s for an app, over every API`, async () => {
      const path = pathOf(actions());
      const codes = await Promise.all(
        Array.from({ length: limit + 10 }, async (_, index) =>
          index % 2 === 0 ? (await service.rest(method, path)).http : statusAtSecondService(method, path),
        ),
      );
      expect(codes.filter((code) => code === otherwise)).to.have.length(limit);
      expect(codes.filter((code) => code === 429)).to.have.length(10);
    });
  }

  it("Communicate: 20 in 30 s for an app, in both forms of the call", async () => {
    const communicate = `/v1/apps/${service.appId}/communicate`;
    const codes = [];
    for (let call = 0; call < 20; call += 1) {
      codes.push(
        (await service.rest("POST", `${communicate}/${call % 2 === 0 ? "sms" : "email/batch"}`, { body: {} })).http,
      );
    }
    expect(new Set(codes)).to.deep.equal(new Set([400]));
    const startedAt = Date.now();
    // On a slow machine, the calls could take longer than the window of 30 s. So this statement sets the times of all calls to now.
    await service.db.query("UPDATE rate_window SET hits = array_fill(clock_timestamp(), ARRAY[cardinality(hits)])");
    const { http, body } = await service.rest("POST", `${communicate}/sms`, { body: {} });
    expect([http, body.error]).to.deep.equal([
      429,
      `too many requests of the kind "communicate" (limit of this app: 20 in 30 seconds); try again in ${body.retryAfter} s`,
    ]);
    expect(Date.parse(body.nextValidRequestDate) - startedAt).to.be.within(29_000, 60_000);
    expect((await service.rest("GET", `${communicate}/messages`)).http).to.equal(200);
  });

  it("reject with 429, Retry-After and nextValidRequestDate", async () => {
    const path = `${actions()}/${UNKNOWN_ID}/unpublish`;
    for (let call = 0; call < 10; call += 1) await service.rest("POST", path);
    const { http, headers, body } = await service.rest("POST", path);
    expect(http).to.equal(429);
    expect(body).to.have.keys("status", "error", "retryAfter", "nextValidRequestDate");
    expect(body.status).to.equal("RATE_LIMIT_EXCEEDED");
    expect(body.nextValidRequestDate).to.equal(new Date(body.nextValidRequestDate).toISOString());
    const seconds = Number(headers.get("retry-after"));
    expect(seconds).to.equal(body.retryAfter).and.to.be.within(1, 60);
    expect(Date.parse(body.nextValidRequestDate) - Date.now()).to.be.within(0, 60_000);
  });

  const quotaOf = ({ headers }: Answer) =>
    ["ratelimit-limit", "ratelimit-remaining"].map((name) => Number(headers.get(name)));

  it("return the remaining quota with every limited response: success or error, over REST and GraphQL", async () => {
    const { rest, appId } = service;
    expect(quotaOf(await rest("GET", actions()))).to.deep.equal([60, 59]);
    const missing = await rest("GET", `${actions()}/${UNKNOWN_ID}`);
    expect([missing.http, ...quotaOf(missing)]).to.deep.equal([404, 60, 58]);
    const invalid = await rest("POST", actions(), { body: {} });
    expect([invalid.http, ...quotaOf(invalid)]).to.deep.equal([400, 60, 57]);
    const query = `query { actions(appId: ${appId}) { pagination { total } } }`;
    expect(quotaOf(await rest("POST", "/graphql", { body: { query } }))).to.deep.equal([60, 56]);
    const failing = `query { action(appId: ${appId}, id: ${UNKNOWN_ID}) { id } }`;
    const answer = await rest("POST", "/graphql", { body: { query: failing } });
    expect(answer.body.errors[0].extensions.status).to.equal("ACTION_NOT_FOUND");
    expect(quotaOf(answer)).to.deep.equal([60, 55]);
    expect(Number(answer.headers.get("ratelimit-reset"))).to.be.within(1, 60);
  });

  it("return no quota if there is no limit", async () => {
    const { headers } = await service.rest("GET", `/v1/apps/${service.appId}/settings`);
    expect(headers.get("ratelimit-limit")).to.equal(null);
  });

  it("count each aliased field of a document, and reject those above the limit", async () => {
    const { rest, appId } = service;
    const code = "async function execute(context) {}";
    const data = { name: "many", code, active: true, triggers: [{ trigger: "manual" }] };
    await rest("POST", actions(), { body: data });
    const runs = Array.from(
      { length: 35 },
      (_, at) => `r${at}: runAction(appId: ${appId}, nameOrId: "many") { runId }`,
    );
    const ran = await rest("POST", "/graphql", { body: { query: `mutation { ${runs.join(" ")} }` } });
    expect(ran.body.errors[0].extensions.status).to.equal("RATE_LIMIT_EXCEEDED");
    expect(await service.db.query("SELECT count(*) AS runs FROM run")).to.deep.equal([{ runs: 30 }]);
    await service.db.query("DELETE FROM rate_window");
    const queries = Array.from({ length: 70 }, (_, at) => `q${at}: actions(appId: ${appId}) { pagination { total } }`);
    const many = await rest("POST", "/graphql", { body: { query: `{ ${queries.join(" ")} }` } });
    expect(many.body.errors[0].extensions).to.include.keys("status", "retryAfter", "nextValidRequestDate");
    expect(many.body.errors[0].extensions.status).to.equal("RATE_LIMIT_EXCEEDED");
    expect(quotaOf(many)).to.deep.equal([60, 0]);
    expect(Number(many.headers.get("retry-after"))).to.be.within(1, 60);
  });

  it("do not count callers who have no right to the app", async () => {
    for (let call = 0; call < 15; call += 1) {
      expect((await service.rest("POST", `${actions()}/1/publish`, { as: "live" })).http).to.equal(403);
    }
    expect(quotaOf(await service.rest("POST", `${actions()}/${UNKNOWN_ID}/publish`))).to.deep.equal([10, 9]);
  });

  it("accept calls of another app while one is at its limit", async () => {
    const { rest } = service;
    for (let call = 0; call < 10; call += 1) await rest("POST", `${actions()}/${UNKNOWN_ID}/publish`);
    const { body } = await rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "other" } });
    const other = await rest("POST", `/v3/apps/${body.app.id}/actions/${UNKNOWN_ID}/publish`, { as: "admin" });
    expect(other.body.status).to.equal("ACTION_NOT_FOUND");
  });
});
