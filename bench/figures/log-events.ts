/**
 * Log events over HTTP with 10, 100 and 1,000 log-triggered actions, of which none or one matches, compared with a bare insert over HTTP.
 */
import { openDatabase } from "../../src/data/database.js";
import { publishDirectly } from "../../test/harness/production-copies.js";
import { fire } from "../harness/autocannon.js";
import { startServer } from "../harness/child.js";
import { inTurns, type Row } from "../harness/figure.js";
import { startBenchService } from "../harness/service.js";

export const title = "log events over HTTP beside log-triggered actions, 20 callers";

const SIZES = [10, 100, 1_000];
const CALLERS = 20;
const SECONDS = 2;
/** Events that start runs, in one round: few enough that queued ones cost little. */
const STARTING = 980;
const TYPE = "dataSource.entry.create";
const DATA = { columns: { status: "open", amount: 12.5 }, note: "an entry as it is usually made" };
const FLOOR = "a bare Fastify and pg insert over HTTP";
/** Events of a data source without a trigger, and of the first action's. */
const [UNNAMED, NAMED] = [5_000, 1];

const event = (dataSourceId: number) => ({ type: TYPE, data: DATA, dataSourceId, dataSourceEntryId: 1 });

/** Actions with these numbers, each with its own data source. */
const listening = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => ({
    name: `action-${from + at}`,
    triggers: [{ trigger: "log" as const, where: { type: TYPE, dataSourceId: from + at + 1 } }],
  }));

export async function run(rounds: number): Promise<Row[]> {
  // No runner: queued runs cost nothing.
  const service = await startBenchService({ ROLES: "api", INTAKE_QUOTA_MB: "0" });
  const { first, databaseUrl } = service;
  const { appId, tokens } = first;
  const db = await openDatabase(databaseUrl, 2);
  const bare = await startServer("bare-events.js", { databaseUrl, appId });
  try {
    const own = { url: `${service.url}/v1/apps/${appId}/logs`, token: tokens.api, callers: CALLERS };
    const floor = { ...own, url: bare.url, body: event(UNNAMED), seconds: SECONDS };
    const none = { ...own, body: event(UNNAMED), seconds: SECONDS };
    const measurements = {
      floor: () => fire(floor),
      none: () => fire(none),
      async one() {
        const perSecond = await fire({ ...own, body: event(NAMED), amount: STARTING });
        await db.query("DELETE FROM run");
        return perSecond;
      },
    };
    const rows: Row[] = [];
    for (const [at, actions] of SIZES.entries()) {
      await publishDirectly(db, appId, listening(SIZES[at - 1] ?? 0, actions));
      await db.query("ANALYZE");
      await fire({ ...floor, seconds: 1 });
      await fire({ ...none, seconds: 1 });
      const found = await inTurns(rounds, measurements);
      const beside = { unit: "/s", floor: { name: FLOOR, value: found.floor } };
      const size = { line: "none matching", of: "log-triggered actions", value: actions };
      rows.push({ name: `log events, none of ${actions} matching`, value: found.none, ...beside, size });
      if (actions === SIZES.at(-1))
        rows.push({ name: `log events, one of ${actions} matching`, value: found.one, ...beside });
    }
    return rows;
  } finally {
    bare.child.kill();
    await db.destroy();
    await service.stop();
  }
}
