/**
 * Executes thousands of runs, and kills browsers during these runs. Memory must not grow, no run may be lost, and no process
 * or file may remain.
 */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import pg from "pg";
import type { RunMode } from "../../src/operations/watch/measures.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { until } from "../harness/until.js";

/** Number of runs. With fewer than 1,500 runs, the early and the late samples of the memory would overlap. */
const RUNS = Number(process.env["SOAK_RUNS"] ?? 7_000);
const APP_COUNT = 12;
const CALLERS = 4;
const KILLS = Number(process.env["SOAK_KILLS"] ?? 100);
const RUNS_PER_SAMPLE = 100;
const codeWith = (statement: string) => `async function execute({ payload }) {
  ${statement}
  await new Promise((resolve) => setTimeout(resolve, payload.ms));
  return { n: payload.n, text: "x".repeat(1000) };
}`;
/** Code of actions, each with the mode in which the service usually runs it. */
const CODES: [RunMode, string][] = [
  ["document", codeWith('document.body.append(document.createElement("iframe"));')],
  ["document", codeWith("document.title = 'n';")],
  ["document", codeWith("structuredClone(payload);")],
  ["network-isolate", codeWith("crypto.randomUUID(); await (await fetch('data:,x')).text();")],
  ["isolate", 'async function execute({ payload }) { return { n: payload.n, text: "x".repeat(1000) }; }'],
];

interface Answer {
  http: number;
  // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
  body: any;
}

describe("a service that runs for a long time", () => {
  let service: ServiceProcess;
  let url: string;
  let apps: number[] = [];
  let db: pg.Client;

  async function call(path: string, body: object): Promise<Answer> {
    const headers = { "auth-token": service.credentials().tokens.admin, "content-type": "application/json" };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return { http: response.status, body: await response.json() };
  }

  const run = (n: number, ms: number) => call(`/v3/apps/${apps[n % APP_COUNT]}/actions/soak/runWithResult`, { n, ms });

  /** Calls `once` with 0, 1, 2 … from several callers, until it has been called `count` times or `over` returns true. */
  async function callConcurrently(
    count: number,
    once: (n: number) => Promise<void>,
    over = () => false,
  ): Promise<void> {
    let next = 0;
    const caller = async () => {
      while (next < count && !over()) await once(next++);
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
  }

  async function count(sql: string): Promise<number> {
    return Number((await db.query(sql)).rows[0].count);
  }

  /** Reads the metrics. Returns a function that counts the runs of an app, in one mode or in all. */
  async function readRunCounts(): Promise<(app: number, mode?: RunMode) => number> {
    const response = await fetch(`${url}/metrics`, { headers: { "auth-token": service.credentials().tokens.admin } });
    const lines = (await response.text()).split("\n").filter((line) => line.startsWith("svc_runs_total{"));
    return (app, mode) => {
      const appLines = lines.filter(
        (line) => line.includes(`app="${app}"`) && (!mode || line.includes(`mode="${mode}"`)),
      );
      return appLines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
    };
  }

  const chromium = () => service.listRemainingProcesses().filter((line) => /chrom/i.test(line));

  /** Returns the memory of the service and its browser in bytes. Shared memory counts once. */
  function measureMemory(): number {
    const share = (pid: number) => {
      try {
        return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "latin1"))?.[1]) * 1_024;
      } catch {
        return 0;
      }
    };
    const pids = [service.pid, ...chromium().map((line) => Number.parseInt(line, 10))];
    return pids.reduce((sum, pid) => sum + share(pid), 0);
  }

  /** Returns the IDs of ended child processes that the service has not waited for. */
  function findZombies(): string[] {
    const children = readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, "utf8").trim().split(" ");
    return children.filter((pid) => {
      try {
        return / Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\)/, ""));
      } catch {
        return false;
      }
    });
  }

  before(async () => {
    service = startProcess();
    url = await service.ready();
    db = new pg.Client(service.databaseUrl());
    await db.connect();
    const action = { name: "soak", active: true, triggers: [{ trigger: "manual" }] };
    apps = [];
    while (apps.length < APP_COUNT) {
      const { body } = await call("/v1/admin/apps", { name: `Soak ${apps.length}` });
      await call(`/v3/apps/${body.app.id}/actions`, { ...action, code: CODES[apps.length % CODES.length]![1] });
      apps.push(body.app.id);
    }
  });
  after(async () => {
    await db.end();
    await service.clean();
  });

  it(`executes each of ${RUNS} runs of ${APP_COUNT} apps once, and then uses less than a fifth more memory than after 500 to 900 runs`, async () => {
    const samples: number[] = [];
    // Executes the runs in rounds, so that no app has two runs at once. Otherwise the number of pages would vary.
    for (let first = 0; first < RUNS; first += CALLERS) {
      const round = Array.from({ length: CALLERS }, (_, caller) => first + caller);
      for (const { http, body, n } of await Promise.all(round.map(async (n) => ({ n, ...(await run(n, 0)) })))) {
        expect(http, JSON.stringify(body)).to.equal(200);
        expect(body.result.n).to.equal(n);
      }
      if (first % RUNS_PER_SAMPLE === 0) samples.push(measureMemory());
    }
    const megabytes = samples.map((bytes) => Math.round(bytes / 1024 / 1024));
    const mean = (some: number[]) => some.reduce((sum, value) => sum + value, 0) / some.length;
    const [early, late] = [mean(megabytes.slice(5, 10)), mean(megabytes.slice(-5))];
    console.log(`      MB every ${RUNS_PER_SAMPLE} runs: ${megabytes.join(" ")}; ${chromium().length} processes`);
    expect(late).to.be.lessThan(early * 1.2);
    expect(await count("SELECT count(*) FROM run WHERE state = 'completed'")).to.equal(RUNS);
    expect(await count("SELECT count(DISTINCT run_id) FROM execution_log")).to.equal(RUNS);
    expect(await count("SELECT count(*) FROM execution_log")).to.equal(RUNS);
    expect(findZombies()).to.deep.equal([]);
    const counted = await readRunCounts();
    for (const [index, app] of apps.entries()) {
      const [mode] = CODES[index % CODES.length]!;
      // On a busy machine, some runs exceed TRIAL_MAX_MS in an isolate, and start again in a document. So only half must be in this mode.
      expect(counted(app, mode), `${mode}, of ${counted(app)}`).to.be.above(counted(app) / 2);
    }
  });

  it(`ends every run once while a browser or a renderer is killed ${KILLS} times under load`, async () => {
    let answered = 0;
    let over = false;
    const unexpected: Answer[] = [];
    const load = callConcurrently(
      Number.POSITIVE_INFINITY,
      async (n) => {
        const answer = await run(n, 20);
        answered += 1;
        if (answer.http !== 200 && answer.body.status !== "EXECUTION_FAILED") unexpected.push(answer);
      },
      () => over,
    );
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = answered;
      // Each tenth kill hits the browser itself. All other kills hit a renderer.
      const victims = chromium().filter(
        (line) => line.includes("--type=renderer") === (kill % 10 !== 0) && !/--type=(?!renderer)/.test(line),
      );
      const victim = victims[kill % victims.length];
      if (victim) process.kill(Number.parseInt(victim, 10), "SIGKILL");
      await until(() => answered > before + CALLERS, 30_000);
    }
    over = true;
    await load;
    expect(unexpected).to.deep.equal([]);
    expect(await count("SELECT count(*) FROM run WHERE state NOT IN ('completed', 'failed')")).to.equal(0);
    expect(await count("SELECT count(*) FROM run WHERE state = 'failed'")).to.be.greaterThan(0);
    const entries = "SELECT count(*) AS n FROM run LEFT JOIN execution_log ON run_id = run.id GROUP BY run.id";
    expect(await count(`SELECT count(*) FROM (${entries}) AS per_run WHERE n <> 1`)).to.equal(0);
    const wrong = "SELECT count(*) FROM run JOIN execution_log ON run_id = run.id WHERE 'app.task.' || state <> type";
    expect(await count(wrong)).to.equal(0);
    expect((await run(1, 0)).http).to.equal(200);
    await until(() => findZombies().length === 0);
    const [all, failed] = [
      await count("SELECT count(*) FROM run"),
      await count("SELECT count(*) FROM run WHERE state = 'failed'"),
    ];
    console.log(`      ${all} runs in all, ${failed} of them failed with their browser`);
  });
});
