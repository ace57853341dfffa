import { expect } from "chai";
import { longTest } from "../harness/samples.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";

const SAMPLE_CODES: [code: string, sandbox: string][] = [
  ["async function execute() { return 1 }", "isolate"],
  ["async function execute() { return typeof fetch }", "network-isolate"],
  ["async function execute() { return document.title }", "document"],
  ["async function execute() { return Math.max(...new Array(100_000).fill(1)) }", "document"],
  ["async function execute() { throw new Error('a') }", "isolate"],
];

describe("the environment of a run's code", () => {
  let service: TestService;
  let made = 0;
  before(async () => {
    service = await startTestService({ ROLES: "api,runner" });
  });
  after(() => service.stop());

  async function create(body: string, dependencies: string[] = []): Promise<string> {
    made += 1;
    const name = `action-${made}`;
    const code = `async function execute(context) { ${body} }`;
    const fields = { name, code, active: true, dependencies, triggers: [{ trigger: "manual" }] };
    const created = await service.rest("POST", "/v3/apps/1/actions", { body: fields });
    expect(created.http, JSON.stringify(created.body)).to.equal(201);
    return name;
  }
  const run = (name: string, as?: string): Promise<Answer> =>
    service.rest("POST", `/v3/apps/1/actions/${name}/runWithResult`, { body: {}, ...(as && { as }) });

  it("has the session of the calling app user, only through svc-session", async () => {
    const name = await create("return Svc.Session.get()", ["svc-session"]);
    const { body } = await run(name, "viewer");
    expect(body.result).to.deep.include({ appId: 1, environment: "master" });
    expect(body.result.user).to.include({ lastName: "App User" });
    const without = await create("return typeof globalThis.__svcSession");
    expect((await run(without, "viewer")).body.result).to.equal("undefined");
  });

  const countIsolateRuns = async () => {
    const { body } = await service.rest("GET", "/metrics");
    const counts = [...String(body).matchAll(/^svc_runs_total\{.*mode="isolate".*\} (\d+)$/gm)];
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  };

  it("has each user's own session if runs of two users alternate on one thread", async () => {
    const name = await create("return [(await Svc.Session.get()).user, await Svc.Session.user()]", ["svc-session"]);
    const before = await countIsolateRuns();
    const users = ["viewer", "editor", "viewer", "viewer", "editor"];
    for (const as of users) {
      const [user, same] = (await run(name, as)).body.result;
      expect(user, as).to.deep.equal(same);
      expect(user.lastName === "App User", as).to.equal(as === "viewer");
    }
    expect(await countIsolateRuns()).to.equal(before + users.length);
  });

  it("has Svc.App.V3.Actions for the run's own version, with a token that ends with the run", async () => {
    const inner = await create("return { got: context.payload }");
    const outer = await create(`return Svc.App.V3.Actions.runWithResult("${inner}", { from: "a run" })`);
    const { body } = await run(outer);
    expect(body.result).to.deep.equal({ got: { from: "a run" } });
    const [token] = await service.db.query(
      "SELECT expires_at <= now() AS dead, run_id IS NOT NULL AS bound FROM credential WHERE kind = 'task'",
    );
    expect(token).to.deep.equal({ dead: true, bound: true });
  });

  it("has each package that the action lists, and no other", async () => {
    const csv = await create(`return Svc.CSV.parse("a,b\\n1,2")`, ["svc-csv"]);
    const answer = await run(csv);
    expect(answer.body.status, JSON.stringify(answer.body)).to.equal("ACTION_EXECUTED");
    const none = await create("return [typeof globalThis['S' + 'vc']]");
    expect((await run(none)).body.result).to.deep.equal(["undefined"]);
  });

  it("plays a sound to its end without a user gesture", async () => {
    const tone = await create("await Svc.Audio.tone({ seconds: 0.05 }); return 'heard'", ["svc-audio"]);
    expect((await run(tone)).body.result).to.equal("heard");
  });

  it("is the smallest mode for the code and its packages: the language, a network, a document", async () => {
    const probeCode = "(() => {})['const' + 'ructor']('return typeof document + typeof fetch')()";
    const plain = await create(`return ${probeCode}`);
    expect((await run(plain)).body.result).to.equal("undefinedundefined");
    const actionWithFetch = await create(`return [${probeCode}, typeof fetch]`);
    expect((await run(actionWithFetch)).body.result).to.deep.equal(["undefinedfunction", "function"]);
    const actionWithDocument = await create(`return [${probeCode}, typeof document]`);
    expect((await run(actionWithDocument)).body.result).to.deep.equal(["objectfunction", "object"]);
    for (const [seen, ...dependencies] of [
      ["undefinedfunction", "svc-csv", "svc-encryption", "svc-session", "svc-barcode"],
      ["objectfunction", "svc-csv", "svc-audio"],
    ] as [string, ...string[]][]) {
      const listing = await create(`return ${probeCode}`, dependencies);
      expect((await run(listing)).body.result, dependencies.join()).to.equal(seen);
    }
    const probeCodeWithClone = probeCode.replace("fetch", "fetch + typeof structuredClone");
    const library = await create(`return [${probeCodeWithClone}, typeof Svc.App.V3.Actions.run]`);
    expect((await run(library)).body.result).to.deep.equal(["objectfunctionfunction", "function"]);
    for (const name of ["svc-datasources", "svc-communicate", "svc-notifications", "svc-media"]) {
      const listing = await create(`return ${probeCodeWithClone}`, [name, "svc-csv", "svc-session"]);
      expect((await run(listing)).body.result, name).to.equal("undefinedfunctionundefined");
    }
    const both = await create("return [typeof structuredClone, typeof Svc.DataSources.get]", ["svc-datasources"]);
    expect((await run(both)).body.result).to.deep.equal(["function", "function"]);
    const bytes = await create(`return [${probeCodeWithClone}, typeof Svc.Media.Files.upload]`, ["svc-media"]);
    expect((await run(bytes)).body.result).to.deep.equal(["objectfunctionfunction", "function"]);
  });

  longTest("draws the same bar codes in an isolate, in a network isolate and in a document", async () => {
    const draw = `Svc.Barcode.svg({ bcid: "ean13", text: "4006381333931", includetext: true })`;
    const drawnBarcode = async (code: string) => (await run(await create(code, ["svc-barcode"]))).body.result;
    const drawn: string[] = [];
    // On a busy machine, this script may exceed an isolate's time limit. The service then runs the same code only in documents.
    const before = await countIsolateRuns();
    while (drawn.length < 5 && (await countIsolateRuns()) === before) {
      drawn.push(await drawnBarcode(`const turn = ${drawn.length}; return ${draw}`));
    }
    expect(await countIsolateRuns()).to.equal(before + 1);
    for (const named of ["document", "fetch"]) drawn.push(await drawnBarcode(`void ${named}; return ${draw}`));
    expect(await countIsolateRuns()).to.equal(before + 1);
    expect(drawn[0]).to.match(/^<svg .*<path .*<\/svg>\s*$/s);
    expect(new Set(drawn).size).to.equal(1);
    const barcodeWithoutText = await drawnBarcode(`return ${draw.replace("true", "false")}`);
    expect(barcodeWithoutText.length).to.be.lessThan(drawn[0]!.length / 2);
    const png = await drawnBarcode(`return Svc.Barcode.png({ bcid: "ean13", text: "4006381333931" })`);
    expect(png).to.match(/^data:image\/png;base64,iVBOR/);
    const chosen = await drawnBarcode(
      `return Svc.Barcode[["p", "ng"].join("")]({ bcid: "ean13", text: "4006381333931" })`,
    );
    expect(chosen).to.equal(png);
  });

  it("has no token if all packages work without the service", async () => {
    const tokens = async () =>
      Number((await service.db.query("SELECT count(*) FROM credential WHERE kind = 'task'"))[0].count);
    const before = await tokens();
    const csv = await create(`return [Svc.CSV.parse("a\\n1"), (await Svc.Session.get()).appId]`, [
      "svc-csv",
      "svc-session",
    ]);
    expect((await run(csv, "viewer")).body.result).to.deep.equal([[{ a: "1" }], 1]);
    expect(await tokens()).to.equal(before);
    const both = await create(`const { CSV, App } = Svc; return [CSV.parse("a\\n1"), typeof App]`, ["svc-csv"]);
    expect((await run(both)).body.result).to.deep.equal([[{ a: "1" }], "object"]);
    expect(await tokens()).to.equal(before + 1);
  });

  it("does not exist for a package that was removed: the run fails with the name of the package", async () => {
    const name = await create("return 1");
    await service.db.query(`UPDATE action SET dependencies = '["svc-gone"]' WHERE name = $1`, [name]);
    const { http, body } = await run(name);
    expect([http, body.status]).to.deep.equal([500, "EXECUTION_FAILED"]);
    expect(body.error).to.include("svc-gone");
  });

  it("is named in the record of the run, over REST and GraphQL", async () => {
    const actions = `/v3/apps/${service.appId}/actions`;
    for (const [at, [code, sandbox]] of SAMPLE_CODES.entries()) {
      const body = { name: `sandbox-${at}`, code, active: true, triggers: [{ trigger: "manual" }] };
      const { id } = (await service.rest("POST", actions, { body })).body.action;
      await service.rest("POST", `${actions}/${id}/runWithResult`, { body: {} });
      const found = (await service.rest("GET", `/v3/apps/${service.appId}/runs?actionId=${id}`)).body.runs[0];
      const { run } = (await service.rest("GET", `/v3/apps/${service.appId}/runs/${found.id}`)).body;
      expect([found.sandbox, run.sandbox], code).to.deep.equal([sandbox, sandbox]);
      const query = "query ($appId: Int!, $runId: Int!) { run(appId: $appId, runId: $runId) { sandbox } }";
      const { data } = await service.graphql(query, { appId: service.appId, runId: found.id });
      expect(data.run, code).to.deep.equal({ sandbox });
    }
  });
});
