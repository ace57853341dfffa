/** Metrics of the service and of this process for Prometheus. `operations/watch/measures.ts` has the metrics of single apps. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { PROCESS_ROLES } from "../config.js";
import type { ReadVitals, VitalSigns } from "../operations/upkeep/vitals.js";
import { createAppMetricLabeler, type ServiceMetrics } from "../operations/watch/measures.js";
import { readServiceVersion } from "../version.js";
import type { Metrics } from "./health.js";

export interface MetricSources {
  /** Reads figures of the whole service, such as queue lengths, from the database. Rejects while the database is unavailable. */
  readVitalSigns: ReadVitals;
  /** Returns the number of connections in this process's database pools, by state. */
  countDatabaseConnections: () => { busy: number; idle: number; waiting: number };
  /** Returns the number of database connections that this process has lost since it started. */
  countLostConnections: () => number;
  /** True while PostgreSQL rejects writes because its disk is full. */
  isDiskFull: () => boolean;
  /** Returns the number of free bytes under DATA_DIR. */
  readFreeDataDirBytes: () => Promise<number>;
  /** Returns how many milliseconds the database's clock is ahead of this machine's clock. */
  getClockSkewMs: () => number;
  /** Returns the bytes of the responses that this process is sending; null if the process does not serve requests. */
  countResponseBytes: (() => number) | null;
  /** Returns the number of open websockets and of their subscriptions; null if the process does not serve requests. */
  countSockets: (() => { open: number; subscriptions: number }) | null;
  /** Counters of events in this process. */
  measures: Pick<ServiceMetrics, "register" | "startApps">;
  /** Slots and runs of this process; null if the process is not a runner. */
  runner: {
    countSlots: () => { total: number; free: number; waiting: number };
    isClaimingRuns: () => boolean;
    countBrowsers: () => { up: number; serving: number; warm: number; spare: number };
  } | null;
}

/** Metrics of the Node process. Created once, because prom-client can collect them only once in a process. */
let processMetricsRegistry: Registry | null = null;

function createProcessRegistry(): Registry {
  if (processMetricsRegistry) return processMetricsRegistry;
  processMetricsRegistry = new Registry();
  collectDefaultMetrics({ register: processMetricsRegistry });
  return processMetricsRegistry;
}

/**
 * Registers two metrics of the apps' queues: length, and age of the oldest run. Each has one value for each of the longest queues, and one
 * for all other queues. Returns a function that sets the values.
 */
function registerQueueMetrics(register: Registry): (vitalSigns: VitalSigns | null) => void {
  const lengthGauge = new Gauge({
    name: "svc_queue_runs",
    help: "Queued runs by app: the hundred longest queues, and all others together.",
    labelNames: ["app"],
    registers: [register],
  });
  const ageGauge = new Gauge({
    name: "svc_queue_oldest_seconds",
    help: "Age of the oldest queued run of each app that svc_queue_runs has.",
    labelNames: ["app"],
    registers: [register],
  });
  return (vitalSigns) => {
    lengthGauge.reset();
    ageGauge.reset();
    const getAppLabel = createAppMetricLabeler();
    const oldestSecondsByApp = new Map<string, number>();
    for (const { appId, queued, oldestMs } of [...(vitalSigns?.queues ?? [])].sort((a, b) => b.queued - a.queued)) {
      const app = getAppLabel(appId);
      lengthGauge.inc({ app }, queued);
      oldestSecondsByApp.set(app, Math.max(oldestSecondsByApp.get(app) ?? 0, oldestMs / 1e3));
    }
    for (const [app, seconds] of oldestSecondsByApp) ageGauge.set({ app }, seconds);
  };
}

/**
 * Registers metrics of the whole service. While the database is unavailable, they have no values, because zeros would look like an idle
 * service. Only `svc_database_up` then has a value, 0.
 */
function registerVitalSignMetrics(
  register: Registry,
  { readVitalSigns, measures, runner }: MetricSources,
): () => Promise<void> {
  const registerGauge = (name: string, help: string, readValue: (vitalSigns: VitalSigns) => number) => {
    const gauge = new Gauge({ name, help, registers: [register] });
    return (vitalSigns: VitalSigns | null) => (vitalSigns ? gauge.set(readValue(vitalSigns)) : gauge.remove());
  };
  const instances = new Gauge({
    name: "svc_instances",
    help: "Processes of the service that are running.",
    labelNames: ["role"],
    registers: [register],
  });
  const databaseUp = new Gauge({
    name: "svc_database_up",
    help: "1 when the database answers.",
    registers: [register],
  });
  const gaugeSetters = [
    registerGauge(
      "svc_schedule_lag_seconds",
      "Age of the oldest due tick that no scheduler has claimed.",
      (vitalSigns) => vitalSigns.scheduleLagMs / 1e3,
    ),
    registerGauge(
      "svc_schedule_ticks_due",
      "Ticks of schedules that fall due within the next minute.",
      (vitalSigns) => vitalSigns.ticksDue,
    ),
    registerGauge("svc_schedules", "Live versions with a schedule.", (vitalSigns) => vitalSigns.scheduleCount),
    registerGauge("svc_runs_queued", "Queued runs.", (vitalSigns) => vitalSigns.queued),
    registerGauge("svc_runs_running", "Runs in progress.", (vitalSigns) => vitalSigns.running),
    registerGauge(
      "svc_runs_oldest_queued_seconds",
      "Age of the oldest queued run.",
      (vitalSigns) => vitalSigns.oldestQueuedMs / 1e3,
    ),
  ];
  const setQueues = registerQueueMetrics(register);
  return async () => {
    // Without the database, the gauges have no values.
    const vitalSigns = await readVitalSigns().catch(() => null);
    databaseUp.set(vitalSigns ? 1 : 0);
    for (const setGauge of gaugeSetters) setGauge(vitalSigns);
    setQueues(vitalSigns);
    // Only runners count runs. Prometheus must read the counters of a new app as 0 first, so they are created before each read.
    if (vitalSigns && runner) measures.startApps(vitalSigns.newestAppIds);
    for (const role of PROCESS_ROLES) {
      if (vitalSigns) instances.set({ role }, vitalSigns.instances[role] ?? 0);
      else instances.remove({ role });
    }
  };
}

function registerReleaseMetric(register: Registry): void {
  const gauge = new Gauge({
    name: "svc_build_info",
    help: "Always 1; its label has the release of this process.",
    labelNames: ["version"],
    registers: [register],
  });
  gauge.set({ version: readServiceVersion() }, 1);
}

function registerDatabaseMetrics(
  register: Registry,
  { countDatabaseConnections, countLostConnections, getClockSkewMs, isDiskFull, readFreeDataDirBytes }: MetricSources,
): void {
  new Gauge({
    name: "svc_database_disk_full",
    help: "1 while PostgreSQL rejects writes of this process because its disk is full.",
    registers: [register],
    collect() {
      this.set(isDiskFull() ? 1 : 0);
    },
  });
  new Gauge({
    name: "svc_data_dir_free_bytes",
    help: "Free space on the disk of DATA_DIR.",
    registers: [register],
    async collect() {
      this.set(await readFreeDataDirBytes());
    },
  });
  new Gauge({
    name: "svc_clock_skew_seconds",
    help: "Seconds by which this machine's clock differs from the database's.",
    registers: [register],
    collect() {
      this.set(Math.abs(getClockSkewMs()) / 1e3);
    },
  });
  new Gauge({
    name: "svc_database_connections",
    help: "Database connections of this process by use; waiting counts the callers that wait for a connection.",
    labelNames: ["state"],
    registers: [register],
    collect() {
      for (const [state, count] of Object.entries(countDatabaseConnections())) this.set({ state }, count);
    },
  });
  new Counter({
    name: "svc_database_connections_lost_total",
    help: "Connections to the database that this process lost.",
    registers: [register],
    collect() {
      this.reset();
      this.inc(countLostConnections());
    },
  });
}

function registerResponseBytesMetric(
  register: Registry,
  countResponseBytes: NonNullable<MetricSources["countResponseBytes"]>,
): void {
  new Gauge({
    name: "svc_answer_bytes",
    help: "Bytes of responses in progress. Above a tenth of the heap, the process rejects large responses.",
    registers: [register],
    collect() {
      this.set(countResponseBytes());
    },
  });
}

function registerSocketMetrics(register: Registry, countSockets: NonNullable<MetricSources["countSockets"]>): void {
  new Gauge({
    name: "svc_sockets",
    help: "Open websockets of this process, and the subscriptions that they carry.",
    labelNames: ["what"],
    registers: [register],
    collect() {
      const { open, subscriptions } = countSockets();
      this.set({ what: "open" }, open);
      this.set({ what: "subscriptions" }, subscriptions);
    },
  });
}

function registerBrowserMetrics(
  register: Registry,
  countBrowsers: NonNullable<MetricSources["runner"]>["countBrowsers"],
): void {
  new Gauge({
    name: "svc_browsers",
    help: "Browsers that execute runs of this process.",
    registers: [register],
    collect() {
      this.set(countBrowsers().up);
    },
  });
  new Gauge({
    name: "svc_browser_contexts",
    help: "Browser contexts of this process by state: with a run, ready for the next run of their app, or ready for any app.",
    labelNames: ["state"],
    registers: [register],
    collect() {
      const { up: _, ...contexts } = countBrowsers();
      for (const [state, count] of Object.entries(contexts)) this.set({ state }, count);
    },
  });
}

function registerRunnerMetrics(register: Registry, runner: NonNullable<MetricSources["runner"]>): void {
  new Gauge({
    name: "svc_runner_places",
    help: "All slots for runs of this process, its free slots, and its callers that wait for a slot.",
    labelNames: ["state"],
    registers: [register],
    collect() {
      for (const [state, count] of Object.entries(runner.countSlots())) this.set({ state }, count);
    },
  });
  new Gauge({
    name: "svc_runner_taking",
    help: "0 if this process has free slots but does not start queued runs, otherwise 1.",
    registers: [register],
    collect() {
      this.set(runner.isClaimingRuns() ? 1 : 0);
    },
  });
}

/**
 * Builds the text of `/metrics` for one process. While the database is unavailable, the metrics of the whole service are missing, except
 * `svc_database_up`.
 */
export function createMetrics(sources: MetricSources): Metrics {
  const register = new Registry();
  const updateVitalSignMetrics = registerVitalSignMetrics(register, sources);
  registerReleaseMetric(register);
  registerDatabaseMetrics(register, sources);
  if (sources.countResponseBytes) registerResponseBytesMetric(register, sources.countResponseBytes);
  if (sources.countSockets) registerSocketMetrics(register, sources.countSockets);
  if (sources.runner) registerRunnerMetrics(register, sources.runner);
  if (sources.runner) registerBrowserMetrics(register, sources.runner.countBrowsers);
  const measuresRegistry = sources.measures.register;
  const processRegistry = createProcessRegistry();
  return {
    contentType: register.contentType,
    async readMetrics() {
      await updateVitalSignMetrics();
      const texts = await Promise.all(
        [register, measuresRegistry, processRegistry].map((registry) => registry.metrics()),
      );
      return texts.join("");
    },
  };
}
