/**
 * Makes the database unavailable while runs are in progress. Each run sends one request to an HTTP server, called the witness, which counts
 * the requests of each run. Returns the runs that were executed twice or never, and those that did not complete.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Db, migrateDatabase, openDatabase } from "../../src/data/database.js";
import { type ServiceFleet, startFleet } from "./fleet.js";
import { type DatabaseLoss, type RestartablePostgres, startRestartablePostgres } from "./gateway.js";
import { insertPublishedActions } from "./published-actions.js";
import { createFirstCredentials } from "./service.js";
import { until } from "./until.js";

export const TWO_OF_EACH_ROLE = ["api", "api", "scheduler", "scheduler", "runner", "runner"];

const ANSWER_LIMIT_MS = 90_000;
/** Maximum time in milliseconds until all runs have started before an outage, and until all callers have results after it. */
const CASE_LIMIT_MS = 180_000;
const RETRY_MS = 300;

const CODE = `async function execute({ payload: { witness, key, ms } }) {
  await fetch(witness + key, { method: "POST" });
  await new Promise((resolve) => setTimeout(resolve, ms));
  return key;
}`;

/** Selects the runs of one outage that did not complete. */
const SELECT_INCOMPLETE_RUNS = `
  SELECT run.id, state, run.payload->>'key' AS key, execution_log.data->'error'->>'name' AS error
    FROM run LEFT JOIN execution_log ON execution_log.run_id = run.id
   WHERE state <> 'completed' AND payload->>'key' LIKE $1`;

export interface DatabaseOutage {
  loss: DatabaseLoss;
  /** Duration of the outage in milliseconds. */
  awayMs: number;
  /** Durations of the runs that are in progress when the outage starts, in milliseconds. */
  runDurationsMs: readonly number[];
  /** Times at which further runs start, in milliseconds after the database's return. */
  after: readonly number[];
}

export interface OutageVerdict {
  runs: number;
  /** Keys that the witness received more than once. */
  doubled: string[];
  /** Keys that the witness never received, or whose caller never got the result. */
  missing: string[];
  /** Runs that did not complete, as `<key>: <state> <name of the error>`. */
  ended: string[];
}

async function startWitness() {
  const requestCounts = new Map<string, number>();
  const server = createServer((request, response) => {
    const key = request.url!.slice(1);
    if (request.method === "POST") requestCounts.set(key, (requestCounts.get(key) ?? 0) + 1);
    response.writeHead(204, { "access-control-allow-origin": "*", "access-control-allow-methods": "*" }).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { url, requestCounts, stop: () => new Promise((resolve) => server.close(resolve).closeAllConnections()) };
}

export async function startOutages(roles: readonly string[]) {
  const postgres: RestartablePostgres = await startRestartablePostgres();
  await migrateDatabase(postgres.url);
  const dataDir = mkdtempSync(join(tmpdir(), "svc-outages-"));
  const { appId, tokens } = await createFirstCredentials(postgres.url, dataDir);
  const db: Db = await openDatabase(postgres.url, 2);
  const witness = await startWitness();
  const environment = { ALLOW_PRIVATE_NETWORK: "1", RUNNER_CONCURRENCY: "24" };
  const fleet: ServiceFleet = await startFleet({
    ...{ roles, databaseUrl: postgres.url, environment, startTime: Date.now(), rate: 1 },
  });
  await insertPublishedActions(db, appId, [
    { name: "witnessed", code: CODE, triggers: [{ trigger: "manual" as const }] },
  ]);
  let cases = 0;

  /** Repeats the call until the response has status 200. Resolves to true if the run's result is the key. */
  async function call(key: string, ms: number): Promise<boolean> {
    for (let attempt = 0; ; attempt += 1) {
      const urls = fleet.urls();
      const response = await fetch(`${urls[attempt % urls.length]}/v3/apps/${appId}/actions/witnessed/runWithResult`, {
        method: "POST",
        headers: {
          "auth-token": tokens.api,
          "content-type": "application/json",
          "idempotency-key": key,
          "idempotency-retry": "failed",
        },
        body: JSON.stringify({ witness: witness.url, key, ms }),
        signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
      }).catch(() => null);
      if (response?.status === 200) return ((await response.json()) as { result: unknown }).result === key;
      await response?.text();
      await delay(RETRY_MS);
    }
  }

  async function createVerdict(keys: ReadonlySet<string>, answeredKeys: ReadonlySet<string>): Promise<OutageVerdict> {
    const count = (key: string) => witness.requestCounts.get(key) ?? 0;
    // Retries the query, because a new connection may exceed its time limit on a busy machine.
    const ended: Record<string, string>[] = await until(() =>
      db.query(SELECT_INCOMPLETE_RUNS, [`case-${cases}-%`]).catch(() => null),
    );
    return {
      runs: keys.size,
      doubled: [...keys].filter((key) => count(key) > 1),
      missing: [...keys].filter((key) => count(key) === 0 || !answeredKeys.has(key)),
      ended: ended.map((run) => `${run["key"]}: ${run["state"]} ${run["error"]}`),
    };
  }

  return {
    /**
     * Starts runs, makes the database unavailable while they are in progress, restores it, and starts further runs. Then waits until all
     * callers have results, or until CASE_LIMIT_MS has passed.
     */
    async runOutage({ loss, awayMs, runDurationsMs, after }: DatabaseOutage): Promise<OutageVerdict> {
      cases += 1;
      const keys = new Set<string>();
      const answeredKeys = new Set<string>();
      const callers: Promise<void>[] = [];
      const start = (name: string, ms: number) => {
        const key = `case-${cases}-${name}`;
        keys.add(key);
        callers.push(call(key, ms).then((isRight) => void (isRight && answeredKeys.add(key))));
      };
      for (const [at, ms] of runDurationsMs.entries()) start(`before-${at}`, ms);
      await until(() => [...keys].every((key) => witness.requestCounts.has(key)), CASE_LIMIT_MS);
      const restore = await postgres.lose(loss);
      await delay(awayMs);
      await restore().catch((error: unknown) => {
        throw new Error(`the database did not start again after ${loss}`, { cause: error });
      });
      const late = after.map(async (ms, at) => {
        await delay(ms);
        start(`after-${at}`, 500);
      });
      await Promise.all(late);
      await Promise.race([Promise.all(callers), delay(CASE_LIMIT_MS, undefined, { ref: false })]);
      return createVerdict(keys, answeredKeys);
    },
    crashes: () => fleet.crashes(),
    async stop() {
      await fleet.stop();
      await db.destroy();
      await postgres.stop();
      await witness.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export type OutageFleet = Awaited<ReturnType<typeof startOutages>>;
