/**
 * Compares the alert rules and the dashboard of `deploy/` with the service's metrics: the named metrics exist, and each rule fires for its
 * fault.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { load } from "js-yaml";
import { createMetrics, type MetricSources } from "../../src/api/metrics.js";
import type { VitalSigns } from "../../src/operations/upkeep/vitals.js";
import { type EndedRunFacts, ServiceMetrics } from "../../src/operations/watch/measures.js";
import { evaluate, metricsIn, parseExpression, type Sample, samplesIn } from "./promql.js";

const read = (file: string) => readFileSync(fileURLToPath(new URL(`../../../deploy/${file}`, import.meta.url)), "utf8");

interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; description: string };
}

const { groups } = load(read("alerts.yaml")) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

const HEALTHY_VITALS: VitalSigns = {
  ...{
    scheduleLagMs: 0,
    scheduleCount: 4,
    ticksDue: 4,
    queued: 1,
    running: 2,
    oldestQueuedMs: 100,
    queues: [{ appId: 1, queued: 1, oldestMs: 100 }],
  },
  instances: { api: 1, scheduler: 1, runner: 1 },
  newestAppIds: [1],
};
const RUN: EndedRunFacts = { appId: 1, trigger: "manual", mode: "isolate", outcome: "completed", durationMs: 20 };

/** Creates the metrics and the state of a process, for a test to change. */
function createProcess() {
  const measures = new ServiceMetrics();
  const state = {
    vitals: HEALTHY_VITALS as VitalSigns | null,
    isClaimingRuns: true,
    browsers: 1,
    waiting: 0,
    loop: 0.01,
    skewMs: 0,
    diskFull: false,
    dataDirFree: 2 ** 40,
    isDown: false,
  };
  const sources: MetricSources = {
    readVitalSigns: async () => {
      if (!state.vitals) throw new Error("away");
      return state.vitals;
    },
    countDatabaseConnections: () => ({ busy: 1, idle: 2, waiting: state.waiting }),
    countLostConnections: () => 0,
    isDiskFull: () => state.diskFull,
    readFreeDataDirBytes: async () => state.dataDirFree,
    getClockSkewMs: () => state.skewMs,
    countResponseBytes: () => 0,
    countSockets: () => ({ open: 1, subscriptions: 1 }),
    measures,
    runner: {
      countSlots: () => ({ total: 4, free: 2, waiting: 0 }),
      isClaimingRuns: () => state.isClaimingRuns,
      countBrowsers: () => ({ up: state.browsers, serving: 2, warm: 1, spare: 1 }),
    },
  };
  const metrics = createMetrics(sources);
  const scrape = async (): Promise<Sample[]> => {
    if (state.isDown) return [];
    return samplesIn(await metrics.readMetrics()).map((sample) =>
      sample.name === "nodejs_eventloop_lag_p99_seconds" ? { ...sample, value: state.loop } : sample,
    );
  };
  // Counts one run before the first scrape, so that the metrics of runs exist.
  measures.countEndedRun(RUN);
  return { measures, state, scrape };
}

type Process = ReturnType<typeof createProcess>;

/** Faults by rule, each with a function that causes the fault. */
const FAULTS: Record<string, (service: Process) => unknown> = {
  SvcDatabaseAway: ({ state }) => Object.assign(state, { vitals: null }),
  SvcSchedulerDead: ({ state }) => Object.assign(state, { vitals: { ...HEALTHY_VITALS, scheduleLagMs: 61_000 } }),
  SvcRunnerNotTaking: ({ state }) => Object.assign(state, { isClaimingRuns: false }),
  SvcQueueOld: ({ state }) => {
    const queues = [{ appId: 1, queued: 5, oldestMs: 301_000 }];
    state.vitals = { ...HEALTHY_VITALS, queued: 5, oldestQueuedMs: 301_000, queues };
  },
  SvcRunsFail: ({ measures }) => {
    for (const outcome of ["failed", "timeout", "failed", "completed"] as const)
      measures.countEndedRun({ ...RUN, outcome });
  },
  SvcRunsLost: ({ measures }) => measures.countLostRuns(1),
  SvcTicksSkipped: ({ measures }) => measures.countTicks("down", 3),
  SvcBrowsersLost: ({ measures }) => {
    for (let count = 0; count < 3; count += 1) measures.countBrowserLoss("browser");
  },
  SvcNoBrowser: ({ state }) => Object.assign(state, { browsers: 0 }),
  SvcRefusals: ({ measures }) => {
    for (let count = 0; count < 11; count += 1) measures.countRefusal("OVERLOADED");
  },
  SvcConnectionsShort: ({ state }) => Object.assign(state, { waiting: 21 }),
  SvcDatabaseDiskFull: ({ state }) => Object.assign(state, { diskFull: true }),
  SvcDataDirFull: ({ state }) => Object.assign(state, { dataDirFree: 2 ** 29 }),
  SvcClockSkew: ({ state }) => Object.assign(state, { skewMs: -90_000 }),
  SvcNoProcess: ({ state }) => Object.assign(state, { isDown: true }),
  SvcEventLoopLate: ({ state }) => Object.assign(state, { loop: 0.6 }),
};

describe("the alerting rules", () => {
  it("are each tested here, and say what is wrong and where to look", () => {
    expect(rules.map(({ alert }) => alert).sort()).to.deep.equal(Object.keys(FAULTS).sort());
    for (const { alert, labels, annotations } of rules) {
      expect(labels.severity, alert).to.match(/^(warning|critical)$/);
      expect(annotations.summary, alert).to.match(/^[A-Z]/);
      expect(annotations.description, alert).to.match(/\.$/);
    }
  });

  it("are silent while runs succeed", async () => {
    const service = createProcess();
    const before = await service.scrape();
    for (let count = 0; count < 50; count += 1) service.measures.countEndedRun(RUN);
    service.measures.countTicks("queued", 4);
    const after = await service.scrape();
    for (const { alert, expr } of rules) expect(evaluate(expr, before, after), alert).to.deep.equal([]);
  });

  for (const { alert, expr } of rules) {
    it(`fire at the right time, and name no other fault: ${alert}`, async () => {
      const service = createProcess();
      const before = await service.scrape();
      FAULTS[alert]!(service);
      const after = await service.scrape();
      expect(evaluate(expr, before, after)).to.have.length(1);
      const others = rules.filter((rule) => rule.alert !== alert && evaluate(rule.expr, before, after).length > 0);
      expect(others.map((rule) => rule.alert)).to.deep.equal([]);
    });
  }
});

describe("the dashboard", () => {
  it("uses valid PromQL, and only metrics that the service has", async () => {
    const received = new Set((await createProcess().scrape()).map(({ name }) => name));
    const { panels } = JSON.parse(read("grafana-dashboard.json")) as {
      panels: { title: string; targets: { expr: string }[] }[];
    };
    const expressions = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    expect(expressions).to.have.length.above(20);
    for (const expr of [...expressions, ...rules.map((rule) => rule.expr)]) {
      parseExpression(expr);
      const names = metricsIn(expr);
      expect(names, expr).to.not.deep.equal([]);
      for (const name of names) expect(received.has(name), name).to.equal(true);
    }
  });
});
