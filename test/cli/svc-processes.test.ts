/**
 * Tests `svc` commands that run until they are ended, or that are killed midway: dev, test --watch, logs --follow, push. Also tests stages
 * and data.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { join } from "node:path";
import { expect } from "chai";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { createSvcProjects, writeProjectFile as write } from "../harness/svc-projects.js";
import { until } from "../harness/until.js";
import { PROJECT_TEST } from "./project-test.js";
import { startPushProxy } from "./push-proxy.js";

const ACTION = "actions/hello/action.ts";

describe("processes of the command line", () => {
  let service: TestService;
  const projects = createSvcProjects(() => service);
  const { json, svc, start, newProject } = projects;
  const proxies: Server[] = [];

  before(async () => {
    service = await startTestService({ ROLES: "api,runner" });
  });
  after(async () => {
    await projects.cleanUp();
    for (const proxy of proxies) {
      proxy.closeAllConnections();
      proxy.close();
    }
    await service?.stop();
  });

  const manifestOf = async (app: number) => (await service.rest("GET", `/v1/apps/${app}/manifest`)).body;
  const actionOf = async (app: number, name: string) =>
    (await manifestOf(app)).actions.find((action: { name: string }) => action.name === name);
  const read = (folder: string, file: string) => readFileSync(join(folder, file), "utf8");
  const edit = (folder: string, file: string, from: string, to: string) =>
    write(folder, file, read(folder, file).replace(from, to));

  it("dev saves each change as a draft, reports errors, and continues", async () => {
    const { folder, app } = await newProject();
    const dev = start(folder, ["dev"]);
    const description = async () => (await actionOf(app, "hello"))?.description;
    await until(async () => (await description()) === "Greets a person.");
    edit(folder, ACTION, "Greets a person.", "Greets people.");
    await until(async () => (await description()) === "Greets people.");
    edit(folder, "lib/greeting.ts", "Hello", "Hi");
    await until(async () => JSON.stringify((await actionOf(app, "hello")).source).includes("Hi "));
    edit(folder, "lib/greeting.ts", "Hi", "Hey");
    write(folder, "lib/other.svc.ts", 'export { greeting } from "./greeting";\n');
    edit(folder, ACTION, "../../lib/greeting", "@other");
    await until(async () => dev.printed().includes("@other"));
    const paths = JSON.stringify({ compilerOptions: { paths: { "@other": ["./lib/other.svc.ts"] } } });
    write(folder, "tsconfig.json", paths);
    await until(async () => JSON.stringify((await actionOf(app, "hello")).source).includes("@other"));
    write(folder, "lib/other.svc.ts", 'export { greeting } from "./greeting"; // saved\n');
    await until(async () => JSON.stringify((await actionOf(app, "hello")).source).includes("// saved"));
    edit(folder, ACTION, "return {", "return } {");
    await until(async () => dev.printed().includes("actions/hello/action.ts:14:1: "));
    edit(folder, ACTION, "return } {", "return {");
    write(folder, "settings.json", "{");
    await until(async () => dev.printed().includes("settings.json is not JSON"));
    rmSync(join(folder, "settings.json"));
    edit(folder, ACTION, "Greets people.", "Greets everybody.");
    await until(async () => (await description()) === "Greets everybody.");
    // Another developer changes an action. The next push of `svc dev` must not overwrite this change.
    const { id } = (await service.rest("GET", `/v3/apps/${app}/actions`)).body.actions[0];
    await service.rest("PUT", `/v3/apps/${app}/actions/${id}`, { body: { timeoutMs: 5000 } });
    edit(folder, ACTION, "Greets everybody.", "Greets nobody.");
    await until(async () => dev.printed().includes("the server has changed since the last pull"));
    expect(await description()).to.equal("Greets everybody.");
    await dev.end();
    expect(dev.child.signalCode ?? dev.child.exitCode).to.be.oneOf(["SIGINT", 0, 130]);
  });

  longTest("dev saves a change while it checks the types of an earlier one", async () => {
    const { folder, app } = await newProject();
    const hold = join(projects.newFolder(), "hold");
    write(
      folder,
      "compiler-waits.cjs",
      `const { existsSync } = require("node:fs");
if (/\\btsc$/.test(process.argv[1] ?? "")) while (existsSync(${JSON.stringify(hold)})) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
`,
    );
    writeFileSync(hold, "");
    write(folder, "actions/hello/types.ts", "export const count: number = 'no number';\n");
    const dev = start(folder, ["dev"], { NODE_OPTIONS: `--require=${join(folder, "compiler-waits.cjs")}` });
    const description = async () => (await actionOf(app, "hello"))?.description;
    await until(async () => (await description()) === "Greets a person.");
    for (const text of ["Greets people.", "Greets everybody."]) {
      edit(folder, ACTION, /Greets [^"]*/.exec(read(folder, ACTION))![0], text);
      await until(async () => (await description()) === text);
    }
    expect(dev.printed()).not.to.include("type errors");
    rmSync(hold);
    await until(() => dev.printed().includes("actions/hello/types.ts:1:14: "));
    await dev.end();
  });

  longTest("dev shows each run with its console", async () => {
    const { folder, app } = await newProject();
    const dev = start(folder, ["dev"]);
    await until(async () => (await actionOf(app, "hello")) !== undefined);
    await json(folder, ["run", "hello", "--draft", "--payload", '{"name": "Ada"}']);
    await until(async () => /completed {2}hello {2}run \d+\n/.test(dev.printed()));
    await until(async () => dev.printed().includes("greeting Ada\n"));
    expect(dev.printed()).to.include(`Pages: ${service.url}/apps/${app}/viewer`);
    await dev.end();
  });

  it("dev rejects --throw-away for a service that it did not start", async () => {
    const { folder } = await newProject();
    const { code, err } = await svc(folder, ["dev", "--throw-away"]);
    expect([code, err]).to.match(/^2,error --throw-away needs a service that svc dev starts \(got http/);
  });

  longTest("dev saves drafts with a token that may not read runs, and says so", async () => {
    const { folder, app } = await newProject();
    const body = { kind: "api", name: "drafts only", scopes: ["manage"] };
    const { token } = (await service.rest("POST", `/v1/apps/${app}/tokens`, { body })).body;
    const dev = start(folder, ["dev"], { SVC_TOKEN: token });
    await until(async () => dev.printed().includes("This token may not read runs"));
    await until(async () => dev.printed().includes("Pushed"));
    edit(folder, ACTION, "Greets a person.", "Greets people.");
    await until(async () => (await actionOf(app, "hello"))?.description === "Greets people.");
    expect(dev.child.exitCode).to.equal(null);
    await dev.end();
  });

  longTest("dev ends, and pushes nothing more, when the service rejects its token", async () => {
    const { folder, app } = await newProject();
    const body = { kind: "api", name: "revoked", scopes: ["read", "manage"] };
    const { token, id } = (await service.rest("POST", `/v1/apps/${app}/tokens`, { body })).body;
    const dev = start(folder, ["dev"], { SVC_TOKEN: token });
    await until(async () => dev.printed().includes("Pushed"));
    await service.rest("DELETE", `/v1/apps/${app}/tokens/${id}`);
    await until(async () => dev.child.exitCode !== null);
    expect(dev.child.exitCode, dev.printed()).to.equal(1);
  });

  async function testApps(): Promise<{ id: number; name: string }[]> {
    const { apps } = (await service.rest("GET", "/v1/apps", { as: "admin" })).body;
    return apps.filter(({ name }: { name: string }) => name.includes("(test-"));
  }

  it("test runs in a temporary app with the folder's definitions, which it deletes", async () => {
    const { folder, app } = await newProject();
    write(folder, "data/guests.json", '{"columns": ["Name"]}');
    write(folder, "actions/hello/action.test.ts", PROJECT_TEST);
    edit(folder, ACTION, "config = defineAction({", 'config = defineAction({\n  dependencies: ["svc-datasources"],');
    const { code, out } = await svc(folder, ["test", "--json"]);
    const { tests } = JSON.parse(out);
    expect([code, tests.map(({ passed }: { passed: boolean }) => passed)], out).to.deep.equal([
      1,
      [true, true, true, true, false, true],
    ]);
    const locations = ["lib/greeting.ts:2:", "actions/hello/action.ts:14:", "actions/hello/action.test.ts:46:9"];
    const lines = tests[4].error.split("\n");
    expect(lines[0]).to.match(/^TypeError: /);
    for (const [at, location] of locations.entries()) expect(lines[at + 1]).to.include(location);
    // The tests ran in a separate app, which `svc test` has removed. The project's app is unchanged.
    expect((await manifestOf(app)).dataSources ?? []).to.deep.equal([]);
    const { stages } = (await service.rest("GET", `/v1/apps/${app}/stages`)).body;
    expect(stages.map(({ appId }: { appId: number }) => appId)).to.deep.equal([app]);
    expect(await testApps()).to.deep.equal([]);
  });

  longTest("tests a pulled action whose code declares execute without exporting it, and diff stays empty", async () => {
    const { folder, app } = await newProject();
    await json(folder, ["push"]);
    const code = "async function execute({ payload }) {\n  return `Hi ${payload.name}`;\n}\n";
    const body = { name: "greet", code, triggers: [{ trigger: "manual" }] };
    await service.rest("POST", `/v3/apps/${app}/actions`, { body });
    expect((await svc(folder, ["pull"])).code).to.equal(0);
    const testText = `import { equal, test } from "svc/test";
import { execute } from "./action.js";
test("greets", async () => equal(await execute({ payload: { name: "Ann" } }), "Hi Ann"));
`;
    write(folder, "actions/greet/action.test.js", testText);
    const { out } = await svc(folder, ["test", "greet", "--json"]);
    expect(JSON.parse(out).tests, out).to.deep.equal([{ action: "greet", name: "greets", passed: true }]);
    expect((await svc(folder, ["diff", "--exit-code"])).code).to.equal(0);
  });

  it("test --watch rejects a token that cannot create a temporary app, and leaves the app as it is", async () => {
    const { folder, app } = await newProject();
    const body = { kind: "api", name: "ci", scopes: ["read", "manage"] };
    const { token } = (await service.rest("POST", `/v1/apps/${app}/tokens`, { body })).body;
    const { code, err } = await svc(folder, ["test", "--watch"], { env: { SVC_TOKEN: token } });
    expect([code, err]).to.match(
      /^1,error this token cannot create a temporary app for the tests; run svc test without/,
    );
    expect((await service.rest("GET", `/v3/apps/${app}/actions`)).body.actions).to.deep.equal([]);
  });

  longTest("test --watch runs tests again after each change", async () => {
    const { folder } = await newProject();
    const watch = start(folder, ["test", "--watch"]);
    await until(async () => watch.printed().includes("1 tests passed"));
    edit(folder, "lib/greeting.ts", "Hello", "Bye");
    await until(async () => watch.printed().includes("1 of 1 tests failed"));
    expect(watch.printed()).to.include('expected {"text":"Hello Ada"} (got {"text":"Bye Ada"})');
    edit(folder, "lib/greeting.ts", "Bye", "Hello");
    await until(async () => watch.printed().split("1 tests passed").length === 3);
    await watch.end();
  });

  longTest(
    "test --watch stops on a signal while tests run, and removes their app also on a second signal",
    async () => {
      const isRunning = async () => {
        const ids = (await testApps()).map(({ id }) => id);
        const sql = "SELECT FROM run WHERE state = 'running' AND app_id = ANY ($1)";
        return (await service.db.query(sql, [ids])).length > 0;
      };
      const { folder } = await newProject();
      const text = `import { test } from "svc/test";
test("waits", () => new Promise((resolve) => setTimeout(resolve, 60_000)));
`;
      write(folder, "actions/hello/action.test.ts", text);
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
        const watch = start(folder, ["test", "--watch"]);
        await until(isRunning);
        watch.child.kill(signal);
        await watch.end(signal);
        expect([watch.child.exitCode, watch.printed()], signal).to.match(/^1,.*error interrupted/s);
        expect(await testApps(), signal).to.deep.equal([]);
      }
    },
  );

  longTest("logs --follow prints runs as they end, also as JSON lines", async () => {
    const { folder } = await newProject();
    await json(folder, ["push"]);
    await json(folder, ["publish", "hello"]);
    const [plain, lines] = [start(folder, ["logs", "--follow"]), start(folder, ["logs", "--follow", "--json"])];
    const { runId } = await json(folder, ["run", "hello"]);
    // Each command prints this run: as a new run, or from the list of earlier runs that the command reads when it starts.
    await until(async () => /completed {2}hello {2}run \d+/.test(plain.printed()));
    await until(async () => lines.printed().includes(`"id":${runId}`));
    for (const line of lines.printed().trim().split("\n")) expect(JSON.parse(line)).to.include.keys("id", "state");
    await Promise.all([plain.end(), lines.end()]);
  });

  longTest("creates stages, promotes between them after a plan, and rolls a promotion back", async () => {
    const { folder, app } = await newProject();
    await json(folder, ["push"]);
    const { app: staging } = await json(folder, ["stage", "create", "staging", "--expires-in", "2"]);
    const listed = await svc(folder, ["stage", "list"]);
    expect(listed.out).to.match(new RegExp(`^${app} .*\\n${staging.id} +staging +20\\d\\d-`));
    const there = { env: { SVC_APP: String(staging.id) } };
    edit(folder, ACTION, "Greets a person.", "Greets on staging.");
    await json(folder, ["push", "--force"], there);
    const planned = await json(folder, ["promote", "--from", String(staging.id), "--plan"]);
    expect(planned.plan.changed).to.deep.include({ kind: "action", name: "hello" });
    expect((await actionOf(app, "hello")).description).to.equal("Greets a person.");
    const unconfirmed = await svc(folder, ["promote", "--from", String(staging.id)]);
    expect([unconfirmed.code, unconfirmed.err]).to.match(/^2,.*pass --yes/s);
    const { promotion } = await json(folder, ["promote", "--from", String(staging.id)]);
    expect((await actionOf(app, "hello")).description).to.equal("Greets on staging.");
    edit(folder, ACTION, "Greets on staging.", "Greets worse.");
    await json(folder, ["push"], there);
    const second = (await json(folder, ["promote", "--from", String(staging.id)])).promotion;
    const { promotions } = await json(folder, ["stage", "promotions"]);
    expect(promotions.map(({ id }: { id: number }) => id)).to.deep.equal([second.id, promotion.id]);
    await json(folder, ["stage", "rollback", String(promotion.id)]);
    await json(folder, ["stage", "remove", String(staging.id)]);
    expect((await svc(folder, ["stage", "list"])).out.trim().split("\n")).to.have.length(1);
    expect((await actionOf(app, "hello")).description).to.equal("Greets on staging.");
    for (const args of [["promote"], ["promote", "--from", "x"], ["stage", "rollback", "x"], ["stage", "create"]])
      expect((await svc(folder, [...args, "--yes"])).code, args.join(" ")).to.equal(2);
    const unknown = await svc(folder, ["promote", "--from", "999999", "--yes"]);
    expect([unknown.code, unknown.err]).to.match(/^1,error /);
  });

  it("pull and push secret bindings without values, and report which values are missing", async () => {
    const { folder, app } = await newProject();
    const binding = { key: "__pay", origin: "https://pay.example", in: "header", sealed: true };
    write(folder, "secret-bindings.json", JSON.stringify([binding]));
    const pushed = await svc(folder, ["push", "--yes"]);
    expect(pushed.out).to.include("created  secretBinding __pay https://pay.example");
    expect(pushed.out).to.include("missing  value of __pay https://pay.example");
    await service.rest("POST", `/v1/apps/${app}/settings`, { body: { __pay: "a-secret-value" } });
    expect((await json(folder, ["diff"])).differences).to.deep.equal([]);
    const other = projects.newFolder();
    write(other, "svc.json", read(folder, "svc.json"));
    await json(other, ["pull"]);
    expect(JSON.parse(read(other, "secret-bindings.json"))[0]).to.include(binding);
    expect(read(other, "secret-bindings.json")).not.to.include("a-secret-value");
  });

  it("data pull and push transfer entries in both directions", async () => {
    const { folder } = await newProject();
    write(folder, "data/guests.json", '{"columns": ["Name", "Stars"]}');
    await json(folder, ["push"]);
    const input = '{"Name": "Ann", "Stars": 2}\n\n{"Name": "Bo\\nb", "Stars": null}\n';
    expect(await json(folder, ["data", "push", "guests"], { input })).to.deep.equal({ inserted: 2 });
    const { code, out } = await svc(folder, ["data", "pull", "guests"]);
    const lines = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(code).to.equal(0);
    expect(lines.map(({ Name }) => Name)).to.deep.equal(["Ann", "Bo\nb"]);
    // The output of `data pull` is valid input of `data push`.
    write(folder, "guests.jsonl", out);
    expect(await json(folder, ["data", "push", "guests", "guests.jsonl", "--replace"])).to.deep.equal({ inserted: 2 });
    write(folder, "more.json", '[{"Name": "Cy"}]');
    await json(folder, ["data", "push", "guests", "more.json"]);
    const { entries } = await json(folder, ["data", "pull", "guests"]);
    expect(entries.map(({ Name }: { Name: string }) => Name)).to.deep.equal(["Ann", "Bo\nb", "Cy"]);
    const latin1 = Buffer.from('{"Name": "\u00fc"}', "latin1");
    writeFileSync(join(folder, "latin1.json"), latin1);
    const refusals: [args: string[], input: string | Buffer, code: number, message: RegExp][] = [
      [["data", "push", "guests"], "{", 2, /JSON lines or a JSON array/],
      [["data", "push", "guests"], '{"Name": "x"}\n{', 2, /JSON array \(line 2: [^()]+\)/],
      [["data", "push", "guests"], '{"Name": "x"}\n7', 1, /object/],
      [["data", "push", "guests", "none.json"], "", 2, /none\.json cannot be read/],
      [["data", "push", "guests", "latin1.json"], "", 1, /latin1\.json is not UTF-8 text/],
      [["data", "push", "guests"], latin1, 1, /standard input is not UTF-8 text/],
      [["data", "push", "guests", "--replace"], '{"Name": "x"}', 2, /pass --yes/],
      [["data", "push", "nothing"], "{}", 1, /DATA_SOURCE_NOT_FOUND/],
      [["data", "pull", "nothing"], "", 1, /DATA_SOURCE_NOT_FOUND/],
    ];
    for (const [args, stdin, expected, message] of refusals) {
      const ended = await svc(folder, args, { input: stdin });
      expect([ended.code, ended.err], args.join(" ")).to.deep.equal([expected, ended.err]);
      expect(ended.err).to.match(message);
    }
    expect((await json(folder, ["data", "pull", "guests"])).entries).to.have.length(3);
  });

  const proxyForPush = async (forwarded: "half" | "all", afterPush?: () => Promise<unknown>) => {
    const proxy = await startPushProxy(service.url, forwarded, afterPush);
    proxies.push(proxy.server);
    return proxy;
  };

  longTest(
    "push reports a change that follows the last push, and a pull then takes it and keeps the folder's change",
    async () => {
      const { folder, app } = await newProject();
      let isRacing = false;
      const body = { name: "theirs", code: "async function execute() {}" };
      const theirChange = async () => isRacing && service.rest("POST", `/v3/apps/${app}/actions`, { body });
      const proxy = await proxyForPush("all", theirChange);
      edit(folder, "svc.json", service.url, proxy.url);
      await json(folder, ["push"]);
      edit(folder, ACTION, "Greets a person.", "Mine.");
      write(folder, "app.json", '{"icon": "rocket"}');
      isRacing = true;
      await json(folder, ["push"]);
      isRacing = false;
      edit(folder, ACTION, "Mine.", "Mine again.");
      expect((await svc(folder, ["push", "--yes"])).err)
        .to.include("action theirs was created")
        .and.not.match(/action hello|app app/);
      await json(folder, ["pull"]);
      await json(folder, ["push"]);
      expect((await actionOf(app, "hello")).description).to.equal("Mine again.");
      expect(await actionOf(app, "theirs")).to.include({ name: "theirs" });
    },
  );

  for (const forwarded of ["half", "all"] as const) {
    longTest(`push applies everything or nothing if it is killed after ${forwarded} of it was sent`, async () => {
      const proxy = await proxyForPush(forwarded);
      const { folder, app } = await newProject();
      edit(folder, "svc.json", service.url, proxy.url);
      await json(folder, ["push"]);
      const before = await manifestOf(app);
      edit(folder, ACTION, "Greets a person.", "Greets people.");
      for (const name of ["a", "b", "c"])
        write(folder, `actions/${name}/action.js`, "async function execute() { return 1; }\n");
      proxy.state.isArmed = true;
      const push = start(folder, ["push", "--yes"]);
      await until(() => proxy.state.hasStopped);
      await push.end("SIGKILL");
      proxy.state.isArmed = false;
      const names = (await manifestOf(app)).actions.map(({ name }: { name: string }) => name);
      if (forwarded === "half") expect(await manifestOf(app)).to.deep.equal(before);
      else expect(names).to.deep.equal(["a", "b", "c", "hello"]);
      // The push has not changed the folder: the same push succeeds, without conflicts.
      await json(folder, ["push"]);
      expect((await json(folder, ["diff"])).differences).to.deep.equal([]);
      expect((await actionOf(app, "hello")).description).to.equal("Greets people.");
    });
  }
});
