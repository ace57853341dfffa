/** The vitals as Prometheus reads them (text format 0.0.4). Knows no app. */
import { ROLES } from "../config.js";
import type { Vitals } from "../operations/upkeep/vitals.js";

export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

function gauge(name: string, help: string, samples: readonly (readonly [labels: string, value: number])[]): string {
  const lines = samples.map(([labels, value]) => `${name}${labels} ${value}`);
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, ...lines].join("\n");
}

const one = (value: number) => [["", value]] as const;

export function metricsText(vitals: Vitals): string {
  const { scheduleLagMs, schedules, queued, running, oldestQueuedMs, instances } = vitals;
  const byRole = ROLES.map((role) => [`{role="${role}"}`, instances[role] ?? 0] as const);
  return `${[
    gauge(
      "svc_schedule_lag_seconds",
      "Age of the oldest due tick that no scheduler has claimed.",
      one(scheduleLagMs / 1e3),
    ),
    gauge("svc_schedules", "Production copies that fire on a schedule.", one(schedules)),
    gauge("svc_runs_queued", "Runs that wait for a runner.", one(queued)),
    gauge("svc_runs_running", "Runs under way.", one(running)),
    gauge("svc_runs_oldest_queued_seconds", "Age of the oldest run that waits.", one(oldestQueuedMs / 1e3)),
    gauge("svc_instances", "Living processes.", byRole),
  ].join("\n")}\n`;
}
