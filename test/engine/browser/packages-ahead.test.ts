/** Packages that the last two runs had are evaluated ahead of the next: it cannot be told from a run that evaluates them itself. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import type { ConsoleLine, PageScript, RealmKind } from "../../../src/engine/browser/run.js";
import { until } from "../../harness/until.js";
import { runOf, testBrowsers } from "./support.js";

const library = (source: string, name = "library.js"): PageScript => ({
  name,
  source,
  content: source,
  realm: "worker",
  mayDoWithLess: true,
  defines: "library",
});

describe("packages that are evaluated ahead of a run", function () {
  this.timeout(30_000);
  let browsers: Browsers;
  before(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  /** A run's result or failure, what it printed, and where it was. */
  async function ran(packages: readonly PageScript[], code: string) {
    const printed: string[] = [];
    let place: RealmKind | null = null;
    const outcome = await browsers.run(
      runOf(`const execute = async () => { ${code} }`, {
        realm: undefined,
        isolationKey: packages.map(({ name }) => name).join(),
        packages,
        onConsole: ({ text }: ConsoleLine) => void printed.push(text),
        onRealm: (realm) => {
          place = realm;
        },
      }),
    );
    const result: unknown = outcome.ok ? JSON.parse(outcome.data ?? "null") : outcome.error.stack;
    return { result, printed, place };
  }

  it("are there before the third run begins, and nothing of the second", async () => {
    const own = [library("globalThis.library = { madeAt: Date.now(), uses: 0 }", "times.js")];
    const code = "library.uses += 1; Object.prototype.left = 1; return { ...library, left: 'left' in library }";
    await until(async () => {
      const begun = Date.now();
      const { result, place } = await ran(own, code);
      expect(result).to.include({ uses: 1, left: true });
      expect(place).to.equal("language");
      return (result as { madeAt: number }).madeAt < begun;
    });
    const clean = await ran(own, "return [library.uses, 'left' in library]");
    expect(clean.result).to.deep.equal([0, false]);
  });

  it("are those of the run itself, whichever those before had", async () => {
    const [a, b] = ["a", "b"].map((name) => library(`globalThis.library = "${name}" + typeof library`, "either.js"));
    for (const one of [a!, a!, a!, b!, b!, b!, a!, b!, a!, a!, a!]) {
      const { result, place } = await ran([one], "return library");
      expect([result, place]).to.deep.equal([one === a ? "aundefined" : "bundefined", "language"]);
    }
    expect((await ran([b!, a!], "return library")).result).to.equal("astring");
  });

  it("print in each run, once", async () => {
    for (let run = 0; run < 4; run += 1) {
      const { printed } = await ran([library("console.log('loaded')", "prints.js")], "console.log('ran')");
      expect(printed).to.deep.equal(["loaded", "ran"]);
    }
  });

  it("print and need more later, too: such a run begins anew", async () => {
    const later =
      "globalThis.library = Promise.resolve().then(() => Promise.resolve()).then(() => setTimeout(() => {}, 0))";
    for (let run = 0; run < 4; run += 1) {
      const { result, place } = await ran([library(later, "later.js")], "return typeof (await library)");
      expect([result, place]).to.deep.equal(["number", "worker"]);
    }
  });

  it("fail in each run, by their name", async () => {
    for (let run = 0; run < 4; run += 1) {
      const { result } = await ran([library("null.thing", "fails.js")], "return 1");
      expect(result).to.match(/^TypeError: .*\n {4}at fails\.js:1:6$/);
    }
  });

  it("may be slow: they are evaluated by the run itself", async () => {
    const slow = "for (const end = Date.now() + 80; Date.now() < end; ); globalThis.library = Date.now()";
    for (let run = 0; run < 4; run += 1) {
      const begun = Date.now();
      const { result } = await ran([library(slow, "slow.js")], "return library");
      if (run !== 2) expect(result).to.be.at.least(begun);
    }
  });
});
