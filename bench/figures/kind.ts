/** Measures one kind of run over HTTP: runs per second for few and for many callers, and the duration of one run for a single caller. */

import { type BrowserBaseline, startBrowserBaseline } from "../harness/browser-baseline.js";
import { startLoadGenerator } from "../harness/callers.js";
import { startChildServer } from "../harness/child.js";
import { type Figure, type FigureRow, measureAlternating, median, timeCalls } from "../harness/figure.js";
import {
  type ActionKind,
  createActionBody,
  getRunWithResultPath,
  PLAIN_JAVASCRIPT_KIND,
  RUN_PAYLOAD,
} from "../harness/kinds.js";
import { type BenchService, startBenchService } from "../harness/service.js";

/** Number of callers whose rate is the baseline for the rates of 64 callers and more. */
const FEW_CALLERS = 3;
const MANY_CALLERS = 64;
const CALLER_COUNTS = [1, FEW_CALLERS, 8, MANY_CALLERS];
/** Numbers of callers for the fastest kind of run, which is also measured under extreme load. */
const LANGUAGE_CALLER_COUNTS = [...CALLER_COUNTS, 256];
const WARM_UP_MS = 1_000;
const DOCUMENT_BASELINE_NAME = "Chromium alone, a new document each time";

const measureBareFetch = (url: string) => timeCalls(10, async () => (await fetch(url)).text()).then(median);

async function measure(
  kind: ActionKind,
  rounds: number,
  service: BenchService,
  floor: BrowserBaseline,
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
    const counts = kind === PLAIN_JAVASCRIPT_KIND ? LANGUAGE_CALLER_COUNTS : CALLER_COUNTS;
    await callers.measureRate(kindCalls, FEW_CALLERS, WARM_UP_MS);
    const rates = counts.map((count) => [`callers-${count}`, () => callers.measureRate(kindCalls, count)] as const);
    const medians = await measureAlternating<string>(rounds, {
      document: floor.navigatingLoop,
      evaluate: () => floor.pacedEvaluate(),
      ...Object.fromEntries(rates),
      paced: () => callers.measurePacedDuration(kindCalls),
      ...(kind.requestCount && {
        "bare-fetch": () => measureBareFetch(host.url),
        language: () => callers.measurePacedDuration(languageCalls),
      }),
    });
    return toRows(kind, counts, medians as Record<string, number>);
  } finally {
    callers.stop();
    host.child.kill();
  }
}

function toRows(
  { name, requestCount }: ActionKind,
  counts: readonly number[],
  medians: Record<string, number>,
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
      const service = await startBenchService({ ALLOW_PRIVATE_NETWORK: "1" });
      const { appId } = service.first;
      if (kind.dataSource) await service.call("POST", `/v1/apps/${appId}/data-sources`, kind.dataSource);
      return measure(kind, rounds, service, floor).finally(async () => {
        await service.stop();
        await floor.stop();
      });
    },
  };
}
