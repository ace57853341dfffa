/** Tests how the bundler finds the names of packages and globals in code, and the limits of its process. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { stop } from "esbuild";
import pino from "pino";
import { BundlerBusyError, PackageError } from "../../src/engine/bundler/fault.js";
import { FileTree } from "../../src/engine/bundler/file-tree.js";
import {
  findGlobalNameInBuild,
  findGlobalNameInReadme,
  toCamelCaseName,
} from "../../src/engine/bundler/global-name.js";
import { buildPackageScript } from "../../src/engine/bundler/make-script.js";
import { readProcessTreeCpuTime, readProcessTreeMemory } from "../../src/engine/bundler/process-tree.js";
import { findRequiredModules, findUsedGlobalNames, parsePackageScript } from "../../src/engine/bundler/used-names.js";
import { Bundler } from "../../src/engine/bundler.js";
import { createArchive } from "../harness/npm-registry.js";
import { longTest } from "../harness/samples.js";

describe("the global name of a package", () => {
  const LIBRARY_BUILDS: [title: string, source: string, name: string, namespace: boolean][] = [
    [
      "a minified default export",
      '!function(t,e){"object"==typeof exports&&"undefined"!=typeof module?module.exports=e():"function"==typeof define&&define.amd?define(e):(t="undefined"!=typeof globalThis?globalThis:t||self).dayjs=e()}(this,(function(){return 1}))',
      "dayjs",
      false,
    ],
    [
      "an object that a factory fills",
      '(function (global, factory) { typeof exports === "object" ? factory(exports) : (global = global || self, factory(global.d3 = global.d3 || {})); })(this, function (exports) { exports.a = 1 })',
      "d3",
      true,
    ],
    [
      "a root with a text for its key",
      '(function webpackUniversalModuleDefinition(root, factory) { if (typeof exports === "object") module.exports = factory(); else if (typeof exports === "object") exports["math"] = factory(); else root["math"] = factory(); })(this, function () { return 1 })',
      "math",
      false,
    ],
    ["one variable for all", "var luxon = (function (exports) { return exports; })({});", "luxon", false],
  ];
  for (const [title, source, name, namespace] of LIBRARY_BUILDS) {
    it(`is what a browser build sets: ${title}`, () => {
      expect(findGlobalNameInBuild(source, name)).to.deep.equal({ name, isNamespace: namespace });
    });
  }

  it("is none of a build that sets several, except the package's own", () => {
    const part = (name: string) => `(function (root, factory) { root.${name} = factory() })(this, function () {});`;
    expect(findGlobalNameInBuild(part("cptable") + part("JSZip"), "xlsx")).to.equal(null);
    expect(findGlobalNameInBuild(`${part("cptable")} var XLSX = {};`, "xlsx")).to.deep.equal({
      name: "XLSX",
      isNamespace: false,
    });
    expect(findGlobalNameInBuild("this is no JavaScript", "xlsx")).to.equal(null);
  });

  const README_SAMPLES: [readme: string, name: string, expected: object | null][] = [
    ["const _ = require('lodash');", "lodash", { name: "_", isNamespace: false }],
    ['import Papa from "papaparse"', "papaparse", { name: "Papa", isNamespace: false }],
    ['import * as z from "zod"', "zod", { name: "z", isNamespace: true }],
    ["const fp = require('lodash/fp')", "lodash", null],
    ["var merge = require('lodash').merge", "lodash", null],
    [
      "`Handlebars.compile(x)` and `handlebars.a`, `Handlebars.b()`",
      "handlebars",
      { name: "Handlebars", isNamespace: false },
    ],
    ["import URL from 'url-thing'", "url-thing", null],
    ["import execute from 'x'", "x", null],
    ["import Svc from 'x'", "x", null],
    ["import __proto__ from 'x'", "x", null],
    ['import { jsPDF } from "jspdf"', "jspdf", { name: "jspdf", isNamespace: true }],
    ["const { parse } = require('some-thing')", "some-thing", { name: "someThing", isNamespace: true }],
    ["nothing", "some-thing", null],
  ];
  for (const [readme, name, expected] of README_SAMPLES) {
    it(`is the name in its README, if it is free: ${readme.slice(0, 40)}`, () => {
      expect(findGlobalNameInReadme(readme, name)).to.deep.equal(expected);
    });
  }

  it("is otherwise its name in camel case, never a name of the language or the browser", () => {
    const names = ["date-fns", "@scope/some-name", "7zip", "crypto", "@scope/crypto", "console", "a.b_c"].map(
      toCamelCaseName,
    );
    expect(names).to.deep.equal(["dateFns", "someName", "_7zip", "npmCrypto", "scopeCrypto", "npmConsole", "aB_c"]);
  });
});

describe("globals that a script uses", () => {
  const used = (source: string) => findUsedGlobalNames(parsePackageScript(source));

  it("are all names that it does not declare, except those that it only checks", () => {
    expect(used("(() => { const a = fetch; return a + document.title })()")).to.deep.equal(["document", "fetch"]);
    expect(used("var here = typeof window === 'undefined'; here + 1")).to.deep.equal([]);
    expect(used("typeof window === 'undefined' ? 1 : window.x")).to.deep.equal(["window"]);
    expect(used("navigator.userAgent + navigator?.language")).to.deep.equal([
      "navigator.language",
      "navigator.userAgent",
    ]);
    expect(used("const { userAgent } = navigator; navigator['x']")).to.deep.equal(["navigator"]);
    expect(used("import('x')")).to.deep.equal(["import()"]);
    expect(used("globalThis.document; globalThis.mine")).to.deep.equal(["document", "globalThis"]);
  });

  it("include whether code is made from text without a fallback", () => {
    for (const source of [
      "eval(x)",
      "new Function('a', x)",
      "const f = () => Function(x)",
      "try { f() } catch { eval(x) }",
    ])
      expect(used(source), source).to.include("eval()");
    for (const source of [
      "Function('return this')()",
      "try { new Function('') } catch {}",
      "(() => { const eval2 = 1, Function = class {}; return new Function(eval2) })()",
      "x instanceof Function; Function.prototype.call",
    ])
      expect(used(source), source).not.to.include("eval()");
  });

  it("of Node are those that it loads at its start, not those that it can do without", () => {
    const needed = (source: string) => findRequiredModules(parsePackageScript(source));
    const wrapInModule = (body: string) => `var x = __commonJS({ "a.js"(exports, module) { ${body} } }); x();`;
    expect(needed(wrapInModule("var fs = __require('fs')"))).to.deep.equal(["fs"]);
    expect(needed("var fs = __toESM(__require('fs'))")).to.deep.equal(["fs"]);
    expect(needed(wrapInModule("try { __require('crypto') } catch {}"))).to.deep.equal([]);
    expect(needed(wrapInModule("exports.read = () => __require('fs')"))).to.deep.equal([]);
    expect(needed(wrapInModule("if (typeof window === 'undefined') __require('fs')"))).to.deep.equal([]);
    expect(needed(wrapInModule("var a = globalThis.crypto || __require('crypto')"))).to.deep.equal([]);
  });
});

describe("a package that is bundled", () => {
  /** Bundles with a time limit of 1 ms, and returns the error. `seconds` is the processor time that the bundler measures. */
  async function faultAfter(seconds: number): Promise<unknown> {
    const log = pino({ level: "silent" });
    const limits = { timeoutMs: 1, memoryBytes: 2 ** 30 };
    const bundler = new Bundler({ log, sandbox: true, limits, measureCpuSeconds: async () => seconds });
    const archive = createArchive([{ path: "package/package.json", content: "{}" }]);
    const placed = { name: "thing", version: "1.0.0", folder: "/node_modules/thing", archive };
    return bundler.bundle([placed]).catch((error: unknown) => error);
  }

  longTest("is not rejected if the machine gave its process no time, and is rejected if it did", async () => {
    expect(await faultAfter(0)).to.be.instanceOf(BundlerBusyError);
    const fault = await faultAfter(0.001);
    expect(fault).to.be.instanceOf(PackageError);
    expect((fault as Error).message).to.equal("the bundler exceeded its limit of 0.001 s");
  });

  longTest("uses the processor time of its process and of the child processes", async () => {
    const before = await readProcessTreeCpuTime(process.pid);
    spawnSync(process.execPath, ["-e", "while (process.cpuUsage().user < 100_000);"]);
    expect((await readProcessTreeCpuTime(process.pid)) - before).to.be.within(0.09, 5);
  });

  it("uses the memory of its process and of the child processes", async () => {
    const waiting = "process.stdin.resume(); console.log(1)";
    const code = `const child = require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(waiting)}], {
      stdio: ["inherit", "pipe", "inherit"],
    });
    child.stdout.once("data", () => console.log(child.pid));`;
    const parent = spawn(process.execPath, ["-e", code], { stdio: ["pipe", "pipe", "inherit"] });
    try {
      const [output] = await once(parent.stdout, "data");
      const childBytes = await readProcessTreeMemory(Number(output));
      expect(childBytes).to.be.above(20 * 2 ** 20);
      expect(await readProcessTreeMemory(parent.pid!)).to.be.within(
        childBytes + 20 * 2 ** 20,
        childBytes + 200 * 2 ** 20,
      );
    } finally {
      // The child ends when its input is closed, and then the parent ends too.
      parent.stdin.end();
      await once(parent, "close");
    }
  });
});

describe("the script of a package", () => {
  after(() => stop());

  async function scriptOf(files: Record<string, string>, manifest: object = {}): Promise<string> {
    const tree = new FileTree();
    const all = { "package.json": JSON.stringify({ name: "thing", ...manifest }), ...files };
    tree.add("/node_modules/thing/", new Map(Object.entries(all).map(([path, text]) => [path, Buffer.from(text)])));
    const placed = { name: "thing", version: "1.0.0", folder: "/node_modules/thing" };
    return (await buildPackageScript(tree, [placed], { maxBytes: 1e6, isBuiltin: () => false })).source;
  }
  const globalsOfScript = async (code: string, ...args: Parameters<typeof scriptOf>) =>
    runInNewContext(`${await scriptOf(...args)}; ${code}`);
  const NAMESPACE = { "README.md": 'import { one } from "thing"' };
  const MODULE_MANIFEST = { type: "module" };

  it("is strict if all modules are ES modules, and otherwise as the package's CommonJS modules need it", async () => {
    const body = "function thing() { return this === undefined }";
    const strict = await globalsOfScript("thing()", { "index.js": `export default ${body}` }, MODULE_MANIFEST);
    expect(strict).to.equal(true);
    expect(await globalsOfScript("thing()", { "index.js": `module.exports = ${body}` })).to.equal(false);
    const mixed = {
      "index.mjs": `import "./old.cjs"; export default ${body}`,
      "old.cjs": "kept = this; exports.a = 1",
    };
    expect(await globalsOfScript("thing()", mixed, { main: "index.mjs" })).to.equal(false);
  });

  it("exports the same as its own module, in every format", async () => {
    const old = { "index.js": "exports.one = 1; exports.add = (name) => { exports[name] = 2 }" };
    expect(await globalsOfScript("thing.add('two'); JSON.stringify(thing)", old)).to.equal('{"one":1,"two":2}');
    expect(await globalsOfScript("thing.add('two'); thing.one + thing.two", { ...old, ...NAMESPACE })).to.equal(3);
    expect(await globalsOfScript("thing(1)", { "index.js": "module.exports = (a) => a + 1" })).to.equal(2);
    const compiled = "Object.defineProperty(exports, '__esModule', { value: true }); exports.one = 1;";
    expect(await globalsOfScript("thing", { "index.js": `${compiled} exports.default = 'own'` })).to.equal("own");
    expect(await globalsOfScript("thing.one", { "index.js": compiled })).to.equal(1);
    expect(await globalsOfScript("String(thing)", { "index.js": "module.exports = null" })).to.equal("null");
    expect(await globalsOfScript("thing.a", { "index.json": '{"a":1}' }, { main: "index.json" })).to.equal(1);
    const moduleFiles = { "index.js": "export const one = 1; export default 'own'" };
    expect(await globalsOfScript("thing", moduleFiles, MODULE_MANIFEST)).to.equal("own");
    expect(
      await globalsOfScript("[thing.one, thing.default].join()", { ...moduleFiles, ...NAMESPACE }, MODULE_MANIFEST),
    ).to.equal("1,own");
    expect(
      await globalsOfScript("thing.one", { "index.js": "export * from './a.js'", "a.js": "export const one = 1" }),
    ).to.equal(1);
    const both = { exports: { import: "./index.mjs", require: "./index.js" } };
    expect(await globalsOfScript("thing", { "index.mjs": "export default 'import'", "index.js": "" }, both)).to.equal(
      "import",
    );
  });

  it("has no copy of unused exports, which each run would create again", async () => {
    const old = await scriptOf({ "index.js": "exports.one = 1; exports.two = 2" });
    expect(old).not.to.match(/getOwnPropertyNames\w*\(|getOwnPropertyDescriptor/);
    const moduleFiles = await scriptOf(
      { "index.js": "export const one = 'unused'; export default 'own'" },
      MODULE_MANIFEST,
    );
    expect(moduleFiles).to.include("own").and.not.include("unused");
  });
});
