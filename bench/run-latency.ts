/** How long a caller of runWithResult waits at concurrency 1, beside a bare evaluate in a context made ahead over the protocol. */
import { setTimeout as delay } from "node:timers/promises";
import { readConfig } from "../src/config.js";
import type { Chromium } from "../src/engine/browser/browser-source.js";
import { startChromium } from "../src/engine/browser/processes/chromium.js";
import { findChromium, usualPlaces } from "../src/engine/chromium-path.js";
import { latencyRows, type Row, timeEach } from "./figure.js";
import { type BenchService, startBenchService } from "./service.js";

export const title = "runWithResult over HTTP, one caller";

const CALLS = 400;
const SPACED_CALLS = 100;
const SPACED_BY_MS = 200;
const FLOOR_CALLS = 60;
/** Contexts that lie ready; more of them would weigh on the machine that is measured. */
const FLOOR_BATCH = 10;
const WARM_UP = 30;
const CODE = "async function execute(context) { return { sum: context.payload.a + context.payload.b }; }";
const EXPRESSION = `(${CODE})({ payload: { a: 1, b: 2 }, settings: {} })`;

interface Context {
  evaluate(): Promise<void>;
  close(): Promise<void>;
}

async function openContext({ connection }: Chromium): Promise<Context> {
  const { browserContextId } = await connection.send("Target.createBrowserContext");
  const { targetId } = await connection.send("Target.createTarget", { url: "about:blank", browserContextId });
  const session = await connection.createSession({ targetId, type: "page" } as Parameters<
    typeof connection.createSession
  >[0]);
  return {
    async evaluate() {
      const { result } = await session.send("Runtime.evaluate", {
        expression: EXPRESSION,
        awaitPromise: true,
        returnByValue: true,
      });
      if (result.value?.sum !== 3) throw new Error("the floor did not compute");
    },
    close: () => connection.send("Target.disposeBrowserContext", { browserContextId }),
  };
}

/** Each evaluate is the first of its context: the least that a clean page for every run can cost. */
async function measureFloor(): Promise<number[]> {
  const { chromePath, puppeteerCacheDir, chromeSandbox: sandbox } = readConfig();
  const path = findChromium(chromePath, usualPlaces(puppeteerCacheDir));
  if (!path) throw new Error("no Chromium was found");
  const chromium = await startChromium({ chromePath: path, sandbox });
  const samples: number[] = [];
  while (samples.length < FLOOR_CALLS) {
    const contexts: Context[] = [];
    while (contexts.length < FLOOR_BATCH) contexts.push(await openContext(chromium));
    samples.push(...(await timeEach(FLOOR_BATCH, (index) => contexts[index]!.evaluate())));
    for (const context of contexts) await context.close();
  }
  await chromium.stop();
  return samples;
}

async function measureRuns({ call, first, createAction }: BenchService): Promise<[string, number[]][]> {
  await createAction("sum", CODE);
  const path = `/v3/apps/${first.appId}/actions/sum/runWithResult`;
  const run = async () => {
    const { result } = await call("POST", path, { a: 1, b: 2 });
    if (result.sum !== 3) throw new Error("the run did not compute");
  };
  await timeEach(WARM_UP, run);
  const backToBack = await timeEach(CALLS, run);
  const spaced: number[] = [];
  for (let index = 0; index < SPACED_CALLS; index += 1) {
    await delay(SPACED_BY_MS);
    spaced.push(...(await timeEach(1, run)));
  }
  return [
    ["back to back", backToBack],
    [`one every ${SPACED_BY_MS} ms`, spaced],
  ];
}

export async function run(): Promise<Row[]> {
  const floor = await measureFloor();
  const service = await startBenchService();
  const measured = await measureRuns(service).finally(service.stop);
  return measured.flatMap(([name, samples]) =>
    latencyRows(`runWithResult ${name}`, samples, "bare evaluate in a context made ahead", floor),
  );
}
