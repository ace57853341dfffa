import { expect } from "chai";
import { createMetrics } from "../../src/api/metrics.js";
import { PAGE_LOSS_REASONS } from "../../src/engine/browser/pages/loss.js";
import { STATUS } from "../../src/errors.js";
import type { VitalSigns } from "../../src/operations/upkeep/vitals.js";
import { APPS_WITH_RUN_COUNTER_MAX, ServiceMetrics, TICK_RESULTS } from "../../src/operations/watch/measures.js";
import { insertPublishedActions } from "../harness/published-actions.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

describe("the metrics", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  const read = async () => {
    const response = await fetch(`${service.url}/metrics`);
    return { type: response.headers.get("content-type"), text: await response.text() };
  };

  it("have the format of Prometheus, each with its kind", async () => {
    const { type, text } = await read();
    expect(type).to.match(/^text\/plain; version=0\.0\.4/);
    const lines = text.trimEnd().split("\n");
    const samples = lines.filter((line) => line.startsWith("svc_"));
    for (const line of samples)
      expect(line).to.match(/^svc_[a-z_]+(\{[a-z]+="[\w.]+"(,[a-z]+="\w+")?\})? \d+(\.\d+)?$/);
    const named = new Set(samples.map((line) => line.split(/[{ ]/)[0]!));
    for (const name of named) {
      expect(lines).to.include(`# TYPE ${name} ${name.endsWith("_total") ? "counter" : "gauge"}`);
    }
    expect([...named]).to.include.members([
      "svc_schedule_lag_seconds",
      "svc_schedules",
      "svc_schedule_ticks_due",
      "svc_runs_queued",
      "svc_runs_running",
      "svc_runs_oldest_queued_seconds",
      "svc_database_up",
      "svc_database_connections",
      "svc_database_connections_lost_total",
      "svc_answer_bytes",
    ]);
    expect(text).to.include('svc_instances{role="api"} 1\n');
    expect(text).to.match(/^nodejs_eventloop_lag_max_seconds [\d.e-]+$/m);
    expect(lines.filter((line) => line === "# TYPE nodejs_eventloop_lag_max_seconds gauge")).to.have.length(1);
  });

  it("count rejected requests over REST and GraphQL by status", async () => {
    await service.rest("GET", `/v3/apps/${service.appId}/actions/999999`);
    await service.graphql(`{ action(appId: ${service.appId}, id: 999999) { id } }`);
    await service.rest("GET", `/v3/apps/${service.appId}/actions`, { as: null });
    const { text } = await read();
    expect(text).to.include('svc_refusals_total{status="ACTION_NOT_FOUND"} 2\n');
    expect(text).to.include('svc_refusals_total{status="UNAUTHORIZED"} 1\n');
  });

  it("show the queued runs of each app, and the age of the oldest", async () => {
    const [copy] = await insertPublishedActions(service.db, service.appId, [
      { name: "waits", triggers: [{ trigger: "manual" }] },
    ]);
    const queue = `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, queued_at)
      SELECT $1, $2, 'production', 'manual', '{}', 'queued', now() - interval '40 seconds' FROM generate_series(1, 3)`;
    await service.db.query(queue, [service.appId, copy!.id]);
    // The service counts queued runs at most once a second, so the test waits for the new number.
    const text = await until(async () => {
      const { text } = await read();
      return text.includes(`svc_queue_runs{app="${service.appId}"} 3\n`) ? text : null;
    });
    expect(text).to.include("svc_runs_queued 3\n");
    expect(Number(/^svc_queue_oldest_seconds\{.*\} (.*)$/m.exec(text)?.[1])).to.be.within(40, 4_000);
    await service.db.query("DELETE FROM run WHERE state = 'queued'");
  });

  it("show how long the oldest due tick has waited if no scheduler claims it", async () => {
    expect((await read()).text).to.include("svc_schedule_lag_seconds 0\n");
    const fields = { name: "late", triggers: [{ trigger: "schedule" }], frequency: "*/2 * * * *" };
    await insertPublishedActions(service.db, service.appId, [fields]);
    await service.db.query("UPDATE schedule SET next_tick = now() - interval '90 seconds'");
    const { text } = await read();
    expect(Number(/^svc_schedule_lag_seconds (.*)$/m.exec(text)?.[1])).to.be.within(90, 9_000);
    expect(text).to.include("svc_schedules 1\n");
  });
});

describe("the counters of a process", () => {
  it("start at 0 for each known label value", async () => {
    const lines = (await new ServiceMetrics().register.metrics()).split("\n");
    const startedAt0 = (name: string, label: string) =>
      lines.flatMap((line) => new RegExp(`^${name}\\{${label}="(\\w+)"\\} 0$`).exec(line)?.[1] ?? []);
    expect(startedAt0("svc_browser_losses_total", "kind")).to.deep.equal([...PAGE_LOSS_REASONS]);
    expect(startedAt0("svc_ticks_total", "fate")).to.deep.equal([...TICK_RESULTS]);
    expect(startedAt0("svc_refusals_total", "status")).to.deep.equal(Object.keys(STATUS));
    expect(startedAt0("svc_requests_total", "result")).to.deep.equal(["2xx", "3xx", "4xx", "5xx"]);
    for (const name of ["svc_runs_lost_total", "svc_unhandled_rejections_total"]) expect(lines).to.include(`${name} 0`);
  });

  it("have labels for a hundred apps, and one for all others", async () => {
    const measures = new ServiceMetrics();
    const run = { trigger: "manual", mode: "isolate", outcome: "completed", durationMs: 12 } as const;
    for (let appId = 1; appId <= 1_000; appId += 1) measures.countEndedRun({ ...run, appId });
    const lines = (await measures.register.metrics()).split("\n").filter((line) => line.startsWith("svc_runs_total{"));
    // Each of the 100 apps, and the label `other`, has a line for each of the four outcomes, also with the value 0.
    expect(lines).to.have.length(4 * 101);
    const labels = 'trigger="manual",mode="isolate",outcome="completed"';
    expect(lines).to.include(`svc_runs_total{app="100",${labels}} 1`);
    expect(lines).to.include(`svc_runs_total{app="other",${labels}} 900`);
  });
});

describe("the counter of runs by app and outcome", () => {
  const linesOf = async ({ register }: ServiceMetrics) =>
    (await register.metrics()).split("\n").filter((line) => line.startsWith("svc_app_runs_total{"));

  it("is limited to 1,000 apps, and one label for all others that starts at 0 too", async () => {
    const measures = new ServiceMetrics();
    const other = ["completed", "failed", "timeout", "cancelled"].map(
      (outcome) => `{app="other",outcome="${outcome}"} 0`,
    );
    expect(await linesOf(measures)).to.deep.equal(other.map((labels) => `svc_app_runs_total${labels}`));
    measures.startApps(Array.from({ length: 5_000 }, (_, at) => at + 1));
    const lines = await linesOf(measures);
    expect(lines).to.have.length(4 * (APPS_WITH_RUN_COUNTER_MAX + 1));
    expect(lines.join("\n")).to.have.length.below(250_000);
    measures.countEndedRun({ appId: 4_000, trigger: "manual", mode: "isolate", outcome: "failed", durationMs: 1 });
    expect(await linesOf(measures)).to.include('svc_app_runs_total{app="other",outcome="failed"} 1');
  });

  it("starts at 0 for each app with the first scrape of a runner, and keeps its value at the next", async () => {
    const measures = new ServiceMetrics();
    measures.startApps([3]);
    measures.countEndedRun({ appId: 3, trigger: "manual", mode: "isolate", outcome: "failed", durationMs: 1 });
    measures.startApps([4, 3]);
    const lines = await linesOf(measures);
    expect(lines).to.include('svc_app_runs_total{app="3",outcome="failed"} 1');
    expect(lines).to.include('svc_app_runs_total{app="4",outcome="failed"} 0');
  });

  it("gives the series of a deleted app to another, but removes none of an older or newer app than the list", async () => {
    const measures = new ServiceMetrics();
    const ids = (from: number) => Array.from({ length: APPS_WITH_RUN_COUNTER_MAX }, (_, at) => from + at);
    const appsOf = async () => {
      const apps = (await linesOf(measures)).map((line) => Number(/app="(\d+)"/.exec(line)?.[1] ?? 0));
      return new Set(apps);
    };
    measures.startApps(ids(2));
    const deleted = 500;
    measures.startApps(ids(1).filter((id) => id !== deleted));
    const complete = await appsOf();
    expect([1, deleted, APPS_WITH_RUN_COUNTER_MAX + 1].map((id) => complete.has(id))).to.deep.equal([
      true,
      false,
      true,
    ]);
    measures.startApps(ids(11).reverse());
    const older = await appsOf();
    expect([1, 10, 11].map((id) => older.has(id))).to.deep.equal([true, true, true]);
  });
});

describe("the metrics of one process", () => {
  const NOW: VitalSigns = {
    scheduleLagMs: 0,
    scheduleCount: 0,
    ticksDue: 700,
    queued: 7,
    running: 2,
    oldestQueuedMs: 12_500,
    queues: [{ appId: 3, queued: 7, oldestMs: 12_500 }],
    instances: { runner: 1 },
    newestAppIds: [3],
  };
  const createRunnerMetrics = (vitals: () => Promise<VitalSigns>, isClaimingRuns: boolean) =>
    createMetrics({
      readVitalSigns: vitals,
      countDatabaseConnections: () => ({ busy: 3, idle: 2, waiting: 1 }),
      countLostConnections: () => 4,
      getClockSkewMs: () => 0,
      isDiskFull: () => false,
      readFreeDataDirBytes: async () => 5,
      countResponseBytes: () => 6_000_000,
      countSockets: () => ({ open: 4, subscriptions: 9 }),
      measures: new ServiceMetrics(),
      runner: {
        countSlots: () => ({ total: 8, free: 5, waiting: 7 }),
        isClaimingRuns: () => isClaimingRuns,
        countBrowsers: () => ({ up: 1, serving: 3, warm: 2, spare: 1 }),
      },
    }).readMetrics();

  it("show that runs wait although the process has free slots and starts none", async () => {
    const text = await createRunnerMetrics(async () => NOW, false);
    for (const line of [
      "svc_runs_queued 7",
      "svc_schedule_ticks_due 700",
      "svc_runs_oldest_queued_seconds 12.5",
      'svc_app_runs_total{app="3",outcome="failed"} 0',
      'svc_runner_places{state="total"} 8',
      'svc_runner_places{state="free"} 5',
      'svc_runner_places{state="waiting"} 7',
      "svc_runner_taking 0",
      'svc_database_connections{state="waiting"} 1',
      "svc_database_connections_lost_total 4",
      "svc_database_up 1",
      'svc_queue_runs{app="3"} 7',
      'svc_queue_oldest_seconds{app="3"} 12.5',
      'svc_sockets{what="subscriptions"} 9',
      "svc_browsers 1",
      'svc_browser_contexts{state="warm"} 2',
    ]) {
      expect(text.split("\n")).to.include(line);
    }
  });

  it("work without a database, and leave out what cannot be measured", async () => {
    let away = false;
    const metrics = createMetrics({
      readVitalSigns: async () => {
        if (away) throw new Error("away");
        return NOW;
      },
      countDatabaseConnections: () => ({ busy: 0, idle: 0, waiting: 0 }),
      countLostConnections: () => 1,
      getClockSkewMs: () => 0,
      isDiskFull: () => false,
      readFreeDataDirBytes: async () => 5,
      countResponseBytes: null,
      countSockets: null,
      measures: new ServiceMetrics(),
      runner: null,
    });
    expect(await metrics.readMetrics()).to.match(/^svc_runs_queued 7$/m);
    away = true;
    const text = await metrics.readMetrics();
    expect(text)
      .to.match(/^svc_database_up 0$/m)
      .and.to.match(/^svc_database_connections_lost_total 1$/m);
    expect(text).to.not.match(/^svc_(runs_(queued|running|oldest)|queue|schedule|instances)\w* [\d.]+$/m);
    away = false;
    expect(await metrics.readMetrics()).to.match(/^svc_runs_queued 7$/m);
  });
});
