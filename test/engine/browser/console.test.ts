/** Checks that a run's console prints the same in every mode and in a worker: values, format specifiers, counts and timers. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { EVALUATION_MODES, type PageRunRequest } from "../../../src/engine/browser/run.js";
import { resultOf, sharedBrowsers } from "./support.js";

const VALUES: [expression: string, text: string][] = [
  ["Object.create(null)", "{}"],
  ["Object.assign(Object.create(null), { a: Object.create(null) })", '{"a":{}}'],
  ["[NaN, Infinity, -Infinity, -0, 0, null]", "[NaN,Infinity,-Infinity,-0,0,null]"],
  ["{ a: NaN, b: undefined, c: [undefined], d: 5n }", '{"a":NaN,"b":undefined,"c":[undefined],"d":5n}'],
  ["{ map: new Map([[{ a: 1 }, new Set([NaN])]]) }", '{"map":{"Map":[[{"a":1},{"Set":[NaN]}]]}}'],
  ["{ f() {}, g: () => {}, s: Symbol('s') }", '{"f":[Function: f],"g":[Function: g],"s":Symbol(s)}'],
  [
    "{ r: /a+/g, d: new Date(0), u: [new Uint8Array([1, 2])] }",
    '{"r":/a+/g,"d":"1970-01-01T00:00:00.000Z","u":[[1,2]]}',
  ],
  ["{ e: new RangeError('far'), text: 'a\"b' }", '{"e":"RangeError: far","text":"a\\"b"}'],
  ["-0", "-0"],
  ["NaN", "NaN"],
  ["undefined", "undefined"],
  ["10n", "10n"],
  ["'text'", "text"],
  ["[[[[]]], {}]", "[[[[]]],{}]"],
  ["new (class Own { a = 1 })()", '{"a":1}'],
  ["new (class Own {})()", "{}"],
];

const FORMATS: [given: string, text: string][] = [
  ["'%s is %d', 'a', 4.7", "a is 4"],
  ["'%i %f', '12px', '1.50'", "12 1.5"],
  ["'%d %i %f', 'a', {}, Symbol()", "NaN NaN NaN"],
  ["'%d', 10n", "10n"],
  ["'%o and %O', { a: NaN }, [1]", '{"a":NaN} and [1]'],
  ["'%s', { a: 1 }", '{"a":1}'],
  ["'%s', Object.create(null)", "{}"],
  ["'%cred%c', 'color: red', ''", "red"],
  ["'100%%, %s', 'a'", "100%, a"],
  ["'%s %s', 'a'", "a %s"],
  ["'%s', 'a', 'b', { c: 1 }", 'a b {"c":1}'],
  ["'%x %s', 'a'", "%x a"],
  ["'50%', 'a'", "50% a"],
  ["'%s'", "%s"],
  ["'100%%'", "100%%"],
  ["1, '%s', 'a'", "1 %s a"],
];

const COUNTING_CODE = `
  console.count(); console.count("a"); console.count(); console.countReset(); console.count(); console.countReset("b");
  console.time("t"); console.time("t"); console.timeLog("t", { a: 1 }); console.timeEnd("t"); console.timeEnd("t"); console.timeLog();
  console.group("g %d", 1); console.groupCollapsed("h"); console.groupEnd(); console.assert(false, "%s!", "no"); console.assert(true, "x");`;
const COUNTING_LINES = [
  "log default: 1",
  "log a: 1",
  "log default: 2",
  "log default: 1",
  "warn Count for 'b' does not exist",
  "warn Timer 't' already exists",
  'log t: N ms {"a":1}',
  "log t: N ms",
  "warn Timer 't' does not exist",
  "warn Timer 'default' does not exist",
  "log g 1",
  "log h",
  "error Assertion failed no!",
];

const inWorker = (statements: string) =>
  `const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(
    `${statements}; postMessage(1)`,
  )}]))); await new Promise((resolve) => { worker.onmessage = resolve });`;

describe("the console of a run", () => {
  let browsers: Browsers;
  before(async () => {
    browsers = sharedBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  async function printed(statements: string, changes: Partial<PageRunRequest>): Promise<string[]> {
    const lines: string[] = [];
    await resultOf(browsers, `const execute = async () => { ${statements} }`, {
      onConsole: ({ level, text }) => void lines.push(`${level} ${text.replaceAll(/\d+ ms/g, "N ms")}`),
      ...changes,
    });
    return lines;
  }

  const consoleCases = [
    ...EVALUATION_MODES.map((mode) => ({ where: `in mode ${mode}`, mode, wrap: (statements: string) => statements })),
    { where: "in a worker that a document starts", mode: "document" as const, wrap: inWorker },
  ];
  for (const { where, mode, wrap } of consoleCases) {
    it(`shows values of every kind ${where}`, async () => {
      const statements = VALUES.map(([expression]) => `console.log(${expression});`).join("\n");
      expect(await printed(wrap(statements), { mode })).to.deep.equal(VALUES.map(([, text]) => `log ${text}`));
    });

    it(`fills format specifiers ${where}`, async () => {
      const statements = FORMATS.map(([args]) => `console.warn(${args});`).join("\n");
      expect(await printed(wrap(statements), { mode })).to.deep.equal(FORMATS.map(([, text]) => `warn ${text}`));
    });

    it(`counts and measures ${where}`, async () => {
      expect(await printed(wrap(COUNTING_CODE), { mode })).to.deep.equal(COUNTING_LINES);
    });

    it(`stops at its limit in a value that is too long ${where}`, async () => {
      const statements = "console.log(Array.from({ length: 1e5 }, () => 'abc')); console.log('%s', 'x'.repeat(1e6));";
      const lengths = (await printed(wrap(statements), { mode })).map((line) => line.length);
      expect(lengths).to.deep.equal([16_388, 16_388]);
    });
  }
});
