import { readFileSync, statSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { expect } from "chai";
import { Client } from "pg";
import { type GitServer, startGitServer } from "../harness/git-server.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { longTest } from "../harness/samples.js";
import { type StallingProxy, startStallingProxy } from "../harness/stalling-proxy.js";
import { until } from "../harness/until.js";
import { expectNoSecrets, LOGGING, testLogLines } from "./log-lines.js";
import {
  type Answer,
  type Editor,
  ENDLESS_RUN_CODE,
  editorOf,
  get,
  QUICK,
  WAITING_CODE,
  waitForRuns,
} from "./support.js";

/** Code of an action that waits for the response of the URL in `payload.hold`, if there is one. */
const HELD_CODE = `async function execute({ payload }) {
  if (payload.hold) await fetch(payload.hold);
  return { held: Boolean(payload.hold) };
}`;
/** Time limit of a run in milliseconds: far longer than a short action needs. */
const LIMIT_MS = 6_000;

/** Manifest that a person pushes. */
const PUSHED = {
  version: 1,
  settings: [{ key: "title", value: "pushed title" }],
  dataSources: [{ name: "pushed-rows", columns: ["Name"] }],
  actions: ["pushed-first", "pushed-second"].map((name) => ({ name, code: QUICK })),
};

/** Server that answers no request until it is released. So runs that wait for a response end only then, also on a slow machine. */
class HoldingServer {
  private readonly waiting = new Set<ServerResponse>();
  private readonly server: Server = createServer((_request, response) => this.waiting.add(response));

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }
  count(): number {
    return this.waiting.size;
  }
  release(): void {
    for (const response of this.waiting) response.writeHead(200, { "access-control-allow-origin": "*" }).end();
  }
  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

/** Each test continues with the process or folder of the previous one, because a start in an empty folder takes long. */
describe("the life of a service on its own data", () => {
  const started: ServiceProcess[] = [];
  const hold = new HoldingServer();
  let service: ServiceProcess;
  let editor: Editor & { url: string };
  let repository: GitServer;
  let commit: string;
  let single: number;
  let proxies: StallingProxy[] = [];
  let stages: number[] = [];

  /** Sends a request as the first app's editor, to a path of this app or of a stage. */
  async function sendAppRequest(method: string, path: string, body?: object, appId = 1): Promise<Answer["body"]> {
    const headers = { "auth-token": service.credentials().tokens.editor, "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    return (await fetch(`${editor.url}/v1/apps/${appId}${path}`, { method, headers, ...sent })).json();
  }
  async function deliver(ref: string, secret: string, appId = 1) {
    const body = JSON.stringify({ ref, after: "1".repeat(40) });
    const headers = { "x-gitlab-token": secret, "content-type": "application/json" };
    return (await fetch(`${editor.url}/v1/apps/${appId}/git/webhook`, { method: "POST", headers, body })).status;
  }
  async function queryDatabase(sql: string) {
    const client = new Client({ connectionString: service.databaseUrl() });
    await client.connect();
    return client.query(sql).finally(() => client.end());
  }

  /** Starts the service: the first time in a new folder, then again in this folder. */
  function start(environment: Record<string, string> = {}): void {
    const [first] = started;
    const folder = first && { DATA_DIR: first.dataDir };
    service = startProcess({ ALLOW_PRIVATE_NETWORK: "1", ...folder, ...environment });
    started.push(service);
  }
  async function expectEnded(code: number): Promise<void> {
    expect(await service.ended).to.deep.equal({ code, signal: null });
    expect(started.flatMap((service) => service.listRemainingProcesses())).to.deep.equal([]);
  }
  after(async () => {
    for (const service of started.reverse()) await service.clean();
    await hold.stop();
    for (const proxy of proxies) await proxy.stop();
    await repository?.stop();
  });

  it("names the part that is not ready until it is, and is live", async () => {
    start({ SHUTDOWN_GRACE_MS: "3600000", ...LOGGING });
    const url = await service.listening();
    const refused = fetch(`${url}/health/ready`);
    const [live, ready, other] = await Promise.all(
      ["/health/live", "/health/ready", "/v3/apps/1/actions"].map((path) => get(url + path)),
    );
    expect(Number((await refused).headers.get("retry-after"))).to.be.greaterThan(0);
    expect(live!.http).to.equal(200);
    expect(ready!.http).to.equal(503);
    expect(ready!.body.status).to.equal("OVERLOADED");
    expect(ready!.body.error).to.contain("database");
    expect(ready!.body.failing).to.include.members(["database", "browser", "scheduler"]);
    expect(other).to.deep.include({ http: 503 });
    expect(other!.body.status).to.equal("OVERLOADED");
    await service.ready();
    expect(await get(`${url}/health/live`)).to.deep.equal({ http: 200, body: { status: "LIVE" } });
    expect(await get(`${url}/health/ready`)).to.deep.equal({ http: 200, body: { status: "READY" } });
  });

  it("starts from nothing with a first app, whose credentials only the owner of the folder can read", async () => {
    editor = await editorOf(service);
    const credentials = service.credentials();
    expect(credentials).to.have.all.keys("baseUrl", "organizationId", "appId", "tokens");
    expect(credentials).to.deep.include({ baseUrl: editor.url, organizationId: 1, appId: 1 });
    expect(credentials.tokens).to.have.all.keys("editor", "admin", "api", "viewer", "live");
    const mode = statSync(join(service.dataDir, "credentials.json")).mode & 0o777;
    expect(mode.toString(8)).to.equal("600");
  });

  it("prints an address and, at the first start, a link for the first administrator; never a token of the file", async () => {
    const text = await until(() => service.stderr().includes("Create the first administrator") && service.stderr());
    const address = editor.url.replace("127.0.0.1", "localhost");
    for (const path of ["/studio", "/graphql", "/v1/apps"]) expect(text).to.contain(`${address}${path}`);
    expect(text).to.contain(`${address}/studio/setup#token=svc_setup_`);
    expect(text).to.contain(join(service.dataDir, "credentials.json"));
    for (const token of Object.values(service.credentials().tokens)) expect(text).not.to.contain(token);
    expect(JSON.stringify(service.log)).not.to.contain("svc_");
  });

  testLogLines(() => service);

  it("lets runs end on SIGTERM and call other actions, rejects requests and queued callers, and leaves no process and no secret in its log", async () => {
    const address = await hold.start();
    const calling = `async function execute({ payload }) {
      await fetch(payload.hold);
      return Svc.App.V3.Actions.runWithResult("quick", {});
    }`;
    await editor.create("quick", QUICK);
    await editor.create("calling", calling);
    await editor.create("callingInDocument", `${calling} const title = () => document.title;`);
    single = await editor.create("single", HELD_CODE);
    await editor.call("PUT", `/${single}`, { concurrency: { policy: "queue", limit: 1 } });
    expect(service.listRemainingProcesses().join("\n"))
      .to.match(/postgres/)
      .and.to.match(/headless/);
    const runs = ["calling", "callingInDocument", "single"].map((name) =>
      editor.call("POST", `/${name}/runWithResult`, { hold: address }),
    );
    await until(() => hold.count() === 3);
    const queued = editor.call("POST", "/single/runWithResult", {});
    await waitForRuns(service, 1, "queued");
    service.signal("SIGTERM");
    const refused = await until(async () => {
      const answer = await get(`${editor.url}/health/ready`);
      return answer.http === 503 ? answer : null;
    });
    expect(refused.body.failing).to.include("stopping");
    expect((await get(`${editor.url}/v3/apps/1/actions`)).http).to.equal(503);
    hold.release();
    const answers = await Promise.all(runs);
    expect(answers.map(({ body }) => body.result)).to.deep.equal([{ quick: true }, { quick: true }, { held: true }]);
    expect((await queued).body).to.include({ status: "OVERLOADED" });
    // The process ends long before the end of the grace period, which the first start set to an hour.
    await expectEnded(0);
    expectNoSecrets(service);
  });

  longTest("executes at the next start the run that was queued at the end of the process", async () => {
    start({ SERVER_TIMEOUT_MS: String(LIMIT_MS) });
    editor = await editorOf(service);
    const logs = await until(async () => {
      const found = await editor.logs({ id: single });
      return found.length === 2 ? found : null;
    });
    expect(logs.map(({ type }) => type)).to.deep.equal(["app.task.completed", "app.task.completed"]);
  });

  longTest(
    "prints the link for the first administrator again at a later start, and not where the credentials are",
    async () => {
      await until(() => service.stderr().includes("/studio"));
      // The link is still unused, so the service prints it again.
      expect(service.stderr()).to.contain("Create the first administrator");
      expect(service.stderr()).not.to.contain("credentials.json");
    },
  );

  longTest("kills a run at its limit, logs a timeout, and runs another action at once", async () => {
    const taskId = await editor.create("endless", ENDLESS_RUN_CODE);
    const { http, body } = await editor.call("POST", "/endless/runWithResult");
    expect(http).to.equal(500);
    expect(body.status).to.equal("EXECUTION_FAILED");
    expect(body.error).to.match(/timeout|time limit|timed out/i);
    expect((await editor.call("POST", "/quick/runWithResult")).body.result).to.deep.equal({ quick: true });
    const [entry] = await editor.logs({ id: taskId });
    expect(entry.type).to.equal("app.task.failed");
    expect(entry.data.error.name).to.equal("TimeoutError");
    expect(entry.data.duration).to.be.at.least(LIMIT_MS);
  });

  longTest("exits with a line and code 1 when its PostgreSQL dies, and recovers at the next start", async () => {
    const pidFile = join(service.dataDir, "postgres/postmaster.pid");
    process.kill(Number(readFileSync(pidFile, "utf8").split("\n")[0]), "SIGKILL");
    expect(await service.ended).to.deep.equal({ code: 1, signal: null });
    expect(service.stderr()).to.include("PostgreSQL stopped unexpectedly; the next start recovers its data\n");
    start();
    editor = await editorOf(service);
  });

  longTest("logs after kill -9 that the run failed: once, at the next start", async () => {
    const taskId = await editor.create("lost", WAITING_CODE);
    const lost = editor.call("POST", "/lost/runWithResult", { wait: 100_000 }).catch(() => null);
    await waitForRuns(service);
    // When the process is killed, one pull of this repository is in progress, and another pull waits for it.
    repository = await startGitServer();
    commit = repository.commit({ "actions/pulled/action.ts": "export async function execute() {}" });
    repository.tag("v1", commit);
    const arrived = Promise.withResolvers<void>();
    repository.onRequest = () => {
      arrived.resolve();
      return new Promise(() => {});
    };
    const fields = { provider: "gitlab", url: repository.url, tagPattern: "v*" };
    await sendAppRequest("POST", "/publish", {});
    const { webhookSecret } = await sendAppRequest("PUT", "/git", fields);
    expect(await deliver("refs/heads/main", webhookSecret)).to.equal(202);
    await arrived.promise;
    expect(await deliver("refs/tags/v1", webhookSecret)).to.equal(202);
    // The lock makes the push of a manifest wait at its last write, the entry in the audit log.
    const lock = new Client({ connectionString: service.databaseUrl() });
    lock.on("error", () => undefined);
    await lock.connect();
    await lock.query("BEGIN; LOCK TABLE audit_entry IN EXCLUSIVE MODE");
    const interrupted = sendAppRequest("PUT", "/manifest", PUSHED).catch(() => null);
    const isWaiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%audit_entry%'";
    await until(async () => (await queryDatabase(isWaiting)).rowCount === 1);
    service.signal("SIGKILL");
    await service.ended;
    // PostgreSQL may outlive the killed service until the next start, so the test closes this connection itself.
    await lock.end();
    await Promise.all([lost, interrupted]);
    repository.onRequest = async () => undefined;
    start({ SHUTDOWN_GRACE_MS: "200" });
    editor = await editorOf(service);
    const [entry] = await until(async () => {
      const found = await editor.logs({ id: taskId });
      return found.length > 0 ? found : null;
    });
    expect(entry.type).to.equal("app.task.failed");
    expect(entry.data.error.name).to.equal("RunLostError");
    expect((await editor.call("POST", "/quick/runWithResult")).body.result).to.deep.equal({ quick: true });
    expect(await editor.logs({ id: taskId })).to.have.length(1);
  });

  longTest("pulls after kill -9 for the webhooks of a git server that it had accepted, in their order", async () => {
    const pulls = await until(async () => {
      const { entries } = await sendAppRequest("GET", "/audit");
      const found = entries.filter(({ type }: { type: string }) => type === "app.git.pull");
      return found.length === 2 ? found : null;
    });
    expect(pulls.map(({ data }: { data: object }) => data)).to.deep.equal([
      { ref: "refs/tags/v1", commit, created: 0, changed: 0, removed: 0 },
      { ref: "refs/heads/main", commit, created: 1, changed: 0, removed: 0 },
    ]);
    const { lastPull } = await until(async () => {
      const { git } = await sendAppRequest("GET", "/git");
      return git.lastPull?.ref === "refs/tags/v1" ? git : null;
    });
    expect(lastPull).to.deep.include({ commit, error: null, published: ["pulled"] });
    await until(async () => (await queryDatabase("SELECT FROM git_webhook")).rowCount === 0);
  });

  longTest("has nothing of a push that kill -9 interrupted, and all of it after the same push", async () => {
    const stored = async () => JSON.stringify(await sendAppRequest("GET", "/manifest"));
    expect(await stored()).not.to.contain("pushed");
    await sendAppRequest("PUT", "/manifest", PUSHED);
    for (const name of ["pushed-first", "pushed-second", "pushed-rows", "pushed title"])
      expect(await stored()).to.contain(name);
  });

  longTest(
    "ends the run itself after the grace period, also while git servers hang, and leaves no process of this start nor of the killed one",
    async () => {
      // One proxy returns nothing, and does not even connect to the git server. The other one returns the first 120 bytes per connection.
      proxies = await Promise.all([0, 120].map((bytes) => startStallingProxy(repository.url, bytes)));
      stages = await Promise.all(
        proxies.map(async ({ url, stalled }, at) => {
          const { id } = (await sendAppRequest("POST", "/stages", { name: `hanging${at}` })).app;
          const { webhookSecret } = await sendAppRequest("PUT", "/git", { provider: "gitlab", url }, id);
          expect(await deliver("refs/heads/main", webhookSecret, id)).to.equal(202);
          await stalled;
          return id;
        }),
      );
      const run = editor.call("POST", "/endless/runWithResult");
      await waitForRuns(service);
      service.signal("SIGTERM");
      expect((await run).body.error).to.contain("the service was stopped");
      await expectEnded(0);
    },
  );

  longTest(
    "pulls after the next start for the webhooks whose git server hung, and counts one attempt for each",
    async () => {
      const unanswered = Promise.withResolvers<void>();
      repository.onRequest = () => unanswered.promise;
      for (const proxy of proxies) proxy.release();
      start();
      editor = await editorOf(service);
      const stored = "SELECT app_id::int AS id, attempts, holder IS NOT NULL AS held FROM git_webhook ORDER BY app_id";
      const claimed = stages.toSorted((a, b) => a - b).map((id) => ({ id, attempts: 1, held: true }));
      await until(async () => {
        const { rows } = await queryDatabase(stored);
        return isDeepStrictEqual(rows, claimed);
      });
      for (const id of stages) expect((await sendAppRequest("GET", "/git", undefined, id)).git.lastPull).to.equal(null);
      unanswered.resolve();
      for (const id of stages) {
        const { lastPull } = await until(async () => {
          const { git } = await sendAppRequest("GET", "/git", undefined, id);
          return git.lastPull && git;
        });
        expect(lastPull).to.deep.include({ ref: "refs/heads/main", commit, error: null });
      }
      await until(async () => (await queryDatabase("SELECT FROM git_webhook")).rowCount === 0);
    },
  );

  longTest("ends the grace period on a second SIGTERM: the run is logged as failed, the exit code is 0", async () => {
    const run = editor.call("POST", "/lost/runWithResult", { wait: 100_000 });
    await waitForRuns(service);
    service.signal("SIGTERM");
    await until(async () => (await get(`${editor.url}/health/ready`)).http === 503);
    service.signal("SIGTERM");
    const { http, body } = await run;
    expect(http).to.equal(500);
    expect(body.status).to.equal("EXECUTION_FAILED");
    expect(body.error).to.contain("the service was stopped");
    await expectEnded(0);
  });
});

describe("a service process that does not start", () => {
  const started: ServiceProcess[] = [];
  const start = (environment: Record<string, string> = {}) => {
    const service = startProcess(environment);
    started.push(service);
    return service;
  };
  afterEach(async () => {
    for (const service of started.splice(0).reverse()) await service.clean();
  });

  longTest("stops while it starts: exit code 0, nothing remains", async () => {
    const service = start();
    await service.listening();
    service.signal("SIGTERM");
    expect(await service.ended).to.deep.equal({ code: 0, signal: null });
    expect(service.listRemainingProcesses()).to.deep.equal([]);
    expect(service.stderr()).to.equal("");
  });

  longTest("names every invalid variable in one message, and no value", async () => {
    const invalid = { PORT: "http", SERVER_TIMEOUT_MS: "-1", SETTINGS_KEY: "not-a-key-7788", ROLES: "cook" };
    const unusable = { HOST: "192.0.2.7", CHROME_PATH: "/nowhere/chromium", PACKAGES_FILE: "/nowhere/packages.json" };
    const service = start({ ...invalid, ...unusable });
    expect(await service.ended).to.deep.equal({ code: 1, signal: null });
    const message = service.stderr();
    expect(message.trim().split("\n")).to.have.length(1);
    for (const name of Object.keys({ ...invalid, ...unusable })) expect(message).to.contain(name);
    expect(message).to.not.contain("not-a-key-7788");
  });
});
