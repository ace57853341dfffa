/** Tests the command line `svc` against a service: from an empty folder to a published action, and with two people. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import { load } from "js-yaml";
import { programEnvironment } from "../harness/program-environment.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { createSvcProjects, SVC_PROGRAM, writeProjectFile } from "../harness/svc-projects.js";
import { until } from "../harness/until.js";

describe("the command line", () => {
  let service: TestService;
  const projects = createSvcProjects(() => service);
  const { newFolder, svc, svcProcess, json, newProject } = projects;
  const write = writeProjectFile;

  before(async () => {
    service = await startTestService({ ROLES: "api,runner" });
  });
  after(async () => {
    await service?.stop();
    await projects.cleanUp();
  });

  it("exits with 2 on wrong use, and names the problem", async () => {
    const { folder } = await newProject();
    const cases: [string[], RegExp, Record<string, string>?][] = [
      [["no-such-command"], /unknown command/],
      [["run"], /missing required argument/],
      [["run", "x", "--payload", "{"], /--payload must be JSON, @file or -/],
      [["run", "x", "--payload", "[1]"], /--payload must be a JSON object/],
      [["run", "x", "--payload", "@none.json"], /none\.json cannot be read/],
      [["diff", "--nonsense"], /unknown option/],
      [["status"], /SVC_URL must be an http or https address .* \(got "ftp:\/\/x"\)/, { SVC_URL: "ftp://x" }],
      [["status"], /SVC_APP must be the ID of an app, a positive integer \(got "x"\)/, { SVC_APP: "x" }],
      [["publish", "hello"], /needs a confirmation, but there is no terminal/],
      [["publish", "--service"], /--service needs --tested/],
      [["test", "--service", "--watch"], /--watch cannot be used with --service/],
      [["completion", "tcsh"], /shell must be bash, zsh or fish \(got tcsh\)/],
    ];
    await service.rest("POST", `/v3/apps/${(await project(folder)).app}/actions`, {
      body: { name: "hello", code: "async function execute() {}", triggers: [{ trigger: "manual" }] },
    });
    for (const [args, message, env] of cases) {
      const { code, err } = await svc(folder, args, env ? { env } : {});
      expect(code, `${args.join(" ")}: ${err}`).to.equal(2);
      expect(err).to.match(message);
    }
    const { code, err } = await svcProcess(newFolder(), ["status"]);
    expect([code, err]).to.deep.equal([
      2,
      'error no server is set; run svc init in a new folder, or set SVC_URL or "url" in svc.json\n',
    ]);
  });

  const project = async (folder: string) => JSON.parse(readFileSync(join(folder, "svc.json"), "utf8"));

  it("exits with 1 on errors of the service, and prints text or only JSON", async () => {
    const { folder } = await newProject();
    const plain = await svcProcess(folder, ["run", "nothing"]);
    expect([plain.code, plain.out]).to.deep.equal([1, ""]);
    expect(plain.err).to.match(/^error ACTION_NOT_FOUND: /);
    const { code, out, err } = await svcProcess(folder, ["run", "nothing", "--json"]);
    expect([code, err]).to.deep.equal([1, ""]);
    expect(JSON.parse(out)).to.include({ status: "ACTION_NOT_FOUND" });
    const signedOut = await svc(folder, ["status"], { env: { SVC_TOKEN: "" } });
    expect([signedOut.code, signedOut.err]).to.deep.equal([
      1,
      "error not signed in; run svc login, or set SVC_TOKEN\n",
    ]);
    const away = await svc(folder, ["status"], { env: { SVC_URL: "http://127.0.0.1:1" } });
    expect([away.code, away.err]).to.match(/1,error http:\/\/127\.0\.0\.1:1 did not return a response/);
  });

  it("runs an action with a payload from an argument, a file and standard input", async () => {
    const { folder, app } = await newProject();
    const code =
      "async function execute({ payload }) { console.log('seen'); if (payload.bad) throw new Error('bad payload'); return payload; }";
    const body = { name: "echo", code, active: true, triggers: [{ trigger: "manual" }] };
    await service.rest("POST", `/v3/apps/${app}/actions`, { body });
    write(folder, "p.json", '{"from": "file"}');
    for (const [payload, expected, input] of [
      ['{"from": "text"}', { from: "text" }, ""],
      ["@p.json", { from: "file" }, ""],
      ["-", { from: "stdin" }, '{"from": "stdin"}'],
    ] as const) {
      const answer = await json(folder, ["run", "echo", "--payload", payload], { input });
      expect(answer.result).to.deep.equal(expected);
      expect(JSON.stringify(answer.console)).to.contain("seen");
    }
    const piped = await svcProcess(folder, ["run", "echo", "--payload", "-", "--json"], {
      input: '{"from": "a pipe"}',
    });
    expect([piped.code, JSON.parse(piped.out).result, piped.err]).to.deep.equal([0, { from: "a pipe" }, ""]);
    const ciToken = { kind: "api", scopes: ["manage"] };
    const { token } = (await service.rest("POST", `/v1/apps/${app}/tokens`, { body: ciToken })).body;
    const env = { SVC_TOKEN: token };
    const unread = await svc(folder, ["run", "echo", "--draft"], { env });
    expect([unread.code, unread.err]).to.match(
      /^1,error run \d+ was accepted, but its result .* token with the scope read/,
    );
    expect((await svc(folder, ["run", "echo", "--draft", "--no-wait"], { env })).code).to.equal(0);
    const failed = await svc(folder, ["run", "echo", "--payload", '{"bad": 1}']);
    expect(failed.code).to.equal(1);
    expect(failed.err).to.contain("bad payload");
    await until(async () => (await svc(folder, ["logs"])).out.split("completed").length === 7);
    const { runs } = await json(folder, ["logs"]);
    expect(runs.map(({ state }: { state: string }) => state)).to.deep.equal([
      "completed",
      "completed",
      "completed",
      "completed",
      "completed",
      "completed",
      "failed",
    ]);
    const { id, finishedAt } = runs.at(-1);
    const { out } = await svc(folder, ["logs"]);
    expect(out.trimEnd().split("\n").at(-1)).to.equal(`${finishedAt}  failed  echo  run ${id}`);
  });

  it("sets a setting from standard input, and prints no private or protected value", async () => {
    const { folder } = await newProject();
    await json(folder, ["settings", "set", "title"], { input: "Shown\n" });
    await json(folder, ["settings", "set", "_note"], { input: "cli-private-canary\n" });
    await json(folder, ["settings", "set", "__key"], { input: '{"deep": "cli-protected-canary"}' });
    const { settings } = await json(folder, ["settings", "list"]);
    expect(settings).to.deep.equal([
      { key: "__key", tier: "protected" },
      { key: "_note", tier: "private" },
      { key: "title", tier: "public", value: "Shown" },
    ]);
    for (const args of [["settings"], ["settings", "list"], ["status"]]) {
      const { out, err } = await svc(folder, args);
      expect(out + err, args.join(" ")).not.to.contain("canary");
    }
    await json(folder, ["settings", "unset", "title"]);
    expect((await json(folder, ["settings"])).settings).to.have.length(2);
  });

  it("saves a token for one server and app, readable only by its person, and never prints it", async () => {
    const { folder } = await newProject();
    const noToken = { SVC_TOKEN: "" };
    const input = `${service.tokens.editor}\n`;
    const wrong = await svc(folder, ["login", "--token-stdin"], { env: noToken, input: "svc_editor_wrong" });
    expect(wrong.code).to.equal(1);
    const { out, err } = await svc(folder, ["login", "--token-stdin"], { env: noToken, input });
    expect(out + err)
      .to.contain("Signed in")
      .and.not.to.contain(service.tokens.editor);
    const { statSync } = await import("node:fs");
    const file = join(folder, ".config/credentials.json");
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect((await svc(folder, ["settings"], { env: noToken })).code).to.equal(0);
    const elsewhere = { ...noToken, SVC_URL: service.url.replace("127.0.0.1", "localhost") };
    expect((await svc(folder, ["settings"], { env: elsewhere })).err).to.contain("not signed in");
    const signedOut = await svc(folder, ["logout", "--json"], { env: noToken });
    expect([JSON.parse(signedOut.out), signedOut.err]).to.deep.equal([{ signedOut: true, accessEnded: null }, ""]);
    expect((await svc(folder, ["settings"], { env: noToken })).err).to.contain("not signed in");
  });

  it("signs in by a code that a person confirms, and signs out at the service", async () => {
    const { folder } = await newProject();
    const env = { ...programEnvironment(), SVC_CONFIG_DIR: join(folder, ".config") };
    const child = spawn(process.execPath, [SVC_PROGRAM, "login"], {
      cwd: folder,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const closed = once(child, "close");
    let printed = "";
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      printed += chunk;
    });
    await until(() => Promise.resolve(/code [B-Z]{4}-[B-Z]{4}/.test(printed)));
    const code = /code ([B-Z]{4}-[B-Z]{4})/.exec(printed)![1]!;
    const device = await service.rest("GET", `/oauth/devices/${code}`);
    const body = { allow: true, appId: device.body.appId, scopes: ["settings"] };
    expect((await service.rest("POST", `/oauth/devices/${code}`, { body })).http).to.equal(200);
    expect(await closed).to.deep.equal([0, null]);
    const signedIn = { env: { SVC_TOKEN: "" } };
    expect((await svc(folder, ["settings"], signedIn)).code).to.equal(0);
    expect((await svc(folder, ["push", "--yes"], signedIn)).err).to.contain("FORBIDDEN");
    for (const args of [
      ["create", "staging"],
      ["remove", "2"],
      ["rollback", "1"],
    ])
      expect((await svc(folder, ["stage", ...args, "--yes"], signedIn)).err, args[0]).to.match(
        /FORBIDDEN: permission denied; set SVC_TOKEN to a token of an editor/,
      );
    const before = (await service.rest("GET", "/oauth/grants")).body.grants.length;
    expect((await svc(folder, ["logout"], signedIn)).code).to.equal(0);
    expect((await service.rest("GET", "/oauth/grants")).body.grants).to.have.length(before - 1);
  });

  it("signs out on this machine although the server is not reachable, and says where to end the access", async () => {
    const { folder } = await newProject();
    const url = "http://127.0.0.1:9";
    const env = { SVC_TOKEN: "", SVC_URL: url, SVC_APP: "1" };
    const saved = { token: "svc_access_1", refreshToken: "svc_refresh_1", clientId: "c1", expiresAt: 0 };
    write(folder, ".config/credentials.json", JSON.stringify({ [`${url} 1`]: saved }));
    const { code, out, err } = await svc(folder, ["logout"], { env });
    expect([code, out]).to.deep.equal([0, "Signed out\n"]);
    expect(err).to.contain("did not confirm").and.contain(`${url}/oauth/programs`);
    expect((await svc(folder, ["settings"], { env })).err).to.contain("not signed in");
  });

  it("prints completions that the shells accept", async () => {
    const folder = newFolder();
    const { out } = await svc(folder, ["completion", "bash"]);
    write(folder, "svc.bash", out);
    const script = "source ./svc.bash; COMP_WORDS=(svc pu); COMP_CWORD=1; _svc; echo ${COMPREPLY[@]}";
    const bash = spawn("bash", ["-c", script], { cwd: folder });
    expect((await text(bash.stdout)).trim().split(" ").sort()).to.deep.equal(["publish", "pull", "push"]);
    for (const shell of ["zsh", "fish"]) expect((await svc(folder, ["completion", shell])).out).to.contain("rollback");
  });

  it("colours its output on a terminal only, and not with NO_COLOR", async () => {
    const { folder } = await newProject();
    const outputOf = async (options: object) => (await svc(folder, ["diff"], options)).out;
    const plain = await outputOf({});
    expect(plain).to.contain("+").and.not.contain("\u001b[");
    const coloured = await outputOf({ isTerminal: true });
    expect(coloured).to.contain("\u001b[32m");
    expect(stripVTControlCharacters(coloured)).to.equal(plain);
    for (const env of [{ NO_COLOR: "1" }, { TERM: "dumb" }])
      expect(await outputOf({ isTerminal: true, env })).to.equal(plain);
    expect((await svc(folder, ["diff", "--json"], { isTerminal: true })).out).not.to.contain("\u001b[");
  });

  it("init writes instructions and skills for coding agents, which name only commands, options and pages that exist", async () => {
    const { folder } = await newProject();
    const read = (file: string) => readFileSync(join(folder, file), "utf8");
    const skills = readdirSync(join(folder, ".agents/skills"));
    expect(skills).to.include.members(["svc-find-failure", "svc-publish", "svc-write-action"]);
    const texts = [read("AGENTS.md")];
    for (const name of skills) {
      const [, head, text] = /^---\n(.*?)\n---\n\n(.+)$/s.exec(read(`.agents/skills/${name}/SKILL.md`))!;
      const fields = load(head!) as { name: string; description: string };
      expect(fields.name).to.equal(name);
      expect(fields.description).to.match(/ Use it /);
      texts.push(text!);
    }
    const used = texts.flatMap((text) => [...text.matchAll(/`svc ([^`]+)`/g)].map(([, command]) => command!));
    expect(used.length).to.be.above(10);
    for (const command of used) {
      const help = (await svc(folder, [command.split(" ")[0]!, "--help"])).out;
      expect(help, command).to.match(/^Usage: svc /);
      for (const [option] of command.matchAll(/--[a-z-]+/g)) expect(help, command).to.contain(option);
    }
    const paths = texts.flatMap((text) => [...text.matchAll(/(?<=`|json>)\/[\w./-]+\b/g)].map(([path]) => path));
    expect(paths).to.include.members(["/llms.txt", "/docs/guides/failed-run.md", "/mcp"]);
    for (const path of paths) expect((await service.rest("GET", path, { as: null })).http, path).to.not.equal(404);
  });

  it("goes from an empty folder to a tested, published action", async () => {
    const { folder } = await newProject();
    expect(existsSync(join(folder, "AGENTS.md"))).to.equal(true);
    expect((await svcProcess(folder, ["diff", "--exit-code"])).code).to.equal(3);
    const { plan } = await json(folder, ["push"]);
    expect(plan.created).to.deep.include({ kind: "action", name: "hello" });
    expect((await svc(folder, ["diff", "--exit-code"])).code).to.equal(0);
    const { tests } = await json(folder, ["test"]);
    expect(tests).to.deep.equal([{ action: "hello", name: "greets by name", passed: true }]);
    await json(folder, ["publish", "hello", "--tested"]);
    const live = { env: { SVC_TOKEN: service.tokens.editor } };
    expect((await json(folder, ["run", "hello", "--payload", '{"name": "Ada"}'], live)).result).to.deep.equal({
      text: "Hello Ada",
    });
  });

  longTest(
    "publishes only what was pushed and tested, and rolls back to the version that was live before",
    async () => {
      const { folder, app } = await newProject();
      await json(folder, ["push"]);
      await json(folder, ["publish", "hello", "--tested"]);
      write(folder, "lib/greeting.ts", "export const greeting = (name: string): string => `Bye ${name}`;\n");
      const failing = await svc(folder, ["publish", "hello", "--tested", "--yes"]);
      expect([failing.code, failing.err]).to.match(/^1,.*1 of 1 tests failed/s);
      const testFile = "actions/hello/action.test.ts";
      write(folder, testFile, readFileSync(join(folder, testFile), "utf8").replace("Hello Ada", "Bye Ada"));
      const other = await svc(folder, ["publish", "hello", "--tested", "--yes"]);
      expect([other.code, other.err]).to.match(
        /^1,.*local code of hello, which differs from the drafts on the server; run svc push first/s,
      );
      await json(folder, ["push"]);
      const requireTests = (requiresTests: boolean) =>
        service.rest("PUT", `/v1/admin/apps/${app}`, { as: "admin", body: { requiresTests } });
      expect((await requireTests(true)).http).to.equal(200);
      const untested = await svc(folder, ["publish", "--yes"]);
      expect([untested.code, untested.err]).to.match(/^1,error TESTS_REQUIRED: /);
      await json(folder, ["publish", "--tested"]);
      expect((await json(folder, ["run", "hello"])).result).to.deep.equal({ text: "Bye world" });
      expect((await json(folder, ["versions", "hello"])).versions.length).to.be.above(1);
      // Saves a version that is never published.
      write(folder, "lib/greeting.ts", "export const greeting = (name: string): string => `Draft ${name}`;\n");
      await json(folder, ["push"]);
      const runs = [await json(folder, ["run", "hello"]), await json(folder, ["run", "hello", "--live"])];
      expect(runs.map(({ result }) => result.text)).to.deep.equal(["Draft world", "Bye world"]);
      const { versions } = await json(folder, ["versions", "hello", "--published"]);
      // The app requires passed tests for the publication of a draft, but not for a rollback to an earlier live version.
      const refused = await svc(folder, ["publish", "--yes"]);
      expect([refused.code, refused.err]).to.match(/^1,error TESTS_REQUIRED: /);
      const rolledBack = await json(folder, ["rollback", "hello"]);
      expect(rolledBack.versionId).to.equal(versions[1].id);
      expect((await json(folder, ["run", "hello"])).result).to.deep.equal({ text: "Hello world" });
      expect((await json(folder, ["publish"])).published).to.deep.equal([]);
    },
  );

  it("finds an action by its name also if the list of actions needs more than one page", async () => {
    const { folder, app } = await newProject();
    for (const name of ["order", ...Array.from({ length: 9 }, (_, at) => `order-${at}`)]) {
      const body = { name, code: "async function execute() {}" };
      expect((await service.rest("POST", `/v3/apps/${app}/actions`, { body })).http).to.equal(201);
    }
    const sql = "UPDATE action SET code = code || repeat(' ', 1000000) WHERE app_id = $1 AND name <> 'order'";
    await service.db.query(sql, [app]);
    expect((await json(folder, ["versions", "order"])).versions).to.have.length(1);
  });

  it("rejects a push after another person's, shows the difference, and loses nothing", async () => {
    const first = await newProject();
    await json(first.folder, ["push"]);
    rmSync(join(first.folder, "actions/hello"), { recursive: true });
    expect((await json(first.folder, ["pull"])).pulled).to.deep.equal([
      { kind: "app", name: "app", change: "created" },
      { kind: "action", name: "hello", change: "created" },
    ]);
    expect((await json(first.folder, ["pull"])).pulled).to.deep.equal([]);
    // Only this developer changes these files. A pull keeps the changed files. A forced pull replaces and lists them.
    const [action, definitions] = ["actions/hello/action.ts", "app.json"].map((name) => join(first.folder, name));
    const [before, fields] = [readFileSync(action!, "utf8"), readFileSync(definitions!, "utf8")];
    writeFileSync(action!, before.replace("Greets a person.", "Greets here."));
    writeFileSync(definitions!, JSON.stringify({ ...JSON.parse(fields), name: "renamed here" }));
    expect((await json(first.folder, ["pull"])).pulled).to.deep.equal([]);
    expect(readFileSync(action!, "utf8")).to.contain("Greets here.");
    expect(readFileSync(definitions!, "utf8")).to.contain("renamed here");
    expect((await json(first.folder, ["pull", "--force"])).pulled).to.deep.equal([
      { kind: "app", name: "app", change: "changed" },
      { kind: "action", name: "hello", change: "changed" },
    ]);
    expect(readFileSync(action!, "utf8")).to.equal(before);
    expect((await json(first.folder, ["pull", "--force"])).pulled).to.deep.equal([]);
    const second = await newProject(first.app);
    for (const made of ["actions", "lib"]) rmSync(join(second.folder, made), { recursive: true });
    await json(second.folder, ["pull", "--force"]);
    const file = "actions/hello/action.ts";
    for (const pulled of [file, "lib/greeting.ts"])
      expect(readFileSync(join(second.folder, pulled), "utf8")).to.equal(
        readFileSync(join(first.folder, pulled), "utf8"),
      );
    write(
      first.folder,
      file,
      readFileSync(join(first.folder, file), "utf8").replace("Greets a person.", "Greets people."),
    );
    await json(first.folder, ["push"]);
    const theirs = join(second.folder, file);
    writeFileSync(theirs, readFileSync(theirs, "utf8").replace("Greets a person.", "Says hello."));
    const { code, out } = await svc(second.folder, ["push", "--yes", "--json"]);
    expect(code).to.equal(1);
    const refusal = JSON.parse(out);
    expect(refusal.status, out).to.equal("MANIFEST_CHANGED");
    expect(refusal.error, out).to.contain("svc pull --force");
    expect(refusal.differences[0].patch).to.contain('+  "description": "Greets people."');
    const pulled = await svc(second.folder, ["pull"]);
    expect([pulled.code, pulled.err]).to.match(/^1,.*action hello changed in this folder and also on the server/s);
    expect(readFileSync(theirs, "utf8")).to.contain("Says hello.");
    await json(second.folder, ["push", "--force"]);
    const late = await svc(first.folder, ["push", "--yes"]);
    expect([late.code, late.err]).to.match(/^1,.*Says hello/s);
  });
});
