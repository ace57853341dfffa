/**
 * Executes a chaos test: instances on one database execute schedules and answer requests, while the test kills instances and makes the
 * database unavailable. Returns the state of the runs afterwards.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Db, migrateDatabase, openDatabase } from "../../src/data/database.js";
import { computeNextTicks } from "../../src/rules/schedule.js";
import { type AlertHook, createFailureRules } from "./alert-hook.js";
import { CALLED_ACTIONS, createRequests, createResponseCounts, type ResponseCounts } from "./callers.js";
import { createFastClock } from "./fast-clock.js";
import { type ServiceFleet, startFleet } from "./fleet.js";
import { type DatabaseLoss, startRestartablePostgres } from "./gateway.js";
import { insertPublishedActions } from "./published-actions.js";
import { createFirstCredentials } from "./service.js";
import { type FaultPace, type FleetObservations, FREQUENT_FAULTS, injectFaults, sendRequestsUntil } from "./unrest.js";
import { until } from "./until.js";

/** Frequency of the schedules: each minute of an hour except the last, because the service rejects a schedule for every minute. */
export const SCHEDULE_FREQUENCY = "0-58 * * * *";
/** Number of actions whose failures the alert rules report: CALLED_ACTIONS and the last schedules. */
const ALERTED_ACTIONS = 5;
const SETTLE_LIMIT_MS = 120_000;
const RECOVERY_LIMIT_MS = 30_000;

export interface ChaosOptions {
  /** One entry for each instance: its roles. */
  roles: readonly string[];
  schedules: number;
  callers: number;
  /** Speed of the schedules' clock, as a multiple of real time. At 60, each schedule is due about once per second of real time. */
  rate: number;
  /** Number of kills of instances, and of browsers if `pace` includes them. */
  kills: number;
  pace?: FaultPace;
  /** Webhook that receives alerts about failed runs. Without it, the test creates no alert rules. */
  hook?: AlertHook;
  /** Ways to lose the database, in order. The test restores the database after each loss. */
  losses: readonly DatabaseLoss[];
}

export interface ChaosOutcome extends FleetObservations {
  /** Number of due ticks of all schedules. */
  expected: number;
  /** Due ticks that no row in `run` has, as `<action ID> <tick>`. */
  missing: string[];
  /** Number of ticks in `run` that are repeated, plus number of those that were not due. */
  surplus: number;
  /** Number of scheduled runs by their reason, or by their state if they have no reason. */
  runCountsByState: Record<string, number>;
  /** Number of runs, except skipped ones, that do not have exactly one log entry. */
  unlogged: number;
  /** IDs of acknowledged runs that have no row in `run`. */
  unknownRuns: number[];
  answers: ResponseCounts["counts"];
  /** Faults of the alerts about failed runs, one for each faulty rule. */
  alertDifferences: string[];
  /** Number of killed instances. */
  kills: number;
  /** Exit code or signal, and standard error, of each ready instance that ended without SIGKILL. */
  crashes: string[];
  /** Stack of each unexpected error in the instances' logs, from requests and from operations on actions. */
  faults: string[];
  /** Milliseconds from the restart of the database after all faults until a scheduled run completes that was created after the restart. */
  recoveryMs: number;
}

/** Returns the milliseconds until a scheduled run that was created after this call has completed. */
async function measureRecovery(db: Db): Promise<number> {
  const startedAt = performance.now();
  const newest = (where: string) => async () =>
    ((await db.query(`SELECT max(id) AS id FROM run WHERE ${where}`).catch(() => [{}]))[0].id as number) ?? 0;
  const before = await until(newest("true"), RECOVERY_LIMIT_MS);
  const completed = newest("tick IS NOT NULL AND state = 'completed'");
  await until(async () => (await completed()) > before, RECOVERY_LIMIT_MS);
  return performance.now() - startedAt;
}

interface RunRow {
  actionId: number;
  tick: Date;
  tickCount: number;
  state: string;
  reason: string | null;
}

const keyOf = (actionId: number, tick: Date) => `${actionId} ${tick.toISOString()}`;

/** Returns the due times of a scheduled run. One run can cover several consecutive due times of its schedule. */
function ticksOf({ actionId, tick, tickCount }: RunRow): string[] {
  const more = tickCount > 1 ? computeNextTicks(SCHEDULE_FREQUENCY, "UTC", tick, tickCount - 1) : [];
  return [tick, ...more].map((time) => keyOf(actionId, time));
}

/** Compares the ticks of the scheduled runs with the due ticks of the schedules between `from` and `to`. */
export async function checkTicks(db: Db, actionIds: number[], from: Date, to: Date) {
  const scheduledRuns = (
    await db.query(
      `SELECT action_id AS "actionId", tick, tick_count AS "tickCount", state, reason FROM run WHERE tick IS NOT NULL`,
    )
  ).filter(({ tick }: RunRow) => tick <= to) as RunRow[];
  const minutes = Math.ceil((to.getTime() - from.getTime()) / 60_000) + 1;
  const ticks = computeNextTicks(SCHEDULE_FREQUENCY, "UTC", from, minutes).filter((tick) => tick <= to);
  const expected = new Set(actionIds.flatMap((id) => ticks.map((tick) => keyOf(id, tick))));
  const received = scheduledRuns.flatMap(ticksOf);
  const seen = new Set(received);
  const runCountsByState: Record<string, number> = {};
  for (const { state, reason } of scheduledRuns)
    runCountsByState[reason ?? state] = (runCountsByState[reason ?? state] ?? 0) + 1;
  return {
    expected: expected.size,
    missing: [...expected].filter((key) => !seen.has(key)),
    surplus: received.length - seen.size + [...seen].filter((key) => !expected.has(key)).length,
    runCountsByState,
  };
}

/** Waits until all due ticks are claimed, deletes the schedules, and waits until all runs end. Returns the time `now` at the call. */
export async function waitUntilSettled(db: Db, now: () => number): Promise<Date> {
  const to = new Date(now());
  const claimed = async () => (await db.query("SELECT min(next_tick) > $1 AS claimed FROM schedule", [to]))[0].claimed;
  await until(claimed, SETTLE_LIMIT_MS);
  await db.query("DELETE FROM schedule");
  const ended = async () => (await db.query("SELECT 1 FROM run WHERE finished_at IS NULL LIMIT 1")).length === 0;
  await until(ended, SETTLE_LIMIT_MS);
  return to;
}

export async function findRunFaults(db: Db, { acknowledged }: ResponseCounts) {
  const [{ unlogged }] = await db.query(
    `SELECT count(*) AS unlogged FROM run WHERE state <> 'skipped'
        AND (SELECT count(*) FROM execution_log WHERE run_id = run.id) <> 1`,
  );
  const known = new Set((await db.query("SELECT id FROM run")).map(({ id }: { id: number }) => id));
  return { unlogged, unknownRuns: acknowledged.filter((id) => !known.has(id)) };
}

/** Returns a function that starts the callers and resolves when all have stopped. While no API instance is ready, their requests fail. */
function createFleetCallers(
  fleet: ServiceFleet,
  callers: number,
  target: { appId: number; token: string },
  answers: ResponseCounts,
) {
  return (over: () => boolean) =>
    Promise.all(
      Array.from({ length: callers }, (_, at) => {
        const url = () => {
          const urls = fleet.urls();
          return urls[at % urls.length] ?? "http://127.0.0.1:9";
        };
        const { runs, others } = createRequests({ ...target, url }, answers);
        return sendRequestsUntil([...runs, ...others], answers, over);
      }),
    );
}

export async function runChaos(options: ChaosOptions): Promise<ChaosOutcome> {
  const postgres = await startRestartablePostgres();
  await migrateDatabase(postgres.url);
  const dataDir = mkdtempSync(join(tmpdir(), "svc-chaos-"));
  const { appId, tokens } = await createFirstCredentials(postgres.url, dataDir);
  const db = await openDatabase(postgres.url, 4);
  const startedAt = Date.now();
  const clock = createFastClock(startedAt, options.rate);
  const environment: Record<string, string> = options.hook ? { ALLOW_PRIVATE_NETWORK: "1" } : {};
  const fleet = await startFleet({ ...options, environment, databaseUrl: postgres.url, startTime: startedAt });
  try {
    const from = new Date(clock.now());
    const scheduledActions = Array.from({ length: options.schedules }, (_, at) => ({
      name: `every-second-${at}`,
      triggers: [{ trigger: "schedule" as const }],
      frequency: SCHEDULE_FREQUENCY,
    }));
    const liveVersions = await insertPublishedActions(db, appId, [...scheduledActions, ...CALLED_ACTIONS], () =>
      from.getTime(),
    );
    const answers = createResponseCounts();
    const work = createFleetCallers(fleet, options.callers, { appId, token: tokens.editor }, answers);
    const service = { url: fleet.urls()[0]!, appId, token: tokens.editor };
    const alertReports =
      options.hook && (await createFailureRules(options.hook, service, liveVersions.slice(-ALERTED_ACTIONS)));
    const seen = await injectFaults({ pace: FREQUENT_FAULTS, ...options, postgres, fleet, db, work });
    await fleet.ready();
    await postgres.restart();
    const recoveryMs = await measureRecovery(db);
    const to = await waitUntilSettled(db, clock.now);
    const ids = liveVersions.slice(0, scheduledActions.length).map(({ id }) => id);
    const alertDifferences = (await alertReports?.faults(db)) ?? [];
    const verdict = { ...(await checkTicks(db, ids, from, to)), ...(await findRunFaults(db, answers)) };
    const { counts } = answers;
    const disturbances = { alertDifferences, kills: fleet.kills(), crashes: fleet.crashes(), faults: fleet.faults() };
    return { ...verdict, ...seen, ...disturbances, answers: counts, recoveryMs };
  } finally {
    await fleet.stop();
    await db.destroy();
    await postgres.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}
