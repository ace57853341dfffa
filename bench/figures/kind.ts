/** One kind of run over HTTP: runs per second for few and for many callers, and the duration for a single caller. */

import { type Floor, startFloor } from "../harness/browser-floor.js";
import { startCallers } from "../harness/callers.js";
import { startServer } from "../harness/child.js";
import { type Figure, inTurns, median, type Row, timeEach } from "../harness/figure.js";
import { actionOf, type Kind, LANGUAGE, PAYLOAD, runPath } from "../harness/kinds.js";
import { type BenchService, startBenchService } from "../harness/service.js";

/** The slots of an app on two cores, and more. */
const FEW = 3;
const MANY = 64;
const CALLERS = [1, FEW, 8, MANY];
/** For the quickest kind: more callers than a queue should have to hold. */
const CALLERS_OF_LANGUAGE = [...CALLERS, 256];
const WARM_UP_MS = 1_000;
const DOCUMENT = "a page sent to a fresh document each";

const bareFetch = (url: string) => timeEach(10, async () => (await fetch(url)).text()).then(median);

async function measure(kind: Kind, rounds: number, service: BenchService, floor: Floor): Promise<Row[]> {
  const callers = startCallers();
  const host = await startServer("local-host.js");
  try {
    const { appId } = service.first;
    for (const one of new Set([LANGUAGE, kind])) {
      await service.call("POST", `/v3/apps/${appId}/actions`, actionOf(one, host.url));
    }
    const payload = { ...PAYLOAD, url: host.url };
    const of = (one: Kind) => ({ service, paths: [runPath(appId, one)], payload, result: one.result });
    const [own, language] = [of(kind), of(LANGUAGE)];
    const counts = kind === LANGUAGE ? CALLERS_OF_LANGUAGE : CALLERS;
    await callers.rate(own, FEW, WARM_UP_MS);
    const rates = counts.map((count) => [`callers-${count}`, () => callers.rate(own, count)] as const);
    const found = await inTurns<string>(rounds, {
      document: floor.navigatingLoop,
      evaluate: () => floor.pacedEvaluate(),
      ...Object.fromEntries(rates),
      paced: () => callers.paced(own),
      ...(kind.fetches && { "bare-fetch": () => bareFetch(host.url), language: () => callers.paced(language) }),
    });
    return rowsOf(kind, counts, found as Record<string, number>);
  } finally {
    callers.stop();
    host.child.kill();
  }
}

function rowsOf({ name, fetches }: Kind, counts: readonly number[], found: Record<string, number>): Row[] {
  const rate = (count: number) => found[`callers-${count}`]!;
  const rates = counts.map((count): Row => {
    const floor = { name: DOCUMENT, value: found["document"]! };
    const size = { line: name, of: "callers", value: count };
    return {
      name: `${name}, ${count} ${count === 1 ? "caller" : "callers"}`,
      value: rate(count),
      unit: "/s",
      floor,
      size,
    };
  });
  const beside = counts.slice(counts.indexOf(MANY)).map((count): Row => {
    const floor = { name: `${FEW} callers`, value: rate(FEW) };
    return { name: `${name}, ${count} callers beside ${FEW}`, value: rate(count), unit: "/s", floor };
  });
  const floor = fetches
    ? { name: "code without it, and as much bare fetch", value: found["language"]! + fetches * found["bare-fetch"]! }
    : { name: "an evaluate in a page that is kept", value: found["evaluate"]! };
  return [...rates, ...beside, { name: `${name}, one every 200 ms, p50`, value: found["paced"]!, unit: "ms", floor }];
}

export function figureOf(kind: Kind): Figure {
  return {
    title: `runWithResult over HTTP of one app, ${kind.name}`,
    async run(rounds) {
      const floor = await startFloor();
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
