/** Checks that a result that is too long for one message arrives completely, even if the run has changed its globals. */
import { expect } from "chai";
import { DEVTOOLS_MESSAGE_MAX_CHARACTERS, readAnswer } from "../../../src/engine/browser/pages/fresh-document.js";
import { EVALUATION_MODES } from "../../../src/engine/browser/run.js";
import { RESULT_MAX_BYTES } from "../../../src/limits.js";
import { resultOf, sharedBrowsers } from "./support.js";

const CHANGED_GLOBALS = `
  String.prototype.slice = () => "";
  Reflect.apply = () => "x";
  Promise.prototype.then = function (take) { take("data 1"); return this; };
  Object.defineProperty(Promise, Symbol.species, { get() { throw 1 } });
  Array.prototype[Symbol.iterator] = () => { throw 2 };
  Object.defineProperty(Object.prototype, "readAnswerPart", { get() { return () => "data 2" }, set() { throw 3 } });`;

describe("a long answer", () => {
  it("has the bytes of its joined parts, also if a part ends within a character", async () => {
    const end = "a😀é\ud800b€😀😀\udc00\ud83d";
    for (let at = 1; at < end.length; at += 1) {
      const text = "x".repeat(DEVTOOLS_MESSAGE_MAX_CHARACTERS - at) + end;
      const bytes = await readAnswer<undefined>(text.length, async (from, to) => text.slice(from, to));
      expect(bytes!.equals(Buffer.from(text)), String(at)).to.equal(true);
    }
  });
});

describe("an answer whose characters have three bytes", () => {
  it("is read only until its bytes exceed the limit of a result", async () => {
    let parts = 0;
    const bytes = await readAnswer<undefined>(RESULT_MAX_BYTES, async (from, to) => {
      parts += 1;
      return "€".repeat(to - from);
    });
    expect(bytes!.length).to.be.above(RESULT_MAX_BYTES);
    expect(parts).to.equal(Math.ceil(RESULT_MAX_BYTES / 3 / DEVTOOLS_MESSAGE_MAX_CHARACTERS) + 1);
  });
});

describe("a long result of a run", () => {
  const browsers = sharedBrowsers();
  before(() => browsers.start());
  after(() => browsers.stop());

  for (const mode of EVALUATION_MODES) {
    for (const [title, before] of [
      ["", ""],
      [", after the run has replaced what a page works with", CHANGED_GLOBALS],
    ]) {
      it(`in mode ${mode} arrives complete, also characters that are split between two parts${title}`, async () => {
        const text = `"a${"😀é".repeat(150_000)}"`;
        const code = `const execute = async () => { const text = ${JSON.stringify(JSON.parse(text).slice(0, 4))}[0] + "😀é".repeat(150_000); ${before} return text }`;
        const result = await resultOf(browsers, code, { mode });
        expect(JSON.stringify(result) === text).to.equal(true);
      });
    }
  }
});
