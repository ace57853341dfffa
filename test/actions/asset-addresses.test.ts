/**
 * Tests the URL of a dependency's script after PUBLIC_URL has changed: the URL starts with the current value, not with the value at the
 * time of the save.
 */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { readConfig } from "../../src/config.js";
import { type Service, startService } from "../../src/service.js";
import { startTestService, type TestService } from "../harness/service.js";

const PATH = "/client/packages/svc-csv.js";
const MOVED_PUBLIC_URL = "https://moved.example.com/actions";
const SETTINGS_KEY = randomBytes(32).toString("base64");

describe("The address of an asset", () => {
  let service: TestService;
  /** A second service on the same database, with another public URL. */
  let moved: Service;
  let master: number;
  let production: number;

  before(async () => {
    service = await startTestService({ ROLES: "api", SETTINGS_KEY, PUBLIC_URL: "https://before.example.com" });
    const actions = `/v3/apps/${service.appId}/actions`;
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    const triggers = [{ trigger: "analytics", where: { type: "analytics.pageView" } }];
    const code = "async function execute() {}";
    const body = { name: "a", code, environment: "client", active: true, triggers, dependencies: ["svc-csv"] };
    master = (await service.rest("POST", actions, { body })).body.action.id;
    production = (await service.rest("POST", `${actions}/${master}/publish`)).body.action.id;
    const sharedVariables = { DATABASE_URL: service.databaseUrl, DATA_DIR: service.dataDir };
    const environment = { PORT: "0", ROLES: "api", LOG_LEVEL: "silent", ...sharedVariables };
    moved = await startService(readConfig({ ...environment, SETTINGS_KEY, PUBLIC_URL: `${MOVED_PUBLIC_URL}/` }));
  });
  after(async () => {
    await moved?.stop();
    await service?.stop();
  });

  async function answerTo(path: string, method = "GET") {
    const headers = { "auth-token": service.tokens.editor };
    const answer = await fetch(`${moved.url}/v3/apps/${service.appId}/actions${path}`, { method, headers });
    expect(answer.ok, path).to.equal(true);
    // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
    return (await answer.json()) as any;
  }

  const here = [{ name: "svc-csv", url: MOVED_PUBLIC_URL + PATH, path: PATH }];

  async function expectCurrentAddress(): Promise<void> {
    expect((await answerTo("")).actions[0].assets).to.deep.equal(here);
    for (const id of [master, production]) expect((await answerTo(`/${id}`)).action.assets).to.deep.equal(here);
    const { versions } = await answerTo(`/${master}/versions`);
    const versionId = versions.at(-1).id;
    expect((await answerTo(`/${master}/versions/${versionId}`)).version.data.assets).to.deep.equal(here);
    expect((await answerTo(`/${master}/versions/${versionId}/restore`, "POST")).action.assets).to.deep.equal(here);
    const query = `{ compiledAction(appId: ${service.appId}, id: ${production}) { assets { name url path } } }`;
    const headers = { "auth-token": service.tokens.live, "content-type": "application/json" };
    const answer = await fetch(`${moved.url}/graphql`, { method: "POST", headers, body: JSON.stringify({ query }) });
    expect(((await answer.json()) as { data: { compiledAction: object } }).data.compiledAction).to.deep.equal({
      assets: here,
    });
  }

  it(
    "has the service's current address in each draft, live version, stored version and response",
    expectCurrentAddress,
  );

  it("has the current address also in rows that were stored with an earlier one", async () => {
    const storedAssets = JSON.stringify([{ name: "svc-csv", url: `https://before.example.com${PATH}`, path: PATH }]);
    await service.db.query("UPDATE action SET assets = $1", [storedAssets]);
    await service.db.query("UPDATE action_version SET data = jsonb_set(data::jsonb, '{assets}', $1::jsonb)::json", [
      storedAssets,
    ]);
    await expectCurrentAddress();
  });
});
