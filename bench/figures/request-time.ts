/** Duration of one `request()` within a run, compared with undici's own request to the same server. */
import { request } from "undici";
import { startServer } from "../harness/child.js";
import { inTurns, median, type Row, timeEach } from "../harness/figure.js";
import { actionOf, type Kind, PAYLOAD, runPath } from "../harness/kinds.js";
import { startBenchService } from "../harness/service.js";

export const title = "request() within a run, one after the other";

/** One run can send 100. */
const REQUESTS = 60;
const TIMED: Kind = {
  name: "timed-requests",
  body: `const took = [];
    for (let turn = 0; turn < ${REQUESTS}; turn += 1) {
      const begun = performance.now();
      await Svc.App.V3.Actions.request({ url: payload.url });
      took.push(performance.now() - begun);
    }
    return took;`,
  result: null,
  sends: true,
};

export async function run(rounds: number): Promise<Row[]> {
  const service = await startBenchService({ ALLOW_PRIVATE_NETWORK: "1" });
  const host = await startServer("local-host.js");
  try {
    const { appId } = service.first;
    await service.call("POST", `/v3/apps/${appId}/actions`, actionOf(TIMED, host.url));
    const measure = async () => {
      const { result } = await service.call("POST", runPath(appId, TIMED), { ...PAYLOAD, url: host.url });
      return median(result as number[]);
    };
    await measure();
    const bare = async () => median(await timeEach(REQUESTS, async () => (await request(host.url)).body.text()));
    const { own, floor } = await inTurns(rounds, { own: measure, floor: bare });
    return [{ name: "request(), p50", value: own, unit: "ms", floor: { name: "undici", value: floor } }];
  } finally {
    host.child.kill();
    await service.stop();
  }
}
