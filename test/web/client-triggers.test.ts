import { createHash } from "node:crypto";
import { expect } from "chai";
import { longTest } from "../harness/samples.js";
import { until } from "../harness/until.js";
import type { TestAction } from "./client-feed.js";
import { useClientPage } from "./client-page.js";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Path to which pages report the runs of action 5. */
const REPORTS_PATH = "/v3/apps/1/actions/5/clientRuns";

interface RunReport {
  payload: { createdAt: number; type: string; data: Record<string, unknown> };
  result?: unknown;
  error?: { name: string; message: string; stack: string };
  duration: number;
}

const pageViewAction = (code: string, more: Partial<TestAction> = {}): TestAction => ({
  id: 5,
  name: "greet",
  code,
  where: { type: "analytics.pageView" },
  ...more,
});

const returningAction = (value: string) => pageViewAction(`const execute = async (context) => (${value});`);

function useTriggerPage({ isOpened = false } = {}) {
  const client = useClientPage({ isOpened });
  return {
    client,
    /** Opens a page of the published app, which has these client actions. */
    async openWith(...actions: TestAction[]): Promise<void> {
      for (const action of actions) client.service.feed.actions.set(action.id, action);
      client.service.page.env = { appId: 1, environment: "live", ...client.service.page.env };
      await client.open();
    },
    view: (data = {}) => client.run(`Svc.App.Analytics.pageView(${JSON.stringify(data)})`),
    async report(count = 1): Promise<RunReport> {
      return (await client.service.requests(REPORTS_PATH, count))[count - 1]?.body as RunReport;
    },
  };
}

describe("a client action", () => {
  const { client, openWith, view, report } = useTriggerPage();

  it("starts on a page view, also before the socket is open, with the event as its payload and no settings", async () => {
    await openWith(
      returningAction("{ keys: Object.keys(context), settings: context.settings, page: context.payload.data._pageId }"),
    );
    const event = (await view({ _pageId: 12 })) as RunReport["payload"];
    const { payload, result, duration } = await report();
    expect(payload).to.deep.equal(event);
    expect(result).to.deep.equal({ keys: ["payload", "settings"], settings: {}, page: 12 });
    expect(duration).to.be.a("number");
  });

  it("runs under a policy that allows neither eval nor inline scripts", async () => {
    await openWith(returningAction("1"));
    await view();
    await report();
    expect(client.watch).to.deep.equal({ foreign: [], errors: [] });
  });

  it("runs code whose first line is a hashbang comment", async () => {
    await openWith(pageViewAction("#!/usr/bin/env node\nasync function execute() {\n  return 'below a hashbang';\n}"));
    await view();
    expect((await report()).result).to.equal("below a hashbang");
  });

  longTest("runs in a page whose policy asks each script for a nonce", async () => {
    await openWith(returningAction("'with nonce'"));
    await client.page.goto(`${client.service.origin}/page?nonce=abc&policy='nonce-abc'`);
    await view();
    expect((await report()).result).to.equal("with nonce");
  });

  it("gets its code with the token in memory, in a page that allows blob: scripts", async () => {
    await openWith(returningAction("'by token'"));
    await client.page.goto(`${client.service.origin}/page?policy='self' blob:`);
    await client.run(`Svc.configure({ token: "in-memory" })`);
    await view();
    expect((await report()).result).to.equal("by token");
    expect(client.service.page.compileHeaders["auth-token"]).to.equal("in-memory");
  });

  it("starts only on the events that its filter matches", async () => {
    const where = { type: "analytics.pageView", data: { shop: { id: 3 } } };
    await openWith(pageViewAction("async function execute({ payload }) { return payload.data.n; }", { where }));
    await view({ n: 1, shop: { id: 2 } });
    await view({ n: 2, shop: { id: 3, name: "x" } });
    expect((await report()).result).to.equal(2);
    expect(client.service.received.filter(({ path }) => path === REPORTS_PATH)).to.have.length(1);
  });

  it("loads a dependency once, for any number of actions and runs", async () => {
    const url = `${client.service.origin}/dependency.js`;
    const assets = [{ name: url, url, path: "/dependency.js" }];
    const first = { ...returningAction("window.dependencyValue"), assets };
    await openWith(first, { ...first, id: 6 });
    await view();
    await view();
    expect((await report(2)).result).to.equal(1);
    await client.service.requests("/v3/apps/1/actions/6/clientRuns", 2);
    expect(client.service.page.dependencyLoads).to.equal(1);
  });

  it("uses the token in memory if there is one, also on the socket", async () => {
    client.service.page.env = { appId: 1 };
    await client.open();
    await client.run(`Svc.App.Triggers.start(); Svc.configure({ token: "in-memory" })`);
    const { connectionParams } = client.service.feed;
    await until(() => connectionParams.some((sent) => (sent as { authToken?: string })?.authToken === "in-memory"));
    expect(connectionParams.at(-1)).to.deep.equal({ authToken: "in-memory" });
  });
});

describe("a client action that changes while a page is open", () => {
  const { client, openWith, view, report } = useTriggerPage();

  /** Sends page views until a run of action 5 returns the value. */
  async function viewUntilResult(value: string): Promise<void> {
    let count = client.service.received.filter(({ path }) => path === REPORTS_PATH).length;
    let result: unknown;
    while (result !== value) {
      await view();
      result = (await report(++count)).result;
    }
  }

  it("runs with its new code, without a reload", async () => {
    await openWith(returningAction("'old'"));
    await viewUntilResult("old");
    client.service.feed.set(returningAction("'new'"));
    await viewUntilResult("new");
    expect(client.service.received.filter(({ path }) => path === REPORTS_PATH)).to.have.length.greaterThan(1);
  });

  longTest("is updated after the connection was cut", async () => {
    await openWith(returningAction("'before'"));
    await viewUntilResult("before");
    client.service.feed.cut();
    client.service.feed.actions.set(5, returningAction("'after'"));
    await viewUntilResult("after");
    expect(client.service.feed.connectionParams).to.have.length.greaterThan(1);
  });

  longTest("is updated after the connection became silent", async () => {
    // The library's timeout is 20 seconds. With timers that are ten times faster, a slow machine still has enough time for a ping.
    await client.page.evaluateOnNewDocument(
      `const wait = setTimeout; window.setTimeout = (then, ms) => wait(then, ms / 10);
       const each = setInterval; window.setInterval = (then, ms) => each(then, ms / 10);`,
    );
    await openWith(returningAction("'before'"));
    await viewUntilResult("before");
    client.service.feed.silence();
    client.service.feed.actions.set(5, returningAction("'after'"));
    await viewUntilResult("after");
    expect(client.service.feed.connectionParams).to.have.length.greaterThan(1);
  });

  it("is not requested again by a caller that was rejected, until it has another credential", async () => {
    const consoleWarning = new Promise((resolve) => client.page.on("console", resolve));
    client.service.feed.state.rejectionStatus = "FORBIDDEN";
    await openWith(returningAction("'mine'"));
    await consoleWarning;
    await view();
    await client.service.requests("/v1/apps/1/analytics");
    expect(client.service.feed.connectionParams).to.have.length(1);
    client.service.feed.state.rejectionStatus = null;
    await client.run(`document.cookie = "auth_token=better"; Svc.configure({ token: null })`);
    await viewUntilResult("mine");
  });

  it("starts again at an event 30 seconds after the rejection, for example when the app is published again", async () => {
    const consoleWarning = new Promise((resolve) => client.page.on("console", resolve));
    client.service.feed.state.rejectionStatus = "FORBIDDEN";
    await openWith(returningAction("'again'"));
    await consoleWarning;
    client.service.feed.state.rejectionStatus = null;
    await client.run(`const now = Date.now; Date.now = () => now() + 29_000`);
    await view();
    await client.service.requests("/v1/apps/1/analytics");
    expect(client.service.feed.connectionParams).to.have.length(1);
    await client.run(`const before = Date.now; Date.now = () => before() + 1_000`);
    await viewUntilResult("again");
  });

  it("does not start after it was removed", async () => {
    await openWith({ ...returningAction("1"), id: 4 }, returningAction("'first'"));
    await viewUntilResult("first");
    client.service.feed.remove(4);
    client.service.feed.set(returningAction("'second'"));
    await viewUntilResult("second");
    const earlierReports = client.service.received.filter(({ path }) => path === REPORTS_PATH).length;
    await view({ last: true });
    await report(earlierReports + 1);
    const started = client.service.received.filter(({ body }) => JSON.stringify(body).includes('"last":true'));
    expect(started.map(({ path }) => path)).not.to.include("/v3/apps/1/actions/4/clientRuns");
  });
});

describe("a client action that fails", () => {
  const { client, openWith, view, report } = useTriggerPage();

  it("is reported with name, message and a stack that points into its own code", async () => {
    await openWith(pageViewAction("async function execute() {\n  throw new TypeError('no such thing');\n}"));
    await view();
    const { error, result } = await report();
    expect(error).to.include({ name: "TypeError", message: "no such thing" });
    expect(error?.stack).to.match(/svc-action-5-greet\.js:2:9/);
    expect(result).to.equal(undefined);
  });

  it("is reported as timed out when it exceeds its limit", async () => {
    client.service.page.env = { appId: 1, clientTimeoutMs: 50 };
    await openWith(returningAction("await new Promise(() => {})"));
    await view();
    expect((await report()).error).to.include({
      name: "TimeoutError",
      message: "the action ran longer than the limit of 0.05 seconds",
    });
  });

  const STARTED_PATH = `${REPORTS_PATH}/started`;

  it("is announced before its code runs, so that an endless loop has a record too", async () => {
    await openWith(pageViewAction("async function execute() { for (;;); }"));
    void client.run("void setTimeout(() => Svc.App.Analytics.pageView({ n: 1 }))").catch(() => undefined);
    const [announced] = await client.service.requests(STARTED_PATH);
    expect((announced!.body as RunReport).payload.data).to.include({ n: 1 });
    expect(announced!.headers["idempotency-key"]).to.match(UUID);
  });

  longTest("is reported as failed when its page is left, with the key of its announcement", async () => {
    await openWith(returningAction("await new Promise(() => {})"));
    await view();
    const [announced] = await client.service.requests(STARTED_PATH);
    await client.page.goto("about:blank");
    const [ended] = await client.service.requests(REPORTS_PATH);
    expect((ended!.body as RunReport).error?.name).to.equal("PageClosedError");
    expect(ended!.headers["idempotency-key"]).to.equal(announced!.headers["idempotency-key"]);
  });

  it("is reported as failed when its page is closed", async () => {
    await openWith(returningAction("await new Promise(() => {})"));
    await view();
    await client.service.requests(STARTED_PATH);
    await client.page.close({ runBeforeUnload: true });
    expect(((await client.service.requests(REPORTS_PATH))[0]!.body as RunReport).error?.name).to.equal(
      "PageClosedError",
    );
  });

  longTest(
    "is reported with no more of its error than the log stores, and fails with a result of more than 6 MB",
    async () => {
      await openWith(pageViewAction("async function execute() { throw new Error('m'.repeat(2_000_000)); }"));
      await view();
      expect((await report()).error?.message).to.have.length(10_000);
      client.service.feed.set(returningAction("'x'.repeat(6 * 1024 * 1024)"));
      await until(async () => {
        await view();
        const sent = client.service.received.filter(({ path }) => path === REPORTS_PATH);
        return (sent.at(-1)!.body as RunReport).error?.message === "the result is larger than 6 MB";
      });
    },
  );

  longTest("is reported if its result is no JSON", async () => {
    await openWith(returningAction("10n"));
    await view();
    expect((await report()).error?.message).to.contain("BigInt");
  });

  longTest("is reported if its dependency cannot be loaded, with the address", async () => {
    const url = `${client.elsewhere.origin}/nothing.js`;
    await openWith({ ...returningAction("1"), assets: [{ name: url, url, path: "/nothing.js" }] });
    await view();
    expect((await report()).error?.message).to.contain(url);
  });

  longTest("loads the stored version of a dependency, and no other", async () => {
    const kept = createHash("sha256").update("window.dependencyValue = 1;").digest("base64");
    const url = `${client.service.origin}/dependency.js`;
    const assets = [{ name: url, url, path: "/dependency.js", integrity: `sha256-${kept}` }];
    const action = { ...returningAction("window.dependencyValue"), assets };
    await openWith(action);
    await view();
    expect((await report()).result).to.equal(1);
    // The server now returns another script (with 2 instead of 1), which the page must not execute.
    await openWith(action);
    await view();
    expect((await report(2)).error?.message).to.contain(url);
    expect(client.service.page.dependencyLoads).to.equal(2);
  });

  it("does not run if its script is not the announced one", async () => {
    client.service.page.tampered = true;
    await openWith(returningAction("1"));
    await view();
    expect((await report()).error?.message).to.contain("could not be loaded");
  });
});

describe("Svc.App.Analytics", () => {
  const { client, view } = useTriggerPage({ isOpened: true });
  const PATH = "/v1/apps/1/analytics";

  it("creates events of the specified form", async () => {
    const event = (await view({ _pageId: 3 })) as RunReport["payload"];
    expect(event.type).to.equal("analytics.pageView");
    expect(event.createdAt).to.be.within(Date.now() - 60_000, Date.now() + 60_000);
    expect(event.data).to.include({ _pageTitle: "Shop", _platform: "web", _os: "Linux", _pageId: 3 });
    expect(event.data["_analyticsSessionId"]).to.match(UUID);
    expect(event.data["_deviceTrackingId"]).to.match(UUID);
    const custom = await client.run(`Svc.App.Analytics.event("signup", { plan: "free" })`);
    expect(custom).to.have.property("type", "analytics.event");
    expect(custom).to.have.property("data").that.includes({ name: "signup", plan: "free" });
  });

  it("keeps the IDs of the device and the session from page to page", async () => {
    const before = (await view()) as RunReport["payload"];
    await client.open();
    const after = (await view()) as RunReport["payload"];
    for (const id of ["_analyticsSessionId", "_deviceTrackingId"]) expect(after.data[id]).to.equal(before.data[id]);
  });

  it("sends events in batches", async () => {
    const made = await client.run("[1, 2, 3].map((n) => Svc.App.Analytics.event({ n }))");
    const [request] = await client.service.requests(PATH);
    expect(request?.body).to.deep.equal({ events: made });
  });

  it("sends waiting events when the page closes, with the cookie as its credential", async () => {
    await client.run(`document.cookie = "auth_token=cookie"; void Svc.App.Analytics.event({ last: true })`);
    await client.page.goto("about:blank");
    const [request] = await client.service.requests(PATH);
    expect(request?.headers.cookie).to.contain("auth_token=cookie");
    expect(request?.body).to.have.nested.property("events[0].data.last", true);
  });
});
