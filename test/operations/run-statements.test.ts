/** Counts the SQL statements of a run, because their number limits the runs per second. */
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import pg from "pg";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { makeAction, publishApp, send } from "../http/support.js";

/** Event of Node's diagnostics channel at the start of a request, in the request's async context. */
const REQUEST_START_EVENT = "http.server.request.start";
/** Number of first requests, which load the caller and the action into caches. */
const WARM_UP_REQUESTS = 3;
const RUNS = 5;
/**
 * Beginnings of statements that belong to no run: the first configures a new connection, and the second skips late runs. A request can
 * cause them.
 */
const OTHER_STATEMENTS = ["SET plan_cache_mode", " UPDATE run SET state = 'skipped', reason = 'late"];

describe("a run whose code is known", () => {
  let service: TestService;
  /** All statements so far, of requests and of the service's own work. */
  let all: string[] = [];
  before(async () => {
    service = await startTestService({ ROLES: "api,runner", RUNNER_CONCURRENCY: "4", ALLOW_PRIVATE_NETWORK: "1" });
  });
  after(() => service.stop());

  /** Returns a list for each HTTP request: the names of its SQL statements, or their beginnings. Omits OTHER_STATEMENTS. */
  async function statementsOf(runs: () => Promise<unknown>): Promise<string[][]> {
    const { query } = pg.Client.prototype;
    const asking = new AsyncLocalStorage<string[]>();
    const statementsByRequest: string[][] = [];
    all = [];
    const onRequest = () => {
      const texts: string[] = [];
      statementsByRequest.push(texts);
      asking.enterWith(texts);
    };
    // biome-ignore lint/suspicious/noExplicitAny: the driver accepts several kinds of arguments
    pg.Client.prototype.query = function (this: pg.Client, ...args: any[]) {
      const [{ text = args[0], name = String(text).replaceAll(/\s+/g, " ").slice(0, 60) }] = args;
      if (!OTHER_STATEMENTS.some((start) => name.startsWith(start))) asking.getStore()?.push(name);
      all.push(name);
      return Reflect.apply(query, this, args);
    } as typeof query;
    subscribe(REQUEST_START_EVENT, onRequest);
    try {
      await runs();
    } finally {
      unsubscribe(REQUEST_START_EVENT, onRequest);
      pg.Client.prototype.query = query;
    }
    return statementsByRequest;
  }

  /** Returns the statements of each run while the caller's token is cached. Repeats the runs if the service has read the token again. */
  async function collectStatementsWithCachedToken(runs: () => Promise<unknown>): Promise<string[][]> {
    let statements: string[][];
    do statements = await statementsOf(runs);
    while (statements.flat().includes("find-credential"));
    return statements;
  }

  const call = (name: string, n: number) =>
    service.rest("POST", `/v3/apps/1/actions/${name}/runWithResult`, { body: { n } });

  const create = (name: string, code: string, fields: object = {}) =>
    service.rest("POST", "/v3/apps/1/actions", {
      body: { name, code, active: true, triggers: [{ trigger: "manual" }], ...fields },
    });

  it("needs two statements, for its row and its end", async () => {
    await create("known", "async function execute({ payload }) { return payload.n }");
    const runs = async (count: number) => {
      for (let n = 0; n < count; n += 1) expect((await call("known", n)).body.result).to.equal(n);
    };
    await runs(WARM_UP_REQUESTS);
    const statements = await collectStatementsWithCachedToken(() => runs(RUNS));
    expect(statements).to.deep.equal(Array(RUNS).fill(["insert-named-run-none", "finish-runs"]));
  });

  it("needs one more statement if a request to an HTTP trigger starts it: the search for the trigger", async () => {
    await publishApp(service);
    await makeAction(
      service,
      { method: "POST", path: "known", auth: { type: "bearer" } },
      { code: "async function execute() { return 1 }" },
    );
    const runs = async (count: number) => {
      for (let n = 0; n < count; n += 1) {
        const headers = { "auth-token": service.tokens.api };
        expect(await send(service.url, "/h/1/known", { method: "POST", headers })).to.include({ http: 200, json: 1 });
      }
    };
    await runs(WARM_UP_REQUESTS);
    const statements = await collectStatementsWithCachedToken(() => runs(RUNS));
    expect(statements).to.deep.equal(Array(RUNS).fill(["find-http-routes", "insert-named-run-none", "finish-runs"]));
  });

  it("needs two more statements for each request to another service, which read whether the app's secrets have changed", async () => {
    const host = createServer((_request, response) => response.end("fine")).listen(0, "127.0.0.1");
    await once(host, "listening");
    const origin = `http://127.0.0.1:${(host.address() as AddressInfo).port}`;
    const request = `(await Svc.App.V3.Actions.request({ url: "${origin}/" })).status`;
    const code = `async function execute() { return [${request}, ${request}]; }`;
    try {
      await create("requests", code, { integrationOrigins: [origin] });
      const expectRun = async () => expect((await call("requests", 0)).body.result).to.deep.equal([200, 200]);
      await expectRun();
      await statementsOf(expectRun);
      const ofRun = all.filter((name) => /^insert-named|secrets-version|finish-run/.test(name));
      expect(ofRun).to.deep.equal(["insert-named-run-none", ...Array(4).fill("secrets-version"), "finish-runs"]);
    } finally {
      host.closeAllConnections();
      host.close();
    }
  });

  longTest(
    "needs one more statement if it waits for a slot: a claim, which also reads its code and its app's secrets",
    async () => {
      await create("slow", "async function execute() { await new Promise((resolve) => setTimeout(resolve, 500)); }");
      await call("slow", 0);
      // On a busy machine, the calls may arrive so far apart that none of them waits. So the test repeats them.
      do {
        await statementsOf(() => Promise.all(Array.from({ length: 2 * RUNS }, (_, n) => call("slow", n))));
        expect(all).to.not.include("secrets-version");
      } while (!all.includes("claim-run"));
    },
  );
});
