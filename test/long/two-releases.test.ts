/**
 * Tests an upgrade without downtime. A process of this release starts beside one of the previous release, and migrates the schema. Both
 * serve for a while, and then the old one stops. Then tests a rollback: an old process starts on the newer schema.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { type Db, openDatabase } from "../../src/data/database.js";
import { CALLED_ACTIONS, createRequests, createResponseCounts, type ResponseCounts } from "../harness/callers.js";
import { checkTicks, findRunFaults, SCHEDULE_FREQUENCY, waitUntilSettled } from "../harness/chaos.js";
import { CLOCK_BACK_MS, createFastClock } from "../harness/fast-clock.js";
import { emptyDatabase, type FreshDatabase } from "../harness/postgres.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { checkOutReleaseBefore, type Release } from "../harness/release-before.js";
import { sendRequestsUntil } from "../harness/unrest.js";
import { until } from "../harness/until.js";

const THIS_RELEASE = fileURLToPath(new URL("../../../", import.meta.url));
/** The test's clock runs 60 times as fast as real time, so that schedules fire each second. */
const CLOCK_RATE = 60;
const SERVED_TOGETHER_MS = 20_000;
const SERVED_ALONE_MS = 4_000;
const SAVE_COUNT = 30;
const EVENT_COUNT = 20;
const START_LIMIT_MS = 180_000;
/** Allowed outcomes of due times. With the test's fast clock, a delay of one second on a busy machine makes a run 60 s late. */
const ALLOWED_TICK_STATES = ["completed", "still running", "late by more than 60 s"];

/** A process to which the test sends calls until `stopCalls`. */
interface ServingProcess {
  name: string;
  process: ServiceProcess;
  url: string;
  /** Sends no more calls to the process. Resolves when all sent calls have their response. */
  stopCalls(): Promise<void>;
}

describe("this release and the previous one on one database, under load", function () {
  this.timeout(1_800_000);
  let release: Release;
  let database: FreshDatabase;
  let db: Db;
  let folder: string;
  let appId: number;
  let token: string;
  const startedAt = Date.now();
  const clock = createFastClock(startedAt, CLOCK_RATE);
  const settingsKey = randomBytes(32).toString("base64");
  const processes: ServiceProcess[] = [];
  const answers: Record<string, ResponseCounts> = {};

  before(async () => {
    release = checkOutReleaseBefore();
    process.stdout.write(`      the release before: ${release.commit}\n`);
    database = await emptyDatabase();
    folder = mkdtempSync(join(tmpdir(), "svc-releases-"));
  });
  after(async () => {
    for (const started of processes) started.signal("SIGTERM");
    await Promise.all(processes.map(({ ended }) => ended));
    await Promise.all(processes.map((started) => started.clean()));
    await db?.destroy();
    await database.drop();
    rmSync(folder, { recursive: true });
    release.remove();
  });

  async function launch(root: string): Promise<ServiceProcess> {
    const environment = {
      DATABASE_URL: database.url,
      SETTINGS_KEY: settingsKey,
      LOG_LEVEL: "info",
      NPM_PACKAGES: "off",
    };
    // Only this release subtracts CLOCK_BACK_MS from its clock. The later start time of the previous release makes both clocks equal.
    const start = root === THIS_RELEASE ? startedAt : startedAt + CLOCK_BACK_MS / (CLOCK_RATE - 1);
    const entry = [join(root, "dist/test/harness/instance-process.js"), String(start), String(CLOCK_RATE)];
    const started = startProcess(environment, entry, root);
    processes.push(started);
    const isReady = () => started.log.some(({ msg }) => msg === "ready");
    await Promise.race([
      until(isReady, START_LIMIT_MS),
      started.ended.then(({ code }) =>
        Promise.reject(new Error(`the process ended with code ${code} before it was ready: ${started.stderr()}`)),
      ),
    ]);
    return started;
  }

  async function call(url: string, method: string, path: string, body?: unknown) {
    const response = await fetch(url + path, {
      method,
      headers: { "auth-token": token, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
    const answer: any = await response.json();
    expect(response.status, `${method} ${path}: ${JSON.stringify(answer)}`).to.be.within(200, 299);
    return answer;
  }

  async function serve(name: string, started: ServiceProcess): Promise<ServingProcess> {
    const url = await started.listening();
    const received = createResponseCounts();
    answers[name] = received;
    let over = false;
    const { runs, others } = createRequests({ url: () => url, appId, token }, received);
    const asking = Promise.all(
      [runs, others].map((requests) => sendRequestsUntil([...requests], received, () => over)),
    );
    return {
      name,
      process: started,
      url,
      async stopCalls() {
        over = true;
        await asking;
      },
    };
  }

  async function stop(served: ServingProcess): Promise<void> {
    await served.stopCalls();
    served.process.signal("SIGTERM");
    expect((await served.process.ended).code, served.process.stderr()).to.equal(0);
  }

  /** Publishes the app and the actions for the load, through the API of one process. Returns the IDs of the live versions by name. */
  async function publish(url: string): Promise<Map<string, number>> {
    await call(url, "POST", `/v1/apps/${appId}/publish`);
    const liveIds = new Map<string, number>();
    const ticking = { name: "every-second", triggers: [{ trigger: "schedule" }], frequency: SCHEDULE_FREQUENCY };
    const saved = { name: "saved", triggers: [{ trigger: "manual" }] };
    const counted = { name: "counted", triggers: [{ trigger: "log", where: { type: "dataSource.entry.remove" } }] };
    for (const fields of [ticking, saved, counted, ...CALLED_ACTIONS]) {
      const body = { ...fields, code: "async function execute() { return 1; }", active: true };
      const { action } = await call(url, "POST", `/v3/apps/${appId}/actions`, body);
      const published = await call(url, "POST", `/v3/apps/${appId}/actions/${action.id}/publish`);
      liveIds.set(fields.name, published.action.id);
    }
    return liveIds;
  }

  /** Saves an action and a setting through one process. Reads both and runs the action through the other one. Then swaps the two. */
  async function saveAcross(first: ServingProcess, second: ServingProcess): Promise<void> {
    const actions = `/v3/apps/${appId}/actions`;
    const { actions: found } = await call(first.url, "GET", actions);
    const { id } = found.find(({ name }: { name: string }) => name === "saved");
    for (let n = 0; n < SAVE_COUNT; n += 1) {
      const [writer, reader] = n % 2 === 0 ? [first, second] : [second, first];
      const message = `${n} saved by ${writer.name}, seen by ${reader.name}`;
      await call(writer.url, "PUT", `${actions}/${id}`, {
        code: `async function execute({ payload }) { return [${n}, payload.n]; }`,
      });
      expect((await call(reader.url, "GET", `${actions}/${id}`)).action.code, message).to.include(`return [${n},`);
      const ran = await call(reader.url, "POST", `${actions}/saved/runWithResult`, { n });
      expect(ran.result, message).to.deep.equal([n, n]);
      await call(writer.url, "POST", `/v1/apps/${appId}/settings`, { [`kept${n % 3}`]: n });
      expect((await call(reader.url, "GET", `/v1/apps/${appId}/settings/`))[`kept${n % 3}`], message).to.equal(n);
    }
  }

  /** Sends a call to one process and repeats it at the other with the same idempotency key: only one run exists. */
  async function repeatAcross(earlier: ServingProcess, later: ServingProcess): Promise<void> {
    const ask = async ({ url }: ServingProcess, key: string) => {
      const headers = { "auth-token": token, "content-type": "application/json", "idempotency-key": key };
      const path = `/v3/apps/${appId}/actions/subject/run`;
      const response = await fetch(url + path, { method: "POST", headers, body: "{}" });
      return ((await response.json()) as { runId: number }).runId;
    };
    for (const [first, second] of [[earlier, later] as const, [later, earlier] as const]) {
      const key = randomBytes(8).toString("hex");
      const runId = await ask(first, key);
      expect(runId).to.be.a("number");
      expect(await ask(second, key), `${first.name} and ${second.name}`).to.equal(runId);
    }
  }

  async function sendEvents({ url }: ServingProcess): Promise<void> {
    for (let n = 0; n < EVENT_COUNT; n += 1) {
      await call(url, "POST", `/v1/apps/${appId}/logs`, { type: "dataSource.entry.remove", data: { n } });
    }
  }

  it("fail no call, lose nothing and do nothing twice, from the migration to the rollback", async () => {
    const first = await launch(release.root);
    ({
      appId,
      tokens: { editor: token },
    } = release.createFirstCredentials(database.url, folder));
    const liveIds = await publish(await first.listening());
    const old = await serve("before", first);
    await delay(SERVED_ALONE_MS);

    // The process of this release migrates the schema while the previous release serves.
    const current = await serve("this", await launch(THIS_RELEASE));
    db = await openDatabase(database.url, 2);
    const beside = delay(SERVED_TOGETHER_MS);
    await saveAcross(old, current);
    await repeatAcross(old, current);
    await sendEvents(old);
    await sendEvents(current);
    await beside;
    await stop(old);
    await delay(SERVED_ALONE_MS);

    // The rollback starts an old process beside the one of this release.
    const again = await serve("before, on the newer schema", await launch(release.root));
    await saveAcross(current, again);
    await sendEvents(again);
    await stop(current);
    await delay(SERVED_ALONE_MS);
    await again.stopCalls();

    const to = await waitUntilSettled(db, clock.now);
    const ticking = liveIds.get("every-second")!;
    const [oldest] = await db.query("SELECT min(tick) AS tick FROM run WHERE action_id = $1", [ticking]);
    const { expected, missing, surplus, runCountsByState } = await checkTicks(
      db,
      [ticking],
      new Date(oldest.tick.getTime() - 1),
      to,
    );
    const runs = await Promise.all(Object.values(answers).map((received) => findRunFaults(db, received)));
    const counts = Object.fromEntries(Object.entries(answers).map(([name, received]) => [name, received.counts]));
    process.stdout.write(`      ${JSON.stringify({ expected, runCountsByState, counts })}\n`);
    expect({ missing, surplus }).to.deep.equal({ missing: [], surplus: 0 });
    expect(ALLOWED_TICK_STATES).to.include.members(Object.keys(runCountsByState));
    expect(runCountsByState["completed"]).to.be.above(expected / 2);
    for (const runCounts of runs) expect(runCounts).to.deep.equal({ unlogged: 0, unknownRuns: [] });
    const [counted] = await db.query("SELECT count(*)::int AS n FROM run WHERE action_id = $1", [
      liveIds.get("counted"),
    ]);
    expect(counted.n, "runs by events").to.equal(3 * EVENT_COUNT);
    const failed = await db.query(
      "SELECT run_id, created_at, data->'error' AS error FROM execution_log WHERE type = 'app.task.failed'",
    );
    expect(failed, "runs that failed").to.deep.equal([]);
    for (const received of Object.values(counts)) {
      expect(Object.keys(received).filter((answer) => !answer.startsWith("20"))).to.deep.equal([]);
    }
    const failures = processes.flatMap(({ log }) => log).filter(({ msg }) => /failed/.test(String(msg)));
    expect(failures).to.deep.equal([]);
    expect(processes.map((started) => started.stderr().replaceAll(/^\s*$/gm, ""))).to.deep.equal(
      processes.map(() => ""),
    );
  });
});
