import { execFile } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Client } from "pg";
import { withMigratedDatabase } from "../../src/cli/command.js";
import { parseTokenTask } from "../../src/cli/token-tasks.js";
import { readConfig } from "../../src/config.js";
import { formatFatalError } from "../../src/errors.js";
import { CREDENTIAL_CHANNEL } from "../../src/operations/access/credentials.js";
import { startProcess } from "../harness/process.js";
import { programEnvironment } from "../harness/program-environment.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const PROGRAM = fileURLToPath(new URL("../../src/cli/token.js", import.meta.url));

interface CommandOutput {
  code: number;
  stderr: string;
  // biome-ignore lint/suspicious/noExplicitAny: each command prints another type
  answer: any;
}

/** Runs the token program as a process, as npm does. It gets no variables of this process except those of `programEnvironment`. */
function runProgram(environment: Record<string, string>, ...words: string[]): Promise<CommandOutput> {
  return new Promise((resolve) => {
    const env = { ...programEnvironment(), ...environment };
    execFile(process.execPath, ["--no-node-snapshot", PROGRAM, ...words], { env }, (error, stdout, stderr) => {
      const last = stdout.trim().split("\n").at(-1) ?? "";
      resolve({ code: Number(error?.code ?? 0), stderr, answer: last === "" ? null : JSON.parse(last) });
    });
  });
}

describe("npm run token", () => {
  let service: TestService;
  let environment: Record<string, string>;

  /** Runs the token program in this process with these arguments, because starting a process costs a second. */
  // biome-ignore lint/suspicious/noExplicitAny: each command returns another type
  const runTokenTask = async (...words: string[]): Promise<any> =>
    withMigratedDatabase(readConfig(environment), parseTokenTask(words));

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    environment = { DATABASE_URL: service.databaseUrl };
  });
  after(() => service.stop());

  const kinds: [string, string[], number][] = [
    ["editor", ["--user", "1"], 200],
    ["admin", ["--user", "2"], 200],
    ["api", ["--app", "1"], 403],
    ["viewer", ["--app", "1", "--user", "3"], 403],
    ["live", ["--app", "1"], 403],
    ["task", ["--app", "1"], 403],
  ];
  for (const [kind, words, http] of kinds) {
    it(`makes a credential of kind ${kind} that a running service accepts, with the rights of this kind`, async () => {
      const answer = await runTokenTask(kind, ...words, "--name", "made by hand");
      expect(answer).to.have.all.keys("id", "token");
      expect(answer.token).to.match(new RegExp(`^svc_${kind}_`));
      expect((await service.rest("GET", "/v3/apps/1/actions", { as: answer.token })).http).to.equal(http);
    });
  }

  it("gives a task token an hour, and any other the requested expiry or none", async () => {
    const task = await runTokenTask("task", "--app", "1");
    const api = await runTokenTask("api", "--app", "1", "--expires", "30m");
    const lasting = await runTokenTask("api", "--app", "1");
    const ids = [task, api, lasting].map(({ id }) => id);
    const found: { minutes: number | null }[] = await service.db.query(
      `SELECT round(extract(epoch FROM expires_at - created_at) / 60)::int AS minutes FROM credential
        WHERE id = ANY($1) ORDER BY array_position($1::bigint[], id)`,
      [ids],
    );
    expect(found.map(({ minutes }) => minutes)).to.deep.equal([60, 30, null]);
  });

  it("revokes at once, also in a service that has just accepted the token", async () => {
    const { code, answer } = await runProgram(environment, "editor", "--user", "1");
    expect(code).to.equal(0);
    const ask = () => service.rest("GET", "/v3/apps/1/actions", { as: answer.token });
    expect((await ask()).http).to.equal(200);
    const listener = new Client({ connectionString: service.databaseUrl });
    await listener.connect();
    await listener.query(`LISTEN ${CREDENTIAL_CHANNEL}`);
    // The program notifies the service of the change. Without the notification, the service would notice the change only after seconds.
    const notice = once(listener, "notification");
    const revoked = await runProgram(environment, "revoke", String(answer.id));
    expect(revoked.answer).to.deep.equal({ id: answer.id, revoked: true });
    await notice;
    await listener.end();
    await until(async () => (await ask()).http === 401);
  });

  it("makes a session of the app's first editor if only the app is named", async () => {
    const { token: made } = await runTokenTask("editor", "--app", "1");
    const { body } = await service.rest("GET", "/v1/apps", { as: made });
    expect(body.apps.map(({ id }: { id: number }) => id)).to.deep.equal([1]);
  });

  it("lists also the sessions of the app's editors and of administrators", async () => {
    const { tokens } = await runTokenTask("list", "--app", "1");
    const kinds = new Set(tokens.map(({ kind }: { kind: string }) => kind));
    expect([...kinds].sort()).to.deep.equal(["admin", "api", "editor", "live", "viewer"]);
    const { tokens: ofOther } = await runTokenTask("list", "--app", "999");
    expect(new Set(ofOther.map(({ kind }: { kind: string }) => kind))).to.deep.equal(new Set(["admin"]));
  });

  it("lists the app's credentials without their tokens", async () => {
    const { id: listed } = await runTokenTask("api", "--app", "1", "--name", "listed");
    const { tokens } = await runTokenTask("list", "--app", "1");
    expect(tokens.find(({ id }: { id: number }) => id === listed)).to.deep.include({ kind: "api", name: "listed" });
    expect(JSON.stringify(tokens)).to.not.contain("svc_api_");
  });

  const mistakes: [string[], RegExp][] = [
    [[], /^the first argument must be a kind of credential, or the command list or revoke \(got nothing\)\. Usage: /],
    [
      ["cook", "--app", "1"],
      /^the first argument must be a kind of credential, or the command list or revoke \(got cook\)\. Usage: /,
    ],
    [["api"], /^A credential of the kind api needs --app\. Usage: /],
    [["editor"], /^A credential of the kind editor needs exactly one of --app and --user\. Usage: /],
    [["api", "--app", "1", "--user", "3"], /^A credential of the kind api cannot have --user\. Usage: /],
    [["api", "--app", "first"], /^--app must be a positive whole number \(got "first"\)\. Usage: /],
    [["api", "--app", "999"], /^there is no app with the ID 999$/],
    [["editor", "--user", "999"], /^there is no user with the ID 999$/],
    [["task", "--app", "1", "--run", "999"], /^the app 1 has no run with the ID 999$/],
    [["api", "--app", "1", "--expires", "soon"], /^--expires must be /],
    [["api", "--app", "1", "--colour", "red"], /^Unknown option '--colour'\. Usage: /],
    [["revoke"], /^The command revoke needs the ID of a token\. Usage: /],
    [["revoke", "999999"], /^no such token$/],
    [["list"], /^The command list needs the option --app\. Usage: /],
  ];
  for (const [words, expected] of mistakes) {
    it(`reports the error of: ${words.join(" ") || "nothing"}`, async () => {
      const message = await runTokenTask(...words).catch(formatFatalError);
      expect(message).to.match(expected);
    });
  }

  longTest("reports an error in one line, prints no JSON and exits with 1", async () => {
    const { code, stderr, answer } = await runProgram(environment, "api", "--app", "999");
    expect([code, stderr, answer]).to.deep.equal([1, "there is no app with the ID 999\n", null]);
  });

  longTest("uses the embedded database of a running service, and starts it if none runs", async () => {
    const running = startProcess({ ROLES: "api" });
    try {
      const url = await running.ready();
      const beside = await runProgram({ DATA_DIR: running.dataDir }, "editor", "--user", "1");
      const headers = { "auth-token": beside.answer.token };
      expect((await fetch(`${url}/v3/apps/1/actions`, { headers })).status).to.equal(200);
      running.signal("SIGTERM");
      await running.ended;
      const alone = await runProgram({ DATA_DIR: running.dataDir }, "api", "--app", "1");
      expect(alone.code).to.equal(0);
      expect(alone.answer.id).to.be.greaterThan(beside.answer.id);
      expect(running.listRemainingProcesses()).to.deep.equal([]);
    } finally {
      await running.clean();
    }
  });
});
