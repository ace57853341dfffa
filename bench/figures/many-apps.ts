/** Runs of forty apps in turns, compared with runs of one app, and with a new browser context for each. */
import { startFloor } from "../harness/browser-floor.js";
import { type Calls, startCallers } from "../harness/callers.js";
import { inTurns, type Row } from "../harness/figure.js";
import { actionOf, KINDS, type Kind, PAYLOAD, runPath } from "../harness/kinds.js";
import { type BenchService, startBenchService } from "../harness/service.js";

export const title = "runWithResult over HTTP, forty apps in turn, 8 callers";

const APPS = 40;
const CALLERS = 8;
const MEASURED = ["language", "document"];
const RATE_MS = 2_000;
/** By then each app has its context, whose creation takes as long as many runs. The figure run-start has the first call. */
const CALLS_BEFORE = 3 * APPS;

async function makeApps({ call, first }: BenchService, kinds: readonly Kind[]): Promise<number[]> {
  const apps: number[] = [];
  while (apps.length < APPS) {
    const { app } = await call("POST", "/v1/admin/apps", { name: `App ${apps.length}` }, first.tokens.admin);
    for (const kind of kinds) {
      await call("POST", `/v3/apps/${app.id}/actions`, actionOf(kind), first.tokens.admin);
    }
    apps.push(app.id);
  }
  return apps;
}

export async function run(rounds: number): Promise<Row[]> {
  const kinds = KINDS.filter(({ name }) => MEASURED.includes(name));
  const floor = await startFloor();
  const service = await startBenchService();
  const callers = startCallers();
  try {
    const apps = await makeApps(service, kinds);
    const rows: Row[] = [];
    for (const kind of kinds) {
      const of = (among: readonly number[]): Calls => {
        return {
          service,
          token: service.first.tokens.admin,
          paths: among.map((app) => runPath(app, kind)),
          payload: PAYLOAD,
          result: kind.result,
        };
      };
      const [one, forty] = [of(apps.slice(0, 1)), of(apps)];
      for (let called = 0; called < CALLS_BEFORE; ) {
        called += ((await callers.rate(forty, CALLERS, RATE_MS)) * RATE_MS) / 1_000;
      }
      const found = await inTurns(rounds, {
        contexts: floor.contextLoop,
        one: () => callers.rate(one, CALLERS),
        forty: () => callers.rate(forty, CALLERS, RATE_MS),
      });
      const row = { name: `${kind.name}, ${APPS} apps`, value: found.forty, unit: "/s" };
      rows.push({ ...row, floor: { name: "one app", value: found.one } });
      rows.push({ ...row, floor: { name: "a context made for each", value: found.contexts } });
    }
    return rows;
  } finally {
    callers.stop();
    await service.stop();
    await floor.stop();
  }
}
