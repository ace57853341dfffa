/** The cost of a run by kind of code: processor time of Node, Chromium and PostgreSQL, and its statements, WAL and rows. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { pino } from "pino";
import { migrate } from "../../src/data/database.js";
import { startEmbeddedPostgres } from "../../src/engine/embedded-postgres.js";
import { firstCredentials } from "../../test/harness/service.js";
import { until } from "../../test/harness/until.js";
import { fire } from "../harness/autocannon.js";
import { type Callers, startCallers } from "../harness/callers.js";
import { startServer } from "../harness/child.js";
import { median, type Row } from "../harness/figure.js";
import { actionOf, KINDS, type Kind, LANGUAGE, PAYLOAD, runPath } from "../harness/kinds.js";
import { readProcessorTime } from "../harness/processor-time.js";
import { type BenchService, startBenchService } from "../harness/service.js";

export const title = "processor time, statements, WAL and rows of a run, 8 callers";

const CALLERS = 8;
const WARM_UP_MS = 1_500;
const RUN_MS = 4_000;
const IDLE_MS = 10_000;
const QUEUED = 400;
const QUEUE_LIMIT_MS = 120_000;
/** The line of the idle service. */
const IDLE = "idle, a second";
/** Sessions of PostgreSQL report their rows at most once a second. */
const REPORTED_MS = 1_500;

/** The columns of the page with the units of their rows. */
const UNITS = {
  Node: "ms",
  Chromium: "ms",
  PostgreSQL: "ms",
  statements: "",
  WAL: "bytes",
  "rows written": "",
} as const;
type Column = keyof typeof UNITS;
type Counters = Record<Column | "runs", number>;

/** All counters since the start of the server. */
const COUNTED = `
  SELECT (SELECT count(*) FROM run WHERE finished_at IS NOT NULL)::int AS runs,
         (SELECT sum(calls) FROM pg_stat_statements)::float AS statements,
         pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float AS "WAL",
         (SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables)::float AS "rows written"`;

interface Subject {
  service: BenchService;
  callers: Callers;
  postmaster: number;
  database: Client;
  url: string;
}

async function readCounters({ service, postmaster, database }: Subject): Promise<Counters> {
  await delay(REPORTED_MS);
  const { rows } = await database.query(COUNTED);
  return { ...rows[0], ...readProcessorTime(service.pid, postmaster) };
}

/** Resources used in a period. */
interface Spent {
  line: string;
  counters: Counters;
  seconds: number;
}

async function spentIn(subject: Subject, line: string, work: () => Promise<unknown>): Promise<Spent> {
  const begun = performance.now();
  const before = await readCounters(subject);
  await work();
  const after = await readCounters(subject);
  const counters = mapped(before, (value, column) => after[column] - value);
  return { line, counters, seconds: (performance.now() - begun) / 1_000 };
}

const mapped = (counters: Counters, of: (value: number, column: keyof Counters) => number): Counters =>
  Object.fromEntries(
    Object.entries(counters).map(([column, value]) => [column, of(value, column as keyof Counters)]),
  ) as Counters;

/** The cost of each run, including its share of the service's periodic work. */
function costsOf({ counters, line }: Spent): Counters {
  if (counters.runs === 0) throw new Error(`no run of ${line} has ended`);
  return mapped(counters, (value) => value / counters.runs);
}

const rowsOf = (line: string, rounds: readonly Counters[]): Row[] =>
  Object.entries(UNITS).map(([column, unit]) => ({
    name: `${line}, ${column}`,
    value: median(rounds.map((costs) => costs[column as Column])),
    unit,
    cell: { line, column },
  }));

async function measureKind(subject: Subject, kind: Kind, rounds: number): Promise<Spent[]> {
  const { service, callers, url } = subject;
  const { appId } = service.first;
  const path = `/v3/apps/${appId}/actions`;
  await service.call("POST", path, actionOf(kind));
  const calls = { service, paths: [runPath(appId, kind)], payload: { ...PAYLOAD, url }, result: kind.result };
  await callers.rate(calls, CALLERS, WARM_UP_MS);
  const found: Spent[] = [];
  const work = () => callers.rate(calls, CALLERS, RUN_MS);
  while (found.length < rounds) found.push(await spentIn(subject, kind.name, work));
  return found;
}

/** Number of queued runs meanwhile, as schedules and log events start them too. */
async function measureQueued(subject: Subject, rounds: number): Promise<Spent[]> {
  const { service, database } = subject;
  const { appId, tokens } = service.first;
  const url = `${service.url}/v3/apps/${appId}/actions/${LANGUAGE.name}/run`;
  const waiting = "SELECT count(*)::int AS count FROM run WHERE finished_at IS NULL";
  const work = async () => {
    await fire({ url, token: tokens.editor, callers: CALLERS, amount: QUEUED, body: PAYLOAD });
    await until(async () => (await database.query(waiting)).rows[0].count === 0, QUEUE_LIMIT_MS);
  };
  const found: Spent[] = [];
  while (found.length < rounds) found.push(await spentIn(subject, `${LANGUAGE.name}, queued`, work));
  return found;
}

async function measureAll(subject: Subject, rounds: number): Promise<Row[]> {
  const { service } = subject;
  for (const source of new Set(KINDS.flatMap(({ dataSource }) => dataSource ?? []))) {
    await service.call("POST", `/v1/apps/${service.first.appId}/data-sources`, source);
  }
  const found: Spent[] = [];
  for (const kind of KINDS) found.push(...(await measureKind(subject, kind, rounds)));
  found.push(...(await measureQueued(subject, rounds)));
  const { counters, seconds } = await spentIn(subject, IDLE, () => delay(IDLE_MS));
  const idleSecond = mapped(counters, (value) => value / seconds);
  const lines = Map.groupBy(found, ({ line }) => line);
  const rows = [...lines].map(([line, of]) => rowsOf(line, of.map(costsOf)));
  return [...rows.flat(), ...rowsOf(IDLE, [idleSecond])];
}

export async function run(rounds: number): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-capacity-"));
  // Without a checkpoint: the number of full pages in the WAL depends on the time since the last one.
  const quiet = { checkpoint_timeout: "1h", max_wal_size: "16GB" };
  const settings = { shared_preload_libraries: "pg_stat_statements", ...quiet };
  const log = pino({ level: "silent" });
  const postgres = await startEmbeddedPostgres({ dataDir: join(folder, "database"), log, settings });
  const database = new Client({ connectionString: postgres.url });
  await database.connect();
  try {
    await migrate(postgres.url);
    await database.query("CREATE EXTENSION pg_stat_statements");
    const dataDir = join(folder, "service");
    mkdirSync(dataDir);
    await firstCredentials(postgres.url, dataDir);
    const environment = { DATABASE_URL: postgres.url, DATA_DIR: dataDir, ALLOW_PRIVATE_NETWORK: "1" };
    const postmaster = Number(readFileSync(join(folder, "database/postgres/postmaster.pid"), "utf8").split("\n")[0]);
    const service = await startBenchService(environment);
    const host = await startServer("local-host.js");
    const callers = startCallers();
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
