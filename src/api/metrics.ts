/** The numbers of the service and of this process as Prometheus reads them. Knows no app. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { ROLES } from "../config.js";
import type { ReadVitals, Vitals } from "../operations/upkeep/vitals.js";
import type { Metrics } from "./health.js";

export interface MetricSources {
  /** Of all processes together; rejects while the database is away. */
  vitals: ReadVitals;
  /** This process's pool of connections. */
  database: () => { busy: number; idle: number; waiting: number };
  /** Connections that this process has lost so far. */
  lost: () => number;
  /** Bytes of this process's answers under way; null where it answers nobody. */
  answers: (() => number) | null;
  /** null where this process is no runner. */
  runner: {
    places: () => { total: number; free: number; waiting: number };
    taking: () => boolean;
    queueRestarts: () => number;
  } | null;
}

/** What a process costs belongs to the process, however many services run in it: the tests have several. */
let ofProcess: Registry | null = null;

function processRegistry(): Registry {
  if (ofProcess) return ofProcess;
  ofProcess = new Registry();
  collectDefaultMetrics({ register: ofProcess });
  return ofProcess;
}

/** Gauges over `vitals`, read once a scrape. Without a database they have no sample: a zero would say that all is quiet. */
function registerVitals(register: Registry, vitals: ReadVitals): () => Promise<void> {
  const gauge = (name: string, help: string, of: (now: Vitals) => number) => {
    const one = new Gauge({ name, help, registers: [register] });
    return (now: Vitals | null) => (now ? one.set(of(now)) : one.remove());
  };
  const instances = new Gauge({
    name: "svc_instances",
    help: "Living processes.",
    labelNames: ["role"],
    registers: [register],
  });
  const up = new Gauge({ name: "svc_database_up", help: "1 when the database answers.", registers: [register] });
  const all = [
    gauge(
      "svc_schedule_lag_seconds",
      "Age of the oldest due tick that no scheduler has claimed.",
      (now) => now.scheduleLagMs / 1e3,
    ),
    gauge("svc_schedules", "Production copies that fire on a schedule.", (now) => now.schedules),
    gauge("svc_runs_queued", "Runs that wait for a runner.", (now) => now.queued),
    gauge("svc_runs_running", "Runs under way.", (now) => now.running),
    gauge("svc_runs_oldest_queued_seconds", "Age of the oldest run that waits.", (now) => now.oldestQueuedMs / 1e3),
  ];
  return async () => {
    const now = await vitals().catch(() => null);
    up.set(now ? 1 : 0);
    for (const set of all) set(now);
    for (const role of ROLES) {
      if (now) instances.set({ role }, now.instances[role] ?? 0);
      else instances.remove({ role });
    }
  };
}

function registerDatabase(register: Registry, { database, lost }: MetricSources): void {
  new Gauge({
    name: "svc_database_connections",
    help: "Connections of this process's pool by use; waiting counts the callers who wait for one.",
    labelNames: ["state"],
    registers: [register],
    collect() {
      for (const [state, count] of Object.entries(database())) this.set({ state }, count);
    },
  });
  new Counter({
    name: "svc_database_connections_lost_total",
    help: "Connections to the database that this process lost.",
    registers: [register],
    collect() {
      this.reset();
      this.inc(lost());
    },
  });
}

function registerAnswers(register: Registry, held: NonNullable<MetricSources["answers"]>): void {
  new Gauge({
    name: "svc_answer_bytes",
    help: "Bytes of the answers that are being made or sent; at a tenth of the heap large ones are refused.",
    registers: [register],
    collect() {
      this.set(held());
    },
  });
}

function registerRunner(register: Registry, runner: NonNullable<MetricSources["runner"]>): void {
  new Gauge({
    name: "svc_runner_places",
    help: "Runs that this process performs at once at most, how many more it could now, and how many callers wait here for theirs.",
    labelNames: ["state"],
    registers: [register],
    collect() {
      for (const [state, count] of Object.entries(runner.places())) this.set({ state }, count);
    },
  });
  new Gauge({
    name: "svc_runner_taking",
    help: "0 when this process does not take runs that it has places for.",
    registers: [register],
    collect() {
      this.set(runner.taking() ? 1 : 0);
    },
  });
  new Counter({
    name: "svc_queue_restarts_total",
    help: "How often the queue that wakes this process ended and was begun anew.",
    registers: [register],
    collect() {
      this.reset();
      this.inc(runner.queueRestarts());
    },
  });
}

/** What `/metrics` of one process tells; it goes on telling what it can while the database is away. */
export function createMetrics(sources: MetricSources): Metrics {
  const register = new Registry();
  const readVitals = registerVitals(register, sources.vitals);
  registerDatabase(register, sources);
  if (sources.answers) registerAnswers(register, sources.answers);
  if (sources.runner) registerRunner(register, sources.runner);
  const ofThisProcess = processRegistry();
  return {
    type: register.contentType,
    async read() {
      await readVitals();
      return (await register.metrics()) + (await ofThisProcess.metrics());
    },
  };
}
