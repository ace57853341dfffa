/** Measures the gain in runs per second from a second core, and from a second runner process. */
import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { type LoadGenerator, startLoadGenerator } from "../harness/callers.js";
import { startChildServer } from "../harness/child.js";
import { type Figure, type FigureRow, measureAlternating } from "../harness/figure.js";
import {
  ACTION_KINDS,
  type ActionKind,
  createActionBody,
  getRunWithResultPath,
  RUN_PAYLOAD,
} from "../harness/kinds.js";
import { type BenchService, startBenchService, startFleet } from "../harness/service.js";

const CALLER_COUNT = 8;
const MEASURED_KINDS = ["language", "fetch"];
const WARM_UP_MS = 1_000;
const SERVICE_ENVIRONMENT = { ALLOW_PRIVATE_NETWORK: "1" };

/**
 * Measures runs per second of two services. The first service is the baseline; the second one has more cores or runners. Both services
 * run all the time, but only one of them gets calls at a time.
 */
async function measureGrowth(
  rounds: number,
  names: [string, string],
  services: [BenchService, BenchService],
): Promise<FigureRow[]> {
  const callers = startLoadGenerator();
  const host = await startChildServer("local-host.js");
  const rows: FigureRow[] = [];
  try {
    for (const kind of ACTION_KINDS.filter(({ name }) => MEASURED_KINDS.includes(name))) {
      const [small, large] = await Promise.all(
        services.map((service) => createRateMeasurement(service, kind, host.url, callers)),
      );
      const medians = await measureAlternating(rounds, { small: small!, large: large! });
      const floor = { name: names[0], value: medians.small };
      rows.push({
        name: `${kind.name}, ${CALLER_COUNT} callers, ${names[1]}`,
        value: medians.large,
        unit: "/s",
        floor,
      });
    }
    return rows;
  } finally {
    callers.stop();
    host.child.kill();
    for (const service of services) await service.stop();
  }
}

async function createRateMeasurement(
  service: BenchService,
  kind: ActionKind,
  url: string,
  callers: LoadGenerator,
): Promise<() => Promise<number>> {
  const { appId } = service.first;
  await service.call("POST", `/v3/apps/${appId}/actions`, createActionBody(kind));
  const calls = {
    service,
    paths: [getRunWithResultPath(appId, kind)],
    payload: { ...RUN_PAYLOAD, url },
    result: kind.result,
  };
  let warm = false;
  return async () => {
    if (!warm) await callers.measureRate(calls, CALLER_COUNT, WARM_UP_MS);
    warm = true;
    return callers.measureRate(calls, CALLER_COUNT);
  };
}

/** Calls `start` while this process is pinned to the CPU cores in `list`. The processes that `start` creates inherit the pinning. */
async function startOnCores<T>(list: string, start: () => Promise<T>): Promise<T> {
  const pinToCores = (coreList: string) =>
    execFileSync("taskset", ["-pc", coreList, String(process.pid)], { stdio: "ignore" });
  pinToCores(list);
  try {
    return await start();
  } finally {
    pinToCores(`0-${availableParallelism() - 1}`);
  }
}

export const runRateByCoresFigure: Figure = {
  title: "runs a second by the number of cores of the service",
  async run(rounds) {
    const smallService = await startOnCores("0", () => startBenchService(SERVICE_ENVIRONMENT));
    const largeService = await startOnCores("0,1", () => startBenchService(SERVICE_ENVIRONMENT));
    return measureGrowth(rounds, ["one core", "two cores"], [smallService, largeService]);
  },
};

export const runRateByRunnersFigure: Figure = {
  title: "runs a second by the number of runners",
  async run(rounds) {
    const smallService = await startFleet(1, SERVICE_ENVIRONMENT);
    const largeService = await startFleet(2, SERVICE_ENVIRONMENT);
    return measureGrowth(rounds, ["one runner", "two runners"], [smallService, largeService]);
  },
};
