/**
 * Measures calls of the API and runs of other apps while one action repeatedly fills its memory. The baseline: the same calls on an idle
 * service.
 */
import { computePercentile, type FigureRow, timeCalls } from "../harness/figure.js";
import { type BenchService, startBenchService } from "../harness/service.js";

export const title = "calls during a run that fills its memory";

const CALL_COUNT = 150;
const WARM_UP_CALLS = 30;
const MEMORY_HOG_CODE =
  "async function execute() { const kept = []; for (;;) { kept.push(new Uint8Array(1e7).fill(1)); await 0; } }";
const SUM_CODE = "async function execute({ payload }) { return payload.a + payload.b; }";

/** Runs the memory-filling action again and again. `stop` resolves to the number of runs that the memory limit ended. */
function runMemoryHogs({ call, first }: BenchService): { stop(): Promise<number> } {
  let isStopped = false;
  const loop = async () => {
    let endedRuns = 0;
    while (!isStopped) {
      const fault = await call("POST", `/v3/apps/${first.appId}/actions/hog/runWithResult`, {}).catch(String);
      if (!String(fault).includes("used too much memory"))
        throw new Error(`the memory limit did not end the run (got ${String(fault)})`);
      endedRuns += 1;
    }
    return endedRuns;
  };
  const finished = loop();
  // Prevents an unhandled rejection. `stop` awaits the promise.
  finished.catch(() => undefined);
  return {
    stop() {
      isStopped = true;
      return finished;
    },
  };
}

async function measureWithMemoryHog(service: BenchService): Promise<FigureRow[]> {
  const { call, createAction, first } = service;
  const { admin } = first.tokens;
  await createAction("hog", MEMORY_HOG_CODE);
  const { app } = await call("POST", "/v1/admin/apps", { name: "Neighbour" }, admin);
  const sum = { name: "sum", code: SUM_CODE, active: true, triggers: [{ trigger: "manual" }] };
  const { action } = await call("POST", `/v3/apps/${app.id}/actions`, sum, admin);
  const calls: [string, () => Promise<unknown>][] = [
    [
      "another app's runWithResult",
      () => call("POST", `/v3/apps/${app.id}/actions/sum/runWithResult`, { a: 1, b: 2 }, admin),
    ],
    ["reading an action", () => call("GET", `/v3/apps/${app.id}/actions/${action.id}`, undefined, admin)],
  ];
  const rows: FigureRow[] = [];
  for (const [name, sendCall] of calls) {
    await timeCalls(WARM_UP_CALLS, sendCall);
    const idleDurations = await timeCalls(CALL_COUNT, sendCall);
    const hogs = runMemoryHogs(service);
    const loadedDurations = await timeCalls(CALL_COUNT, sendCall);
    await hogs.stop();
    for (const share of [0.5, 0.95]) {
      const floor = { name: "the same call without that run", value: computePercentile(idleDurations, share) };
      rows.push({
        name: `${name}, p${share * 100}`,
        value: computePercentile(loadedDurations, share),
        unit: "ms",
        floor,
      });
    }
  }
  return rows;
}

export async function run(): Promise<FigureRow[]> {
  const service = await startBenchService();
  return measureWithMemoryHog(service).finally(service.stop);
}
