/** Runs with npm packages over HTTP, each compared with a package of the service: eight callers, and one. */
import { startCallers } from "../harness/callers.js";
import { startServer } from "../harness/child.js";
import { inTurns, type Row } from "../harness/figure.js";
import { actionOf, CSV, type Kind, PACKAGES, PAYLOAD, runPath } from "../harness/kinds.js";
import { type BenchService, startBenchService } from "../harness/service.js";

export const title = "runWithResult over HTTP of one app, packages of npm beside one of the service's own";

const CALLERS = 8;
const WARM_UP_MS = 1_500;
const ALL = [CSV, ...PACKAGES];

async function measure(rounds: number, service: BenchService): Promise<Row[]> {
  const callers = startCallers();
  try {
    const { appId } = service.first;
    const of = (one: Kind) => ({ service, paths: [runPath(appId, one)], payload: PAYLOAD, result: one.result });
    for (const one of ALL) await callers.rate(of(one), CALLERS, WARM_UP_MS);
    const rates = await inTurns<string>(
      rounds,
      Object.fromEntries(ALL.map((one) => [one.name, () => callers.rate(of(one), CALLERS)])),
    );
    const waits = await inTurns<string>(
      rounds,
      Object.fromEntries(ALL.map((one) => [one.name, () => callers.paced(of(one))])),
    );
    return PACKAGES.flatMap(({ name }): Row[] => [
      {
        name: `${name}, ${CALLERS} callers`,
        value: rates[name]!,
        unit: "/s",
        floor: { name: CSV.name, value: rates[CSV.name]! },
      },
      {
        name: `${name}, one every 200 ms, p50`,
        value: waits[name]!,
        unit: "ms",
        floor: { name: CSV.name, value: waits[CSV.name]! },
      },
    ]);
  } finally {
    callers.stop();
  }
}

export async function run(rounds: number): Promise<Row[]> {
  const registry = await startServer("installed-packages.js");
  const service = await startBenchService({ NPM_PACKAGES: "on", NPM_REGISTRY: registry.url });
  try {
    for (const one of ALL) await service.call("POST", `/v3/apps/${service.first.appId}/actions`, actionOf(one));
    return await measure(rounds, service);
  } finally {
    registry.child.kill();
    await service.stop();
  }
}
