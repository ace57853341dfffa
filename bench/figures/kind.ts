/** Measures one kind of run over HTTP: runs per second for few and for many callers, and the duration of one run for a single caller. */

import {
  type BrowserBaseline,
  startBrowserBaseline,
  startDefaultBrowserBaseline,
} from "../harness/browser-baseline.js";
import { startLoadGenerator } from "../harness/callers.js";
import { startChildServer } from "../harness/child.js";
import { computeMedian, type Figure, type FigureRow, measureAlternating, timeCalls } from "../harness/figure.js";
import {
  type ActionKind,
  createActionBody,
  getRunWithResultPath,
  PLAIN_JAVASCRIPT_KIND,
  RUN_PAYLOAD,
} from "../harness/kinds.js";
import { type BenchService, startBenchService } from "../harness/service.js";

/** Small number of callers. The runs per second with these callers are also a baseline for 64 and more callers. */
const FEW_CALLERS = 3;
const MANY_CALLERS = 64;
/** Number of callers for the comparisons with isolated-vm, and with Chromium started with Puppeteer's default options. */
const COMPARED_CALLERS = 8;
const CALLER_COUNTS = [1, FEW_CALLERS, COMPARED_CALLERS, MANY_CALLERS];
/** Numbers of callers for the fastest kind of run, which is also measured under extreme load. */
const LANGUAGE_CALLER_COUNTS = [...CALLER_COUNTS, 256];
const WARM_UP_MS = 1_000;
const DOCUMENT_BASELINE_NAME = "Chromium alone, a new document each time";
const DEFAULT_OPTIONS_BASELINE_NAME = "Chromium with the default options of Puppeteer, a new document each time";
/** Names of the baselines with isolated-vm, by path of their server (bare-isolates.ts). */
const ISOLATED_VM_BASELINE_NAMES = {
  "/context": "Fastify with a new isolated-vm context and two rows by pg",
  "/isolate": "Fastify with a new isolated-vm isolate and two rows by pg",
} as const;
const ISOLATED_VM_PATHS = Object.keys(ISOLATED_VM_BASELINE_NAMES) as (keyof typeof ISOLATED_VM_BASELINE_NAMES)[];

const measureBareFetch = (url: string) => timeCalls(10, async () => (await fetch(url)).text()).then(computeMedian);

interface Baselines {
  floor: BrowserBaseline;
  defaults: Pick<BrowserBaseline, "measureNavigationRate">;
  isolatesUrl: string;
}

async function measureKind(
  kind: ActionKind,
  rounds: number,
  service: BenchService,
  { floor, defaults, isolatesUrl }: Baselines,
): Promise<FigureRow[]> {
  const callers = startLoadGenerator();
  const host = await startChildServer("local-host.js");
  try {
    const { appId } = service.first;
    for (const createdKind of new Set([PLAIN_JAVASCRIPT_KIND, kind])) {
      await service.call("POST", `/v3/apps/${appId}/actions`, createActionBody(createdKind, host.url));
    }
    const payload = { ...RUN_PAYLOAD, url: host.url };
    const callsOf = (calledKind: ActionKind) => ({
      service,
      paths: [getRunWithResultPath(appId, calledKind)],
      payload,
      result: calledKind.result,
    });
    const [kindCalls, languageCalls] = [callsOf(kind), callsOf(PLAIN_JAVASCRIPT_KIND)];
    const isLanguage = kind === PLAIN_JAVASCRIPT_KIND;
    const counts = isLanguage ? LANGUAGE_CALLER_COUNTS : CALLER_COUNTS;
    await callers.measureRate(kindCalls, FEW_CALLERS, WARM_UP_MS);
    const rates = counts.map((count) => [`callers-${count}`, () => callers.measureRate(kindCalls, count)] as const);
    const isolatedVm = (isLanguage ? ISOLATED_VM_PATHS : []).flatMap((path) => {
      const calls = { ...languageCalls, service: { ...service, url: isolatesUrl }, paths: [path] };
      return [
        [path, () => callers.measureRate(calls, COMPARED_CALLERS)],
        [`paced${path}`, () => callers.measurePacedDuration(calls)],
      ] as const;
    });
    const medians = await measureAlternating<string>(rounds, {
      document: floor.measureNavigationRate,
      defaults: defaults.measureNavigationRate,
      evaluate: () => floor.measureEvaluationDuration(),
      ...Object.fromEntries(rates),
      paced: () => callers.measurePacedDuration(kindCalls),
      ...Object.fromEntries(isolatedVm),
      ...(kind.requestCount && {
        "bare-fetch": () => measureBareFetch(host.url),
        language: () => callers.measurePacedDuration(languageCalls),
      }),
    });
    return [...createRows(kind, counts, medians), ...createComparedRows(kind, medians)];
  } finally {
    callers.stop();
    host.child.kill();
  }
}

/** Returns the rows that compare this kind of run with isolated-vm, and with Chromium started with Puppeteer's default options. */
function createComparedRows({ name }: ActionKind, medians: Readonly<Record<string, number>>): FigureRow[] {
  const rateName = `${name}, ${COMPARED_CALLERS} callers`;
  const value = medians[`callers-${COMPARED_CALLERS}`]!;
  const defaults = { name: DEFAULT_OPTIONS_BASELINE_NAME, value: medians["defaults"]! };
  const rows: FigureRow[] = [
    { name: `${rateName}, compared with default options`, value, unit: "/s", floor: defaults },
  ];
  for (const path of ISOLATED_VM_PATHS) {
    const [rate, duration] = [medians[path], medians[`paced${path}`]];
    if (rate === undefined || duration === undefined) continue;
    const baselineName = ISOLATED_VM_BASELINE_NAMES[path];
    const suffix = `compared with isolated-vm ${path === "/context" ? "contexts" : "isolates"}`;
    rows.push(
      { name: `${rateName}, ${suffix}`, value, unit: "/s", floor: { name: baselineName, value: rate } },
      {
        name: `${name}, one call every 200 ms, p50, ${suffix}`,
        value: medians["paced"]!,
        unit: "ms",
        floor: { name: baselineName, value: duration },
      },
    );
  }
  return rows;
}

function createRows(
  { name, requestCount }: ActionKind,
  counts: readonly number[],
  medians: Readonly<Record<string, number>>,
): FigureRow[] {
  const rate = (count: number) => medians[`callers-${count}`]!;
  const rates = counts.map((count): FigureRow => {
    const floor = { name: DOCUMENT_BASELINE_NAME, value: medians["document"]! };
    const size = { line: name, of: "callers", value: count };
    return {
      name: `${name}, ${count} ${count === 1 ? "caller" : "callers"}`,
      value: rate(count),
      unit: "/s",
      floor,
      size,
    };
  });
  const manyCallerRows = counts.slice(counts.indexOf(MANY_CALLERS)).map((count): FigureRow => {
    const floor = { name: `${FEW_CALLERS} callers`, value: rate(FEW_CALLERS) };
    return { name: `${name}, ${count} callers, compared with ${FEW_CALLERS}`, value: rate(count), unit: "/s", floor };
  });
  const floor = requestCount
    ? {
        name: "the run without requests, plus the requests alone",
        value: medians["language"]! + requestCount * medians["bare-fetch"]!,
      }
    : { name: "Chromium alone, an evaluation in an open page", value: medians["evaluate"]! };
  return [
    ...rates,
    ...manyCallerRows,
    { name: `${name}, one call every 200 ms, p50`, value: medians["paced"]!, unit: "ms", floor },
  ];
}

export function createKindFigure(kind: ActionKind): Figure {
  return {
    title: `runWithResult over HTTP of one app, ${kind.name}`,
    async run(rounds) {
      const floor = await startBrowserBaseline();
      const defaults = await startDefaultBrowserBaseline();
      const service = await startBenchService({ ALLOW_PRIVATE_NETWORK: "1" });
      const isolates = await startChildServer("bare-isolates.js", { databaseUrl: service.databaseUrl });
      const { appId } = service.first;
      if (kind.dataSource) await service.call("POST", `/v1/apps/${appId}/data-sources`, kind.dataSource);
      return measureKind(kind, rounds, service, { floor, defaults, isolatesUrl: isolates.url }).finally(async () => {
        isolates.child.kill();
        await service.stop();
        await defaults.stop();
        await floor.stop();
      });
    },
  };
}
