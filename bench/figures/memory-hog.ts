/**
 * Effect on other apps' runs and the API of an action that fills its memory repeatedly, compared with the same calls on an idle service.
 */
import { percentile, type Row, timeEach } from "../harness/figure.js";
import { type BenchService, startBenchService } from "../harness/service.js";

export const title = "calls beside a run that fills its memory";

const CALLS = 150;
const WARM_UP = 30;
const HOG =
  "async function execute() { const kept = []; for (;;) { kept.push(new Uint8Array(1e7).fill(1)); await 0; } }";
const SUM = "async function execute({ payload }) { return payload.a + payload.b; }";

/** Keeps one such action running until `stop` is called; returns how many were ended for their memory. */
function keepHogging({ call, first }: BenchService): { stop(): Promise<number> } {
  let over = false;
  const loop = async () => {
    let ended = 0;
    while (!over) {
      const fault = await call("POST", `/v3/apps/${first.appId}/actions/hog/runWithResult`, {}).catch(String);
      if (!String(fault).includes("MB of memory")) throw new Error(`the hog ended otherwise: ${String(fault)}`);
      ended += 1;
    }
    return ended;
  };
  const done = loop();
  done.catch(() => undefined);
  return {
    stop() {
      over = true;
      return done;
    },
  };
}

async function measure(service: BenchService): Promise<Row[]> {
  const { call, createAction, first } = service;
  const { admin } = first.tokens;
  await createAction("hog", HOG);
  const { app } = await call("POST", "/v1/admin/apps", { name: "Neighbour" }, admin);
  const sum = { name: "sum", code: SUM, active: true, triggers: [{ trigger: "manual" }] };
  const { action } = await call("POST", `/v3/apps/${app.id}/actions`, sum, admin);
  const calls: [string, () => Promise<unknown>][] = [
    [
      "another app's runWithResult",
      () => call("POST", `/v3/apps/${app.id}/actions/sum/runWithResult`, { a: 1, b: 2 }, admin),
    ],
    ["reading an action", () => call("GET", `/v3/apps/${app.id}/actions/${action.id}`, undefined, admin)],
  ];
  const rows: Row[] = [];
  for (const [name, once] of calls) {
    await timeEach(WARM_UP, once);
    const quiet = await timeEach(CALLS, once);
    const hogs = keepHogging(service);
    const beside = await timeEach(CALLS, once);
    await hogs.stop();
    for (const share of [0.5, 0.95]) {
      const floor = { name: "the same in quiet", value: percentile(quiet, share) };
      rows.push({ name: `${name}, p${share * 100}`, value: percentile(beside, share), unit: "ms", floor });
    }
  }
  return rows;
}

export async function run(): Promise<Row[]> {
  const service = await startBenchService();
  return measure(service).finally(service.stop);
}
