/** Runs started by requests to an HTTP trigger, compared with the same action by runWithResult, each with an API token. */
import { startCallers } from "../harness/callers.js";
import { inTurns, type Row } from "../harness/figure.js";
import { actionOf, LANGUAGE, PAYLOAD, runPath } from "../harness/kinds.js";
import { startBenchService } from "../harness/service.js";

export const title = "requests to an HTTP trigger, and runWithResult of the same action";

const CALLERS = [1, 8, 64];
const WARM_UP_MS = 1_000;
const PATH = "bench";
/** An HTTP trigger has the body in its payload. */
const BODY = "const { a, b } = payload.request?.body ?? payload; return a + b;";

export async function run(rounds: number): Promise<Row[]> {
  const service = await startBenchService({ RATE_LIMIT_HTTP: "0" });
  const callers = startCallers();
  try {
    const { appId, tokens } = service.first;
    const where = { method: "POST", path: PATH, auth: { type: "bearer" } };
    const triggers = [{ trigger: "manual" }, { trigger: "http", where }];
    const data = { ...actionOf({ ...LANGUAGE, body: BODY }), triggers };
    const { action } = await service.call("POST", `/v3/apps/${appId}/actions`, data);
    await service.call("POST", `/v1/apps/${appId}/publish`);
    await service.call("POST", `/v3/apps/${appId}/actions/${action.id}/publish`);
    const shared = { service, token: tokens.api, payload: PAYLOAD, result: LANGUAGE.result };
    const called = { ...shared, paths: [runPath(appId, LANGUAGE)] };
    const requested = { ...shared, paths: [`/h/${appId}/${PATH}`], expected: `\r\n\r\n${LANGUAGE.result}` };
    await callers.rate(called, 8, WARM_UP_MS);
    await callers.rate(requested, 8, WARM_UP_MS);
    const measurements = CALLERS.flatMap((count) => [
      [`called ${count}`, () => callers.rate(called, count)] as const,
      [`requested ${count}`, () => callers.rate(requested, count)] as const,
    ]);
    const found: Record<string, number> = await inTurns(rounds, Object.fromEntries(measurements));
    return CALLERS.map((count) => ({
      name: `HTTP trigger, ${count} ${count === 1 ? "caller" : "callers"}`,
      value: found[`requested ${count}`]!,
      unit: "/s",
      floor: { name: "runWithResult", value: found[`called ${count}`]! },
      size: { line: "HTTP trigger", of: "callers", value: count },
    }));
  } finally {
    callers.stop();
    await service.stop();
  }
}
