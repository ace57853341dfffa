import { expect } from "chai";
import {
  type AlertCheckInput,
  type AlertRuleState,
  computeAlertStateAfterCheck,
  computeAlertStateAfterRun,
  type EndedRun,
  NEW_ALERT_STATE,
} from "../../src/rules/alert-conditions.js";

const NOON = new Date("2026-11-21T12:00:00Z");
const minutesOn = (minutes: number) => new Date(NOON.getTime() + minutes * 60_000);
const PRESENT_MOMENT: AlertCheckInput = { now: NOON, countedSince: NOON, isTickOverdue: false, oldestQueuedMs: 0 };
const RULE = { condition: "failed", failures: 1, of: 1, minutes: 60 } as const;

let ids = 0;
const run = (state: EndedRun["state"], more: Partial<EndedRun> = {}): EndedRun => {
  ids += 1;
  return { id: ids, actionId: 1, state, scheduled: false, reason: null, finishedAt: NOON, ...more };
};

/** Applies an alert rule to runs (c: completed, f: failed). Returns ! for each run after which the alert fires, otherwise a dot. */
function findFirings(rule: Parameters<typeof computeAlertStateAfterRun>[0], outcomes: string): string {
  let standing: AlertRuleState = NEW_ALERT_STATE;
  return [...outcomes]
    .map((outcome) => {
      standing = computeAlertStateAfterRun(rule, standing, run(outcome === "c" ? "completed" : "failed"));
      return standing.firing ? "!" : ".";
    })
    .join("");
}

describe("an alert on failed runs", () => {
  it("fires with the first failure and recovers with the next success", () => {
    expect(findFirings(RULE, "ccffcf")).to.equal("..!!.!");
  });

  it("fires if enough of the last runs failed", () => {
    expect(findFirings({ ...RULE, failures: 2, of: 3 }, "fccffcc")).to.equal("....!!.");
    expect(findFirings({ ...RULE, failures: 3, of: 3 }, "ffcfff")).to.equal(".....!");
  });

  it("names the run that made it fire, and how many failed", () => {
    const rule = { ...RULE, failures: 2, of: 4 };
    const runs = [run("failed"), run("completed"), run("failed"), run("failed")];
    const end = runs.reduce((standing, ended) => computeAlertStateAfterRun(rule, standing, ended), NEW_ALERT_STATE);
    expect(end).to.include({ firing: true, runId: runs[2]!.id, reason: "it failed 2 times in its last 3 runs" });
  });

  it("has the number of failures in its reason if it looks at more than the last run", () => {
    expect(computeAlertStateAfterRun(RULE, NEW_ALERT_STATE, run("failed")).reason).to.equal("it failed");
    const both = { ...RULE, failures: 2, of: 2 };
    const fired = computeAlertStateAfterRun(
      both,
      computeAlertStateAfterRun(both, NEW_ALERT_STATE, run("failed")),
      run("failed"),
    );
    expect(fired.reason).to.equal("it failed 2 times in its last 2 runs");
  });

  it("does not count a skipped tick as a failure", () => {
    expect(
      computeAlertStateAfterRun(RULE, NEW_ALERT_STATE, run("skipped", { scheduled: true, reason: "still running" })),
    ).to.equal(NEW_ALERT_STATE);
  });
});

describe("an alert on silence", () => {
  const silentRule = { ...RULE, condition: "silent" } as const;

  it("fires if no run has succeeded for some time, and recovers with a success", () => {
    expect(
      computeAlertStateAfterCheck(silentRule, NEW_ALERT_STATE, { ...PRESENT_MOMENT, now: minutesOn(59) }).firing,
    ).to.equal(false);
    const fired = computeAlertStateAfterCheck(silentRule, NEW_ALERT_STATE, { ...PRESENT_MOMENT, now: minutesOn(60) });
    expect(fired).to.include({ firing: true, reason: "it has not succeeded for 60 minutes" });
    expect(computeAlertStateAfterRun(silentRule, fired, run("failed")).firing).to.equal(true);
    const recovered = computeAlertStateAfterRun(silentRule, fired, run("completed", { finishedAt: minutesOn(61) }));
    expect(
      computeAlertStateAfterCheck(silentRule, recovered, { ...PRESENT_MOMENT, now: minutesOn(120) }).firing,
    ).to.equal(false);
    expect(
      computeAlertStateAfterCheck(silentRule, recovered, { ...PRESENT_MOMENT, now: minutesOn(121) }).firing,
    ).to.equal(true);
  });

  it("fires at once for a schedule that no scheduler claims, and recovers when one does", () => {
    const fired = computeAlertStateAfterCheck(silentRule, NEW_ALERT_STATE, { ...PRESENT_MOMENT, isTickOverdue: true });
    expect(fired.reason).to.contain("its schedule does not run");
    expect(computeAlertStateAfterCheck(silentRule, fired, PRESENT_MOMENT).firing).to.equal(false);
  });
});

describe("an alert on skipped ticks", () => {
  const skipped = { ...RULE, condition: "skipped" } as const;

  it("fires for a tick that is skipped or not claimed, and recovers with the next that runs", () => {
    const fired = computeAlertStateAfterRun(
      skipped,
      NEW_ALERT_STATE,
      run("skipped", { scheduled: true, reason: "still running" }),
    );
    expect(fired.reason).to.equal("a tick was skipped: still running");
    expect(computeAlertStateAfterCheck(skipped, fired, PRESENT_MOMENT).firing).to.equal(true);
    expect(computeAlertStateAfterRun(skipped, fired, run("completed")).firing).to.equal(true);
    expect(computeAlertStateAfterRun(skipped, fired, run("failed", { scheduled: true })).firing).to.equal(false);
    const overdue = computeAlertStateAfterCheck(skipped, NEW_ALERT_STATE, { ...PRESENT_MOMENT, isTickOverdue: true });
    expect(overdue.firing).to.equal(true);
    expect(computeAlertStateAfterCheck(skipped, overdue, PRESENT_MOMENT).firing).to.equal(false);
  });
});

describe("an alert on the queue", () => {
  it("fires while the oldest run has waited too long", () => {
    const queued = { ...RULE, condition: "queued", minutes: 5 } as const;
    const fired = computeAlertStateAfterCheck(queued, NEW_ALERT_STATE, { ...PRESENT_MOMENT, oldestQueuedMs: 300_000 });
    expect(fired).to.include({ firing: true, reason: "runs have waited for 5 minutes" });
    expect(computeAlertStateAfterCheck(queued, fired, { ...PRESENT_MOMENT, oldestQueuedMs: 299_999 }).firing).to.equal(
      false,
    );
  });
});
