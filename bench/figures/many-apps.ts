/**
 * Measures runs per second when forty apps are called in turn. The baselines are calls of a single app, and a new browser context for each
 * run.
 */
import { startBrowserBaseline } from "../harness/browser-baseline.js";
import { type RunWithResultLoad, startLoadGenerator } from "../harness/callers.js";
import { type FigureRow, measureAlternating } from "../harness/figure.js";
import {
  ACTION_KINDS,
  type ActionKind,
  createActionBody,
  getRunWithResultPath,
  RUN_PAYLOAD,
} from "../harness/kinds.js";
import { type BenchService, startBenchService } from "../harness/service.js";

export const title = "runWithResult over HTTP, forty apps in turn, 8 callers";

const APP_COUNT = 40;
const CALLER_COUNT = 8;
const MEASURED_KINDS = ["language", "document"];
const RATE_MS = 2_000;
/** Number of calls before the measurement. They create the browser context of each app, which takes as long as many runs. */
const WARM_UP_CALLS = 3 * APP_COUNT;

async function createApps({ call, first }: BenchService, kinds: readonly ActionKind[]): Promise<number[]> {
  const apps: number[] = [];
  while (apps.length < APP_COUNT) {
    const { app } = await call("POST", "/v1/admin/apps", { name: `App ${apps.length}` }, first.tokens.admin);
    for (const kind of kinds) {
      await call("POST", `/v3/apps/${app.id}/actions`, createActionBody(kind), first.tokens.admin);
    }
    apps.push(app.id);
  }
  return apps;
}

export async function run(rounds: number): Promise<FigureRow[]> {
  const kinds = ACTION_KINDS.filter(({ name }) => MEASURED_KINDS.includes(name));
  const floor = await startBrowserBaseline();
  const service = await startBenchService();
  const callers = startLoadGenerator();
  try {
    const apps = await createApps(service, kinds);
    const rows: FigureRow[] = [];
    for (const kind of kinds) {
      const callsOf = (appIds: readonly number[]): RunWithResultLoad => {
        return {
          service,
          token: service.first.tokens.admin,
          paths: appIds.map((app) => getRunWithResultPath(app, kind)),
          payload: RUN_PAYLOAD,
          result: kind.result,
        };
      };
      const [singleAppCalls, manyAppCalls] = [callsOf(apps.slice(0, 1)), callsOf(apps)];
      for (let warmUpCalls = 0; warmUpCalls < WARM_UP_CALLS; ) {
        warmUpCalls += ((await callers.measureRate(manyAppCalls, CALLER_COUNT, RATE_MS)) * RATE_MS) / 1_000;
      }
      const medians = await measureAlternating(rounds, {
        contexts: floor.measureContextRate,
        one: () => callers.measureRate(singleAppCalls, CALLER_COUNT),
        forty: () => callers.measureRate(manyAppCalls, CALLER_COUNT, RATE_MS),
      });
      const row = { name: `${kind.name}, ${APP_COUNT} apps`, value: medians.forty, unit: "/s" };
      rows.push({ ...row, floor: { name: "one app", value: medians.one } });
      rows.push({
        ...row,
        floor: { name: "Chromium alone, a new browser context each time", value: medians.contexts },
      });
    }
    return rows;
  } finally {
    callers.stop();
    await service.stop();
    await floor.stop();
  }
}
