/**
 * Measures what one run of each kind of code costs: processor time of Node, Chromium and PostgreSQL, SQL statements, WAL bytes and written
 * rows.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { pino } from "pino";
import { migrateDatabase } from "../../src/data/database.js";
import { startEmbeddedPostgres } from "../../src/engine/embedded-postgres.js";
import { createFirstCredentials } from "../../test/harness/service.js";
import { until } from "../../test/harness/until.js";
import { measureRequestRate } from "../harness/autocannon.js";
import { type LoadGenerator, startLoadGenerator } from "../harness/callers.js";
import { startChildServer } from "../harness/child.js";
import { computeMedian, type FigureRow } from "../harness/figure.js";
import {
  ACTION_KINDS,
  type ActionKind,
  createActionBody,
  getRunWithResultPath,
  PLAIN_JAVASCRIPT_KIND,
  RUN_PAYLOAD,
} from "../harness/kinds.js";
import { readProcessorTime } from "../harness/processor-time.js";
import { type BenchService, startBenchService } from "../harness/service.js";

export const title = "processor time, statements, WAL and rows of a run, 8 callers";

const CALLER_COUNT = 8;
const WARM_UP_MS = 1_500;
const MEASURED_MS = 4_000;
const IDLE_MS = 10_000;
const QUEUED_RUNS = 400;
const QUEUE_LIMIT_MS = 120_000;
/** Name of the table row with the costs of an idle service for one second. */
const IDLE_LINE = "idle, a second";
/** Delay before the counters are read, because a PostgreSQL session reports its row counts at most once a second. */
const STATISTICS_DELAY_MS = 1_500;

/** Columns of docs/operate/capacity.md, each with the unit of its values. */
const COLUMN_UNITS = {
  Node: "ms",
  Chromium: "ms",
  PostgreSQL: "ms",
  statements: "",
  WAL: "bytes",
  "rows written": "",
} as const;
type Column = keyof typeof COLUMN_UNITS;
type Counters = Record<Column | "runs", number>;

/** SQL that reads all counters. Their values only grow, so the difference of two readings is the usage between them. */
const SELECT_COUNTERS = `
  SELECT (SELECT count(*) FROM run WHERE finished_at IS NOT NULL)::int AS runs,
         (SELECT sum(calls) FROM pg_stat_statements)::float AS statements,
         pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float AS "WAL",
         (SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables)::float AS "rows written"`;

interface MeasuredSystem {
  service: BenchService;
  callers: LoadGenerator;
  postmaster: number;
  database: Client;
  url: string;
}

async function readCounters({ service, postmaster, database }: MeasuredSystem): Promise<Counters> {
  await delay(STATISTICS_DELAY_MS);
  const { rows } = await database.query(SELECT_COUNTERS);
  return { ...rows[0], ...readProcessorTime(service.pid, postmaster) };
}

interface PeriodUsage {
  line: string;
  counters: Counters;
  seconds: number;
}

async function measureUsage(subject: MeasuredSystem, line: string, work: () => Promise<unknown>): Promise<PeriodUsage> {
  const startedAt = performance.now();
  const before = await readCounters(subject);
  await work();
  const after = await readCounters(subject);
  const counters = mapCounters(before, (value, column) => after[column] - value);
  return { line, counters, seconds: (performance.now() - startedAt) / 1_000 };
}

const mapCounters = (counters: Counters, convert: (value: number, column: keyof Counters) => number): Counters =>
  Object.fromEntries(
    Object.entries(counters).map(([column, value]) => [column, convert(value, column as keyof Counters)]),
  ) as Counters;

/** Returns the resources used per run. They include a share of the service's periodic work. */
function computeCostsPerRun({ counters, line }: PeriodUsage): Counters {
  if (counters.runs === 0) throw new Error(`no run of ${line} has finished`);
  return mapCounters(counters, (value) => value / counters.runs);
}

const createFigureRows = (line: string, rounds: readonly Counters[]): FigureRow[] =>
  Object.entries(COLUMN_UNITS).map(([column, unit]) => ({
    name: `${line}, ${column}`,
    value: computeMedian(rounds.map((costs) => costs[column as Column])),
    unit,
    cell: { line, column },
  }));

async function measureKind(subject: MeasuredSystem, kind: ActionKind, rounds: number): Promise<PeriodUsage[]> {
  const { service, callers, url } = subject;
  const { appId } = service.first;
  const path = `/v3/apps/${appId}/actions`;
  await service.call("POST", path, createActionBody(kind, url));
  const calls = {
    service,
    paths: [getRunWithResultPath(appId, kind)],
    payload: { ...RUN_PAYLOAD, url },
    result: kind.result,
  };
  await callers.measureRate(calls, CALLER_COUNT, WARM_UP_MS);
  const usages: PeriodUsage[] = [];
  const work = () => callers.measureRate(calls, CALLER_COUNT, MEASURED_MS);
  while (usages.length < rounds) usages.push(await measureUsage(subject, kind.name, work));
  return usages;
}

/** Measures runs that start from the queue, as schedules and log events start them. */
async function measureQueued(subject: MeasuredSystem, rounds: number): Promise<PeriodUsage[]> {
  const { service, database } = subject;
  const { appId, tokens } = service.first;
  const url = `${service.url}/v3/apps/${appId}/actions/${PLAIN_JAVASCRIPT_KIND.name}/run`;
  const countUnfinishedRuns = "SELECT count(*)::int AS count FROM run WHERE finished_at IS NULL";
  const work = async () => {
    await measureRequestRate({
      url,
      token: tokens.editor,
      callers: CALLER_COUNT,
      amount: QUEUED_RUNS,
      body: RUN_PAYLOAD,
    });
    await until(async () => (await database.query(countUnfinishedRuns)).rows[0].count === 0, QUEUE_LIMIT_MS);
  };
  const usages: PeriodUsage[] = [];
  while (usages.length < rounds)
    usages.push(await measureUsage(subject, `${PLAIN_JAVASCRIPT_KIND.name}, queued`, work));
  return usages;
}

async function measureAll(subject: MeasuredSystem, rounds: number): Promise<FigureRow[]> {
  const { service } = subject;
  for (const source of new Set(ACTION_KINDS.flatMap(({ dataSource }) => dataSource ?? []))) {
    await service.call("POST", `/v1/apps/${service.first.appId}/data-sources`, source);
  }
  const usages: PeriodUsage[] = [];
  for (const kind of ACTION_KINDS) usages.push(...(await measureKind(subject, kind, rounds)));
  usages.push(...(await measureQueued(subject, rounds)));
  const { counters, seconds } = await measureUsage(subject, IDLE_LINE, () => delay(IDLE_MS));
  const idleSecond = mapCounters(counters, (value) => value / seconds);
  const lines = Map.groupBy(usages, ({ line }) => line);
  const rows = [...lines].map(([line, of]) => createFigureRows(line, of.map(computeCostsPerRun)));
  return [...rows.flat(), ...createFigureRows(IDLE_LINE, [idleSecond])];
}

export async function run(rounds: number): Promise<FigureRow[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-capacity-"));
  // Checkpoints are off. After each checkpoint, PostgreSQL writes whole pages to the WAL, which would change the measured WAL bytes.
  const withoutCheckpoints = { checkpoint_timeout: "1h", max_wal_size: "16GB" };
  const settings = { shared_preload_libraries: "pg_stat_statements", ...withoutCheckpoints };
  const log = pino({ level: "silent" });
  const postgres = await startEmbeddedPostgres({ dataDir: join(folder, "database"), log, settings });
  const database = new Client({ connectionString: postgres.url });
  await database.connect();
  try {
    await migrateDatabase(postgres.url);
    await database.query("CREATE EXTENSION pg_stat_statements");
    const dataDir = join(folder, "service");
    mkdirSync(dataDir);
    await createFirstCredentials(postgres.url, dataDir);
    const environment = { DATABASE_URL: postgres.url, DATA_DIR: dataDir, ALLOW_PRIVATE_NETWORK: "1" };
    const postmaster = Number(readFileSync(join(folder, "database/postgres/postmaster.pid"), "utf8").split("\n")[0]);
    const service = await startBenchService(environment);
    const host = await startChildServer("local-host.js");
    const callers = startLoadGenerator();
    try {
      const subject = { service, callers, postmaster, database, url: host.url };
      return await measureAll(subject, rounds);
    } finally {
      callers.stop();
      host.child.kill();
      await service.stop();
    }
  } finally {
    await database.end();
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
