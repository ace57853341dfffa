/** Several instances on one database, killed at random while schedules fire each second: what the ledger says afterwards. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { DataSource } from "typeorm";
import { migrate, openDatabase } from "../../src/data/database.js";
import { nextRuns } from "../../src/rules/schedule.js";
import { fastClock } from "./fast-clock.js";
import { type RestartablePostgres, startRestartablePostgres } from "./gateway.js";
import { type ServiceProcess, startProcess } from "./process.js";
import { publishDirectly } from "./production-copies.js";
import { firstCredentials } from "./service.js";
import { until } from "./until.js";

const ENTRY = fileURLToPath(new URL("./instance-process.js", import.meta.url));
/** A minute of the schedules' clock is a second. */
const RATE = 60;
/** Each minute but one: the specification has nothing more frequent. */
const FREQUENCY = "0-58 * * * *";
const SETTLE_LIMIT_MS = 120_000;

export interface ChaosOptions {
  instances: number;
  schedules: number;
  seconds: number;
  /** Restarts of PostgreSQL, spread over the time. */
  restarts: number;
}

export interface ChaosOutcome {
  /** Ticks that should be there, of all schedules. */
  expected: number;
  /** `action tick` of those that no row accounts for. */
  missing: string[];
  /** Rows that account for no expected tick. */
  surplus: number;
  /** How many rows are in each state, skipped ones by reason. */
  fates: Record<string, number>;
  /** Runs that started and have not exactly one log entry. */
  unlogged: number;
  kills: number;
  /** Instances that ended by themselves once they were up. */
  crashes: number;
  /** From a last restart of the database, with every instance up, to the next claimed tick. */
  recoveryMs: number;
}

interface Fleet {
  killOne(): void;
  /** Resolves when every instance is up. */
  ready(): Promise<unknown>;
  stop(): Promise<void>;
  kills(): number;
  /** Instances that ended by themselves once they were up. */
  crashes(): number;
}

async function startFleet(size: number, databaseUrl: string, began: number): Promise<Fleet> {
  const settingsKey = randomBytes(32).toString("base64");
  const environment = {
    DATABASE_URL: databaseUrl,
    SETTINGS_KEY: settingsKey,
    RUNNER_CONCURRENCY: "2",
    LOG_LEVEL: "info",
  };
  const living: ServiceProcess[] = [];
  const leftovers: Promise<void>[] = [];
  let kills = 0;
  let crashes = 0;
  let stopping = false;

  /** As a supervisor does it: what ends is started again. Ending while it starts, when the database goes away, is its right. */
  function launch(at: number): void {
    const instance = startProcess(environment, [ENTRY, String(began), String(RATE)]);
    living[at] = instance;
    void instance.ended.then(({ signal }) => {
      if (stopping) return;
      if (signal !== "SIGKILL" && instance.log.some(({ msg }) => msg === "ready")) crashes += 1;
      leftovers.push(instance.clean());
      launch(at);
    });
  }

  const isUp = ({ log }: ServiceProcess) => log.some(({ msg }) => msg === "ready");
  const ready = () => until(() => living.every(isUp), SETTLE_LIMIT_MS);
  for (let at = 0; at < size; at += 1) launch(at);
  await ready();
  return {
    kills: () => kills,
    crashes: () => crashes,
    ready,
    killOne() {
      kills += 1;
      living[Math.floor(Math.random() * size)]!.signal("SIGKILL");
    },
    async stop() {
      stopping = true;
      for (const instance of living) instance.signal("SIGTERM");
      await Promise.all(living.map(({ ended }) => ended));
      await Promise.all([...leftovers, ...living.map((instance) => instance.clean())]);
    },
  };
}

/** Waits until a tick is claimed by a database that has come back; answers how long that took. */
async function recovery(db: DataSource): Promise<number> {
  const begun = performance.now();
  const newest = async () => (await db.query("SELECT max(id) AS id FROM run").catch(() => [{}]))[0].id as number;
  const before = (await until(newest, 30_000)) as number;
  await until(async () => ((await newest()) ?? 0) > before, 30_000);
  return performance.now() - begun;
}

/** Kills one instance each second, and restarts PostgreSQL between. */
async function unrest(postgres: RestartablePostgres, fleet: Fleet, { seconds, restarts }: ChaosOptions): Promise<void> {
  const killing = (async () => {
    for (let second = 0; second < seconds; second += 1) {
      await delay(1_000);
      fleet.killOne();
    }
  })();
  for (let count = 0; count < restarts; count += 1) {
    await delay((seconds * 1_000) / (restarts + 1));
    await postgres.restart();
  }
  await killing;
}

interface LedgerRow {
  actionId: number;
  tick: Date;
  tickCount: number;
  state: string;
  reason: string | null;
}

const keyOf = (actionId: number, tick: Date) => `${actionId} ${tick.toISOString()}`;

/** Every tick that a row stands for. */
function ticksOf({ actionId, tick, tickCount }: LedgerRow): string[] {
  const more = tickCount > 1 ? nextRuns(FREQUENCY, "UTC", tick, tickCount - 1) : [];
  return [tick, ...more].map((one) => keyOf(actionId, one));
}

async function judge(db: DataSource, actionIds: number[], from: Date, to: Date) {
  const found = (
    await db.query(
      `SELECT action_id AS "actionId", tick, tick_count AS "tickCount", state, reason FROM run WHERE tick IS NOT NULL`,
    )
  ).filter(({ tick }: LedgerRow) => tick <= to) as LedgerRow[];
  const minutes = Math.ceil((to.getTime() - from.getTime()) / 60_000) + 1;
  const ticks = nextRuns(FREQUENCY, "UTC", from, minutes).filter((tick) => tick <= to);
  const expected = new Set(actionIds.flatMap((id) => ticks.map((tick) => keyOf(id, tick))));
  const told = found.flatMap(ticksOf);
  const seen = new Set(told);
  const fates: Record<string, number> = {};
  for (const { state, reason } of found) fates[reason ?? state] = (fates[reason ?? state] ?? 0) + 1;
  return {
    expected: expected.size,
    missing: [...expected].filter((key) => !seen.has(key)),
    surplus: told.length - seen.size + [...seen].filter((key) => !expected.has(key)).length,
    fates,
  };
}

export async function chaos(options: ChaosOptions): Promise<ChaosOutcome> {
  const postgres = await startRestartablePostgres();
  await migrate(postgres.url);
  const dataDir = mkdtempSync(join(tmpdir(), "svc-chaos-"));
  const { appId } = await firstCredentials(postgres.url, dataDir);
  const db = await openDatabase(postgres.url, 4);
  const began = Date.now();
  const clock = fastClock(began, RATE);
  const fleet = await startFleet(options.instances, postgres.url, began);
  const from = new Date(clock.now());
  const wanted = Array.from({ length: options.schedules }, (_, at) => ({
    name: `every-second-${at}`,
    triggers: [{ trigger: "schedule" }],
    frequency: FREQUENCY,
  }));
  const actions = await publishDirectly(db, appId, wanted, () => from.getTime());
  await unrest(postgres, fleet, options);
  await fleet.ready();
  await postgres.restart();
  const recoveryMs = await recovery(db);
  const to = new Date(clock.now());
  const settled = async () => {
    const [row] = await db.query("SELECT min(next_tick) > $1 AS claimed FROM schedule", [to]);
    return row.claimed as boolean;
  };
  await until(settled, SETTLE_LIMIT_MS);
  // No more runs are begun: what has begun comes to its end.
  await db.query("DELETE FROM schedule");
  const ended = async () => (await db.query("SELECT 1 FROM run WHERE finished_at IS NULL LIMIT 1")).length === 0;
  await until(ended, SETTLE_LIMIT_MS);
  const verdict = await judge(
    db,
    actions.map(({ id }) => id),
    from,
    to,
  );
  const [{ unlogged }] = await db.query(
    `SELECT count(*) AS unlogged FROM run WHERE state <> 'skipped'
        AND (SELECT count(*) FROM execution_log WHERE run_id = run.id) <> 1`,
  );
  await fleet.stop();
  await db.destroy();
  await postgres.stop();
  rmSync(dataDir, { recursive: true, force: true });
  return { ...verdict, unlogged, kills: fleet.kills(), crashes: fleet.crashes(), recoveryMs };
}
