/** Growth of runs per second with the number of cores, and with the number of runner processes. */
import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { type Callers, startCallers } from "../harness/callers.js";
import { startServer } from "../harness/child.js";
import { type Figure, inTurns, type Row } from "../harness/figure.js";
import { actionOf, KINDS, type Kind, PAYLOAD, runPath } from "../harness/kinds.js";
import { type BenchService, startBenchService, startFleet } from "../harness/service.js";

const CALLERS = 8;
const MEASURED = ["language", "fetch"];
const WARM_UP_MS = 1_000;
const ENVIRONMENT = { ALLOW_PRIVATE_NETWORK: "1" };

/** Each kind for the smaller and the larger service; both are running while one of them works. */
async function measure(
  rounds: number,
  names: [string, string],
  services: [BenchService, BenchService],
): Promise<Row[]> {
  const callers = startCallers();
  const host = await startServer("local-host.js");
  const rows: Row[] = [];
  try {
    for (const kind of KINDS.filter(({ name }) => MEASURED.includes(name))) {
      const [small, large] = await Promise.all(services.map((service) => rateOn(service, kind, host.url, callers)));
      const found = await inTurns(rounds, { small: small!, large: large! });
      const floor = { name: names[0], value: found.small };
      rows.push({ name: `${kind.name}, ${CALLERS} callers, ${names[1]}`, value: found.large, unit: "/s", floor });
    }
    return rows;
  } finally {
    callers.stop();
    host.child.kill();
    for (const service of services) await service.stop();
  }
}

async function rateOn(
  service: BenchService,
  kind: Kind,
  url: string,
  callers: Callers,
): Promise<() => Promise<number>> {
  const { appId } = service.first;
  await service.call("POST", `/v3/apps/${appId}/actions`, actionOf(kind));
  const calls = { service, paths: [runPath(appId, kind)], payload: { ...PAYLOAD, url }, result: kind.result };
  let warm = false;
  return async () => {
    if (!warm) await callers.rate(calls, CALLERS, WARM_UP_MS);
    warm = true;
    return callers.rate(calls, CALLERS);
  };
}

/** Processes started by `start` have only those cores: a process inherits them from its parent thread. */
async function onCores<T>(list: string, start: () => Promise<T>): Promise<T> {
  const pin = (cores: string) => execFileSync("taskset", ["-pc", cores, String(process.pid)], { stdio: "ignore" });
  pin(list);
  try {
    return await start();
  } finally {
    pin(`0-${availableParallelism() - 1}`);
  }
}

export const cores: Figure = {
  title: "runs with the cores that the service has; the callers have all",
  async run(rounds) {
    const one = await onCores("0", () => startBenchService(ENVIRONMENT));
    const two = await onCores("0,1", () => startBenchService(ENVIRONMENT));
    return measure(rounds, ["one core", "two cores"], [one, two]);
  },
};

export const runners: Figure = {
  title: "runs with the processes that perform them, beside one that has the API",
  async run(rounds) {
    const one = await startFleet(1, ENVIRONMENT);
    const two = await startFleet(2, ENVIRONMENT);
    return measure(rounds, ["one runner", "two runners"], [one, two]);
  },
};
