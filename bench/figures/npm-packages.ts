/** Measures runs that use npm packages, with eight callers and with one. The baseline is a package of the service itself. */
import { startLoadGenerator } from "../harness/callers.js";
import { startChildServer } from "../harness/child.js";
import { type FigureRow, measureAlternating } from "../harness/figure.js";
import {
  type ActionKind,
  CSV_KIND,
  createActionBody,
  getRunWithResultPath,
  NPM_PACKAGE_KINDS,
  RUN_PAYLOAD,
} from "../harness/kinds.js";
import { type BenchService, startBenchService } from "../harness/service.js";

export const title = "runWithResult over HTTP of one app, npm packages";

const CALLER_COUNT = 8;
const WARM_UP_MS = 1_500;
const MEASURED_KINDS = [CSV_KIND, ...NPM_PACKAGE_KINDS];

async function measurePackages(rounds: number, service: BenchService): Promise<FigureRow[]> {
  const callers = startLoadGenerator();
  try {
    const { appId } = service.first;
    const callsOf = (calledKind: ActionKind) => ({
      service,
      paths: [getRunWithResultPath(appId, calledKind)],
      payload: RUN_PAYLOAD,
      result: calledKind.result,
    });
    for (const warmedKind of MEASURED_KINDS) await callers.measureRate(callsOf(warmedKind), CALLER_COUNT, WARM_UP_MS);
    const rates = await measureAlternating<string>(
      rounds,
      Object.fromEntries(
        MEASURED_KINDS.map((ratedKind) => [
          ratedKind.name,
          () => callers.measureRate(callsOf(ratedKind), CALLER_COUNT),
        ]),
      ),
    );
    const durations = await measureAlternating<string>(
      rounds,
      Object.fromEntries(
        MEASURED_KINDS.map((pacedKind) => [pacedKind.name, () => callers.measurePacedDuration(callsOf(pacedKind))]),
      ),
    );
    return NPM_PACKAGE_KINDS.flatMap(({ name }): FigureRow[] => [
      {
        name: `${name}, ${CALLER_COUNT} callers`,
        value: rates[name]!,
        unit: "/s",
        floor: { name: CSV_KIND.name, value: rates[CSV_KIND.name]! },
      },
      {
        name: `${name}, one call every 200 ms, p50`,
        value: durations[name]!,
        unit: "ms",
        floor: { name: CSV_KIND.name, value: durations[CSV_KIND.name]! },
      },
    ]);
  } finally {
    callers.stop();
  }
}

export async function run(rounds: number): Promise<FigureRow[]> {
  const registry = await startChildServer("installed-packages.js");
  const service = await startBenchService({ NPM_PACKAGES: "on", NPM_REGISTRY: registry.url });
  try {
    for (const createdKind of MEASURED_KINDS)
      await service.call("POST", `/v3/apps/${service.first.appId}/actions`, createActionBody(createdKind));
    return await measurePackages(rounds, service);
  } finally {
    registry.child.kill();
    await service.stop();
  }
}
