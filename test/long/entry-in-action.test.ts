/**
 * Compares the cost of a data source call inside a server action with that of the same call over HTTP. The measurements alternate between
 * the two.
 */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

const ROUNDS = 200;
const WARM_UP_CALLS = 30;
const EXTRA_MAX_MS = 3;

/** Code that reads four times, and returns the duration of each read in milliseconds. */
const CODE = `async function execute() {
  const seats = await Svc.DataSources.connectByName("seats");
  const times = [];
  let count = 0;
  for (let n = 0; n < 4; n += 1) {
    const from = performance.now();
    count += (await seats.find({ limit: 10 })).length;
    times.push(performance.now() - from);
  }
  return { count, times };
}`;

const median = (times: readonly number[]): number => [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)]!;

describe("a data source inside a server action", function () {
  this.timeout(0);
  let service: TestService;
  let path: string;

  before(async () => {
    service = await startTestService();
    path = `/v1/apps/${service.appId}/data-sources`;
    const entries = Array.from({ length: 1_000 }, (_, n) => ({ Row: `R${n % 20}`, Seat: n }));
    await service.rest("POST", path, { body: { name: "seats", entries } });
    const action = {
      name: "read",
      active: true,
      triggers: [{ trigger: "manual" }],
      dependencies: ["svc-datasources"],
      code: CODE,
    };
    const made = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: action });
    expect(made.http, JSON.stringify(made.body)).to.equal(201);
  });

  after(() => service?.stop());

  it(`finds ten entries at most ${EXTRA_MAX_MS} ms later than over HTTP`, async () => {
    const httpDurations: number[] = [];
    const actionDurations: number[][] = [[], [], [], []];
    for (let n = 0; n < ROUNDS + WARM_UP_CALLS; n += 1) {
      const from = performance.now();
      const direct = await service.rest("POST", `${path}/seats/query`, { body: { type: "select", limit: 10 } });
      const ms = performance.now() - from;
      const run = await service.rest("POST", `/v3/apps/${service.appId}/actions/read/runWithResult`, { body: {} });
      expect([direct.body.entries.length, run.body.result.count], JSON.stringify(run.body)).to.deep.equal([10, 40]);
      if (n < WARM_UP_CALLS) continue;
      httpDurations.push(ms);
      for (const [index, times] of actionDurations.entries()) times.push(run.body.result.times[index]);
    }
    const http = median(httpDurations);
    const above = actionDurations.map((times) => median(times) - http);
    console.log(
      `      over HTTP ${http.toFixed(2)} ms, in an action later by ${above.map((ms) => ms.toFixed(2)).join(", ")} ms`,
    );
    for (const ms of above) expect(ms).to.be.at.most(EXTRA_MAX_MS);
  });
});
