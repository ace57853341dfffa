/**
 * Measures how many runs per second start through an HTTP trigger. The baseline is runWithResult of the same action. Both use an API token.
 */
import { startLoadGenerator } from "../harness/callers.js";
import { type FigureRow, measureAlternating } from "../harness/figure.js";
import { createActionBody, getRunWithResultPath, PLAIN_JAVASCRIPT_KIND, RUN_PAYLOAD } from "../harness/kinds.js";
import { startBenchService } from "../harness/service.js";

export const title = "requests to an HTTP trigger, and runWithResult of the same action";

const CALLER_COUNTS = [1, 8, 64];
const WARM_UP_MS = 1_000;
const TRIGGER_PATH = "bench";
/** Code of the action. A request to the HTTP trigger has the numbers in its body. A call of runWithResult has them in the payload. */
const ACTION_BODY = "const { a, b } = payload.request?.body ?? payload; return a + b;";

export async function run(rounds: number): Promise<FigureRow[]> {
  const service = await startBenchService({ RATE_LIMIT_HTTP: "0" });
  const callers = startLoadGenerator();
  try {
    const { appId, tokens } = service.first;
    const where = { method: "POST", path: TRIGGER_PATH, auth: { type: "bearer" } };
    const triggers = [{ trigger: "manual" }, { trigger: "http", where }];
    const data = { ...createActionBody({ ...PLAIN_JAVASCRIPT_KIND, body: ACTION_BODY }), triggers };
    const { action } = await service.call("POST", `/v3/apps/${appId}/actions`, data);
    await service.call("POST", `/v1/apps/${appId}/publish`);
    await service.call("POST", `/v3/apps/${appId}/actions/${action.id}/publish`);
    const shared = { service, token: tokens.api, payload: RUN_PAYLOAD, result: PLAIN_JAVASCRIPT_KIND.result };
    const runWithResultCalls = { ...shared, paths: [getRunWithResultPath(appId, PLAIN_JAVASCRIPT_KIND)] };
    const triggerRequests = {
      ...shared,
      paths: [`/h/${appId}/${TRIGGER_PATH}`],
      expected: `\r\n\r\n${PLAIN_JAVASCRIPT_KIND.result}`,
    };
    await callers.measureRate(runWithResultCalls, 8, WARM_UP_MS);
    await callers.measureRate(triggerRequests, 8, WARM_UP_MS);
    const measurements = CALLER_COUNTS.flatMap((count) => [
      [`called ${count}`, () => callers.measureRate(runWithResultCalls, count)] as const,
      [`requested ${count}`, () => callers.measureRate(triggerRequests, count)] as const,
    ]);
    const medians: Record<string, number> = await measureAlternating(rounds, Object.fromEntries(measurements));
    return CALLER_COUNTS.map((count) => ({
      name: `HTTP trigger, ${count} ${count === 1 ? "caller" : "callers"}`,
      value: medians[`requested ${count}`]!,
      unit: "/s",
      floor: { name: "runWithResult", value: medians[`called ${count}`]! },
      size: { line: "HTTP trigger", of: "callers", value: count },
    }));
  } finally {
    callers.stop();
    await service.stop();
  }
}
