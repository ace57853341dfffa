/** Kills instances of a fleet, and makes its database unavailable. During these faults, observes the instances and the queued runs. */
import { setTimeout as delay } from "node:timers/promises";
import type { Db } from "../../src/data/database.js";
import type { ResponseCounts } from "./callers.js";
import type { ServiceFleet } from "./fleet.js";
import type { DatabaseLoss, RestartablePostgres } from "./gateway.js";

const POLL_MS = 250;
/** Maximum time in milliseconds that a run may wait when the database is available. */
export const WAIT_LIMIT_MS = 10_000;
const READY_PROBE_LIMIT_MS = 5_000;

export interface FleetObservations {
  /** Longest time in milliseconds that a run was queued. Only the time since the last outage of the database counts. */
  longestQueuedMs: number;
  /** Number of times that an instance reported READY during an outage of the database. */
  readyWhileAway: number;
  /** Number of times that an instance reported READY while a run had waited for longer than WAIT_LIMIT_MS. */
  readyWhileWaiting: number;
}

const waitBetween = (from: number, to: number) => delay(from + Math.random() * (to - from));

async function countReady(fleet: ServiceFleet): Promise<number> {
  const probes = fleet.urls().map((url) =>
    fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(READY_PROBE_LIMIT_MS) }).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return (await Promise.all(probes)).filter(Boolean).length;
}

/** Pauses before each kill and before each loss of the database: minimum and maximum in milliseconds. */
export interface FaultPace {
  kill: readonly [number, number];
  loss: readonly [number, number];
  /** Every n-th kill ends a process of a browser instead of an instance; by default, none does. */
  browserEvery?: number;
}

export const FREQUENT_FAULTS: FaultPace = { kill: [1_000, 1_000], loss: [500, 1_500] };

/** Causes one outage for each item of `losses`. Counts instances that report READY meanwhile. Calls `back` after each outage. */
async function causeOutages(
  options: { postgres: RestartablePostgres; fleet: ServiceFleet; losses: readonly DatabaseLoss[]; pace: FaultPace },
  observations: FleetObservations,
  back: (at: Date) => void,
): Promise<void> {
  const { postgres, fleet, losses, pace } = options;
  for (const loss of losses) {
    await waitBetween(...pace.loss);
    const restore = await postgres.lose(loss);
    await waitBetween(300, 1_200);
    observations.readyWhileAway += await countReady(fleet);
    await restore();
    back(new Date());
  }
}

async function watchQueue(
  db: Db,
  fleet: ServiceFleet,
  observations: FleetObservations,
  since: () => Date,
  over: () => boolean,
) {
  while (!over()) {
    const from = since();
    const [row] = await db
      .query(
        `SELECT coalesce(max(extract(epoch FROM now() - greatest(queued_at, $1))) * 1000, 0)::float8 AS ms
           FROM run WHERE state = 'queued'`,
        [from],
      )
      .catch(() => [{ ms: 0 }]);
    if (from === since()) observations.longestQueuedMs = Math.max(observations.longestQueuedMs, row.ms);
    if (row.ms > WAIT_LIMIT_MS) observations.readyWhileWaiting += await countReady(fleet);
    await delay(POLL_MS);
  }
}

/**
 * Kills instances or browsers, `kills` times in total. At the same time, causes one outage of the database for each item of `losses`. The
 * function `work` sends requests until its parameter `over` returns true.
 */
export async function injectFaults(options: {
  postgres: RestartablePostgres;
  fleet: ServiceFleet;
  db: Db;
  kills: number;
  losses: readonly DatabaseLoss[];
  pace: FaultPace;
  work: (over: () => boolean) => Promise<unknown>;
}): Promise<FleetObservations> {
  const { fleet, db, kills, pace, work } = options;
  const observations: FleetObservations = { longestQueuedMs: 0, readyWhileAway: 0, readyWhileWaiting: 0 };
  let since = new Date();
  let over = false;
  const killInstances = (async () => {
    for (let kill = 1; kill <= kills; kill += 1) {
      await waitBetween(...pace.kill);
      if (pace.browserEvery && kill % pace.browserEvery === 0) fleet.killBrowser();
      else fleet.killInstance();
    }
  })();
  const queueWatch = watchQueue(
    db,
    fleet,
    observations,
    () => since,
    () => over,
  );
  const working = work(() => over);
  try {
    await Promise.all([killInstances, causeOutages(options, observations, (at) => (since = at))]);
  } finally {
    over = true;
    await Promise.all([queueWatch, working]);
  }
  return observations;
}

/** Sends the requests of one caller until `over` returns true. Counts requests without a response as `unreachable`. */
export async function sendRequestsUntil(
  requests: readonly (() => Promise<{ status?: string }>)[],
  answers: ResponseCounts,
  over: () => boolean,
) {
  for (let n = 0; !over(); n += 1) {
    const answer = await requests[n % requests.length]!().catch(() => {
      answers.counts["unreachable"] = (answers.counts["unreachable"] ?? 0) + 1;
      return null;
    });
    // Waits less than the header Retry-After demands, so that the callers send more requests.
    if (answer === null || answer.status === "OVERLOADED") await delay(POLL_MS);
  }
}
