/** Repeats attacks that once blocked all apps, and measures their effect on a neighbour app. All attacks use one service. */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { type Db, openDatabase } from "../../src/data/database.js";
import { createNeighbour, type NeighbourApp, type NeighbourFigures } from "../harness/neighbour.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { issueTaskToken } from "../harness/task-token.js";
import { until } from "../harness/until.js";

/** Minimum duration of an attack in milliseconds. */
const ATTACK_MS = 10_000;
/** Pause after an attack in milliseconds. It lets the effects of the attack end, so that the next attack meets an idle service. */
const CALM_MS = 3_000;
/** Maximum pause of the service's event loop in milliseconds. */
const PAUSE_MAX_MS = 100;
/** Maximum duration of a neighbour's call in milliseconds. */
const WAIT_MAX_MS = 2_000;
/** Maximum ratio of the p95 (95th percentile) of the neighbour's call durations during an attack to their p95 without one. */
const SLOWDOWN_MAX = 3;
/**
 * Minimum of the p95 without an attack, in milliseconds. A lower measured p95 counts as this value, because smaller differences are noise.
 */
const QUIET_FLOOR_MS = 15;

const MANUAL = { active: true, triggers: [{ trigger: "manual" }] };
const toCode = (statements: string) => `async function execute(context) { ${statements} }`;
const SLEEP_CODE = toCode("await new Promise((resolve) => setTimeout(resolve, 60_000))");
const WORKERS_CODE = toCode(`
  const url = URL.createObjectURL(new Blob(["for (;;);"]));
  for (let n = 0; n < 14; n += 1) new Worker(url);
  await new Promise((resolve) => setTimeout(resolve, ${ATTACK_MS}))`);
const TEXTURES_CODE = toCode(`
  const end = Date.now() + ${ATTACK_MS / 2};
  while (Date.now() < end) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 2_048;
    const context = canvas.getContext("webgl2") ?? canvas.getContext("webgl") ?? canvas.getContext("2d");
    context.clear?.(context.COLOR_BUFFER_BIT);
    await new Promise((resolve) => setTimeout(resolve));
  }`);
const BLOBS_CODE = toCode(`
  const kept = [];
  for (let n = 0; n < 300; n += 1) kept.push(new Blob([new Uint8Array(10 * 1_024 * 1_024).fill(n)]));
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  return kept.length`);
describe("an attack by other apps, or without a credential", () => {
  let service: ServiceProcess;
  let url: string;
  let neighbour: NeighbourApp;
  let quiet: NeighbourFigures;
  let db: Db;
  let apps = 0;

  interface HostileApp {
    appId: number;
    token: string;
    post(path: string, data: unknown): Promise<{ http: number; text: string }>;
  }

  async function post(token: string | null, path: string, data: unknown): Promise<{ http: number; text: string }> {
    const headers = { "content-type": "application/json", ...(token && { "auth-token": token }) };
    const text = typeof data === "string" ? data : JSON.stringify(data);
    const response = await fetch(url + path, { method: "POST", headers, body: text });
    return { http: response.status, text: await response.text() };
  }

  /** Creates an app for the attacker, who sends requests with the token of an administrator. */
  async function createHostileApp(actions: Record<string, string> = {}): Promise<HostileApp> {
    const { admin } = service.credentials().tokens;
    apps += 1;
    const { text } = await post(admin, "/v1/admin/apps", { name: `Hostile ${apps}` });
    const { id: appId } = JSON.parse(text).app;
    const app = { appId, token: admin, post: (path: string, data: unknown) => post(admin, path, data) };
    for (const [name, code] of Object.entries(actions)) {
      const { http, text: answer } = await app.post(`/v3/apps/${appId}/actions`, { name, code, ...MANUAL });
      expect(http, answer).to.equal(201);
    }
    return app;
  }

  const run = (app: HostileApp, name: string, payload: object = {}) =>
    app.post(`/v3/apps/${app.appId}/actions/${name}/runWithResult`, payload);

  const createThreeApps = (actions: Record<string, string>) =>
    Promise.all([1, 2, 3].map(() => createHostileApp(actions)));

  /** Cancels all unfinished runs. */
  async function cancelAll(): Promise<void> {
    const { admin } = service.credentials().tokens;
    await until(async () => {
      const rows = await db.query("SELECT id, app_id FROM run WHERE finished_at IS NULL ORDER BY id DESC");
      for (const { id, app_id: appId } of rows) await post(admin, `/v3/apps/${appId}/runs/${id}/cancel`, {});
      return rows.length === 0;
    }, 60_000);
  }

  async function repeatDuringAttack(callers: number, once: (n: number) => Promise<unknown>): Promise<void> {
    const end = Date.now() + ATTACK_MS;
    let n = 0;
    const caller = async () => {
      while (Date.now() < end) await once(n++).catch(() => delay(50));
    };
    await Promise.all(Array.from({ length: callers }, caller));
  }

  /** Attacks by title. Each function prepares its attack and returns the function that executes it. */
  const ATTACKS: Record<string, () => Promise<() => Promise<unknown>>> = {
    "settings of 9,000 like strings, and a result": async () => {
      const app = await createHostileApp({ one: toCode("return 1") });
      const strings = Array.from({ length: 9_000 }, (_, n) => `AAAA${String(n).padStart(4, "0")}`);
      const { http } = await app.post(`/v1/apps/${app.appId}/settings`, { _x: strings });
      expect(http).to.equal(200);
      return () => repeatDuringAttack(2, () => run(app, "one"));
    },
    "150 KB of one letter returned beside a secret of it": async () => {
      const app = await createHostileApp({ letters: toCode('return "A".repeat(150_000) + "B"') });
      await app.post(`/v1/apps/${app.appId}/settings`, { _x: "A".repeat(60_000) });
      return () => repeatDuringAttack(2, () => run(app, "letters"));
    },
    "results of six megabytes of small objects": async () => {
      const app = await createHostileApp({ objects: toCode("return Array.from({ length: 2_000_000 }, () => ({}))") });
      await app.post(`/v1/apps/${app.appId}/settings`, { _x: "a secret of some length" });
      return () => repeatDuringAttack(2, () => run(app, "objects"));
    },
    "twelve callers whose runs compute for 150 ms": async () => {
      const app = await createHostileApp({ busy: toCode("const end = Date.now() + 150; while (Date.now() < end);") });
      return () => repeatDuringAttack(12, () => run(app, "busy"));
    },
    "sixty aliases of logs that hold six megabytes each": async () => {
      const app = await createHostileApp({ objects: toCode("return Array.from({ length: 2_000_000 }, () => ({}))") });
      for (let n = 0; n < 12; n += 1) await run(app, "objects");
      const aliases = Array.from({ length: 60 }, (_, n) => `a${n}: actionLogs(appId: ${app.appId}) { logs { data } }`);
      return () =>
        repeatDuringAttack(2, async (n) => {
          if (n % 2 === 0) await app.post("/graphql", { query: `{ ${aliases.join(" ")} }` });
          else await app.post(`/v3/apps/${app.appId}/actions/logs`, { limit: 12 });
        });
    },
    "anonymous introspection, amplified": async () => {
      const aliases = Array.from({ length: 1_600 }, (_, n) => `a${n}: description`).join(" ");
      return () =>
        repeatDuringAttack(20, () => post(null, "/graphql", { query: `{ __schema { types { ${aliases} } } }` }));
    },
    "introspection with a token, amplified": async () => {
      const { token } = await createHostileApp();
      const aliases = Array.from({ length: 1_600 }, (_, n) => `a${n}: description`).join(" ");
      return () =>
        repeatDuringAttack(20, () => post(token, "/graphql", { query: `{ __schema { types { ${aliases} } } }` }));
    },
    "three apps whose runs await 45 others each": async () => {
      const attackers = await createThreeApps({ sleep: SLEEP_CODE });
      return async () => {
        for (const app of attackers) {
          const { runId } = JSON.parse((await app.post(`/v3/apps/${app.appId}/actions/sleep/run`, {})).text);
          const token = await issueTaskToken(db, app.appId, runId);
          const child = () => post(token, `/v3/apps/${app.appId}/actions/sleep/runWithResult`, {});
          for (let n = 0; n < 45; n += 1) void child().catch(() => undefined);
        }
        await delay(ATTACK_MS);
      };
    },
    "three apps whose runs sleep": async () => {
      const attackers = await createThreeApps({ sleep: SLEEP_CODE });
      return async () => {
        for (let n = 0; n < 60; n += 1) void run(attackers[n % 3]!, "sleep").catch(() => undefined);
        await delay(ATTACK_MS);
      };
    },
    "a run of fourteen busy workers": async () => {
      const app = await createHostileApp({ workers: WORKERS_CODE });
      return async () => {
        void run(app, "workers").catch(() => undefined);
        await delay(ATTACK_MS);
      };
    },
    "three apps with a run of fourteen busy workers each": async () => {
      const attackers = await createThreeApps({ workers: WORKERS_CODE });
      return async () => {
        for (const app of attackers) void run(app, "workers").catch(() => undefined);
        await delay(ATTACK_MS);
      };
    },
    "textures and canvases": async () => {
      const app = await createHostileApp({ textures: TEXTURES_CODE });
      return () => repeatDuringAttack(1, () => run(app, "textures"));
    },
    "three gigabytes of blobs": async () => {
      const app = await createHostileApp({ blobs: BLOBS_CODE });
      return () => repeatDuringAttack(1, () => run(app, "blobs"));
    },
    "a megabyte of code saved again and again": async () => {
      const app = await createHostileApp();
      const code = toCode("a=1;".repeat(240_000));
      return () => repeatDuringAttack(2, (n) => app.post(`/v3/apps/${app.appId}/actions`, { name: `big-${n}`, code }));
    },
    "analytics events as large as a body may be": async () => {
      const { viewer } = service.credentials().tokens;
      const { appId } = service.credentials();
      const event = { type: "analytics.event", data: { text: randomBytes(450_000).toString("hex") } };
      return () => repeatDuringAttack(4, () => post(viewer, `/v1/apps/${appId}/analytics`, event));
    },
    "deeply nested bodies": async () => {
      const { token } = await createHostileApp();
      return () =>
        repeatDuringAttack(8, () =>
          post(token, "/graphql", `{"query":"{__typename}","variables":${"[".repeat(400_000)}`),
        );
    },
  };

  before(async () => {
    service = startProcess();
    url = await service.ready();
    db = await openDatabase(service.databaseUrl(), 2);
    neighbour = await createNeighbour(service, url);
    await neighbour.measureDuring(delay(0), CALM_MS);
    quiet = await neighbour.measureDuring(delay(0), ATTACK_MS);
    console.log(
      `      quiet: p50 ${quiet.p50.toFixed(1)}, p95 ${quiet.p95.toFixed(1)} ms, pause ${quiet.pause.toFixed(0)} ms`,
    );
  });
  after(async () => {
    await db.destroy();
    await service.clean();
  });

  for (const [name, prepare] of Object.entries(ATTACKS)) {
    it(`at most triples the p95 of a neighbour's calls, and pauses the event loop for less than 100 ms: ${name}`, async () => {
      const attack = await prepare();
      await neighbour.measureDuring(delay(0), CALM_MS);
      const figures = await neighbour.measureDuring(attack(), ATTACK_MS);
      const { p50, p95, wait, pause, failures } = figures;
      await cancelAll();
      const shown = [p50, p95, wait, pause].map((ms) => ms.toFixed(0)).join(", ");
      console.log(`      p50, p95, longest wait, pause: ${shown} ms`);
      expect(failures).to.deep.equal([]);
      expect(wait, "the longest wait").to.be.lessThan(WAIT_MAX_MS);
      expect(pause, "the longest pause").to.be.lessThan(PAUSE_MAX_MS);
      expect(p95, "p95").to.be.lessThan(SLOWDOWN_MAX * Math.max(quiet.p95, QUIET_FLOOR_MS));
    });
  }
});
