/** What is begun in a realm with `fetch` before anybody may hear of it: nothing of it is heard of, and nothing leaves, before it is taken. */
import type { RequestListener } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { beginHeld } from "../../../src/engine/browser/ahead.js";
import { failed, type PageOutcome, type PageRun } from "../../../src/engine/browser/run.js";
import { createEgressProxy } from "../../../src/engine/egress-proxy.js";
import { type ReachableHost, reachableHost } from "./host.js";
import { runOf, testBrowsers } from "./support.js";

const OK: PageOutcome = { ok: true, data: "1" };

describe("What is held of a run", () => {
  /** Held, with what runs it given by hand. */
  function held(changes: Partial<PageRun> = {}) {
    const inner = Promise.withResolvers<PageOutcome>();
    let given: PageRun | undefined;
    let givenUp = 0;
    const run = (request: PageRun) => {
      given = request;
      request.signal?.addEventListener("abort", () => inner.resolve(failed("cancelled", "AbortError", "ended")));
      return inner.promise;
    };
    const begun = beginHeld(runOf("a", { timeoutMs: 400, ...changes }), run, () => {
      givenUp += 1;
    });
    return { begun, given: given!, end: inner.resolve, givenUp: () => givenUp };
  }

  it("is whoever's who takes it: lines, hosts, judge and end", async () => {
    const heard: string[] = [];
    const { begun, given, end } = held({ mayRequest: () => false });
    given.onConsole!({ level: "log", at: 1, text: "before" });
    const judged = given.mayRequest!("https://host.example/");
    const taking = begun.take(
      runOf("a", {
        onConsole: ({ text }) => heard.push(text),
        onHost: (host) => heard.push(host),
        mayRequest: (url) => url === "https://host.example/",
        onRequest: ({ url }) => {
          heard.push(url);
          return null;
        },
      }),
    );
    expect([await judged, await given.mayRequest!("https://other.example/")]).to.deep.equal([true, false]);
    expect(await given.mayLeave!()).to.equal(true);
    given.onHost!("host.example:443");
    given.onRequest!({ method: "GET", url: "https://host.example/" });
    given.onConsole!({ level: "log", at: 2, text: "after" });
    end(OK);
    expect(await taking).to.equal(OK);
    expect(heard).to.deep.equal(["before", "host.example:443", "https://host.example/", "after"]);
  });

  it("is judged where its run is, and nowhere else", () => {
    expect(held().given).to.not.have.any.keys("mayRequest", "onRequest");
  });

  it("never leaves where it is dropped, and is ended where it does not end by itself", async () => {
    for (const [endsItself, aborted] of [
      [true, false],
      [false, true],
    ] as const) {
      const { begun, given, end } = held({ mayRequest: () => true });
      void begun.drop();
      expect([await given.mayLeave!(), await given.mayRequest!("https://host.example/")]).to.deep.equal([false, false]);
      if (endsItself) end(OK);
      await delay(200);
      expect(given.signal!.aborted).to.equal(aborted);
    }
  });

  it("is begun anew where it printed more than may wait, or nobody took it for a quarter of its limit", async () => {
    const heard: unknown[] = [];
    const taker = runOf("a", { onConsole: (line) => heard.push(line) });
    for (const [count, outcome] of [
      [500, OK],
      [501, null],
    ] as const) {
      const { begun, given, end, givenUp } = held();
      for (let at = 0; at < count; at += 1) given.onConsole!({ level: "log", at, text: "" });
      end(OK);
      expect(await begun.take(taker)).to.equal(outcome);
      expect(givenUp()).to.equal(outcome === null ? 1 : 0);
    }
    expect(heard.length).to.equal(500);
    const { begun, givenUp } = held();
    await delay(150);
    expect([await begun.take(taker), givenUp()]).to.deep.equal([null, 1]);
  });

  it("is begun anew where it ended without what it had asked for, or waits for that longer than code is to notice", async () => {
    for (const way of ["mayLeave", "mayRequest"] as const) {
      const { begun, given, end, givenUp } = held({ mayRequest: () => true });
      const left = given[way]!("https://host.example/");
      end(OK);
      await delay(0);
      expect([await begun.take(runOf("a")), await left, givenUp()], way).to.deep.equal([null, false, 1]);
      const slow = held({ mayRequest: () => true });
      const waiting = slow.given[way]!("https://host.example/");
      await delay(80);
      expect([await waiting, slow.givenUp()], way).to.deep.equal([false, 1]);
      expect(await slow.begun.take(runOf("a")), way).to.equal(null);
      const quick = held({ mayRequest: () => true });
      const passing = quick.given[way]!("https://host.example/");
      const taking = quick.begun.take(runOf("a"));
      await delay(80);
      quick.end(OK);
      expect([await passing, await taking, quick.givenUp()], way).to.deep.equal([true, OK, 0]);
    }
  });

  it("goes on as long as it may once it is taken, and ends with its taker's signal", async () => {
    const { begun, given, end } = held();
    const taking = begun.take(runOf("a"));
    await delay(150);
    expect(given.signal!.aborted).to.equal(false);
    end(OK);
    expect(await taking).to.equal(OK);
    const other = held();
    const stopping = new AbortController();
    const outcome = other.begun.take(runOf("a", { signal: stopping.signal }));
    stopping.abort();
    expect(await outcome).to.include({ ok: false, cause: "cancelled" });
  });

  it("is begun anew where it ended by what is not the code's before it was taken", async () => {
    for (const cause of ["timeout", "browser", "cancelled"] as const) {
      const { begun, end } = held();
      end(failed(cause, "Error", "x"));
      await delay(0);
      expect(await begun.take(runOf("a")), cause).to.equal(null);
    }
    for (const cause of ["script", "result", "memory", "realm"] as const) {
      const { begun, end } = held();
      end(failed(cause, "Error", "x"));
      await delay(0);
      expect(await begun.take(runOf("a")), cause).to.include({ cause });
      const late = held();
      const taking = late.begun.take(runOf("a"));
      late.end(failed("timeout", "Error", "x"));
      expect(await taking).to.include({ cause: "timeout" });
    }
  });
});

describe("A run that is held in a realm with fetch", function () {
  this.timeout(180_000);
  const proxy = createEgressProxy({ allowPrivateNetwork: true });
  let host: ReachableHost;
  let connections = 0;
  /** One a page. */
  let lanes = 0;
  const asked: string[] = [];

  before(async () => {
    const openLane = () => {
      lanes += 1;
      return proxy.openLane();
    };
    const answer: RequestListener = ({ method, url }, response) => {
      asked.push(`${method} ${url}`);
      response
        .writeHead(200, { "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "x-own" })
        .end("ok");
    };
    host = await reachableHost(answer, { openLane });
    host.server.on("connection", () => {
      connections += 1;
    });
  });
  after(async () => {
    await host.stop();
    proxy.close();
  });
  beforeEach(() => {
    connections = 0;
    asked.length = 0;
  });

  const requestOf = (body: string, changes: Partial<PageRun> = {}) =>
    runOf(`async function execute() { const host = "${host.url}"; ${body} }`, { realm: undefined, ...changes });

  /** Ways to ask for something, each of which rejects where it is refused. */
  const WAYS: Record<string, string> = {
    plain: "fetch(host + '/plain')",
    "kept alive": "fetch(host + '/kept', { keepalive: true })",
    "with a preflight": "fetch(host + '/own', { headers: { 'x-own': '1' } })",
    posted: "fetch(host + '/posted', { method: 'POST', body: 'text' })",
    "by a tunnel": "fetch(host.replace('http:', 'https:') + '/tunnel')",
    "of a request": "fetch(new Request(host + '/request', { cache: 'no-store' }))",
    "after a while": "new Promise((done) => setTimeout(done, 20)).then(() => fetch(host + '/later'))",
  };
  const ALL = `const said = [${Object.values(WAYS)
    .map((way) => `${way}.then((answer) => answer.status, () => 'refused')`)
    .join(", ")}];`;

  it("reaches nothing before it is taken, by no way, and then all that it asked for", async () => {
    const request = requestOf(`${ALL} return Promise.all(said)`);
    const begun = host.browsers.beginAhead(request)!;
    await delay(40);
    expect([connections, asked]).to.deep.equal([0, []]);
    const heard: string[] = [];
    const outcome = await host.browsers.run({
      ...request,
      begun,
      onRealm: (realm) => heard.push(realm),
      onHost: (one) => heard.push(one),
    });
    expect(outcome).to.deep.equal({ ok: true, data: JSON.stringify([200, 200, 200, 200, "refused", 200, 200]) });
    expect(asked).to.have.members([
      ...["GET /plain", "GET /kept", "OPTIONS /own", "GET /own", "POST /posted", "GET /request", "GET /later"],
    ]);
    expect(heard).to.deep.equal(["fetch", host.url.replace("http://", "")]);
  });

  it("reaches nothing where it is dropped, and leaves its page to the next run", async () => {
    const kept = requestOf("return (await fetch(host + '/next')).status");
    expect(await host.browsers.run(kept)).to.deep.equal({ ok: true, data: "200" });
    connections = 0;
    asked.length = 0;
    await delay(200);
    const before = lanes;
    await host.browsers.beginAhead(requestOf("return (await fetch(host + '/dropped')).status"))!.drop();
    // At once: it waits for that page, which is nearer than another.
    expect(await host.browsers.run(kept)).to.deep.equal({ ok: true, data: "200" });
    expect([connections, lanes]).to.deep.equal([1, before]);
    expect(asked).to.deep.equal(["GET /next"]);
  });

  it("is not evaluated, and leaves its page to the next run, where it is ended before it has one", async () => {
    const other = { isolationKey: "ended before" };
    const before = lanes;
    const ending = new AbortController();
    const running = host.browsers.run(requestOf("await fetch(host + '/never')", { ...other, signal: ending.signal }));
    await delay(2);
    ending.abort();
    expect(await running).to.include({ ok: false, cause: "cancelled" });
    await delay(200);
    expect(await host.browsers.run(requestOf("return 1; fetch", other))).to.deep.equal({ ok: true, data: "1" });
    // That of the page which is made ahead for this one.
    expect([lanes, asked]).to.deep.equal([before + 1, []]);
  });

  it("is run once where it is begun anew", async () => {
    const request = requestOf("for (let at = 0; at < 501; at += 1) console.log(at); return (await fetch(host)).status");
    const begun = host.browsers.beginAhead(request)!;
    await delay(700);
    const lines: string[] = [];
    const outcome = await host.browsers.run({ ...request, begun, onConsole: ({ text }) => lines.push(text) });
    expect(outcome).to.deep.equal({ ok: true, data: "200" });
    expect([asked, lines.length]).to.deep.equal([["GET /"], 501]);
    // Its code is not held again at once: it would be evaluated twice each time.
    expect(host.browsers.beginAhead(request)).to.equal(null);
  });

  it("is nothing where its code is elsewhere, or its page has no way out of its own", async () => {
    expect(host.browsers.beginAhead(requestOf("return document.title"))).to.equal(null);
    expect(host.browsers.beginAhead(requestOf("return new WebSocket(host)"))).to.equal(null);
    const language = host.browsers.beginAhead(requestOf("return 1"))!;
    expect(language.realm).to.equal("language");
    await language.drop();
    const without = testBrowsers();
    expect(without.beginAhead(requestOf("return fetch(host)"))).to.equal(null);
  });

  it("is dropped where its run belongs elsewhere by now", async () => {
    const held = host.browsers.beginAhead(requestOf("return (await fetch(host)).status"))!;
    let dropped = 0;
    const drop = () => {
      dropped += 1;
      return held.drop();
    };
    const outcome = await host.browsers.run({ ...requestOf("return typeof document"), begun: { ...held, drop } });
    expect(outcome).to.deep.equal({ ok: true, data: '"object"' });
    expect([dropped, asked]).to.deep.equal([1, []]);
  });
});
