/** Tests a single run: the values that its code gets, and its result or error. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { EVALUATION_MODES, type PageRunRequest } from "../../../src/engine/browser/run.js";
import { type RemoteChromium, startRemoteChromium } from "../../harness/remote-chromium.js";
import { longTest, sampleOf } from "../../harness/samples.js";
import { createRemoteSource, failureOf, resultOf, testBrowsers } from "./support.js";

let browsers: Browsers;

function testEachMode(kind: Partial<PageRunRequest>): void {
  const result = (source: string, changes: Partial<PageRunRequest> = {}) =>
    resultOf(browsers, source, { ...kind, ...changes });
  const failure = (source: string) => failureOf(browsers, source, kind);
  /** Declares a test that needs much processor time. `npm test` executes it only in mode "network-isolate". */
  const testInOneMode = kind.mode === "network-isolate" ? it : longTest;

  describe("what code sees", () => {
    it("gives execute a context with exactly payload and settings", async () => {
      const source = "async function execute(context) { return [Reflect.ownKeys(context), context, arguments.length] }";
      const value = await result(source, { payload: '{"a":[1]}', settings: '{"_key":"v"}' });
      expect(value).to.deep.equal([["payload", "settings"], { payload: { a: [1] }, settings: { _key: "v" } }, 1]);
    });

    for (const form of [
      "async function execute() { return 7 }",
      "const execute = async () => 7",
      "let execute = async () => 7;",
      "const execute = async function () { return 7 }",
      "const execute = async function named() { return 7 } // no newline at the end",
    ]) {
      it(`finds execute in: ${form}`, async () => {
        expect(await result(form)).to.equal(7);
      });
    }
  });

  describe("what code can reach", () => {
    it("is no function of the harness, also not by the stack of its errors", async () => {
      const source = `const seen = new Set();
        Error.prepareStackTrace = (_error, sites) => {
          for (const site of sites) if (site.getFunction()) seen.add(site.getFunction().name);
          return "";
        };
        async function execute() { String(new Error("here").stack); return [...seen] }`;
      expect(await result(source)).to.deep.equal(["execute"]);
    });
  });

  describe("the console", () => {
    it("shows values as JSON, and other values by their names", async () => {
      const texts: string[] = [];
      const source = `const execute = async () => console.log({}, { a: [1] }, [], new Map(), new Set(), Object.create({ b: 2 }), null, "t", 1)`;
      await result(source, { onConsole: ({ text }) => texts.push(text) });
      expect(texts).to.deep.equal(['{} {"a":[1]} [] {"Map":[]} {"Set":[]} {} null t 1']);
    });

    it("shows what JSON would lose or reject: errors, Maps and Sets at any place, cycles, BigInts", async () => {
      const texts: string[] = [];
      const source = `const circle = { name: "c" }; circle.self = circle; const map = new Map(); map.set("map", map).set(circle, 1n);
        const same = { s: 1 };
        const execute = async () => {
          console.log({ error: new RangeError("far"), list: [new Set([1, new Error("in")])] });
          console.log(circle, [same, same]);
          console.log(map);
          console.log({ map: new Map([["a", { b: 2n }]]), date: new Date(0) });
        }`;
      await result(source, { onConsole: ({ text }) => texts.push(text) });
      expect(texts).to.deep.equal([
        '{"error":"RangeError: far","list":[{"Set":[1,"Error: in"]}]}',
        '{"name":"c","self":"[circular]"} [{"s":1},{"s":1}]',
        '{"Map":[["map","[circular]"],[{"name":"c","self":"[circular]"},1n]]}',
        '{"map":{"Map":[["a",{"b":2n}]]},"date":"1970-01-01T00:00:00.000Z"}',
      ]);
    });
  });

  describe("results", () => {
    const cases: [string, unknown][] = [
      ["undefined", undefined],
      ["() => 1", undefined],
      ["Symbol('s')", undefined],
      ["null", null],
      ["new Date(0)", "1970-01-01T00:00:00.000Z"],
      ["({ a: undefined, b: NaN, c: [undefined] })", { b: null, c: [null] }],
      ["new Map([[1, 2]])", {}],
      ["'\\u2028 \\ud800 é'", "\u2028 \ud800 é"],
    ];
    for (const [expression, expected] of cases) {
      it(`are ${expression} as JSON.stringify returns it`, async () => {
        expect(await result(`const execute = async () => ${expression}`)).to.deep.equal(expected);
      });
    }

    for (const [title, expression] of [
      ["a cyclic value", "{ const a = {}; a.a = a; return a }"],
      ["a BigInt", "{ return [1n] }"],
      ["a toJSON that throws", "{ return { toJSON() { throw new Error('no') } } }"],
    ] as const) {
      it(`fail with a clear error for ${title}`, async () => {
        const found = await failure(`const execute = async () => ${expression}`);
        expect(found.cause).to.equal("result");
        expect(found.error.message).to.match(/^The result of execute cannot be turned into JSON: /);
      });
    }

    testInOneMode("have at most 6 MB, and fail one byte above", async () => {
      const exact = 6 * 1024 * 1024 - 2;
      expect(await result(`const execute = async () => "x".repeat(${exact})`)).to.have.length(exact);
      const found = await failure(`const execute = async () => "x".repeat(${exact + 1})`);
      expect(found.cause).to.equal("result");
      expect(found.error.message).to.include("larger than 6 MB");
    });

    it("are counted in bytes of UTF-8, not characters", async () => {
      const found = await failure('const execute = async () => "é".repeat(3.2e6)');
      expect(found.error.message).to.include("larger than 6 MB");
    });

    it("are checked for size outside too, if the page's own check was manipulated", async () => {
      const source = `if (globalThis.TextEncoder) TextEncoder.prototype.encode = () => new Uint8Array(0); JSON.stringify = () => "1";
        const execute = async () => "é".repeat(3.2e6)`;
      expect((await failure(source)).cause).to.equal("result");
    });

    it("are right even if every intrinsic has been replaced", async () => {
      const source = `const execute = async () => {
        Promise.prototype.then = Promise.prototype.catch = () => {};
        JSON.stringify = JSON.parse = Reflect.apply = () => "forged";
        Object.prototype.toJSON = () => "forged"; String.prototype.slice = () => "forged";
        delete Object.prototype.toJSON;
        return "true";
      }`;
      expect(await result(source)).to.equal("true");
    });
  });

  describe("errors", () => {
    it("name line and column of the author's own code and show no other frame", async () => {
      const { error, cause } = await failure("async function execute() {\n  null.foo;\n}");
      expect(cause).to.equal("script");
      expect(error.name).to.equal("TypeError");
      expect(error.stack.split("\n")).to.deep.equal([`TypeError: ${error.message}`, "    at execute (action.js:2:8)"]);
    });

    it("name line and column after an await, in the top level, and in a nested call", async () => {
      const later = await failure("async function execute() {\n await 0;\n throw new Error('a') }");
      expect(later.error.stack).to.equal("Error: a\n    at execute (action.js:3:8)");
      const top = await failure("\n\n  throw new RangeError('top')");
      expect(top.error.stack).to.equal("RangeError: top\n    at action.js:3:9");
      const nested = await failure("const f = () => { throw new Error('n') };\nconst execute = async () => f()");
      expect(nested.error.stack).to.equal("Error: n\n    at f (action.js:1:25)\n    at execute (action.js:2:29)");
    });

    it("report a missing execute", async () => {
      const { error } = await failure("const other = 1");
      expect(error.message).to.equal("The code defines no function with the name execute");
    });

    const thrown: [string, { name: string; message: string }][] = [
      ["'boom'", { name: "Error", message: "boom" }],
      ["null", { name: "Error", message: "null" }],
      ["undefined", { name: "Error", message: "undefined" }],
      ["({ code: 5 })", { name: "Error", message: '{"code":5}' }],
      ["Symbol('s')", { name: "Error", message: "Symbol(s)" }],
      ["Object.create(null)", { name: "Error", message: "{}" }],
      ["new DOMException('m', 'AbortError')", { name: "AbortError", message: "m" }],
      [
        "({ get message() { throw 1 }, get name() { throw 2 }, get stack() { throw 3 } })",
        { name: "Error", message: "a value that cannot be shown" },
      ],
      [
        "new Proxy({}, { get() { throw 1 }, ownKeys() { throw 2 } })",
        { name: "Error", message: "a value that cannot be shown" },
      ],
      ["Object.assign(new Error(), { name: 5, message: {}, stack: [] })", { name: "Error", message: "" }],
    ];
    const here = thrown.filter(([expression]) => kind.mode !== "isolate" || !expression.includes("DOMException"));
    for (const [expression, expected] of here) {
      it(`turn a thrown ${expression} into three strings`, async () => {
        const { error } = await failure(`const execute = async () => { throw ${expression} }`);
        expect(error).to.include({ name: expected.name });
        expect(Object.values(error).every((value) => typeof value === "string")).to.equal(true);
        if (expected.message !== "") expect(error.message).to.equal(expected.message);
      });
    }

    it("of an execute that throws synchronously or is not async have the same form", async () => {
      const found = await failure("function execute() { throw new Error('sync') }");
      expect(found.error.stack).to.equal("Error: sync\n    at execute (action.js:1:28)");
      expect(await result("function execute() { return 5 }")).to.equal(5);
    });

    testInOneMode("have a maximum length", async () => {
      const source =
        "async function execute() { const e = new Error('x'.repeat(5e7)); e.name = 'y'.repeat(5e7); throw e }";
      const { error } = await failure(source);
      expect(error.message).to.have.length(16_384);
      expect(error.name).to.have.length(16_384);
    });

    it("split no character in two", async () => {
      const source =
        "async function execute() { const e = new Error('x' + '\u{1F600}'.repeat(1e4)); e.name = e.message; throw e }";
      const { error } = await failure(source);
      for (const text of [error.message, error.name, error.stack]) expect(text.isWellFormed()).to.equal(true);
    });
  });
}

for (const browserOwner of sampleOf(["the browser", "a browser that somebody else started"], 0, 2)) {
  describe(`a run in ${browserOwner}`, () => {
    let remote: RemoteChromium | undefined;

    before(async () => {
      if (browserOwner !== "the browser") remote = await startRemoteChromium();
      browsers = testBrowsers(remote && { sources: [createRemoteSource(remote.endpoint)] });
      await browsers.start();
    });
    after(async () => {
      await browsers.stop();
      await remote?.kill();
    });

    for (const mode of EVALUATION_MODES) describe(`in mode ${mode}`, () => testEachMode({ mode }));

    describe("in a document", () => {
      it("runs at the app's https origin, in a secure context with WebCrypto", async () => {
        const source = "const execute = async () => [location.href, isSecureContext, typeof crypto.subtle.digest]";
        expect(await resultOf(browsers, source)).to.deep.equal(["https://app-1.actions.internal/", true, "function"]);
      });

      it("evaluates packages first and in order, in the same global scope", async () => {
        const packages = [
          { name: "one.js", source: "const order = ['one']; globalThis.Svc = {}" },
          { name: "two.js", source: "order.push('two'); Svc.two = 2" },
        ];
        const source = "order.push('action'); const execute = async () => [order, Svc]";
        expect(await resultOf(browsers, source, { packages })).to.deep.equal([["one", "two", "action"], { two: 2 }]);
      });

      it("has nothing of the harness in the page's globals", async () => {
        const source = `const before = Reflect.ownKeys(globalThis).filter((key) => /svc|harness|console_/i.test(String(key)));
        const execute = async () => [before, document.scripts.length]`;
        expect(await resultOf(browsers, source)).to.deep.equal([[], 0]);
      });

      it("reports a syntax error", async () => {
        const { error } = await failureOf(browsers, "async function execute() {\n return 5 +;\n}");
        expect(error).to.deep.equal({
          name: "SyntaxError",
          message: "Unexpected token ';'",
          stack: "SyntaxError: Unexpected token ';'",
        });
      });

      it("does not fail because of a failed script that the code itself inserts", async () => {
        const source = `const script = document.createElement("script"); script.text = "throw new Error('inner')";
        document.head.append(script); const execute = async () => "outer"`;
        expect(await resultOf(browsers, source)).to.equal("outer");
      });

      it("fails at once if it navigates, reloads or closes its page", async () => {
        for (const code of ["location.href = 'https://example.com/'", "location.reload()", "window.close()"]) {
          const failure = await failureOf(
            browsers,
            `async function execute() { ${code}; await new Promise(() => {}) }`,
          );
          expect(failure.cause, code).to.equal("script");
          expect(failure.error.message).to.match(/its (own )?page/);
        }
      });

      it("dismisses dialogs", async () => {
        expect(await resultOf(browsers, "const execute = async () => [alert(1), confirm(2), prompt(3)]")).to.deep.equal(
          [null, false, null],
        );
      });
    });
  });
}
