/**
 * Tests a run whose library contains names of a document's globals. The service first executes the run in an isolate, and the result must
 * be the same as in a document.
 */
import type { RequestListener } from "node:http";
import { createContext, runInContext, runInNewContext } from "node:vm";
import { expect } from "chai";
import pino from "pino";
import type { Protocol } from "puppeteer";
import { Browsers } from "../../../src/engine/browser/browsers.js";
import { NETWORK_ISOLATE_STAND_INS } from "../../../src/engine/browser/globals.js";
import { createStandInDefiner } from "../../../src/engine/browser/pages/in-page/stand-ins.js";
import { createLocalBrowserSource } from "../../../src/engine/browser/processes/chromium.js";
import {
  createFailedPageRunOutcome,
  type EvaluationMode,
  type PageRunRequest,
  type RunFailureCause,
} from "../../../src/engine/browser/run.js";
import { RecentTrialFailures, TrialRunner } from "../../../src/engine/browser/trials.js";
import { chromePath } from "../../harness/remote-chromium.js";
import { longTest, sampleOf } from "../../harness/samples.js";
import { reachableHost } from "./host.js";
import { resultOf, runBody, runOf, sharedBrowsers, testBrowsers } from "./support.js";

const log = pino({ level: "silent" });

const library = (source: string, mode: EvaluationMode = "network-isolate") => ({
  name: "library.js",
  source,
  content: source,
  mode,
  canBeTried: true,
  defines: "library",
});

describe("a stand-in", () => {
  const touches = (kind: "object" | "function" | "inert", operation: string): number => {
    let count = 0;
    const touched = () => {
      count += 1;
    };
    const context = createContext({ touched });
    const install = `(${createStandInDefiner.toString()})()(${JSON.stringify(JSON.stringify([["it", kind]]))}, "{}", touched)`;
    runInContext(
      `${install}; try { ${operation} } catch (error) { if (!(error instanceof ReferenceError)) throw error }`,
      context,
    );
    return count;
  };
  const KINDS = ["object", "function", "inert"] as const;
  const ARGUMENTS: Record<string, string> = { apply: "it, null, []", construct: "it, [1]", setPrototypeOf: "it, null" };

  it("reports everything that can be done with an object, but not a check of its type", () => {
    for (const kind of KINDS) {
      for (const operation of runInNewContext("Object.getOwnPropertyNames(Reflect)") as string[]) {
        // JavaScript itself allows these operations only on functions.
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

describe("runs that are tried", () => {
  const packages = [library("1")];
  const ok = { ok: true, data: "1" } as const;

  async function outcomes(causes: readonly (RunFailureCause | null)[], request: PageRunRequest) {
    const trialRunner = new TrialRunner();
    const seen: unknown[] = [];
    for (const cause of causes) {
      const trialMode = trialRunner.selectTrialMode(request, "network-isolate", "isolate");
      if (trialMode === null) seen.push("not tried");
      else {
        const outcome = await trialRunner.run(request, trialMode, async () =>
          cause ? createFailedPageRunOutcome(cause, "Error", "x") : ok,
        );
        seen.push(outcome && (outcome.ok ? "held" : outcome.cause));
      }
    }
    return seen;
  }

  it("are not tried again if they need more, for whatever reason; an error of the code does not count", async () => {
    for (const cause of ["retry", "memory", "timeout"] as const)
      expect(await outcomes([null, cause, null], runOf("a", { packages })), cause).to.deep.equal([
        "held",
        null,
        "not tried",
      ]);
    for (const cause of ["script", "result", "cancelled"] as const)
      expect(await outcomes([cause, null], runOf("a", { packages })), cause).to.deep.equal([cause, "held"]);
  });

  it("are remembered by app: no app replaces what is remembered of another", () => {
    const trialFailures = new RecentTrialFailures(2);
    const of = (app: number, source: string) => runOf(source, { origin: `https://app-${app}.actions.internal` });
    trialFailures.add(of(1, "a"));
    for (const source of ["a", "b", "c"]) trialFailures.add(of(2, source));
    const known = [of(1, "a"), of(2, "a"), of(2, "b"), of(2, "c"), of(3, "a")].map((request) =>
      trialFailures.has(request),
    );
    expect(known).to.deep.equal([true, false, true, true, false]);
  });

  it("pass on what they printed when they succeed; after many lines they end and are not tried again", async () => {
    for (const [count, isForwarded] of [
      [500, true],
      [501, false],
    ] as const) {
      const trialRunner = new TrialRunner();
      const got: number[] = [];
      const request = runOf("a", { packages, onConsole: ({ at }) => got.push(at) });
      const outcome = await trialRunner.run(request, "network-isolate", async ({ onConsole, signal }) => {
        for (let at = 0; at < count; at += 1) onConsole!({ level: "log", at, text: "" });
        expect([got, signal!.aborted]).to.deep.equal([[], !isForwarded]);
        return isForwarded ? ok : createFailedPageRunOutcome("cancelled", "Error", "x");
      });
      expect(outcome).to.equal(isForwarded ? ok : null);
      expect(got).to.deep.equal(isForwarded ? Array.from({ length: count }, (_, at) => at) : []);
      expect(trialRunner.selectTrialMode(request, "network-isolate", "isolate")).to.equal(
        isForwarded ? "network-isolate" : null,
      );
    }
  });

  it("are not repeated if they are cancelled", async () => {
    const cancelled = AbortSignal.abort();
    const request = runOf("a", { packages, signal: cancelled });
    const ended = createFailedPageRunOutcome("cancelled", "Error", "x");
    const trialRunner = new TrialRunner();
    const outcome = await trialRunner.run(request, "network-isolate", async ({ signal }) =>
      signal!.aborted ? ended : ok,
    );
    expect(outcome).to.equal(ended);
  });

  it("are those of packages that may need less, and of code that names only the language", () => {
    const trialRunner = new TrialRunner();
    const of = (changes: object, mode: EvaluationMode, ofSource: EvaluationMode = "isolate") =>
      trialRunner.selectTrialMode(runOf("a", { packages: [{ ...packages[0]!, ...changes }] }), mode, ofSource);
    expect(of({}, "network-isolate")).to.equal("network-isolate");
    expect(of({ canBeTried: false }, "isolate")).to.equal("isolate");
    expect(of({}, "document")).to.equal("document");
    expect(of({ source: "x".repeat(512 * 1024 + 1) }, "document")).to.equal(null);
    expect([of({}, "document", "document"), of({}, "network-isolate", "network-isolate")]).to.deep.equal([null, null]);
    expect(of({ canBeTried: false }, "network-isolate")).to.equal(null);
  });
});

describe("a trial", function () {
  this.timeout(180_000);
  let browsers: Browsers;

  before(async () => {
    browsers = sharedBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  const ran = (source: string, body: string, changes: Partial<PageRunRequest> = {}) =>
    runBody(browsers, body, { packages: [library(source)], ...changes });

  it("runs in an isolate, which has no events", async () => {
    const here = { mode: "isolate", packages: [] } as const;
    const { result, seen } = await ran("", "return typeof addEventListener", here);
    expect([result, seen]).to.deep.equal(["undefined", ["isolate"]]);
  });

  it("succeeds while its library does not use other globals", async () => {
    const source =
      "globalThis.library = { wait: setTimeout, random: typeof crypto, send: fetch, agent: typeof navigator }";
    const { result, seen } = await ran(
      source,
      "console.log('here'); return [library.random, typeof library.wait, library.agent]",
    );
    expect(result).to.deep.equal(["object", "function", "undefined"]);
    expect(seen).to.have.members(["isolate", "here"]).and.lengthOf(2);
  });

  it("sees each name with the type that it has in its own mode", async () => {
    const names = NETWORK_ISOLATE_STAND_INS.map(([name]) => `["${name}", typeof ${name}, typeof globalThis.${name}]`);
    const packages = [library(`globalThis.library = [${names.join(",")}]`)];
    const { result, seen } = await ran("", "return library", { packages });
    expect(seen).to.deep.equal(["isolate"]);
    const mode = "network-isolate";
    const there = await resultOf(browsers, "async function execute() { return library }", { mode, packages });
    expect(result).to.deep.equal(there);
  });

  it("is repeated if it uses a stand-in, and its first output is dropped", async () => {
    const source =
      "globalThis.library = { count: 0, later: (value) => new Promise((done) => setTimeout(done, 1, value)) }";
    const code =
      "console.log('once'); library.count += 1; try { return [await library.later(1), library.count] } catch { return 'caught' }";
    for (let turn = 0; turn < 2; turn += 1) {
      const { result, seen } = await ran(source, code);
      expect(result).to.deep.equal([1, 1]);
      expect(seen).to.deep.equal(["network-isolate", "once"]);
    }
  });

  longTest("gets a thread that earlier trials have not filled, even if their memory cannot be freed", async () => {
    const code = "Map.prototype.left = new Array(131_072).fill(0.5); return Map.prototype.left.length";
    for (let count = 0; count < 80; count += 1) {
      expect(await ran("", code, { packages: [], isolationKey: "left" })).to.deep.equal({
        result: 131_072,
        seen: ["isolate"],
      });
    }
  });

  longTest("is remembered to need more only in its own app", async () => {
    // The code runs for 1.8 s, which is longer than a trial may take (1 s).
    const code = "const end = Date.now() + payload.ms; while (Date.now() < end); return 1";
    const run = (app: number) =>
      ran("", code, {
        packages: [],
        payload: '{"ms":1800}',
        isolationKey: "needs more",
        origin: `https://app-${app}.actions.internal`,
      });
    expect((await run(1)).seen).to.deep.equal(["document"]);
    const quickRun = { packages: [], payload: '{"ms":0}', origin: "https://app-2.actions.internal" };
    expect((await ran("", code, quickRun)).seen).to.deep.equal(["isolate"]);
  });

  it("is repeated in a document if code made from text imports a module", async () => {
    const made = "(() => {})['construct' + 'or']";
    const code = (text: string) => `return ${made}(${JSON.stringify(text)})().then(() => 1, ({ name }) => name)`;
    for (const text of ["return import('x')", "return import\n/**/('x')", "return import<!--\n('x')"]) {
      const { result, seen } = await ran("", code(text), { packages: [], isolationKey: "import" });
      expect([typeof result, seen], text).to.deep.equal(["string", ["document"]]);
    }
  });

  longTest("is repeated with the full time limit if it takes longer than a trial may", async () => {
    const code = "const end = Date.now() + library; while (Date.now() < end); return 1";
    const { result, seen } = await ran("globalThis.library = 1_800", code, { isolationKey: "long" });
    expect([result, seen]).to.deep.equal([1, ["network-isolate"]]);
  });
});

/** Returns a browser source. All its pages first evaluate the script `source`. `pageCount` returns the number of these pages. */
function browserAfterScript(source: string) {
  const local = createLocalBrowserSource({ chromePath: chromePath(), sandbox: true, log });
  let pageCount = 0;
  return {
    ...local,
    taken: () => pageCount,
    async open(stopped: AbortSignal) {
      const chromium = await local.open(stopped);
      const create = chromium.connection.createSession.bind(chromium.connection);
      chromium.connection.createSession = async (target: Protocol.Target.TargetInfo) => {
        const session = await create(target);
        pageCount += 1;
        await session.send("Page.enable");
        await session.send("Page.addScriptToEvaluateOnNewDocument", { source });
        return session;
      };
      return chromium;
    },
  };
}

describe("a browser without isolates", function () {
  this.timeout(180_000);

  longTest("runs code of the language, and code that would be tried, in documents", async () => {
    const without = browserAfterScript("delete self.ShadowRealm");
    const browsers = new Browsers({ sources: [without], openProxyPort: null, log });
    await browsers.start();
    try {
      const listenerCode = "async function execute() { return typeof addEventListener }";
      const here = { mode: "isolate" } as const;
      for (let turn = 0; turn < 3; turn += 1) expect(await resultOf(browsers, listenerCode, here)).to.equal("function");
      const seen: string[] = [];
      const packages = [library("globalThis.library = typeof setTimeout")];
      const onMode = (mode: EvaluationMode) => void seen.push(mode);
      const run = { mode: undefined, packages, onMode };
      expect(await resultOf(browsers, "async function execute() { return library }", run)).to.equal("function");
      expect(seen).to.deep.equal(["network-isolate", "document"]);
      expect(without.taken()).to.be.greaterThan(0);
    } finally {
      await browsers.stop();
    }
  });

  const missing = [
    ["no realms", "delete self.ShadowRealm"],
    ["no base64 of bytes", "delete Uint8Array.fromBase64"],
  ] as const;
  for (const [title, source] of sampleOf(missing, 1, 2))
    longTest(`runs code with fetch in documents: ${title}`, async () => {
      const without = browserAfterScript(source);
      const answer: RequestListener = (_request, response) => {
        response.writeHead(200, { "Access-Control-Allow-Origin": "*" }).end("answered");
      };
      const host = await reachableHost(answer, { sources: [without] });
      try {
        const code = `const there = [typeof addEventListener, typeof performance, typeof globalThis.left]; globalThis.left = 1;
          const execute = async () => [...there, await (await fetch("${host.url}")).text()]`;
        for (let turn = 0; turn < 3; turn += 1) {
          const seen = await resultOf(host.browsers, code, { mode: "network-isolate" });
          expect(seen).to.deep.equal(["function", "object", "undefined", "answered"]);
        }
        expect(without.taken()).to.be.greaterThan(0);
      } finally {
        await host.stop();
      }
    });

  longTest("is not the browser of this machine, which has them", async () => {
    const browsers = testBrowsers();
    await browsers.start();
    const code = "const execute = async () => [typeof addEventListener, typeof structuredClone, typeof fetch]";
    const seen = await resultOf(browsers, code, { mode: "network-isolate" }).finally(() => browsers.stop());
    expect(seen).to.deep.equal(["undefined", "undefined", "function"]);
  });
});
