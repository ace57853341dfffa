/** Packages that the last two runs had are evaluated ahead of the next: it cannot be told from a run that evaluates them itself. */
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import type { ConsoleLine, Mode, PageScript } from "../../../src/engine/browser/run.js";
import { until } from "../../harness/until.js";
import { type ReachableHost, reachableHost } from "./host.js";
import { runOf } from "./support.js";

const library = (source: string, name = "library.js"): PageScript => ({
  name,
  source,
  content: source,
  mode: "network-isolate",
  mayDoWithLess: true,
  defines: "tool",
});

describe("packages that are evaluated ahead of a run", function () {
  this.timeout(180_000);
  let host: ReachableHost;
  before(async () => {
    host = await reachableHost((_request, response) => {
      response.setHeader("Access-Control-Allow-Origin", "*");
      response.end("x");
    });
  });
  after(() => host.stop());

  /** A run's result or failure, what it printed, and where it was. */
  async function ran(packages: readonly PageScript[], code: string) {
    const printed: string[] = [];
    let place: Mode | null = null;
    const outcome = await host.browsers.run(
      runOf(`const execute = async () => { ${code} }`, {
        mode: undefined,
        isolationKey: packages.map(({ name }) => name).join(),
        packages,
        onConsole: ({ text }: ConsoleLine) => void printed.push(text),
        onMode: (mode) => {
          place = mode;
        },
      }),
    );
    const result: unknown = outcome.ok ? JSON.parse(outcome.data ?? "null") : outcome.error.stack;
    return { result, printed, place };
  }

  it("are there before the third run begins, and nothing of the second", async () => {
    const own = [library("globalThis.tool = { madeAt: Date.now(), uses: 0 }", "times.js")];
    const code = "tool.uses += 1; Object.prototype.left = 1; return { ...tool, left: 'left' in tool }";
    await until(async () => {
      const begun = Date.now();
      const { result, place } = await ran(own, code);
      expect(result).to.include({ uses: 1, left: true });
      expect(place).to.equal("isolate");
      return (result as { madeAt: number }).madeAt < begun;
    });
    const clean = await ran(own, "return [tool.uses, 'left' in tool]");
    expect(clean.result).to.deep.equal([0, false]);
  });

  it("are those of the run itself, whichever those before had", async () => {
    const [a, b] = ["a", "b"].map((name) => library(`globalThis.tool = "${name}" + typeof tool`, "either.js"));
    for (const one of [a!, a!, a!, b!, b!, b!, a!, b!, a!, a!, a!]) {
      const { result, place } = await ran([one], "return tool");
      expect([result, place]).to.deep.equal([one === a ? "aundefined" : "bundefined", "isolate"]);
    }
    expect((await ran([b!, a!], "return tool")).result).to.equal("astring");
  });

  it("print in each run, once", async () => {
    for (let run = 0; run < 4; run += 1) {
      const { printed } = await ran([library("console.log('loaded')", "prints.js")], "console.log('ran')");
      expect(printed).to.deep.equal(["loaded", "ran"]);
    }
  });

  it("print and need more later, too: such a run begins anew", async () => {
    const later =
      "globalThis.tool = Promise.resolve().then(() => Promise.resolve()).then(() => setTimeout(() => {}, 0))";
    for (let run = 0; run < 4; run += 1) {
      const { result, place } = await ran([library(later, "later.js")], "return typeof (await tool)");
      expect([result, place]).to.deep.equal(["number", "network-isolate"]);
    }
  });

  it("fail in each run, by their name", async () => {
    for (let run = 0; run < 4; run += 1) {
      const { result } = await ran([library("null.thing", "fails.js")], "return 1");
      expect(result).to.match(/^TypeError: .*\n {4}at fails\.js:1:6$/);
    }
  });

  it("may be slow: they are evaluated by the run itself", async () => {
    const slow = "for (const end = Date.now() + 80; Date.now() < end; ); globalThis.tool = Date.now()";
    for (let run = 0; run < 4; run += 1) {
      const begun = Date.now();
      const { result } = await ran([library(slow, "slow.js")], "return tool");
      if (run !== 2) expect(result).to.be.at.least(begun);
    }
  });

  it("ask for what they want in the run itself, where they can ask for something", async () => {
    const asks = library(`globalThis.tool = fetch("${host.url}").then(({ status }) => status)`, "asks.js");
    const timed = library("globalThis.tool = new Promise((done) => setTimeout(done, 20, 'rung'))", "timed.js");
    for (const [one, said] of [
      [asks, 200],
      [timed, "rung"],
    ] as const) {
      for (let run = 0; run < 4; run += 1) {
        const { result, place } = await ran([one], "void fetch; return tool");
        expect([result, place]).to.deep.equal([said, "network-isolate"]);
        // As long as what is made ahead takes.
        await delay(50);
      }
    }
  });
});
