/** Tests console lines of a run's workers. The run gets all of these lines, in order and within its limits, and no others. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import {
  CONSOLE_FULL_MESSAGE,
  CONSOLE_MAX_CHARACTERS,
  CONSOLE_MAX_LINES,
} from "../../../src/engine/browser/pages/harness.js";
import type { ConsoleLine, PageRunRequest } from "../../../src/engine/browser/run.js";
import { longTest, sampleOf } from "../../harness/samples.js";
import { resultOf, runOf, sharedBrowsers } from "./support.js";

/** Returns a body of `execute` that starts a worker with this code, and waits for the worker's first message. */
const workerBody = (code: string) => `
  const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(code)}])));
  const answer = await new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
  });`;

describe("the console of a run's workers", () => {
  let browsers: Browsers;

  before(async () => {
    browsers = sharedBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  async function linesOf(body: string, changes: Partial<PageRunRequest> = {}): Promise<ConsoleLine[]> {
    const lines: ConsoleLine[] = [];
    const onConsole = (line: ConsoleLine) => lines.push(line);
    await resultOf(browsers, `const execute = async () => { ${body} }`, { onConsole, ...changes });
    return lines;
  }
  const shown = (lines: ConsoleLine[]) => lines.map(({ level, text }) => `${level}: ${text}`);

  it("is stored like that of the page, from the worker's first line on: level, time, text, the position of an error", async () => {
    const before = Date.now();
    const lines = await linesOf(
      workerBody(`console.log("a", 1, null, { b: [2] });
        console.warn(new TypeError("t")); console.debug(); console.assert(false, "c"); console.count();
        postMessage(1);`),
    );
    const first = lines.map(({ level, text }) => [level, text.split("\n")[0]]);
    expect(first).to.deep.equal([
      ["log", 'a 1 null {"b":[2]}'],
      ["warn", "TypeError: t"],
      ["debug", ""],
      ["error", "Assertion failed c"],
      ["log", "default: 1"],
    ]);
    expect(lines[1]?.text).to.match(/^TypeError: t\n {4}at blob:\S+:2:22$/);
    for (const { at } of lines) expect(at).to.be.within(before, Date.now());
  });

  it("has lines in the order in which each worker printed them, also of a nested worker", async () => {
    const inner = `console.log("inner 1"); console.log("inner 2"); postMessage(1)`;
    const outer = `console.log("outer 1"); ${workerBody(inner)} console.log("outer 2"); postMessage(1);`;
    const lines = await linesOf(`console.log("page 1"); ${workerBody(`(async () => { ${outer} })()`)}
      console.log("page 2")`);
    const texts = lines.map(({ text }) => text);
    expect(texts[0]).to.equal("page 1");
    for (const source of ["page", "outer", "inner"]) {
      expect(texts.filter((text) => text.startsWith(source))).to.deep.equal([`${source} 1`, `${source} 2`]);
    }
  });

  it("is available while the run executes", async () => {
    const abort = new AbortController();
    const code = `const execute = async () => { ${workerBody("console.log('now')")} }`;
    const outcome = await browsers.run(runOf(code, { signal: abort.signal, onConsole: () => abort.abort() }));
    expect(outcome).to.deep.include({ ok: false, cause: "cancelled" });
  });

  it("is complete to the last line if the run ends at once", async () => {
    for (const _run of sampleOf(Array.from({ length: 10 }), 0, 4)) {
      const lines = await linesOf(workerBody("for (let i = 0; i < 100; i += 1) console.log(i); postMessage(1)"));
      expect(lines).to.have.length(100);
    }
  });

  longTest("is also stored if requests are checked", async () => {
    const lines = await linesOf(workerBody("console.log('guarded'); postMessage(1)"), { mayRequest: () => true });
    expect(shown(lines)).to.deep.equal(["log: guarded"]);
  });

  it("is limited within a worker, and a flood of it does not fill this process", async () => {
    const before = process.memoryUsage().rss;
    const lines = await linesOf(
      workerBody("const m = 'x'.repeat(1e6); for (let i = 0; i < 2e4; i += 1) console.log(m); postMessage(1)"),
    );
    expect(lines.reduce((sum, { text }) => sum + text.length, 0)).to.be.lessThan(CONSOLE_MAX_CHARACTERS + 32_768);
    expect(lines.at(-1)?.text).to.equal(CONSOLE_FULL_MESSAGE);
    expect(process.memoryUsage().rss - before).to.be.lessThan(100 * 1024 * 1024);
  });

  longTest("is limited over all workers of a run together", async () => {
    const lines = await linesOf(`for (let i = 0; i < 8; i += 1) {
      ${workerBody("for (let i = 0; i < 4e3; i += 1) console.log(i); postMessage(1)")
        .replace("const worker", "var worker")
        .replace("const answer", "var answer")}
    }`);
    expect(lines).to.have.length(CONSOLE_MAX_LINES + 1);
    expect(lines.filter(({ text }) => text === CONSOLE_FULL_MESSAGE)).to.have.length(1);
    expect(lines.at(-1)?.text).to.equal(CONSOLE_FULL_MESSAGE);
  });

  it("cannot be reached by the worker's code, also not on its first line", async () => {
    const look = `const found = [];
      for (let one = self; one; one = Object.getPrototypeOf(one)) found.push(...Reflect.ownKeys(one).map(String));
      postMessage([found.filter((key) => /svc|harness|binding$/i.test(key)), String(console.log), typeof __svc_console]);`;
    const code = `const execute = async () => { ${workerBody(look)} return answer }`;
    const [found, source, type] = (await resultOf(browsers, code)) as [string[], string, string];
    expect([found, type]).to.deep.equal([[], "undefined"]);
    expect(source).to.not.include("svc");
  });

  it("still works after the worker's code replaces every intrinsic", async () => {
    const lines = await linesOf(
      workerBody(`JSON.stringify = Reflect.apply = String.prototype.slice = () => "forged"; Array.isArray = () => true;
        console.log("true"); postMessage(1);`),
    );
    expect(shown(lines)).to.deep.equal(["log: true"]);
  });

  longTest("is not given to the next run if it arrives late", async () => {
    const late = `setInterval(() => console.log("late"), 1); postMessage(1)`;
    for (let i = 0; i < 5; i += 1) {
      await linesOf(workerBody(late));
      const lines = await linesOf("console.log('own'); await new Promise((resolve) => setTimeout(resolve, 50))");
      expect(shown(lines)).to.deep.equal(["log: own"]);
    }
  });

  longTest("does not delay a run whose worker is busy", async () => {
    const lines: ConsoleLine[] = [];
    const code = `const execute = async () => { ${workerBody("console.log('busy'); postMessage(1); for (;;);")} return answer }`;
    expect(await resultOf(browsers, code, { onConsole: (line) => lines.push(line) })).to.equal(1);
    expect(shown(lines)).to.deep.equal(["log: busy"]);
  });
});
