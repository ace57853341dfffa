/**
 * Metrics of this process: runs, ticks (scheduled times), crashed browsers and rejected requests. The number of label values is limited, so
 * that the metrics do not grow with the number of apps.
 */
import { Counter, Histogram, Registry } from "prom-client";
import { PAGE_LOSS_REASONS, type PageLossReason } from "../../engine/browser/pages/loss.js";
import { STATUS } from "../../errors.js";

/** Maximum number of apps with their own label value: the first that run an action in this process. All others share the value `other`. */
const LABELLED_APPS_MAX = 100;
/** Maximum number of apps with their own label value in `svc_app_runs_total`, which has four series per app. */
export const APPS_WITH_RUN_COUNTER_MAX = 1_000;
const OTHER_APPS_LABEL = "other";
/** Upper bounds of the buckets, in seconds. A run in a warm sandbox takes milliseconds. */
const DURATION_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** Where a run was evaluated: in a mode of the server's browser, in a user's browser (`client`), or nowhere (`none`). */
export type RunMode = "isolate" | "network-isolate" | "document" | "client" | "none";
const RUN_OUTCOMES = ["completed", "failed", "timeout", "cancelled"] as const;
export type RunOutcomeLabel = (typeof RUN_OUTCOMES)[number];
/** Results of a tick (scheduled time). A tick that was queued can also count as `late` or `concurrency`, if its run is skipped later. */
export const TICK_RESULTS = ["queued", "running", "down", "late", "unpublished", "paused", "concurrency"] as const;
export type TickResultLabel = (typeof TICK_RESULTS)[number];

const STATUS_CLASSES = ["2xx", "3xx", "4xx", "5xx"];

export interface EndedRunFacts {
  appId: number;
  trigger: string;
  mode: RunMode;
  outcome: RunOutcomeLabel;
  durationMs: number;
}

export interface OutgoingRequestFacts {
  status: number | null;
  code: string | null;
  durationMs: number;
}

/** Returns a function that returns the label value of an app: its ID, or `other`. */
export function createAppMetricLabeler(): (appId: number) => string {
  const knownApps = new Set<number>();
  return (appId) => {
    if (knownApps.has(appId)) return String(appId);
    if (knownApps.size >= LABELLED_APPS_MAX) return OTHER_APPS_LABEL;
    knownApps.add(appId);
    return String(appId);
  };
}

function createRequestCounter(register: Registry): (request: OutgoingRequestFacts) => void {
  const registers = [register];
  const requestCounter = new Counter({
    name: "svc_requests_total",
    help: "Requests that runs sent to other services from this process, by class of the HTTP status or by error code.",
    labelNames: ["result"],
    registers,
  });
  const requestSeconds = new Histogram({
    name: "svc_request_seconds",
    help: "Duration of requests that runs sent to other services.",
    labelNames: ["result"],
    buckets: DURATION_BUCKETS,
    registers,
  });
  for (const result of STATUS_CLASSES) requestCounter.inc({ result }, 0);
  return ({ status, code, durationMs }) => {
    const result = code ?? `${String(status)[0]}xx`;
    requestCounter.inc({ result });
    requestSeconds.observe({ result }, durationMs / 1e3);
  };
}

/** Counts runs by app. The series of an app start at 0. Otherwise Prometheus would not count the app's first run as an increase. */
class AppRunCounter {
  private readonly counter = new Counter({
    name: "svc_app_runs_total",
    help: "Runs that ended in this process, by outcome and by the ID of the app for 1,000 apps, and together for all others.",
    labelNames: ["app", "outcome"],
    registers: [this.register],
  });
  private readonly countedApps = new Set<number>();

  constructor(private readonly register: Registry) {
    this.startSeries(OTHER_APPS_LABEL);
  }

  private startSeries(app: string) {
    for (const outcome of RUN_OUTCOMES) this.counter.inc({ app, outcome }, 0);
  }

  private getAppLabel(appId: number): string {
    if (!this.countedApps.has(appId)) {
      if (this.countedApps.size >= APPS_WITH_RUN_COUNTER_MAX) return OTHER_APPS_LABEL;
      this.countedApps.add(appId);
      this.startSeries(String(appId));
    }
    return String(appId);
  }

  /** Removes the series of deleted apps, so that new apps can have series. */
  private removeDeletedApps(newestAppIds: readonly number[]) {
    const existingIds = new Set(newestAppIds);
    const newestId = Math.max(...newestAppIds);
    // A list of the maximum length does not contain all existing apps, only the newest.
    const oldestId = newestAppIds.length < APPS_WITH_RUN_COUNTER_MAX ? 0 : Math.min(...newestAppIds);
    for (const appId of this.countedApps) {
      // An app with a higher ID may have been created since the list was read.
      if (existingIds.has(appId) || appId < oldestId || appId > newestId) continue;
      this.countedApps.delete(appId);
      for (const outcome of RUN_OUTCOMES) this.counter.remove({ app: String(appId), outcome });
    }
  }

  startApps(newestAppIds: readonly number[]): void {
    this.removeDeletedApps(newestAppIds);
    for (const appId of newestAppIds) this.getAppLabel(appId);
  }

  countRun(appId: number, outcome: RunOutcomeLabel): void {
    this.counter.inc({ app: this.getAppLabel(appId), outcome });
  }
}

class RunMeasures {
  readonly getAppLabel = createAppMetricLabeler();
  private readonly runs = new Counter({
    name: "svc_runs_total",
    help: "Runs that ended in this process, by the ID of the app for the first 100 apps that it serves, and together for all others.",
    labelNames: ["app", "trigger", "mode", "outcome"],
    registers: [this.register],
  });
  private readonly runSeconds = new Histogram({
    name: "svc_run_seconds",
    help: "Duration of runs, from start to end.",
    labelNames: ["trigger", "mode", "outcome"],
    buckets: DURATION_BUCKETS,
    registers: [this.register],
  });
  private readonly appRuns = new AppRunCounter(this.register);

  constructor(readonly register: Registry) {}

  /** @param newestAppIds IDs of all apps, or of the newest APPS_WITH_RUN_COUNTER_MAX apps */
  startApps(newestAppIds: readonly number[]): void {
    this.appRuns.startApps(newestAppIds);
  }

  countEndedRun({ appId, trigger, mode, outcome, durationMs }: EndedRunFacts): void {
    const app = this.getAppLabel(appId);
    for (const runOutcome of RUN_OUTCOMES)
      this.runs.inc({ app, trigger, mode, outcome: runOutcome }, runOutcome === outcome ? 1 : 0);
    this.runSeconds.observe({ trigger, mode, outcome }, durationMs / 1e3);
    this.appRuns.countRun(appId, outcome);
  }
}

export class ServiceMetrics extends RunMeasures {
  readonly countRequest = createRequestCounter(this.register);
  private readonly lostRunsCounter = new Counter({
    name: "svc_runs_lost_total",
    help: "Runs that this process ended because the process that executed them had died.",
    registers: [this.register],
  });
  private readonly tickCounter = new Counter({
    name: "svc_ticks_total",
    help: "Ticks of schedules that this process claimed, by result.",
    labelNames: ["fate"],
    registers: [this.register],
  });
  private readonly lossCounter = new Counter({
    name: "svc_browser_losses_total",
    help: "Browsers and pages that crashed or were replaced, by reason.",
    labelNames: ["kind"],
    registers: [this.register],
  });
  private readonly refusalCounter = new Counter({
    name: "svc_refusals_total",
    help: "Requests that got an error, by status.",
    labelNames: ["status"],
    registers: [this.register],
  });
  private readonly rejectionCounter = new Counter({
    name: "svc_unhandled_rejections_total",
    help: "Rejected promises that no code handled. Each is a fault of the service and has a line in the log.",
    registers: [this.register],
  });

  constructor() {
    super(new Registry());
    // Starts each label value at 0, because Prometheus does not count the first value of a new series as an increase.
    for (const fate of TICK_RESULTS) this.tickCounter.inc({ fate }, 0);
    for (const status of Object.keys(STATUS)) this.refusalCounter.inc({ status }, 0);
    for (const kind of PAGE_LOSS_REASONS) this.lossCounter.inc({ kind }, 0);
  }

  countLostRuns(count: number): void {
    this.lostRunsCounter.inc(count);
  }

  countTicks(fate: TickResultLabel, count = 1): void {
    this.tickCounter.inc({ fate }, count);
  }

  countBrowserLoss(kind: PageLossReason): void {
    this.lossCounter.inc({ kind });
  }

  countRefusal(status: string): void {
    this.refusalCounter.inc({ status });
  }

  countUnhandledRejection(): void {
    this.rejectionCounter.inc();
  }
}
