/**
 * Floods the HTTP triggers of two processes on one database. The rate limit of an app applies to both processes together. The limit of an
 * address applies to each process. Neither the queue nor the disk fills.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { type Db, openDatabase } from "../../src/data/database.js";
import {
  HTTP_EVENT_IDS_PER_ACTION_MAX,
  HTTP_TRIGGER_ADDRESS_RATE_LIMIT_FACTOR,
  RATE_WINDOW_MS,
} from "../../src/limits.js";
import { createDataRetention } from "../../src/operations/upkeep/retention.js";
import { createDataFolder } from "../harness/fleet.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { until } from "../harness/until.js";
import { type Received, send } from "../http/support.js";

const quietLog = { warn: () => {} };

const APP_RATE_LIMIT = 60;
const CONCURRENT_REQUESTS = 300;
/** Maximum number of requests that the test sends from one address: far more than both processes accept in one window. */
const REQUESTS_FROM_ONE_ADDRESS = 20 * APP_RATE_LIMIT * HTTP_TRIGGER_ADDRESS_RATE_LIMIT_FACTOR;
/** Number of event IDs that the test stores beyond the limit of one action. */
const EXCESS_EVENTS = 5_000;
const ROWS_PER_INSERT = 50_000;
const TABLE_MAX_BYTES = 400 * 2 ** 20;

const SLOW_CODE = "async function execute() { await new Promise((end) => setTimeout(end, 1_000)); }";

describe("floods of requests to HTTP triggers over two processes", () => {
  const media = mkdtempSync(join(tmpdir(), "svc-hook-media-"));
  const processes: ServiceProcess[] = [];
  let urls: [string, string];
  let db: Db;
  let token: string;

  async function call(method: string, path: string, body: object = {}) {
    const answer = await fetch(urls[0] + path, {
      method,
      headers: { "auth-token": token, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(answer.ok, `${method} ${path}: ${answer.status}`).to.equal(true);
    // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
    return (await answer.json()) as any;
  }

  /** Creates a published app with one action, whose trigger accepts events without a credential. */
  async function createHook(): Promise<{ appId: number; actionId: number; path: string }> {
    const { id: appId } = (await call("POST", "/v1/admin/apps", { name: "hooks" })).app;
    const where = {
      ...{ method: "POST", path: "hook", auth: { type: "none" } },
      ...{ respond: "immediately", idempotencyHeader: "X-Event" },
    };
    const data = { name: "hook", code: SLOW_CODE, active: true, triggers: [{ trigger: "http", where }] };
    const { action } = await call("POST", `/v3/apps/${appId}/actions`, data);
    await call("POST", `/v1/apps/${appId}/publish`);
    const live = (await call("POST", `/v3/apps/${appId}/actions/${action.id}/publish`)).action;
    return { appId, actionId: Number(live.id), path: `/h/${appId}/hook` };
  }

  const post = (path: string, at: number, headers: Record<string, string> = {}): Promise<Received> =>
    send(urls[at % 2]!, path, { method: "POST", body: "{}", headers: { "x-event": `${at}`, ...headers } });
  const countOf = (answers: readonly Received[], http: number) =>
    answers.filter((answer) => answer.http === http).length;
  const queuedOf = async (appId: number): Promise<number> =>
    (await db.query("SELECT count(*)::int AS count FROM run WHERE app_id = $1 AND state = 'queued'", [appId]))[0].count;

  before(async () => {
    const shared = {
      SETTINGS_KEY: randomBytes(32).toString("base64"),
      RATE_LIMIT_HTTP: String(APP_RATE_LIMIT),
      LOG_LEVEL: "info",
    };
    const first = startProcess({ ...shared, DATA_DIR: createDataFolder(media), RUNNER_CONCURRENCY: "2" });
    processes.push(first);
    const url = await first.ready();
    token = first.credentials().tokens.admin;
    const second = startProcess({
      ...shared,
      DATA_DIR: createDataFolder(media),
      RUNNER_CONCURRENCY: "2",
      DATABASE_URL: first.databaseUrl(),
    });
    processes.push(second);
    urls = [url, await second.ready()];
    db = await openDatabase(first.databaseUrl(), 2);
  });
  after(async () => {
    await db?.destroy();
    for (const started of processes.toReversed()) {
      started.signal("SIGTERM");
      await started.ended;
      await started.clean();
    }
    rmSync(media, { recursive: true, force: true });
  });

  it("are accepted up to the app's limit in total, and another app's event runs before the flood's backlog", async () => {
    const [flooded, neighbour] = [await createHook(), await createHook()];
    const startedAt = performance.now();
    const answers = await Promise.all(Array.from({ length: CONCURRENT_REQUESTS }, (_, at) => post(flooded.path, at)));
    const windows = 1 + Math.floor((performance.now() - startedAt) / RATE_WINDOW_MS);
    expect(countOf(answers, 202)).to.be.within(APP_RATE_LIMIT, APP_RATE_LIMIT * windows);
    expect(countOf(answers, 202) + countOf(answers, 429)).to.equal(CONCURRENT_REQUESTS);
    const other = await post(neighbour.path, 0);
    expect(other.http).to.equal(202);
    const finished = "SELECT FROM run WHERE id = $1 AND finished_at IS NOT NULL";
    await until(async () => (await db.query(finished, [other.json.runId])).length === 1, 120_000);
    expect(await queuedOf(flooded.appId), "the flood's runs still wait").to.be.above(0);
    // Refused requests have stored no runs.
    const [{ count }] = await db.query("SELECT count(*)::int AS count FROM run WHERE app_id = $1", [flooded.appId]);
    expect(count).to.equal(countOf(answers, 202));
  });

  it("are limited for each address in each process, and both processes reject a body above 1 MB", async () => {
    const refusing = new Set<number>();
    let accepted = 0;
    for (let sent = 0; refusing.size < 2 && sent < REQUESTS_FROM_ONE_ADDRESS; sent += 100) {
      const part = Array.from({ length: 100 }, async (_, at) => ({
        at: at % 2,
        ...(await post("/h/999999/nowhere", at)),
      }));
      for (const { at, http } of await Promise.all(part)) {
        expect(http).to.be.oneOf([404, 429]);
        if (http === 429) refusing.add(at);
        else accepted += 1;
      }
    }
    expect(refusing.size, "processes that refuse").to.equal(2);
    expect(accepted).to.be.at.least(APP_RATE_LIMIT * HTTP_TRIGGER_ADDRESS_RATE_LIMIT_FACTOR);
    const { path } = await createHook();
    for (const at of [0, 1]) {
      const large = await send(urls[at]!, path, { method: "POST", body: Buffer.alloc(2 ** 20 + 1) });
      expect(large.http).to.equal(413);
    }
  });

  it(`leave the newest ${HTTP_EVENT_IDS_PER_ACTION_MAX} event IDs of an action, and all event IDs of another one`, async () => {
    const [flooded, other] = [await createHook(), await createHook()];
    await db.query("DELETE FROM http_event");
    const fill = `INSERT INTO http_event (action_id, key, run_id, created_at)
      SELECT $1, sha256(int4send(n)), n, now() - n * interval '10 milliseconds' FROM generate_series($2::int, $3::int) n`;
    const all = HTTP_EVENT_IDS_PER_ACTION_MAX + EXCESS_EVENTS;
    // Inserts the rows in parts, because a statement has a time limit.
    for (let from = 1; from <= all; from += ROWS_PER_INSERT) {
      await db.query(fill, [flooded.actionId, from, Math.min(all, from + ROWS_PER_INSERT - 1)]);
    }
    await db.query(fill, [other.actionId, 1, 10]);
    await createDataRetention({ db, days: 30, log: quietLog }).clean();
    const left = await db.query(
      "SELECT action_id::int AS action, count(*)::int AS count, max(run_id)::int AS oldest FROM http_event GROUP BY 1 ORDER BY 1",
    );
    expect(left).to.deep.equal([
      { action: flooded.actionId, count: HTTP_EVENT_IDS_PER_ACTION_MAX, oldest: HTTP_EVENT_IDS_PER_ACTION_MAX },
      { action: other.actionId, count: 10, oldest: 10 },
    ]);
    const [{ bytes }] = await db.query("SELECT pg_total_relation_size('http_event')::float8 AS bytes");
    expect(bytes).to.be.below(TABLE_MAX_BYTES);
  });
});
