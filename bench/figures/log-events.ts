/**
 * Measures log events per second over HTTP while 10, 100 and 1,000 actions have a log trigger. First, no event starts a run; then, each
 * event starts one run. The baseline is a bare insert over HTTP.
 */
import { openDatabase } from "../../src/data/database.js";
import { insertPublishedActions } from "../../test/harness/published-actions.js";
import { measureRequestRate } from "../harness/autocannon.js";
import { startChildServer } from "../harness/child.js";
import { type FigureRow, measureAlternating } from "../harness/figure.js";
import { startBenchService } from "../harness/service.js";

export const title = "log events over HTTP, by the number of actions with a log trigger, 20 callers";

const ACTION_COUNTS = [10, 100, 1_000];
const CALLER_COUNT = 20;
const MEASURED_SECONDS = 2;
/** Number of events in a round in which each event starts a run. The number is small, so that the queue stays short. */
const RUN_STARTING_EVENTS = 980;
const EVENT_TYPE = "dataSource.entry.create";
const EVENT_DATA = { columns: { status: "open", amount: 12.5 }, note: "an entry as it is usually made" };
const BASELINE_NAME = "Fastify alone with one insert by pg";
/** IDs of two data sources: events of the first match no trigger; events of the second start one action. */
const [UNMATCHED_SOURCE_ID, MATCHED_SOURCE_ID] = [5_000, 1];

const createEvent = (dataSourceId: number) => ({
  type: EVENT_TYPE,
  data: EVENT_DATA,
  dataSourceId,
  dataSourceEntryId: 1,
});

/** Returns actions with the numbers from `from` to `to - 1`. Each has a log trigger for its own data source. */
const createListeningActions = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => ({
    name: `action-${from + index}`,
    triggers: [{ trigger: "log" as const, where: { type: EVENT_TYPE, dataSourceId: from + index + 1 } }],
  }));

export async function run(rounds: number): Promise<FigureRow[]> {
  // This service has no runner, so the queued runs are not executed.
  const service = await startBenchService({ ROLES: "api", INTAKE_QUOTA_MB: "0" });
  const { first, databaseUrl } = service;
  const { appId, tokens } = first;
  const db = await openDatabase(databaseUrl, 2);
  const bareServer = await startChildServer("bare-events.js", { databaseUrl, appId });
  try {
    const serviceRequests = { url: `${service.url}/v1/apps/${appId}/logs`, token: tokens.api, callers: CALLER_COUNT };
    const floor = {
      ...serviceRequests,
      url: bareServer.url,
      body: createEvent(UNMATCHED_SOURCE_ID),
      seconds: MEASURED_SECONDS,
    };
    const unmatchedRequests = { ...serviceRequests, body: createEvent(UNMATCHED_SOURCE_ID), seconds: MEASURED_SECONDS };
    const measurements = {
      floor: () => measureRequestRate(floor),
      none: () => measureRequestRate(unmatchedRequests),
      async matched() {
        const perSecond = await measureRequestRate({
          ...serviceRequests,
          body: createEvent(MATCHED_SOURCE_ID),
          amount: RUN_STARTING_EVENTS,
        });
        await db.query("DELETE FROM run");
        return perSecond;
      },
    };
    const rows: FigureRow[] = [];
    for (const [sizeIndex, actions] of ACTION_COUNTS.entries()) {
      await insertPublishedActions(db, appId, createListeningActions(ACTION_COUNTS[sizeIndex - 1] ?? 0, actions));
      await db.query("ANALYZE");
      await measureRequestRate({ ...floor, seconds: 1 });
      await measureRequestRate({ ...unmatchedRequests, seconds: 1 });
      const medians = await measureAlternating(rounds, measurements);
      const beside = { unit: "/s", floor: { name: BASELINE_NAME, value: medians.floor } };
      const size = { line: "none matching", of: "log-triggered actions", value: actions };
      rows.push({ name: `log events that start none of ${actions} actions`, value: medians.none, ...beside, size });
      if (actions === ACTION_COUNTS.at(-1))
        rows.push({ name: `log events that start one of ${actions} actions`, value: medians.matched, ...beside });
    }
    return rows;
  } finally {
    bareServer.child.kill();
    await db.destroy();
    await service.stop();
  }
}
