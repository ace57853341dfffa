/** A library that names more than the language is tried in a realm of the language: what comes of it is what comes of it where all of that is there. */
import type { RequestListener } from "node:http";
import { createContext, runInContext, runInNewContext } from "node:vm";
import { expect } from "chai";
import pino from "pino";
import type { Protocol } from "puppeteer";
import { type Browsers, createBrowsers } from "../../../src/engine/browser/browsers.js";
import { standIns } from "../../../src/engine/browser/pages/in-page/stand-ins.js";
import { STAND_INS } from "../../../src/engine/browser/pages/worker-globals.js";
import { localBrowser } from "../../../src/engine/browser/processes/local-browser.js";
import { type FailureCause, failed, type PageRun, type RealmKind } from "../../../src/engine/browser/run.js";
import { createRememberedCode, createTrials } from "../../../src/engine/browser/trials.js";
import { chromePath } from "../../harness/remote-chromium.js";
import { reachableHost } from "./host.js";
import { resultOf, runOf, seenOf, testBrowsers } from "./support.js";

const log = pino({ level: "silent" });

const library = (source: string, realm: RealmKind = "network") => ({
  name: "library.js",
  source,
  content: source,
  realm,
  mayDoWithLess: true,
  defines: "library",
});

describe("A stand-in", () => {
  const touches = (kind: "object" | "function" | "inert", operation: string): number => {
    let count = 0;
    const touched = () => {
      count += 1;
    };
    const context = createContext({ touched });
    const install = `(${standIns.toString()})()(${JSON.stringify(JSON.stringify([["it", kind]]))}, "{}", touched)`;
    runInContext(
      `${install}; try { ${operation} } catch (error) { if (!(error instanceof ReferenceError)) throw error }`,
      context,
    );
    return count;
  };
  const KINDS = ["object", "function", "inert"] as const;
  const ARGUMENTS: Record<string, string> = { apply: "it, null, []", construct: "it, [1]", setPrototypeOf: "it, null" };

  it("is told of all that can be done with an object, and of no look at its type", () => {
    for (const kind of KINDS) {
      for (const operation of runInNewContext("Object.getOwnPropertyNames(Reflect)") as string[]) {
        // An object that is no function is refused by the language itself.
        if (kind === "object" && (operation === "apply" || operation === "construct")) continue;
        const call = `Reflect.${operation}(${ARGUMENTS[operation] ?? "it, 'name', {}"})`;
        expect(touches(kind, call), `${kind} ${operation}`).to.equal(1);
      }
      expect(
        touches(kind, "if (typeof it !== 'undefined' && it && it !== globalThis.setTimeout) globalThis.held = it"),
      ).to.equal(0);
    }
    expect(touches("function", "new it()")).to.equal(1);
    expect(touches("function", "it.prototype.x")).to.equal(1);
    expect(touches("inert", "(new it()).encode")).to.equal(1);
    expect(touches("inert", "[new it(), it.prototype]")).to.equal(0);
  });
});

describe("Which runs are tried", () => {
  const packages = [library("1")];
  const ok = { ok: true, data: "1" } as const;

  async function outcomes(causes: readonly (FailureCause | null)[], request: PageRun) {
    const trials = createTrials(2);
    const seen: unknown[] = [];
    for (const cause of causes) {
      const trialOf = trials.of(request, "network", "language");
      if (trialOf === null) seen.push("not tried");
      else {
        const outcome = await trials.run(request, trialOf, async () => (cause ? failed(cause, "Error", "x") : ok));
        seen.push(outcome && (outcome.ok ? "held" : outcome.cause));
      }
    }
    return seen;
  }

  it("is remembered of those that need more, whatever showed it; a failure of the code's is its own", async () => {
    for (const cause of ["realm", "memory", "timeout"] as const)
      expect(await outcomes([null, cause, null], runOf("a", { packages })), cause).to.deep.equal([
        "held",
        null,
        "not tried",
      ]);
    for (const cause of ["script", "result", "cancelled"] as const)
      expect(await outcomes([cause, null], runOf("a", { packages })), cause).to.deep.equal([cause, "held"]);
  });

  it("is remembered by app: none drives out what is known of another's", () => {
    const needMore = createRememberedCode(2);
    const of = (app: number, source: string) => runOf(source, { origin: `https://app-${app}.actions.internal` });
    needMore.add(of(1, "a"));
    for (const source of ["a", "b", "c"]) needMore.add(of(2, source));
    const known = [of(1, "a"), of(2, "a"), of(2, "b"), of(2, "c"), of(3, "a")].map(needMore.has);
    expect(known).to.deep.equal([true, false, true, true, false]);
  });

  it("hand on what they printed when they have held, and are ended and not tried again where that is much", async () => {
    for (const [count, held] of [
      [500, true],
      [501, false],
    ] as const) {
      const trials = createTrials();
      const got: number[] = [];
      const request = runOf("a", { packages, onConsole: ({ at }) => got.push(at) });
      const outcome = await trials.run(request, "network", async ({ onConsole, signal }) => {
        for (let at = 0; at < count; at += 1) onConsole!({ level: "log", at, text: "" });
        expect([got, signal!.aborted]).to.deep.equal([[], !held]);
        return held ? ok : failed("cancelled", "Error", "x");
      });
      expect(outcome).to.equal(held ? ok : null);
      expect(got).to.deep.equal(held ? Array.from({ length: count }, (_, at) => at) : []);
      expect(trials.of(request, "network", "language")).to.equal(held ? "network" : null);
    }
  });

  it("are not begun anew where somebody cancels them", async () => {
    const cancelled = AbortSignal.abort();
    const request = runOf("a", { packages, signal: cancelled });
    const ended = failed("cancelled", "Error", "x");
    const trials = createTrials();
    const outcome = await trials.run(request, "network", async ({ signal }) => (signal!.aborted ? ended : ok));
    expect(outcome).to.equal(ended);
  });

  it("are those of packages that may do with less, and of code that names the language alone", () => {
    const trials = createTrials();
    const of = (changes: object, realm: RealmKind, ofSource: RealmKind = "language") =>
      trials.of(runOf("a", { packages: [{ ...packages[0]!, ...changes }] }), realm, ofSource);
    expect(of({}, "worker")).to.equal("worker");
    expect(of({}, "network")).to.equal("network");
    expect(of({ mayDoWithLess: false }, "language")).to.equal("language");
    expect(of({}, "document")).to.equal("document");
    expect(of({ source: "x".repeat(512 * 1024 + 1) }, "document")).to.equal(null);
    expect([of({}, "document", "document"), of({}, "worker", "worker")]).to.deep.equal([null, null]);
    expect(of({ mayDoWithLess: false }, "worker")).to.equal(null);
  });
});

describe("A run that is tried in a realm of the language", function () {
  this.timeout(180_000);
  let browsers: Browsers;

  before(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  const ran = (source: string, body: string, changes: Partial<PageRun> = {}) =>
    seenOf(browsers, body, { packages: [library(source)], ...changes });

  it("is where there are no events, as there are in a worker: this machine's browser makes realms", async () => {
    const here = { realm: "language", packages: [] } as const;
    const { result, seen } = await ran("", "return typeof addEventListener", here);
    expect([result, seen]).to.deep.equal(["undefined", ["language"]]);
  });

  it("stays there while its library holds what it does not use", async () => {
    const source =
      "globalThis.library = { wait: setTimeout, random: typeof crypto, send: fetch, agent: navigator.userAgent }";
    const { result, seen } = await ran(
      source,
      "console.log('here'); return [library.random, typeof library.wait, library.agent.length > 9]",
    );
    expect(result).to.deep.equal(["object", "function", true]);
    expect(seen).to.have.members(["language", "here"]).and.lengthOf(2);
  });

  it("finds of every name the type that it has in its own realm", async () => {
    for (const realm of ["worker", "network"] as const) {
      const names = STAND_INS[realm].map(([name]) => `["${name}", typeof ${name}, typeof globalThis.${name}]`);
      const packages = [library(`globalThis.library = [${names.join(",")}]`, realm)];
      const { result, seen } = await ran("", "return library", { packages });
      expect(seen).to.deep.equal(["language"]);
      const there = await resultOf(browsers, "async function execute() { return library }", { realm, packages });
      expect(result).to.deep.equal(there);
    }
  });

  it("begins anew where it uses one, and whatever came of it before, nobody hears of that", async () => {
    const source =
      "globalThis.library = { count: 0, later: (value) => new Promise((done) => setTimeout(done, 1, value)) }";
    const code =
      "console.log('once'); library.count += 1; try { return [await library.later(1), library.count] } catch { return 'caught' }";
    for (let turn = 0; turn < 2; turn += 1) {
      const { result, seen } = await ran(source, code);
      expect(result).to.deep.equal([1, 1]);
      expect(seen).to.deep.equal(["network", "once"]);
    }
  });

  it("finds a thread that its predecessors have not filled, whatever they left where nothing lets go of it", async () => {
    const code = "Map.prototype.left = new Array(131_072).fill(0.5); return Map.prototype.left.length";
    for (let count = 0; count < 80; count += 1) {
      expect(await ran("", code, { packages: [], isolationKey: "left" })).to.deep.equal({
        result: 131_072,
        seen: ["language"],
      });
    }
  });

  it("is remembered to need more in its own app alone", async () => {
    const code = "const end = Date.now() + 600; while (Date.now() < end); return 1";
    const run = (app: number) =>
      ran("", code, { packages: [], timeoutMs: 2_000, origin: `https://app-${app}.actions.internal` });
    expect((await run(1)).seen).to.deep.equal(["worker"]);
    const quick = { packages: [], origin: "https://app-2.actions.internal" };
    expect((await ran("", code, quick)).seen).to.deep.equal(["language"]);
  });

  it("asks for a module, as code that is made of text can, in a worker alone", async () => {
    const made = "(() => {})['construct' + 'or']";
    const code = (text: string) => `return ${made}(${JSON.stringify(text)})().then(() => 1, ({ name }) => name)`;
    for (const text of ["return import('x')", "return import\n/**/('x')", "return import<!--\n('x')"]) {
      const { result, seen } = await ran("", code(text), { packages: [], isolationKey: "import" });
      expect([typeof result, seen], text).to.deep.equal(["string", ["worker"]]);
    }
  });

  it("begins anew where it takes longer than a trial may, with all of its time", async () => {
    const code = "const end = Date.now() + library; while (Date.now() < end); return 1";
    const { result, seen } = await ran("globalThis.library = 900", code, { timeoutMs: 2_000, isolationKey: "long" });
    expect([result, seen]).to.deep.equal([1, ["network"]]);
  });
});

/** A browser in whose pages that is evaluated first; `taken` counts these. */
function browserWith(source: string) {
  const local = localBrowser({ chromePath: chromePath(), sandbox: true, log });
  let taken = 0;
  return {
    ...local,
    taken: () => taken,
    async open() {
      const chromium = await local.open();
      const create = chromium.connection.createSession.bind(chromium.connection);
      chromium.connection.createSession = async (target: Protocol.Target.TargetInfo) => {
        const session = await create(target);
        taken += 1;
        await session.send("Page.enable");
        await session.send("Page.addScriptToEvaluateOnNewDocument", { source });
        return session;
      };
      return chromium;
    },
  };
}

describe("A browser that makes no realms", function () {
  this.timeout(180_000);

  it("runs code of the language, and what would be tried, in workers", async () => {
    const without = browserWith("delete self.ShadowRealm");
    const browsers = createBrowsers({ sources: [without], openLane: null, log });
    await browsers.start();
    try {
      const listens = "async function execute() { return typeof addEventListener }";
      const here = { realm: "language" } as const;
      for (let turn = 0; turn < 3; turn += 1) expect(await resultOf(browsers, listens, here)).to.equal("function");
      expect(await resultOf(browsers, "async function execute() { return typeof setTimeout }", here)).to.equal(
        "undefined",
      );
      const seen: string[] = [];
      const packages = [library("globalThis.library = typeof setTimeout")];
      const onRealm = (realm: RealmKind) => void seen.push(realm);
      const run = { realm: undefined, packages, onRealm };
      expect(await resultOf(browsers, "async function execute() { return library }", run)).to.equal("function");
      expect(seen).to.deep.equal(["network"]);
      expect(without.taken()).to.be.greaterThan(0);
    } finally {
      await browsers.stop();
    }
  });

  for (const [what, source] of [
    ["no realms", "delete self.ShadowRealm"],
    ["none that can be lent bytes", "delete Uint8Array.fromBase64"],
  ] as const)
    it(`runs code with fetch in workers with a network, each run in its own: ${what}`, async () => {
      const without = browserWith(source);
      const answer: RequestListener = (_request, response) => {
        response.writeHead(200, { "Access-Control-Allow-Origin": "*" }).end("answered");
      };
      const host = await reachableHost(answer, { sources: [without] });
      try {
        // Of these names a realm with fetch has none.
        const code = `const there = [typeof addEventListener, typeof performance, typeof globalThis.left]; globalThis.left = 1;
          const execute = async () => [...there, await (await fetch("${host.url}")).text()]`;
        for (let turn = 0; turn < 3; turn += 1) {
          const seen = await resultOf(host.browsers, code, { realm: "fetch" });
          expect(seen).to.deep.equal(["function", "object", "undefined", "answered"]);
        }
        expect(without.taken()).to.be.greaterThan(0);
      } finally {
        await host.stop();
      }
    });

  it("is not this machine's: here code with fetch has a realm", async () => {
    const browsers = testBrowsers({ openLane: null });
    await browsers.start();
    const code = "const execute = async () => [typeof addEventListener, typeof structuredClone, typeof fetch]";
    const seen = await resultOf(browsers, code, { realm: "fetch" }).finally(() => browsers.stop());
    expect(seen).to.deep.equal(["undefined", "undefined", "function"]);
  });
});
