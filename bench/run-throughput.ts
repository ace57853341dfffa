/** How many runs a second the service sustains over HTTP, for one app and for forty, beside bare loops over the protocol. */

import { readConfig } from "../src/config.js";
import { findChromium, usualPlaces } from "../src/engine/chromium-path.js";
import { type Floor, startFloor } from "./browser-floor.js";
import type { Row } from "./figure.js";
import { type BenchService, startBenchService } from "./service.js";

export const title = "sustained runs with result over HTTP";

const APPS = 40;
/** As many as one app has places on two cores. */
const CALLERS = 3;
/** Beside each other in a bare loop: where it is fastest on few cores. */
const FLOOR_LOOPS = 2;
const RUNS = 300;
const FLOOR_RUNS = 150;
const ROUNDS = 3;
const CODE = "async function execute(context) { return { sum: context.payload.a + context.payload.b }; }";
/** The same by way of a name that only a document has. */
const CODE_IN_DOCUMENT = CODE.replace("{ return", "{ document.title = 'sum'; return");
const ACTION = { active: true, environment: "server", triggers: [{ trigger: "manual" }] };

async function makeApps({ call, first }: BenchService): Promise<number[]> {
  const apps: number[] = [];
  while (apps.length < APPS) {
    const { app } = await call("POST", "/v1/admin/apps", { name: `App ${apps.length}` }, first.tokens.admin);
    for (const action of [
      { ...ACTION, name: "sum", code: CODE },
      { ...ACTION, name: "sum-in-document", code: CODE_IN_DOCUMENT },
    ]) {
      await call("POST", `/v3/apps/${app.id}/actions`, action, first.tokens.admin);
    }
    apps.push(app.id);
  }
  return apps;
}

/** Runs a second of `CALLERS` callers, each app in its turn. */
async function rate(
  { call, first }: BenchService,
  apps: readonly number[],
  name = "sum",
  count = RUNS,
): Promise<number> {
  let started = 0;
  const begun = performance.now();
  const caller = async () => {
    while (started < count) {
      const app = apps[started++ % apps.length];
      const path = `/v3/apps/${app}/actions/${name}/runWithResult`;
      const { result } = await call("POST", path, { a: 1, b: 2 }, first.tokens.admin);
      if (result.sum !== 3) throw new Error("the run did not compute");
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return count / ((performance.now() - begun) / 1_000);
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

/** In turns, so that whatever else the machine does weighs on both. */
async function beside(name: string, own: () => Promise<number>, floorName: string, floor: () => Promise<number>) {
  const values: number[] = [];
  const floors: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    floors.push(await floor());
    values.push(await own());
  }
  return { name, value: median(values), unit: "/s", floor: { name: floorName, value: median(floors) } };
}

async function measure(service: BenchService, floor: Floor): Promise<Row[]> {
  const apps = await makeApps(service);
  const one = apps.slice(0, 1);
  const load = { count: FLOOR_RUNS, parallel: FLOOR_LOOPS };
  const navigating = async () => (await floor.navigatingLoop(load)).perSecond;
  const contexts = async () => (await floor.contextLoop(load)).perSecond;
  const figure = async (
    title: string,
    floorName: string,
    bare: () => Promise<number>,
    among: number[],
    name?: string,
  ) => {
    await rate(service, among, name, RUNS / 4);
    return beside(title, () => rate(service, among, name), floorName, bare);
  };
  const navigated = "a page sent to a fresh document each";
  return [
    await figure("one app", navigated, navigating, one),
    await figure("one app, code that needs a document", navigated, navigating, one, "sum-in-document"),
    await figure(`${APPS} apps`, "a context made for each", contexts, apps),
    await figure(
      `${APPS} apps, code that needs a document`,
      "a context made for each",
      contexts,
      apps,
      "sum-in-document",
    ),
  ];
}

export async function run(): Promise<Row[]> {
  const { chromePath, puppeteerCacheDir, chromeSandbox } = readConfig();
  const path = findChromium(chromePath, usualPlaces(puppeteerCacheDir));
  if (!path) throw new Error("no Chromium was found");
  const floor = await startFloor(path, chromeSandbox);
  const service = await startBenchService();
  return measure(service, floor).finally(async () => {
    await service.stop();
    await floor.stop();
  });
}
