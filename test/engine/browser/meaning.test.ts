/** Checks that code can declare any name in every mode. The declared names never collide with the globals of a page. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { EVALUATION_MODES } from "../../../src/engine/browser/run.js";
import { sampleOf } from "../../harness/samples.js";
import { failureOf, resultOf, sharedBrowsers } from "./support.js";

/** Code that returns the names of a document's globals that are valid identifiers. */
const NAMES_CODE = `const execute = async () => {
  const names = [];
  for (let holder = globalThis; holder !== null; holder = Object.getPrototypeOf(holder)) names.push(...Object.getOwnPropertyNames(holder));
  return [...new Set(names)].filter((name) => /^[A-Za-z_$][\\w$]*$/.test(name));
}`;

const DECLARATIONS: Record<string, (name: string) => string> = {
  var: (name) => `var ${name} = { own: "${name}" };`,
  let: (name) => `let ${name} = { own: "${name}" };`,
  const: (name) => `const ${name} = { own: "${name}" };`,
  function: (name) => `function ${name}() {} ${name}.own = "${name}";`,
  class: (name) => `class ${name} { static own = "${name}" }`,
};

const SAMPLES: [title: string, source: string, result: unknown][] = [
  ["a variable named as one of a window", "var status = 404; async function execute() { return status === 404 }", true],
  ["an object in a variable named name", "var name = { a: 1 }; async function execute() { return name }", { a: 1 }],
  ["this at the top level", "const top = this === globalThis; const execute = async () => top", true],
  ["a directive", "'use strict'; const execute = async () => (function () { return typeof this })()", "undefined"],
  ["no arguments at the top level", "const found = typeof arguments; const execute = async () => found", "undefined"],
  ["a comment in the last line", "const execute = async () => 1 // end", 1],
  ["an HTML-like comment", "const execute = async () => 1\n<!-- end", 1],
  ["a hashbang comment", "#!/usr/bin/env node\nconst execute = async () => 1", 1],
  ["a global that it assigns", "execute = async () => 1", 1],
  ["a property that it assigns", "globalThis.execute = async () => 1", 1],
  ["a function that is declared twice", "function execute() { return 1 } function execute() { return 2 }", 2],
  ["a block's function", "{ function execute() { return 1 } }", 1],
  ["code that is longer than what is analyzed", `const execute = async () => 1 //${" ".repeat(20_000)}`, 1],
];

describe("the result of code", () => {
  let browsers: Browsers;
  let names: string[];

  before(async () => {
    browsers = sharedBrowsers();
    await browsers.start();
    names = (await resultOf(browsers, NAMES_CODE)) as string[];
    expect(names).to.include.members(["location", "top", "document", "undefined"]);
  });
  after(() => browsers.stop());

  for (const [index, mode] of EVALUATION_MODES.entries()) {
    for (const [kind, declare] of Object.entries(DECLARATIONS)) {
      it(`uses its own names in mode ${mode}: ${kind}`, async () => {
        // `class eval {}` is a syntax error, because a class is always in strict mode.
        const declared = names.filter((name) => kind !== "class" || name !== "eval");
        const pairs = declared.map((name) => `["${name}", ${name}]`).join();
        const source = `${declared.map(declare).join("\n")}
          async function execute() { return [${pairs}].filter(([name, value]) => value?.own !== name).map(([name]) => name) }`;
        expect(await resultOf(browsers, source, { mode })).to.deep.equal([]);
      });
    }

    for (const [title, source, result] of sampleOf(SAMPLES, index, 6)) {
      it(`is the same in mode ${mode}: ${title}`, async () => {
        expect(await resultOf(browsers, source, { mode })).to.deep.equal(result);
      });
    }

    it(`has the positions of the author's lines in mode ${mode}, also in the first line and in the console`, async () => {
      const source = "const execute = async () => { const error = new Error('a'); console.log(error); throw error }";
      const printed: string[] = [];
      const onConsole = ({ text }: { text: string }) => void printed.push(text);
      const { error } = await failureOf(browsers, source, { mode, onConsole, sourceName: "a+(b).js" });
      expect(error.stack).to.equal("Error: a\n    at execute (a+(b).js:1:45)");
      expect(printed).to.deep.equal([error.stack]);
    });
  }

  const DEEP_CODE_SAMPLES: [title: string, body: string, result: unknown][] = [
    ["arguments of a call", "return Math.max(...Array.from({ length: 100_000 }, (_, at) => at))", 99_999],
    [
      "calls inside each other",
      "const down = (depth) => (depth === 0 ? 0 : 1 + down(depth - 1)); return down(8_000)",
      8_000,
    ],
  ];
  for (const [title, body, result] of DEEP_CODE_SAMPLES) {
    for (const [names, mode] of [
      ["", "isolate"],
      ["void fetch;", "network-isolate"],
      ["void document;", "document"],
    ] as const) {
      it(`has the stack of a document for code of mode ${mode}: ${title}`, async () => {
        const source = `const execute = async () => { ${names} ${body} }`;
        expect(await resultOf(browsers, source, { mode: undefined })).to.deep.equal(result);
      });
    }
  }

  it("is not computed twice if it has printed something: the run fails, and the next run uses a document", async () => {
    const source = `const execute = async () => { console.log("once"); void fetch; ${DEEP_CODE_SAMPLES[0]![1]} }`;
    const printed: string[] = [];
    const changes = { mode: undefined, onConsole: ({ text }: { text: string }) => void printed.push(text) };
    const { cause, error } = await failureOf(browsers, source, changes);
    expect([cause, error.message, printed]).to.deep.equal(["script", "Maximum call stack size exceeded", ["once"]]);
    expect(await resultOf(browsers, source, changes)).to.equal(99_999);
    expect(printed).to.deep.equal(["once", "once"]);
  });
});
