/** Runs the alerting rules in Prometheus' own evaluator: promtool of Debian's package `prometheus`, or the program in PROMTOOL. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import { dump } from "js-yaml";

const PROMTOOL_PATH = process.env["PROMTOOL"] ?? "/usr/bin/promtool";
const RULES = fileURLToPath(new URL("../../../deploy/alerts.yaml", import.meta.url));
const run = promisify(execFile);

/** Declares tests that need promtool. Without promtool, skips them, and prints their title when the process exits. */
const describeIfInstalled = (title: string, body: () => void) => {
  if (existsSync(PROMTOOL_PATH)) describe(title, body);
  else
    process.once("exit", () => process.stderr.write(`not run, because ${PROMTOOL_PATH} is not installed: ${title}\n`));
};

interface AlertCase {
  alert: string;
  /** Metrics by name. Each value lists the samples of the metric in promtool's notation, one for each minute. */
  series: Record<string, string>;
  /** Labels of each firing alert, without the severity. An empty list means that the rule does not fire. */
  firing: Record<string, string>[];
}

const UP_SERIES = { svc_database_up: "1x15" };
const failedRuns = (values: string) => ({ ...UP_SERIES, 'svc_app_runs_total{app="1",outcome="failed"}': values });

/** Series for which a rule fires, and series for which the rule does not fire. promtool evaluates the rules after 14 minutes. */
const CASES: readonly AlertCase[] = [
  { alert: "SvcNoProcess", series: {}, firing: [{}] },
  { alert: "SvcNoProcess", series: { svc_database_up: "1 1 stale _x13" }, firing: [{}] },
  { alert: "SvcNoProcess", series: UP_SERIES, firing: [] },
  { alert: "SvcDatabaseAway", series: { svc_database_up: "1x10 0x5" }, firing: [{}] },
  { alert: "SvcDatabaseAway", series: UP_SERIES, firing: [] },
  { alert: "SvcSchedulerDead", series: { ...UP_SERIES, svc_schedule_lag_seconds: "61x15" }, firing: [{}] },
  { alert: "SvcSchedulerDead", series: { ...UP_SERIES, svc_schedule_lag_seconds: "60x15" }, firing: [] },
  { alert: "SvcRunnerNotTaking", series: { ...UP_SERIES, svc_runner_taking: "1x10 0x5" }, firing: [{}] },
  { alert: "SvcRunnerNotTaking", series: { ...UP_SERIES, svc_runner_taking: "1x15" }, firing: [] },
  { alert: "SvcQueueOld", series: { ...UP_SERIES, svc_runs_oldest_queued_seconds: "301x15" }, firing: [{}] },
  { alert: "SvcQueueOld", series: { ...UP_SERIES, svc_runs_oldest_queued_seconds: "300x15" }, firing: [] },
  // The first run of an app fails. The rule detects this failure, because the series of the app already existed with the value 0.
  { alert: "SvcRunsFail", series: failedRuns("0x4 1x10"), firing: [{ app: "1" }] },
  {
    alert: "SvcRunsFail",
    series: { ...failedRuns("0x4 1x10"), 'svc_app_runs_total{app="1",outcome="completed"}': "0x4 1x10" },
    firing: [],
  },
  { alert: "SvcRunsFail", series: failedRuns("0x15"), firing: [] },
  { alert: "SvcRunsLost", series: { ...UP_SERIES, svc_runs_lost_total: "0 0 0 0 0 0 0 2x8" }, firing: [{}] },
  { alert: "SvcRunsLost", series: { ...UP_SERIES, svc_runs_lost_total: "2x15" }, firing: [] },
  // A scheduler claims seven late ticks at once.
  {
    alert: "SvcTicksSkipped",
    series: { ...UP_SERIES, 'svc_ticks_total{fate="late"}': "0 0 0 0 0 0 0 7x8" },
    firing: [{ fate: "late" }],
  },
  {
    alert: "SvcTicksSkipped",
    series: { ...UP_SERIES, 'svc_ticks_total{fate="down"}': "9 9 9 9 9 9 9 0 4x7" },
    firing: [{ fate: "down" }],
  },
  { alert: "SvcTicksSkipped", series: { ...UP_SERIES, 'svc_ticks_total{fate="late"}': "7x15" }, firing: [] },
  { alert: "SvcTicksSkipped", series: { ...UP_SERIES, 'svc_ticks_total{fate="paused"}': "0x7 7x8" }, firing: [] },
  {
    alert: "SvcBrowsersLost",
    series: { ...UP_SERIES, 'svc_browser_losses_total{kind="browser"}': "0x7 3x8" },
    firing: [{}],
  },
  {
    alert: "SvcBrowsersLost",
    series: { ...UP_SERIES, 'svc_browser_losses_total{kind="browser"}': "0x7 1x8" },
    firing: [],
  },
  { alert: "SvcNoBrowser", series: { ...UP_SERIES, svc_browsers: "1x10 0x5" }, firing: [{}] },
  { alert: "SvcNoBrowser", series: { ...UP_SERIES, svc_browsers: "1x15" }, firing: [] },
  {
    alert: "SvcRefusals",
    series: { ...UP_SERIES, 'svc_refusals_total{status="OVERLOADED"}': "0x10 20x5" },
    firing: [{ status: "OVERLOADED" }],
  },
  { alert: "SvcRefusals", series: { ...UP_SERIES, 'svc_refusals_total{status="OVERLOADED"}': "0x10 5x5" }, firing: [] },
  {
    alert: "SvcRefusals",
    series: { ...UP_SERIES, 'svc_refusals_total{status="UNAUTHORIZED"}': "0x10 90x5" },
    firing: [],
  },
  {
    alert: "SvcConnectionsShort",
    series: { ...UP_SERIES, 'svc_database_connections{state="waiting"}': "21x15" },
    firing: [{}],
  },
  {
    alert: "SvcConnectionsShort",
    series: { ...UP_SERIES, 'svc_database_connections{state="busy"}': "21x15" },
    firing: [],
  },
  { alert: "SvcEventLoopLate", series: { ...UP_SERIES, nodejs_eventloop_lag_p99_seconds: "0.6x15" }, firing: [{}] },
  { alert: "SvcEventLoopLate", series: { ...UP_SERIES, nodejs_eventloop_lag_p99_seconds: "0.4x15" }, firing: [] },
  { alert: "SvcDatabaseDiskFull", series: { ...UP_SERIES, svc_database_disk_full: "0x10 1x5" }, firing: [{}] },
  { alert: "SvcDatabaseDiskFull", series: { ...UP_SERIES, svc_database_disk_full: "0x15" }, firing: [] },
  { alert: "SvcDataDirFull", series: { ...UP_SERIES, svc_data_dir_free_bytes: "1000x15" }, firing: [{}] },
  { alert: "SvcDataDirFull", series: { ...UP_SERIES, svc_data_dir_free_bytes: "2000000000x15" }, firing: [] },
  { alert: "SvcClockSkew", series: { ...UP_SERIES, svc_clock_skew_seconds: "90x15" }, firing: [{}] },
  { alert: "SvcClockSkew", series: { ...UP_SERIES, svc_clock_skew_seconds: "1.5x15" }, firing: [] },
];

describeIfInstalled("the alerting rules in promtool", () => {
  it("are valid rules, and fire for series as Prometheus scrapes them", async () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-rules-"));
    try {
      await run(PROMTOOL_PATH, ["check", "rules", RULES]);
      const { load } = await import("js-yaml");
      const { readFileSync } = await import("node:fs");
      const { groups } = load(readFileSync(RULES, "utf8")) as {
        groups: { rules: { alert: string; labels: Record<string, string>; annotations: Record<string, string> }[] }[];
      };
      const coveredBy = (fires: boolean) =>
        CASES.flatMap((alertCase) => (alertCase.firing.length > 0 === fires ? [alertCase.alert] : []));
      for (const fires of [true, false])
        expect([...new Set(coveredBy(fires))].sort()).to.deep.equal(groups[0]!.rules.map(({ alert }) => alert).sort());
      const severityOf = (alert: string) => groups[0]!.rules.find((rule) => rule.alert === alert)!.labels["severity"]!;
      const fileOptions = { rule_files: [RULES], evaluation_interval: "1m" };
      const tests = CASES.map(({ alert, series, firing }) => ({
        interval: "1m",
        input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
        promql_expr_test: [
          {
            expr: `count(ALERTS{alertname="${alert}", alertstate="firing"}) or vector(0)`,
            eval_time: "14m",
            exp_samples: [{ labels: "{}", value: firing.length }],
          },
          ...firing.map((labels) => ({
            expr: `ALERTS{${Object.entries({
              alertname: alert,
              alertstate: "firing",
              severity: severityOf(alert),
              ...labels,
            })
              .map(([name, value]) => `${name}="${value}"`)
              .join(", ")}}`,
            eval_time: "14m",
            exp_samples: [
              {
                labels: `ALERTS{${Object.entries({
                  alertname: alert,
                  alertstate: "firing",
                  severity: severityOf(alert),
                  ...labels,
                })
                  .map(([name, value]) => `${name}="${value}"`)
                  .join(", ")}}`,
                value: 1,
              },
            ],
          })),
        ],
      }));
      const file = join(folder, "rules-test.yaml");
      writeFileSync(file, dump({ ...fileOptions, tests }));
      const { stdout } = await run(PROMTOOL_PATH, ["test", "rules", file]);
      expect(stdout).to.contain("SUCCESS");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
