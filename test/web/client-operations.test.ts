import { expect } from "chai";
import { rejectionCode, useClientPage } from "./client-page.js";

interface OperationCase {
  call: string;
  request: [method: string, path: string, body: unknown];
  answer: object;
  result: unknown;
}

const action = { id: 5, name: "hello" };

/** Calls of the client library, each with the request that it must send, the response, and the value that it must return. */
const OPERATION_CASES: OperationCase[] = [
  {
    call: "get()",
    request: ["GET", "/v3/apps/1/actions", null],
    answer: { status: "ACTIONS_LISTED", actions: [action], pagination: { total: 1, hasMore: false } },
    result: { actions: [action], pagination: { total: 1, hasMore: false } },
  },
  {
    call: "get({limit: 2, offset: 4})",
    request: ["GET", "/v3/apps/1/actions?limit=2&offset=4", null],
    answer: { status: "ACTIONS_LISTED", actions: [], pagination: { total: 1, hasMore: false } },
    result: { actions: [], pagination: { total: 1, hasMore: false } },
  },
  { call: "getById(5)", request: ["GET", "/v3/apps/1/actions/5", null], answer: { action }, result: action },
  {
    call: "create({name: 'hello'})",
    request: ["POST", "/v3/apps/1/actions", { name: "hello" }],
    answer: { status: "ACTION_CREATED", action },
    result: action,
  },
  {
    call: "update(5, {description: null})",
    request: ["PUT", "/v3/apps/1/actions/5", { description: null }],
    answer: { status: "ACTION_UPDATED", action },
    result: action,
  },
  {
    call: "remove(5)",
    request: ["DELETE", "/v3/apps/1/actions/5", null],
    answer: { status: "ACTION_DELETED" },
    result: undefined,
  },
  {
    call: "run('hello', {a: 1})",
    request: ["POST", "/v3/apps/1/actions/hello/run?by=name", { a: 1 }],
    answer: { status: "ACTION_QUEUED", runId: 9 },
    result: undefined,
  },
  {
    call: "runWithResult(5)",
    request: ["POST", "/v3/apps/1/actions/5/runWithResult", {}],
    answer: { status: "ACTION_EXECUTED", runId: 9, result: [1, { two: null }] },
    result: [1, { two: null }],
  },
  {
    call: "publish(5)",
    request: ["POST", "/v3/apps/1/actions/5/publish", null],
    answer: { status: "ACTION_PUBLISHED", action },
    result: { action },
  },
  {
    call: "unpublish(5)",
    request: ["POST", "/v3/apps/1/actions/5/unpublish", null],
    answer: { status: "ACTION_UNPUBLISHED" },
    result: undefined,
  },
  {
    call: "getLogs({id: 5, where: {type: 'app.task.failed'}})",
    request: ["POST", "/v3/apps/1/actions/logs", { id: 5, where: { type: "app.task.failed" } }],
    answer: { status: "LOGS_LISTED", count: 0, logs: [] },
    result: { count: 0, logs: [] },
  },
];

describe("Svc.App.V3.Actions in a browser", () => {
  const client = useClientPage({ isReloaded: true });
  const actions = (call: string) => client.run(`Svc.App.V3.Actions.${call}`);
  const rejection = (call: string) => client.run(rejectionCode(`Svc.App.V3.Actions.${call}`));

  for (const { call: code, request, answer, result } of OPERATION_CASES) {
    it(`${code} sends ${request[0]} ${request[1]} and resolves as specified`, async () => {
      client.service.answers.set(`${request[0]} ${request[1]}`, { body: answer });
      expect(await actions(code)).to.deep.equal(result);
      expect(client.service.received.map(({ method, path, body }) => [method, path, body])).to.deep.equal([request]);
    });
  }

  for (const { call: code, request } of OPERATION_CASES) {
    it(`${code} rejects with an Error that spreads and prints as {status, error}, and nothing else of the body`, async () => {
      const received = { status: "ACTION_INACTIVE", error: "the action is inactive" };
      const body = { ...received, runId: 7, retryAfter: 3, stack: "at secret", message: "other", name: "Other" };
      client.service.answers.set(`${request[0]} ${request[1]}`, { status: 409, body });
      expect(await rejection(code)).to.deep.equal({
        isError: true,
        name: "SvcError",
        message: "the action is inactive",
        own: received,
        json: JSON.stringify(received),
      });
    });

    it(`${code} rejects with {status, error} if no response arrives, or if one is cut off`, async () => {
      const { origin } = client.service;
      const endedEarly = { status: "NETWORK_ERROR", error: `the response from ${origin} ended unexpectedly` };
      client.service.answers.set(`${request[0]} ${request[1]}`, { body: endedEarly, cut: "after the headers" });
      expect(await rejection(code)).to.deep.include({
        isError: true,
        own: endedEarly,
        json: JSON.stringify(endedEarly),
      });
      const error = `no response from ${origin}, or the browser blocked the response`;
      const noResponse = { status: "NETWORK_ERROR", error };
      client.service.answers.set(`${request[0]} ${request[1]}`, { cut: "before the headers" });
      expect(await rejection(code)).to.deep.include({
        isError: true,
        own: noResponse,
        json: JSON.stringify(noResponse),
      });
    });
  }

  it("lets a caller read which run failed and how long to wait, outside the body", async () => {
    const body = { status: "OVERLOADED", error: "later", runId: 7, retryAfter: 3 };
    client.service.answers.set("GET /v3/apps/1/actions", { status: 503, body });
    const readErrorDetails = "Svc.App.V3.Actions.get().catch(({ runId, retryAfter }) => [runId, retryAfter])";
    expect(await client.run(readErrorDetails)).to.deep.equal([7, 3]);
  });

  for (const call of ["run('a', { one: 1n })", "runWithResult('a', (() => { const o = {}; o.o = o; return o })())"]) {
    it(`${call} rejects with {status, error} before anything is sent`, async () => {
      expect(await rejection(call)).to.have.nested.include({ "own.status": "REQUEST_INVALID", isError: true });
      expect(client.service.received).to.deep.equal([]);
    });
  }

  it("accepts null as no options, and rejects half a character in a name as an unknown name", async () => {
    await actions("get(null)");
    await actions("run('\\ud800')");
    expect(client.service.received.map(({ path }) => path)).to.deep.equal([
      "/v3/apps/1/actions",
      "/v3/apps/1/actions/%EF%BF%BD/run?by=name",
    ]);
  });

  it("reports when a rejected request may be repeated", async () => {
    const body = { status: "RATE_LIMIT_EXCEEDED", error: "too many", nextValidRequestDate: "2030-01-01T00:00:00.000Z" };
    client.service.answers.set("GET /v3/apps/1/actions", { status: 429, body, headers: { "retry-after": "7" } });
    expect(await rejection("get()")).to.have.deep.property("own", body);
  });

  it("rejects with {status, error} if a proxy responds with its own page", async () => {
    client.service.answers.set("GET /v3/apps/1/actions", {
      status: 502,
      body: "<html>",
      headers: { "content-type": "text/html" },
    });
    expect(await rejection("get()")).to.have.nested.include({ "own.status": "INTERNAL_ERROR" });
  });

  it("sends nothing for a name that would leave its path", async () => {
    for (const name of ["", ".", ".."]) {
      expect(await rejection(`run(${JSON.stringify(name)})`)).to.have.nested.include({
        "own.status": "ACTION_NOT_FOUND",
      });
    }
    await actions("run('../../v1/admin')");
    expect(client.service.received.map(({ path }) => path)).to.deep.equal([
      "/v3/apps/1/actions/..%2F..%2Fv1%2Fadmin/run?by=name",
    ]);
  });
});
