/** Measures how long one `request()` takes within a run, compared with a request that undici sends to the same server. */
import { request } from "undici";
import { startChildServer } from "../harness/child.js";
import { computeMedian, type FigureRow, measureAlternating, timeCalls } from "../harness/figure.js";
import { type ActionKind, createActionBody, getRunWithResultPath, RUN_PAYLOAD } from "../harness/kinds.js";
import { startBenchService } from "../harness/service.js";

export const title = "request() within a run, one after the other";

/** Number of requests that one run sends; the service allows 100. */
const REQUESTS_PER_RUN = 60;
const TIMED_REQUESTS: ActionKind = {
  name: "timed-requests",
  body: `const took = [];
    for (let turn = 0; turn < ${REQUESTS_PER_RUN}; turn += 1) {
      const begun = performance.now();
      await Svc.App.V3.Actions.request({ url: payload.url });
      took.push(performance.now() - begun);
    }
    return took;`,
  result: null,
  usesRequest: true,
};

export async function run(rounds: number): Promise<FigureRow[]> {
  const service = await startBenchService({ ALLOW_PRIVATE_NETWORK: "1" });
  const host = await startChildServer("local-host.js");
  try {
    const { appId } = service.first;
    await service.call("POST", `/v3/apps/${appId}/actions`, createActionBody(TIMED_REQUESTS, host.url));
    const measure = async () => {
      const { result } = await service.call("POST", getRunWithResultPath(appId, TIMED_REQUESTS), {
        ...RUN_PAYLOAD,
        url: host.url,
      });
      return computeMedian(result as number[]);
    };
    await measure();
    const measureBaseline = async () =>
      computeMedian(await timeCalls(REQUESTS_PER_RUN, async () => (await request(host.url)).body.text()));
    const { serviceMs, floor } = await measureAlternating(rounds, { serviceMs: measure, floor: measureBaseline });
    return [{ name: "request(), p50", value: serviceMs, unit: "ms", floor: { name: "undici", value: floor } }];
  } finally {
    host.child.kill();
    await service.stop();
  }
}
