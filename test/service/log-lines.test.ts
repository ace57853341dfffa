/**
 * Tests the log lines with which a process reports its work: migrations, requests, and a trace collector that does not respond. No line
 * contains a secret.
 */
import { expect } from "chai";
import { pino } from "pino";
import { createExportLog } from "../../src/operations/watch/tracing.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { until } from "../harness/until.js";

const CANARY = "canary-of-a-request-77d1";
const SETTING_CANARY = "canary-of-a-setting-4c1f";

describe("the log of a process", () => {
  let service: ServiceProcess;
  let url: string;
  const linesOf = (message: string) => service.log.filter(({ msg }) => msg === message);
  const requests = () => linesOf("request").map(({ method, route, status }) => [method, route, status]);

  before(async () => {
    service = startProcess({
      // Makes the process write the lines of all levels.
      LOG_LEVEL: "trace",
      ROLES: "api",
      NPM_PACKAGES: "off",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
      OTEL_EXPORTER_OTLP_TIMEOUT: "200",
      OTEL_BSP_SCHEDULE_DELAY: "50",
    });
    url = await service.ready();
  });
  after(() => service.clean());

  it("has one line on finished migrations", () => {
    const lines = linesOf("the schema is migrated");
    expect(lines).to.have.length(1);
    expect(Number(lines[0]!["migrations"])).to.be.above(40);
    expect(lines[0]!["newest"]).to.match(/\d{13}$/);
    expect(lines[0]!["durationMs"]).to.be.a("number");
    expect(lines[0]!["level"]).to.equal(30);
  });

  it("has one line of level debug for each request, without query string, token and body", async () => {
    const { tokens } = service.credentials();
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
    const [line] = linesOf("request");
    expect(line!["requestId"]).to.equal(answer.headers.get("x-request-id"));
    expect(line!["durationMs"]).to.be.above(0);
    expect(line!["level"]).to.equal(20);
    const text = JSON.stringify(linesOf("request"));
    expect(text).to.not.contain(CANARY);
    expect(text).to.not.contain(tokens.editor.slice(-43));
  });

  it("has a line if a trace collector is not reachable", async () => {
    await fetch(`${url}/v3/apps/1/actions`);
    const line = await until(() => linesOf("the trace collector does not accept spans")[0]);
    expect(line).to.include({ level: 40, collector: "http://127.0.0.1:9" });
    expect(line["reason"]).to.be.a("string").and.not.equal("");
    expect(Number(line["lostSpans"])).to.be.above(0);
  });

  it("contains no token and no value of a setting, for any request", async () => {
    const { appId, tokens } = service.credentials();
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
    service.signal("SIGTERM");
    await service.ended;
    const text = JSON.stringify(service.log) + service.stderr();
    expect(text).to.include("ready");
    expect(text).not.to.include(SETTING_CANARY);
    for (const token of Object.values(tokens)) expect(text).not.to.include(token.slice(-43));
  });
});

describe("the log of exported spans", () => {
  it("has one line a minute while batches fail, with the number of lost spans, and one when they succeed again", () => {
    const lines: Record<string, unknown>[] = [];
    let time = 0;
    const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
    const report = createExportLog("http://collector:4318", log, () => time);
    report({ code: 0 }, 3);
    for (let at = 0; at < 130; at += 1) {
      report({ code: 1, error: new Error("connect ECONNREFUSED") }, 2);
      time += 1_000;
    }
    report({ code: 0 }, 3);
    report({ code: 0 }, 3);
    expect(lines.map(({ msg, lostSpans }) => [msg, lostSpans])).to.deep.equal([
      ["the trace collector does not accept spans", 2],
      ["the trace collector does not accept spans", 122],
      ["the trace collector does not accept spans", 242],
      ["the trace collector accepts spans again", 260],
    ]);
    expect(lines[0]).to.include({ reason: "connect ECONNREFUSED", collector: "http://collector:4318" });
  });
});
