/** Tests how the command line handles the source files of actions: push, pull, configs, stacks and type checks. The service builds the files. */
import { readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { load } from "js-yaml";
import { Project } from "../../src/cli/svc/project.js";
import { removeConfigBlock } from "../../src/engine/bundler/project/action-file.js";
import { longTest, sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { createSvcProjects, writeProjectFile as write } from "../harness/svc-projects.js";
import { REAL_ACTIONS } from "../source/real-world.js";

const CONFIG = 'import { defineAction } from "svc";\n\nexport const config = defineAction({ active: true });\n\n';

describe("sources of the command line", () => {
  let service: TestService;
  const projects = createSvcProjects(() => service);
  const { json, svc, newProject } = projects;

  before(async () => {
    service = await startTestService({ ROLES: "api,runner" });
  });
  after(async () => {
    await projects.cleanUp();
    await service?.stop();
  });

  async function actionOf(app: number, name: string) {
    const { body } = await service.rest("GET", `/v1/apps/${app}/manifest`);
    return body.actions.find((action: { name: string }) => action.name === name);
  }

  const filesOf = (folder: string): Record<string, string> =>
    Object.fromEntries(
      ["actions", "lib"]
        .flatMap((part) =>
          readdirSync(join(folder, part), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()),
        )
        .map((entry) => join(entry.parentPath, entry.name))
        .filter((path) => !path.endsWith(".test.ts"))
        .map((path) => [path.slice(folder.length), readFileSync(path, "utf8")]),
    );

  it("sends the author's files, from which the service builds the same code as for any caller", async () => {
    const { folder, app } = await newProject();
    await json(folder, ["push"]);
    const read = (file: string) => readFileSync(join(folder, file), "utf8");
    const files = { "action.ts": read("actions/hello/action.ts"), "lib/greeting.ts": read("lib/greeting.ts") };
    const pushed = await actionOf(app, "hello");
    expect(pushed.source).to.deep.equal({ language: "typescript", files });
    const path = `/v3/apps/${app}/actions`;
    const body = { name: "by-api", source: { language: "typescript", files } };
    const { action } = (await service.rest("POST", path, { body })).body;
    expect(action.code).to.equal(pushed.code);
  });

  longTest("pushes real-world actions of several files, and pulls the same files into another folder", async () => {
    const { folder, app } = await newProject();
    const severalFiles = REAL_ACTIONS.filter(({ files }) => Object.keys(files).length > 1);
    const cases = sampleOf(severalFiles, 0, 4).map(({ title, files, dependencies = [] }, at) => ({
      title,
      files,
      dependencies,
      at,
    }));
    for (const { files, dependencies, at } of cases) {
      const extra = dependencies.length > 0 ? `, dependencies: ${JSON.stringify(dependencies)}` : "";
      const config = CONFIG.replace("active: true", `active: true${extra}`);
      for (const [file, text] of Object.entries(files)) {
        const hasConfig = file !== "action.ts" || text.includes("defineAction");
        write(folder, `actions/real-${at}/${file}`, hasConfig ? text : config + text);
      }
    }
    await json(folder, ["push"]);
    const { differences } = await json(folder, ["diff"]);
    expect(differences).to.deep.equal([]);
    for (const { title, files, at } of cases) {
      const { source } = await actionOf(app, `real-${at}`);
      expect(Object.keys(source.files).sort(), title).to.deep.equal(Object.keys(files).sort());
    }
    const other = projects.newFolder();
    writeFileSync(join(other, "svc.json"), readFileSync(join(folder, "svc.json")));
    await json(other, ["pull"]);
    expect(filesOf(other)).to.deep.equal(filesOf(folder));
    expect((await json(other, ["diff"])).differences).to.deep.equal([]);
  });

  it("shares modules, modules of another action and path aliases of the project", async () => {
    const { folder, app } = await newProject();
    const paths = { compilerOptions: { paths: { "@shared/*": ["lib/*"] } } };
    write(folder, "tsconfig.json", JSON.stringify(paths));
    write(folder, "lib/deep/one.ts", 'import { two } from "../two";\nexport const one = two - 1;\n');
    write(folder, "lib/two.ts", "export const two = 2;\n");
    write(folder, "actions/other/three.ts", "export const three = 3;\n");
    const text = `import { one } from "@shared/deep/one";
import { three } from "../other/three";
import { two } from "../../lib/two";

export async function execute() {
  return [one, two, three];
}
`;
    write(
      folder,
      "actions/sum/action.ts",
      CONFIG.replace("active", 'triggers: [{ trigger: "manual" }], active') + text,
    );
    await json(folder, ["push"]);
    expect(Object.keys((await actionOf(app, "sum")).source.files)).to.deep.equal([
      "action.ts",
      "actions/other/three.ts",
      "lib/deep/one.ts",
      "lib/two.ts",
      "tsconfig.json",
    ]);
    expect((await json(folder, ["run", "sum"])).result).to.deep.equal([1, 2, 3]);
  });

  it("names file and line of an error, and rejects files that no source may have", async () => {
    const { folder } = await newProject();
    const action = "actions/hello/action.ts";
    const cases: [file: string, text: string, message: RegExp][] = [
      [action, `${CONFIG}export async function execute() {\n  return 1 +;\n}\n`, /actions\/hello\/action\.ts:6:13: /],
      [
        action,
        `${CONFIG}import "./none";\nexport async function execute() {}\n`,
        /action\.ts, line 5.*there is no file/,
      ],
      [action, `${CONFIG}import "../../../../etc/passwd";\nexport async function execute() {}\n`, /is outside of/],
      [
        action,
        `${CONFIG}import "../../svc.json";\nexport async function execute() {}\n`,
        /an action cannot import svc\.json/,
      ],
      [action, `${CONFIG}import "../../lib/link";\nexport async function execute() {}\n`, /is outside of/],
      [action, CONFIG.replace("{ active: true }", "1"), /config in .* must be an object/],
    ];
    symlinkSync("/etc/hostname", join(folder, "lib/link.ts"));
    for (const [file, text, message] of cases) {
      write(folder, file, text);
      const { code, err } = await svc(folder, ["push", "--yes"]);
      expect([code, err], text).to.deep.equal([1, err]);
      expect(err, text).to.match(message);
    }
  });

  it("names what the config contains besides literals and constants, and its path", async () => {
    const { folder } = await newProject();
    for (const [value, found] of [
      ["process.exit(7)", "a function call at config.active"],
      ["process.env.HOME", "process (not a constant) at config.active"],
      ["[{ where: { 'a b': 1 > 2 } }]", 'the operator > at config.active[0].where["a b"]'],
      ["`${[1]}`", "a calculation with a value that is neither a text nor a number at config.active"],
      ["TIMES }); const TIMES = ({ all: [...[1, 2], new Date()]", "an object that is created with new at TIMES.all[2]"],
    ] as const) {
      write(folder, "actions/hello/action.ts", CONFIG.replace("true", value));
      const { code, err } = await svc(folder, ["push", "--yes"]);
      expect([code, err], value).to.deep.equal([
        1,
        `error the object config in actions/hello/action.ts can contain only literals and constants (got ${found})\n`,
      ]);
    }
  });

  it("prints stacks of plain JavaScript with lines of the author's file, although the service does not have its config", async () => {
    const { folder } = await newProject();
    const text = `import { defineAction } from "svc";
const limit = () => { throw new RangeError("too many"); };

export const config = defineAction({
  active: true,
  triggers: [{ trigger: "manual" }],
});

async function execute() {
  limit();
}
`;
    write(folder, "actions/plain/action.js", text);
    await json(folder, ["push"]);
    const failed = await svc(folder, ["run", "plain"]);
    const locations = [/limit.* \(actions\/plain\/action\.js:2:/, /execute.* \(actions\/plain\/action\.js:10:3\)/];
    expect(failed.err).to.match(locations[0]!).and.to.match(locations[1]!);
    // The name data-plain.js ends with the name of an action's file. Only a file with exactly that name belongs to the action.
    const [line, other] = ["    at f (plain.js:1:1)", "    at g (data-plain.js:1:1)"];
    const placed = await new Project(folder).mapStackToFiles(
      "plain",
      removeConfigBlock(text),
      `Error\n${line}\n${other}`,
    );
    expect(placed).to.equal(`Error\n    at f (actions/plain/action.js:2:1)\n${other}`);
    // If the file has changed since the push, the command line does not map stack lines to positions in the file.
    write(folder, "actions/plain/action.js", text.replace("limit();", "return limit();"));
    expect((await svc(folder, ["run", "plain"])).err).to.match(/execute.* \(plain\.js:\d+:3\)/);
  });

  it("imports the module svc also if the tsconfig.json has the project's folder, which contains svc.json, as its baseUrl", async () => {
    const { folder } = await newProject();
    write(folder, "tsconfig.json", JSON.stringify({ compilerOptions: { baseUrl: "." } }));
    const file = join(folder, "actions/hello/action.ts");
    writeFileSync(file, readFileSync(file, "utf8").replace("../../lib/greeting", "lib/greeting"));
    await json(folder, ["push"]);
    const { result } = await json(folder, ["run", "hello", "--payload", '{"name": "Ada"}']);
    expect(result).to.deep.equal({ text: "Hello Ada" });
    expect((await svc(folder, ["test"])).out).to.include("1 tests passed");
  });

  it("names the file and what it must contain, if a definition file has another form", async () => {
    const { folder } = await newProject();
    for (const [file, text, error] of [
      ["settings.json", '{"title": "Shop"}', "settings.json must contain a JSON array of objects (got an object)"],
      ["settings.json", "null", "settings.json must contain a JSON array of objects (got null)"],
      ["alerts.json", "[5]", "alerts.json must contain a JSON array of objects (got an array with other items)"],
      ["app.json", "[]", "app.json must contain a JSON object (got an array)"],
      ["data/Prices.json", "[]", "data/Prices.json must contain a JSON object (got an array)"],
    ] as const) {
      write(folder, file, text);
      const { code, err } = await svc(folder, ["push", "--yes"]);
      expect([code, err]).to.deep.equal([1, `error ${error}\n`]);
      rmSync(join(folder, file));
    }
  });

  it("ignores byte order marks, and rejects files that are not UTF-8", async () => {
    const { folder, app } = await newProject();
    const mark = "\u{feff}";
    const project = readFileSync(join(folder, "svc.json"), "utf8");
    write(folder, "svc.json", mark + project);
    write(folder, "settings.json", `${mark}[{"key": "title", "value": "Shop"}]`);
    write(folder, "data/Prices.json", `${mark}{"columns": ["Euro"]}`);
    write(folder, "actions/plain/action.js", `${mark}async function execute({ payload }) {\n  return payload;\n}\n`);
    await json(folder, ["push"]);
    const { body } = await service.rest("GET", `/v3/apps/${app}/actions?search=plain`);
    expect(body.actions[0].code).to.match(/^async function/);
    write(folder, "payload.json", `${mark}{}`);
    expect((await svc(folder, ["run", "plain", "--payload", "@payload.json"])).err).to.contain("ACTION_INACTIVE");
    for (const file of ["actions/plain/action.js", "data/Prices.json"]) {
      const before = readFileSync(join(folder, file));
      writeFileSync(join(folder, file), Buffer.from("// \u00fc\n", "latin1"));
      const { code, err } = await svc(folder, ["push", "--yes"]);
      expect([code, err]).to.deep.equal([1, `error ${file} is not UTF-8 text\n`]);
      writeFileSync(join(folder, file), before);
    }
  });

  it("runs the tests of an action by its name, and rejects names without tests", async () => {
    const { folder } = await newProject();
    const config = 'import { defineAction } from "svc";\nexport const config = defineAction({ name: "bye" });\n';
    write(folder, "actions/other/action.js", `${config}export async function execute() {\n  return 1;\n}\n`);
    const testText =
      'import { equal, test } from "svc/test";\nimport { execute } from "./action";\ntest("one", async () => equal(await execute(), 1));\n';
    write(folder, "actions/other/action.test.js", testText);
    const tests = [{ name: "one", passed: true, action: "bye" }];
    expect((await json(folder, ["test", "bye"])).tests).to.deep.equal(tests);
    const { code, err } = await svc(folder, ["test", "bye", "typo"]);
    expect([code, err]).to.match(/^2,error this project has no action typo with a file action\.test\.ts/);
    await json(folder, ["push"]);
    expect((await json(folder, ["publish", "bye", "--tested", "--with-app"])).published).to.deep.equal(["bye"]);
  });

  it("pushes no action that only lacks a line break at the end of its code, and maps its stacks to the file", async () => {
    const { folder, app } = await newProject();
    const code = 'async function execute() {\n  throw new Error("no line break");\n}';
    const body = { name: "fail", code, active: true, triggers: [{ trigger: "manual" }] };
    expect((await service.rest("POST", `/v3/apps/${app}/actions`, { body })).http).to.equal(201);
    await json(folder, ["pull"]);
    expect((await json(folder, ["push"])).plan.changed).to.deep.equal([]);
    expect((await svc(folder, ["run", "fail"])).err).to.match(/actions\/fail\/action\.js:\d+:9/);
    const file = join(folder, "actions/fail/action.js");
    writeFileSync(file, readFileSync(file, "utf8").replace("active: true", "active: false"));
    expect((await json(folder, ["push"])).plan.changed).to.deep.equal([{ kind: "action", name: "fail" }]);
    const { body: listed } = await service.rest("GET", `/v3/apps/${app}/actions?search=fail`);
    expect(listed.actions[0]).to.include({ code, active: false });
  });

  it("evaluates constants of a config, and runs no code of the file", async () => {
    const { folder, app } = await newProject();
    write(folder, "lib/limits.ts", "export const base = { timeoutMs: 2 * 1000, };\nprocess.exit(9);\n");
    const text = `import { defineAction as define } from "svc";
import { base } from "../../lib/limits";
enum Place { Server = "server" }
const what = "plain" as const;
process.exit(8);
export const config = define({ ...base, environment: Place.Server, description: \`a \${what} text\`, jitterSeconds: undefined });
export async function execute() { return 1; }
`;
    write(folder, "actions/hello/action.ts", text);
    await json(folder, ["push"]);
    expect(await actionOf(app, "hello")).to.deep.include({
      timeoutMs: 2000,
      environment: "server",
      description: "a plain text",
    });
  });

  it("keeps the author's file when fields change elsewhere, except its config", async () => {
    const { folder, app } = await newProject();
    await json(folder, ["push"]);
    const file = join(folder, "actions/hello/action.ts");
    const before = readFileSync(file, "utf8");
    const { id } = (await service.rest("GET", `/v3/apps/${app}/actions`)).body.actions[0];
    await service.rest("PUT", `/v3/apps/${app}/actions/${id}`, { body: { description: "Changed in Studio." } });
    await json(folder, ["pull"]);
    const after = readFileSync(file, "utf8");
    expect(after).to.contain("Changed in Studio.");
    expect(after.slice(after.indexOf("export async"))).to.equal(before.slice(before.indexOf("export async")));
    expect((await json(folder, ["diff"])).differences).to.deep.equal([]);
  });

  it("checks types against the app's settings, columns and packages, and names file, line and column", async () => {
    const { folder } = await newProject();
    write(folder, "data/guests.json", '{"columns": ["Name", "Stars"]}');
    write(folder, "settings.json", '[{"key": "_region"}, {"key": "title", "value": "Hotel"}]');
    await json(folder, ["check"]);
    await json(folder, ["push"]);
    const types = readFileSync(join(folder, "svc.d.ts"), "utf8");
    expect(types)
      .to.include('"_region"?: any')
      .and.include('"title": string')
      .and.include('"Name": any; "Stars": any;');
    const head = `import { type ActionContext, defineAction } from "svc";
import dayjs from "dayjs";

export const config = defineAction({ dependencies: ["dayjs"] });

export async function execute({ payload, settings }: ActionContext<{ n: number }>) {
  const guests = await Svc.DataSources.connectByName("guests");
  const [first] = await guests.find({ limit: 1 });
`;
    const tail =
      "  return [payload.n + 1, settings._region, first?.data.Name, dayjs(), window.ENV?.appSettings?.title.length];\n}\n";
    write(folder, "actions/typed/action.ts", head + tail);
    await json(folder, ["check"]);
    const faults: [line: string, column: number, message: RegExp][] = [
      ["  settings._zone;", 12, /'_zone' does not exist on type 'SvcSettings'/],
      ["  first?.data.Nme;", 15, /'Nme' does not exist/],
      ["  await guests.insert({ Star: 1 });", 25, /'Star' does not exist/],
      ['  await Svc.DataSources.connectByName("rooms");', 39, /'"rooms"' is not assignable/],
      ["  payload.n.length;", 13, /'length' does not exist on type 'number'/],
      ["  Svc.Nothing;", 7, /'Nothing' does not exist/],
      ["  window.ENV!.appSettings!.subtitle;", 28, /'subtitle' does not exist/],
    ];
    write(folder, "actions/typed/action.ts", head + faults.map(([line]) => `${line}\n`).join("") + tail);
    const { code, out } = await svc(folder, ["check", "--json"]);
    const { errors } = JSON.parse(out);
    expect([code, errors.length], out).to.deep.equal([1, faults.length]);
    for (const [at, [, column, message]] of faults.entries()) {
      expect(errors[at]).to.include({ file: "actions/typed/action.ts", line: 9 + at, column });
      expect(errors[at].message).to.match(message);
    }
    const plain = await svc(folder, ["check"]);
    expect(plain.err).to.match(/7 type errors\nactions\/typed\/action\.ts:9:12: Property '_zone'/);
    rmSync(join(folder, "tsconfig.json"));
    const unchecked = await svc(folder, ["check"]);
    expect([unchecked.code, unchecked.err]).to.match(
      /^1,error tsconfig\.json is missing; run svc init in a new folder/,
    );
  });

  longTest("finds no type error in real-world actions", async () => {
    const { folder } = await newProject();
    for (const [at, { files, dependencies = [] }] of sampleOf(REAL_ACTIONS, 0, 4).entries()) {
      if ("tsconfig.json" in files) continue;
      const config = `import { defineAction } from "svc";\nexport const config = defineAction({ dependencies: ${JSON.stringify(dependencies)} });\n`;
      for (const [file, text] of Object.entries(files)) {
        const hasConfig = file !== "action.ts" || text.includes("defineAction");
        write(folder, `actions/real-${at}/${file}`, hasConfig ? text : config + text);
      }
    }
    await json(folder, ["check"]);
  });

  longTest("publishes with the commands of the templates for GitHub and GitLab", async () => {
    const template = (file: string) => readFileSync(new URL(`../../../examples/ci/${file}`, import.meta.url), "utf8");
    // biome-ignore lint/suspicious/noExplicitAny: each template has another type
    const parsed = (file: string) => load(template(file)) as any;
    const [github, twoApps, gitlab] = ["github-workflow.yml", "github-two-apps.yml", "gitlab-ci.yml"].map(parsed);
    const stepsOf = ({ jobs }: typeof github): { run?: string }[] => jobs.svc.steps;
    const scriptsOf = (workflow: typeof github) => stepsOf(workflow).map(({ run = "" }) => run);
    expect(scriptsOf(twoApps)).to.deep.equal(scriptsOf(github));
    const steps = scriptsOf(github).flatMap((run) => run.split("\n"));
    const commands = steps.filter((line) => line.startsWith("svc "));
    expect([...gitlab.check.script, ...gitlab.publish.script]).to.deep.equal(commands);
    const { folder, app } = await newProject();
    const body = { name: "hello", code: "async function execute() {}", description: "Changed in Studio." };
    await service.rest("POST", `/v3/apps/${app}/actions`, { body });
    for (const command of commands) {
      const { code, err } = await svc(folder, command.split(" ").slice(1));
      expect(code, `${command}: ${err}`).to.equal(0);
    }
    expect((await json(folder, ["run", "hello"])).result).to.deep.equal({ text: "Hello world" });
    const { actions, published } = (await service.rest("GET", `/v3/apps/${app}/actions`)).body;
    expect([actions.length, published?.length ?? 1]).to.deep.equal([1, 1]);
  });
});
