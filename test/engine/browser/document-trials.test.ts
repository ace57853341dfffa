/**
 * Tests code that contains names of a document's globals, as libraries do. The service first executes the code in an isolate. If the code
 * uses such a global, the service executes it again in a document.
 */
import { createContext, runInContext } from "node:vm";
import { expect } from "chai";
import globals from "globals";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import {
  type GlobalStandIn,
  ISOLATE_GLOBALS,
  listDocumentStandIns,
  NETWORK_ISOLATE_GLOBALS,
} from "../../../src/engine/browser/globals.js";
import { findDocumentGlobalNames } from "../../../src/engine/browser/mode.js";
import { createStandInDefiner } from "../../../src/engine/browser/pages/in-page/stand-ins.js";
import { resultOf, runBody, sharedBrowsers } from "./support.js";

const library = (source: string) => ({
  name: "library.js",
  source,
  content: source,
  mode: "document" as const,
  canBeTried: true,
  defines: "library",
});

/** Code that returns the names of all globals of a document. Leaves out names that every object has. */
const EVERY_NAME_CODE = `const execute = async () => {
  const names = [];
  for (let holder = globalThis; holder !== Object.prototype; holder = Object.getPrototypeOf(holder))
    names.push(...Object.getOwnPropertyNames(holder));
  return [...new Set(names)].filter((name) => !(name in {}));
}`;

describe("stand-ins for the globals of a document", () => {
  const countTouches = (kind: GlobalStandIn[1], operation: string): number => {
    let count = 0;
    const touched = () => {
      count += 1;
    };
    const context = createContext({ touched });
    const names = JSON.stringify(JSON.stringify([["it", kind]]));
    runInContext(`(${createStandInDefiner.toString()})()(${names}, '{"language":"en"}', touched)`, context);
    runInContext(`try { ${operation} } catch (error) { if (!(error instanceof ReferenceError)) throw error }`, context);
    return count;
  };

  it("report a read of a property without a stand-in of its type, and of a value that is passed in", () => {
    for (const operation of ["typeof it", "it", "it = 1", "globalThis.it", "globalThis.it = 1"])
      expect(countTouches("refused", operation), operation).to.be.at.least(1);
  });

  it("report a value that is assigned to an object's property, which a document does not store", () => {
    for (const kind of ["object", "scope", "navigator"] as const)
      expect(countTouches(kind, "it = 1"), kind).to.be.at.least(1);
  });

  it("are the scope itself under each of its names", () => {
    expect(
      countTouches("scope", "if (it !== globalThis || it.it !== it || it.Map !== Map) throw new Error()"),
    ).to.equal(0);
  });

  it("have a clock, and report other reads of it", () => {
    const clockReads =
      "const { timeOrigin } = it; if (!(it.now() >= 0) || Math.abs(timeOrigin - Date.now()) > 1000) throw new Error()";
    expect(countTouches("clock", clockReads)).to.equal(0);
    for (const operation of ["it.mark('a')", "it.toJSON", "it.now = 1", "it = 1"])
      expect(countTouches("clock", operation), operation).to.be.at.least(1);
  });

  it("return what is known of navigator, and report other reads of it", () => {
    expect(countTouches("navigator", "if (it.language !== 'en') throw new Error()")).to.equal(0);
    for (const operation of ["it.clipboard", "it.toString", "'language' in it", "it.language = 1", "Object.keys(it)"])
      expect(countTouches("navigator", operation), operation).to.equal(1);
  });

  it("are found wherever a name appears in a text", () => {
    const source = "window['local' + 'Storage'], { document: 1 }, 'XMLHttpRequest', '\\nalert', own /* FileReader */";
    const names = ["window", "Storage", "document", "XMLHttpRequest", "alert", "FileReader"];
    expect(findDocumentGlobalNames(source)).to.have.members(names);
    const invented = Array.from({ length: 10_000 }, (_, at) => `webkit${at}`).join(" ");
    expect(findDocumentGlobalNames(`webkitURL ${invented}`)).to.deep.equal(["webkitURL"]);
  });
});

describe("a run whose library names a document", () => {
  let browsers: Browsers;
  before(async () => {
    browsers = sharedBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  const ran = (source: string, body: string, packages = [library(source)]) => runBody(browsers, body, { packages });

  it("stays in an isolate while the library does not use the global", async () => {
    const source = `globalThis.library = {
      send: () => new XMLHttpRequest(), parts: [window, document, FileReader], hasWorkers: !!self.Worker,
      isPage: window === globalThis && typeof window.document === "object", sum: (a, b) => a + b }`;
    const { result, seen } = await ran(source, "return [library.sum(1, 2), library.isPage, library.hasWorkers]");
    expect({ result, seen }).to.deep.equal({ result: [3, true, true], seen: ["isolate"] });
  });

  it("is repeated in a document if the library uses the global, and the service remembers this", async () => {
    const source =
      "globalThis.library = { count: 0, tag: () => document.createElement('p').tagName, width: () => typeof innerWidth }";
    for (const [call, expected] of [
      ["tag", "P"],
      ["width", "number"],
    ])
      for (let turn = 0; turn < 2; turn += 1) {
        const { result, seen } = await ran(source, `library.count += 1; return [library.${call}(), library.count]`);
        expect({ result, seen }).to.deep.equal({ result: [expected, 1], seen: ["document"] });
      }
  });

  it("is repeated in a document if it fails, because of a composed name or the depth of calls", async () => {
    const source = `globalThis.library = { made: () => new globalThis["XMLHttp" + "Request"]().readyState,
      deep(depth) { return depth === 0 ? 0 : 1 + library.deep(depth - 1) } }; window`;
    for (const [call, expected] of [
      ["made()", 0],
      ["deep(7_000)", 7_000],
    ])
      for (let turn = 0; turn < 2; turn += 1)
        expect(await ran(source, `return library.${call}`)).to.deep.equal({ result: expected, seen: ["document"] });
  });

  it("finds the names in the author's texts, and those of a network, in code that is made from text", async () => {
    const source = "globalThis.library = { make: (text) => new Function('return ' + text)() }; window";
    for (const [text, expected] of [
      ["[typeof btoa, typeof structuredClone, typeof sessionStorage]", ["function", "function", "object"]],
      ["Object.prototype.toString.call(globalThis)", "[object Window]"],
    ])
      expect(await ran(source, `return library.make("${text}")`)).to.deep.equal({
        result: expected,
        seen: ["isolate"],
      });
  });

  it("starts in a document if one of its packages declares no other mode, or if the packages are long", async () => {
    const packages = [{ ...library("globalThis.library = 1"), canBeTried: false }, library("globalThis.more = 1")];
    expect((await ran("", "return library", packages)).seen).to.deep.equal(["document"]);
    const long = [library(`globalThis.library = 1; // ${"x".repeat(512 * 1024)}`)];
    expect((await ran("", "return library", long)).seen).to.deep.equal(["document"]);
  });

  it("sees each global of a document with its real type, or runs in a document", async () => {
    const allNames = (await resultOf(browsers, EVERY_NAME_CODE)) as string[];
    const standInNames = listDocumentStandIns([]).map(([name]) => name);
    const names = allNames.filter(
      (name) => /^[\w$]+$/.test(name) && ![...ISOLATE_GLOBALS, ...standInNames].includes(name),
    );
    expect(names).to.have.lengthOf.greaterThan(500);
    // A name that the service does not recognize would be undefined in the isolate, and the service would not use a document.
    expect(findDocumentGlobalNames(names.join(" "))).to.include.members(names);
    const known = new Set([...Object.keys(globals.browser), ...NETWORK_ISOLATE_GLOBALS]);
    const answered = listDocumentStandIns([...known]).filter(([, kind]) => kind !== "refused");
    expect(answered).to.have.lengthOf.greaterThan(90);
    const types = `globalThis.library = [${answered.map(([name]) => `["${name}", typeof ${name}, typeof globalThis.${name}]`)}]`;
    const { result, seen } = await ran(types, "return library");
    expect(seen).to.deep.equal(["isolate"]);
    const there = await resultOf(browsers, "async function execute() { return library }", {
      packages: [library(types)],
    });
    expect(result).to.deep.equal(there);
  });
});
