import { expect } from "chai";
import { createMetrics } from "../../src/api/metrics.js";
import type { Vitals } from "../../src/operations/upkeep/vitals.js";
import { publishDirectly } from "../harness/production-copies.js";
import { startTestService, type TestService } from "../harness/service.js";

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

  it("are told in the format of Prometheus, each with its kind", async () => {
    const { type, text } = await read();
    expect(type).to.match(/^text\/plain; version=0\.0\.4/);
    const lines = text.trimEnd().split("\n");
    const samples = lines.filter((line) => line.startsWith("svc_"));
    for (const line of samples) expect(line).to.match(/^svc_[a-z_]+(\{(role|state)="[a-z]+"\})? \d+(\.\d+)?$/);
    const named = new Set(samples.map((line) => line.split(/[{ ]/)[0]!));
    for (const name of named) {
      expect(lines).to.include(`# TYPE ${name} ${name.endsWith("_total") ? "counter" : "gauge"}`);
    }
    expect([...named]).to.include.members([
      "svc_schedule_lag_seconds",
      "svc_schedules",
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

  it("show how long the oldest due tick has waited where no scheduler claims it", async () => {
    expect((await read()).text).to.include("svc_schedule_lag_seconds 0\n");
    const wanted = { name: "late", triggers: [{ trigger: "schedule" }], frequency: "*/2 * * * *" };
    await publishDirectly(service.db, service.appId, [wanted]);
    await service.db.query("UPDATE schedule SET next_tick = now() - interval '90 seconds'");
    const { text } = await read();
    expect(Number(/^svc_schedule_lag_seconds (.*)$/m.exec(text)?.[1])).to.be.within(90, 120);
    expect(text).to.include("svc_schedules 1\n");
  });
});

describe("the metrics of one process", () => {
  const NOW: Vitals = {
    scheduleLagMs: 0,
    schedules: 0,
    queued: 7,
    running: 2,
    oldestQueuedMs: 12_500,
    instances: { runner: 1 },
  };
  const ofRunner = (vitals: () => Promise<Vitals>, taking: boolean) =>
    createMetrics({
      vitals,
      database: () => ({ busy: 3, idle: 2, waiting: 1 }),
      lost: () => 4,
      answers: () => 6_000_000,
      runner: { places: () => ({ total: 8, free: 5, waiting: 7 }), taking: () => taking, queueRestarts: () => 1 },
    }).read();

  it("say that runs wait while it has places and takes none", async () => {
    const text = await ofRunner(async () => NOW, false);
    for (const line of [
      "svc_runs_queued 7",
      "svc_runs_oldest_queued_seconds 12.5",
      'svc_runner_places{state="total"} 8',
      'svc_runner_places{state="free"} 5',
      'svc_runner_places{state="waiting"} 7',
      "svc_runner_taking 0",
      "svc_queue_restarts_total 1",
      'svc_database_connections{state="waiting"} 1',
      "svc_database_connections_lost_total 4",
      "svc_database_up 1",
    ]) {
      expect(text.split("\n")).to.include(line);
    }
  });

  it("go on without a database, and call nothing zero that nobody could ask for", async () => {
    let away = false;
    const metrics = createMetrics({
      vitals: async () => {
        if (away) throw new Error("away");
        return NOW;
      },
      database: () => ({ busy: 0, idle: 0, waiting: 0 }),
      lost: () => 1,
      answers: null,
      runner: null,
    });
    expect(await metrics.read()).to.match(/^svc_runs_queued 7$/m);
    away = true;
    const text = await metrics.read();
    expect(text)
      .to.match(/^svc_database_up 0$/m)
      .and.to.match(/^svc_database_connections_lost_total 1$/m);
    expect(text).to.not.match(/^svc_(runs|schedule|instances)/m);
    away = false;
    expect(await metrics.read()).to.match(/^svc_runs_queued 7$/m);
  });
});
