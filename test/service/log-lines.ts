/**
 * Tests the log lines with which a process reports its work: migrations, requests, and a trace collector that does not respond. No line
 * contains a secret. lifecycle.test.ts runs these tests with its first process.
 */
import { expect } from "chai";
import type { ServiceProcess } from "../harness/process.js";
import { until } from "../harness/until.js";

const CANARY = "canary-of-a-request-77d1";
const SETTING_CANARY = "canary-of-a-setting-4c1f";

/** Variables of the process: it writes the lines of all levels, and sends spans to a collector that does not respond. */
export const LOGGING = {
  LOG_LEVEL: "trace",
  OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
  OTEL_EXPORTER_OTLP_TIMEOUT: "200",
  OTEL_BSP_SCHEDULE_DELAY: "50",
};

/** Checks that the log and the error output of a process that has ended contain no secret. */
export function expectNoSecrets(service: ServiceProcess): void {
  const text = JSON.stringify(service.log) + service.stderr();
  expect(text).to.include("ready");
  expect(text).not.to.include(SETTING_CANARY);
  for (const token of Object.values(service.credentials().tokens)) expect(text).not.to.include(token.slice(-43));
}

/** Declares the tests. After the process has ended, the caller must call `expectNoSecrets`. */
export function testLogLines(started: () => ServiceProcess): void {
  const linesOf = (message: string) => started().log.filter(({ msg }) => msg === message);
  const address = () => `http://127.0.0.1:${new URL(started().credentials().baseUrl).port}`;

  it("logs one line on finished migrations", () => {
    const lines = linesOf("the schema is migrated");
    expect(lines).to.have.length(1);
    expect(Number(lines[0]!["migrations"])).to.be.above(40);
    expect(lines[0]!["newest"]).to.match(/\d{13}$/);
    expect(lines[0]!["durationMs"]).to.be.a("number");
    expect(lines[0]!["level"]).to.equal(30);
  });

  it("logs one line of level debug for each request, without query string, token and body", async () => {
    const { tokens } = started().credentials();
    const url = address();
    const marker = (await fetch(`${url}/v3/apps/1/actions`)).headers.get("x-request-id");
    // Log lines are in order, so lines of earlier requests precede the line of this request.
    const at = await until(() => linesOf("request").findIndex(({ requestId }) => requestId === marker) + 1);
    const lines = () => linesOf("request").slice(at);
    const requests = () => lines().map(({ method, route, status }) => [method, route, status]);
    const headers = { "auth-token": tokens.editor, "content-type": "application/json" };
    const body = JSON.stringify({ name: CANARY, code: CANARY, active: true, triggers: [] });
    const answer = await fetch(`${url}/v3/apps/1/actions?${CANARY}=1`, { method: "POST", headers, body });
    await fetch(`${url}/${CANARY}?${CANARY}=2`, { headers });
    await fetch(`${url}/v3/apps/1/actions/${CANARY}?token=${tokens.editor}`);
    await fetch(`${url}/v3/apps/1/actions`, { method: "OPTIONS", headers: { origin: "https://a.example" } });
    await until(() => requests().length >= 4);
    expect(requests()).to.have.deep.members([
      ["POST", "/v3/apps/:appId/actions", answer.status],
      ["GET", "none", 404],
      ["GET", "/v3/apps/:appId/actions/:id", 401],
      ["OPTIONS", "*", 204],
    ]);
    const [line] = lines();
    expect(line!["requestId"]).to.equal(answer.headers.get("x-request-id"));
    expect(line!["durationMs"]).to.be.above(0);
    expect(line!["level"]).to.equal(20);
    const text = JSON.stringify(lines());
    expect(text).to.not.contain(CANARY);
    expect(text).to.not.contain(tokens.editor.slice(-43));
  });

  it("logs a line if a trace collector is not reachable", async () => {
    await fetch(`${address()}/v3/apps/1/actions`);
    const line = await until(() => linesOf("the trace collector does not accept spans")[0]);
    expect(line).to.include({ level: 40, collector: "http://127.0.0.1:9" });
    expect(line["reason"]).to.be.a("string").and.not.equal("");
    expect(Number(line["lostSpans"])).to.be.above(0);
  });

  it("accepts and rejects requests that contain tokens and values of settings", async () => {
    const { appId, tokens } = started().credentials();
    const url = address();
    const settings = `${url}/v1/apps/${appId}/settings`;
    const call = (method: string, address: string, token: string, body?: string) =>
      fetch(address, {
        method,
        headers: { "auth-token": token, "content-type": "application/json" },
        ...(body !== undefined && { body }),
      });
    for (const token of [...Object.values(tokens), `${tokens.editor}x`]) {
      for (const key of ["open", "_own", "__kept", "", "__proto__"]) {
        await call("POST", settings, token, JSON.stringify({ [key]: SETTING_CANARY }));
      }
      await call("POST", settings, token, `{"_own": "${SETTING_CANARY}`);
      await call("GET", settings, token);
      await call("GET", `${url}/v1/apps/${appId}/env.js`, token);
      await call("PUT", `${url}/v1/apps/${appId}`, token, JSON.stringify({ hooks: SETTING_CANARY }));
      await call(
        "POST",
        `${url}/graphql`,
        token,
        JSON.stringify({ query: `{ settings(appId: "${SETTING_CANARY}") }` }),
      );
    }
  });
}
