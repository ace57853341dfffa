/** Tests the completions and diagnostics of Studio's editor for actions. The code samples of the docs must have no diagnostics. */
import { globSync, readFileSync } from "node:fs";
import { expect } from "chai";
import { collectDeclarations } from "../../src/engine/bundler/declarations.js";
import { FileTree } from "../../src/engine/bundler/file-tree.js";
import { removeConfigBlock } from "../../src/engine/bundler/project/action-file.js";
import packages from "../../src/rules/packages.json" with { type: "json" };
import {
  type CompilerDiagnostic,
  getDiagnosticText,
  isCodeError,
} from "../../src/web/studio/actions/code-diagnostics.js";
import {
  COMPILER_OPTIONS,
  createActionTypeDeclarations,
  replaceUnknownByAny,
} from "../../src/web/studio/actions/code-types.js";
import { ACTION_TEMPLATES } from "../../src/web/studio/actions/templates.js";
import { addWorkerContextTypes, type Compiler } from "../../src/web/studio/actions/typed-code.js";
import { longTest } from "../harness/samples.js";

const URI = "inmemory://model/1";
const PACKAGE_NAMES = packages.map(({ name }) => name);

interface CompilerWorker {
  getSyntacticDiagnostics(file: string): Promise<CompilerDiagnostic[]>;
  getSemanticDiagnostics(file: string): Promise<CompilerDiagnostic[]>;
  getCompletionsAtPosition(file: string, at: number): Promise<{ entries: { name: string }[] } | undefined>;
  getQuickInfoAtPosition(
    file: string,
    at: number,
  ): Promise<{
    textSpan: { start: number; length: number };
    displayParts: { text: string }[];
    documentation: { text: string }[];
  }>;
  updateExtraLibs(libraries: object): Promise<void>;
}

type ActionTypeInputs = Parameters<typeof createActionTypeDeclarations>[0];

describe("TypeScript of an action's code", () => {
  let worker: CompilerWorker;
  let version = 0;
  let code = "";
  const library = replaceUnknownByAny(readFileSync("dist/web/client/svc.d.ts", "utf8"));

  before(async () => {
    // Monaco's worker expects a browser: it uses `self`, and must not detect Node.
    Object.assign(globalThis, { self: globalThis });
    Object.assign(process, { browser: true });
    const path = "monaco-editor/esm/vs/language/typescript/ts.worker.js";
    const { TypeScriptWorker } = await import(path);
    const { ts } = globalThis as unknown as { ts: Compiler };
    const uri = { path: "/1", toString: () => URI };
    const model = {
      uri,
      get version() {
        return version;
      },
      getValue: () => code,
    };
    const ActionWorker = addWorkerContextTypes(TypeScriptWorker, ts) as new (
      context: object,
      data: object,
    ) => CompilerWorker;
    worker = new ActionWorker(
      { getMirrorModels: () => [model] },
      { compilerOptions: COMPILER_OPTIONS, extraLibs: {}, inlayHintsOptions: {} },
    );
  });
  after(() => {
    for (const name of ["onmessage", "self", "ts"]) delete (globalThis as Record<string, unknown>)[name];
    delete (process as { browser?: boolean }).browser;
  });

  async function write(text: string, known: Partial<ActionTypeInputs> = {}) {
    version += 1;
    code = text;
    const types = createActionTypeDeclarations({
      packages,
      dependencies: PACKAGE_NAMES,
      installedDependencies: [],
      settingKeys: ["__apiKey", "_note", "open"],
      environment: "server",
      pastPayloads: [],
      ...known,
    });
    await worker.updateExtraLibs({
      "file:///svc.d.ts": { content: library, version: 1 },
      "file:///action.d.ts": { content: types.globalDeclarations, version },
      ...Object.fromEntries(
        types.packages.map(({ filePath, content }) => [`file:///${filePath}`, { content, version }]),
      ),
    });
    return types;
  }

  async function faults(text: string, known: Partial<ActionTypeInputs> = {}): Promise<string[]> {
    const types = await write(text, known);
    const unreadable = await worker.getSyntacticDiagnostics(URI);
    const found = await worker.getSemanticDiagnostics(URI);
    return [...unreadable, ...found.filter((diagnostic) => isCodeError(diagnostic, types))].map(
      (diagnostic) =>
        `${code.slice(diagnostic.start, diagnostic.start! + diagnostic.length!)}: ${getDiagnosticText(diagnostic)}`,
    );
  }

  /** Returns the completions that the editor offers at the position of `|` in the text. */
  async function complete(text: string, known: Partial<ActionTypeInputs> = {}): Promise<string[]> {
    await write(text.replace("|", ""), known);
    const found = await worker.getCompletionsAtPosition(URI, text.indexOf("|"));
    return (found?.entries ?? []).map(({ name }) => name).sort();
  }

  /** Returns the text that the editor shows for the name before `|`. */
  async function readHoverText(text: string, known: Partial<ActionTypeInputs> = {}): Promise<string> {
    await write(text.replace("|", ""), known);
    const { textSpan, displayParts, documentation } = await worker.getQuickInfoAtPosition(URI, text.indexOf("|") - 1);
    const words = [...displayParts, { text: " // " }, ...documentation].map((part) => part.text).join("");
    return `${code.slice(textSpan.start, textSpan.start + textSpan.length)} = ${words}`;
  }

  const FORMS: [form: string, code: (body: string) => string][] = [
    ["a declaration", (body) => `// first\nasync function execute(context) {\n  ${body}\n}`],
    ["an arrow", (body) => `const execute = async (context) => {\n  ${body}\n};`],
    ["an expression", (body) => `let other = 1;\nconst execute = async function (context) {\n  ${body}\n};`],
    ["a parameter of another name", (body) => `async function execute(c) {\n  ${body.replaceAll("context", "c")}\n}`],
  ];
  for (const [form, around] of FORMS) {
    it(`has the type of the context, in ${form}`, async () => {
      expect(await complete(around("context.|"))).to.deep.equal(["payload", "settings"]);
      expect(await complete(around("context.settings.|"))).to.deep.equal(["__apiKey", "_note"]);
      const payloads = [{ seat: { row: 12 } }, { guests: 2 }];
      expect(await complete(around("context.payload.|"), { pastPayloads: payloads })).to.deep.equal(["guests", "seat"]);
      expect(await complete(around("context.payload.seat.|"), { pastPayloads: payloads })).to.deep.equal(["row"]);
      expect(await faults(around("return context.paylod;"))).to.deep.equal([
        "paylod: Property 'paylod' does not exist on type 'ActionContext'. Did you mean 'payload'?",
      ]);
    });
  }

  it("has the types of a destructured parameter, and keeps the author's own types", async () => {
    expect(await complete("async function execute({ settings }) { settings.| }")).to.deep.equal(["__apiKey", "_note"]);
    const typed =
      "/** @param {{ payload: { seat: string } }} context */\nasync function execute({ payload }) { payload.| }";
    expect(await complete(typed)).to.deep.equal(["seat"]);
  });

  it("has no settings if there are none, and says so", async () => {
    const known = { environment: "client" };
    expect(await complete("async function execute(context) { context.settings.| }", known)).to.deep.equal([]);
    expect(await readHoverText("async function execute(context) { context.settings| }", known)).to.contain(
      "Empty, unless",
    );
  });

  it("has the types of listed packages, with members and descriptions", async () => {
    const known = { dependencies: ["svc-csv", "svc-datasources"] };
    const offered = await complete("async function execute() { Svc.| }", known);
    expect(offered).to.include.members(["CSV", "DataSources", "App"]).and.not.include("Media");
    const members = await complete("async function execute() { Svc.DataSources.| }", known);
    expect(members).to.include.members(["connect", "connectByName", "get", "getById"]);
    const about = await readHoverText("async function execute(context) { return Svc.CSV.stringify|([]); }", known);
    expect(about).to.match(
      /^stringify = \(method\).*rows: any\[\].* \/\/ Returns rows as CSV text without a line break.* Puts an\s+apostrophe before cells/s,
    );
  });

  it("marks an unknown method, an argument of a wrong type, and a contradiction to a past payload", async () => {
    expect(await faults("async function execute() { await Svc.DataSources.conect('a'); }")).to.deep.equal([
      "conect: Property 'conect' does not exist on type 'DataSources'. Did you mean 'connect'?",
    ]);
    expect(await faults("async function execute(context) { return Svc.CSV.parse(12); }")).to.deep.equal([
      "12: Argument of type 'number' is not assignable to parameter of type 'string'.",
    ]);
    const wrong = "async function execute({ payload }) { return payload.guests.toUpperCase(); }";
    expect(await faults(wrong, { pastPayloads: [{ guests: 2 }] })).to.have.length(1);
    expect(await faults(wrong, { pastPayloads: [{ guests: 2 }, { guests: "two" }, { guests: null }] })).to.deep.equal(
      [],
    );
  });

  it("has npm packages by their global names, and marks no unknown name if a script may define it", async () => {
    const text = "async function execute() { return dateFns.addDays(new Date(), chart.days); }";
    const installedDependencies = [{ name: "date-fns@4", version: "4.4.0", global: "dateFns" }];
    const unknown = ["chart: Cannot find name 'chart'."];
    expect(await faults(text, { dependencies: ["date-fns@4"], installedDependencies })).to.deep.equal(unknown);
    const script = "https://example.com/chart.js";
    expect(await faults(text, { dependencies: ["date-fns@4", script], installedDependencies })).to.deep.equal([]);
    expect(await faults(text, { dependencies: ["date-fns@4"] })).to.deep.equal([]);
    const about = await readHoverText("async function execute() { return dateFns|; }", {
      dependencies: ["date-fns@4"],
      installedDependencies,
    });
    expect(about).to.contain("date-fns@4, 4.4.0");
  });

  interface Package {
    files: Record<string, string>;
    manifest?: object;
    namespace?: boolean;
    /** Files of other packages, by the folder of the package and the path in this folder. */
    beside?: Record<string, Record<string, string>>;
  }

  /** Returns the types that the editor uses if the package `p` is a dependency with the global name `p`. */
  async function typesWithPackage({
    files,
    manifest = {},
    namespace = false,
    beside = {},
  }: Package): Promise<Partial<ActionTypeInputs>> {
    const tree = new FileTree();
    const add = (name: string, texts: Record<string, string>) =>
      tree.add(
        `/node_modules/${name}`,
        new Map(Object.entries(texts).map(([path, text]) => [path, Buffer.from(text)])),
      );
    add("p", { "/package.json": JSON.stringify({ name: "p", ...manifest }), ...files });
    for (const [name, texts] of Object.entries(beside)) add(name, { "/package.json": "{}", ...texts });
    const declared = await collectDeclarations(tree, { name: "p" }, { name: "p", isNamespace: namespace });
    return {
      dependencies: ["p@1"],
      installedDependencies: [{ name: "p@1", version: "1.0.0", global: "p", integrity: "sha256-a/b+c=" }],
      declarations: new Map(declared === null ? [] : [["sha256-a/b+c=", declared]]),
    };
  }

  const DECLARED_PACKAGES: [title: string, of: Package, expression: string, members: string[]][] = [
    [
      "a function that is all of a module of Node",
      {
        manifest: { main: "p.min.js", types: "index" },
        files: {
          "/p.min.js": "",
          "/index.d.ts":
            "export = p; declare function p(at?: string): p.Time; declare namespace p { interface Time { add(n: number): Time; year: number } }",
        },
      },
      "p('today').add(1).",
      ["add", "year"],
    ],
    [
      "a default export, with files that it imports by the names of their scripts",
      {
        manifest: { type: "module", exports: { ".": { types: "./dist/index.d.ts", default: "./dist/index.js" } } },
        files: {
          "/dist/index.js": "",
          "/dist/index.d.ts":
            'import type { Out } from "./out.js";\nexport default function make(): Out;\nexport { Out };',
          "/dist/out.d.ts": "export interface Out { inner: number; name: string }",
        },
      },
      "p().",
      ["inner", "name"],
    ],
    [
      "all exports, declared beside their script, by another package in part",
      {
        manifest: { exports: "./p.mjs" },
        files: { "/p.mjs": "", "/p.d.mts": 'export * from "q"; export declare const own: number;' },
        beside: { q: { "/index.d.ts": "export declare const theirs: string;" } },
      },
      "p.",
      ["own", "theirs"],
    ],
    [
      "all exports where the global stands for these in spite of a default",
      { files: { "/index.d.ts": "export const a: 1; declare const b: { c: 2 }; export default b;" }, namespace: true },
      "p.",
      ["a", "default"],
    ],
    [
      "what somebody else declared of it",
      { files: { "/index.js": "" }, beside: { "@types/p": { "/index.d.ts": "export const known: 1;" } } },
      "p.",
      ["known"],
    ],
  ];
  for (const [title, of, expression, members] of DECLARED_PACKAGES) {
    it(`uses the declarations of an npm package: ${title}`, async () => {
      const known = await typesWithPackage(of);
      expect(await complete(`async function execute() { ${expression}| }`, known)).to.deep.equal(members);
      const wrong = await faults(`async function execute() { return ${expression}notThere; }`, known);
      expect(wrong).to.have.length(1);
      expect(wrong[0]).to.match(/^notThere: Property 'notThere' does not exist on type/);
    });
  }

  const UNDECLARED_PACKAGES: [title: string, of: Package][] = [
    ["it declares nothing", { files: { "/index.js": "" } }],
    ["it names declarations that are not there", { manifest: { types: "gone.d.ts" }, files: { "/index.js": "" } }],
    ["it leads out of its folder", { manifest: { types: "../../etc/x.d.ts" }, files: { "/index.js": "" } }],
    [
      "its declarations are too large",
      { files: { "/index.d.ts": `export const a: 1; // ${"x".repeat(1024 * 1024)}` } },
    ],
    [
      "its declarations name modules without end",
      { files: { "/index.d.ts": Array.from({ length: 20_000 }, (_, at) => `import "x${at}";`).join("") } },
    ],
    [
      "it declares itself in too many files",
      {
        files: {
          "/index.d.ts": Array.from({ length: 700 }, (_, at) => `export * from "./${at}"`).join(";\n"),
          ...Object.fromEntries(Array.from({ length: 700 }, (_, at) => [`/${at}.d.ts`, `export const a${at}: 1`])),
        },
      },
    ],
  ];
  for (const [title, of] of UNDECLARED_PACKAGES) {
    it(`uses any for an npm package if ${title}`, async () => {
      const known = await typesWithPackage(of);
      expect(known.declarations!.size).to.equal(0);
      expect(await faults("async function execute() { return p.anything().at.all; }", known)).to.deep.equal([]);
    });
  }

  it("uses any for types from packages that are not installed", async () => {
    const files = { "/index.d.ts": 'import { Gone } from "gone"; export function f(): Gone; export const a: number;' };
    const known = await typesWithPackage({ files });
    expect(await faults("async function execute() { return [p.f().any.thing, p.a.toFixed()]; }", known)).to.deep.equal(
      [],
    );
    expect(await faults("async function execute() { return p.b; }", known)).to.have.length(1);
  });

  it("reads no file outside the declarations, with any keys, names and versions", async () => {
    const hostile = '*/ }; declare const own: 1; interface X { "';
    const known = {
      dependencies: [...PACKAGE_NAMES, hostile],
      settings: [`_${hostile}`, "__proto__"],
      payloads: [JSON.parse(`{ ${JSON.stringify(hostile)}: 1, "__proto__": { "a": 1 } }`)],
      installed: [{ name: hostile, version: hostile, global: "g" }],
    };
    expect(await complete("async function execute(context) { context.| }", known)).to.deep.equal([
      "payload",
      "settings",
    ]);
    await write("async function execute() { own; }", known);
    expect((await worker.getSemanticDiagnostics(URI)).map(getDiagnosticText)).to.deep.equal([
      "Cannot find name 'own'.",
    ]);
  });

  it("describes payloads in few words, with any number of keys and levels", () => {
    const wide = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`key${at}`, { a: 1, b: { c: "d" } }]));
    const deep = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`${at}`.repeat(50), wide]));
    const { globalDeclarations } = createActionTypeDeclarations({
      ...{ packages, dependencies: [], installedDependencies: [], settingKeys: [], environment: "server" },
      pastPayloads: [deep, { ["k".repeat(500_000)]: 1 }],
    });
    expect(globalDeclarations.length).to.be.below(25_000);
  });

  it("marks nothing in usual JavaScript", async () => {
    const daily = `async function execute({ payload, settings }) {
      const out = {};
      out.later = new Date() - new Date(payload.since);
      const error = new Error("no");
      error.status = "NO";
      window.mine = 1;
      document.querySelector("input").value = settings._note;
      try { await fetch("https://example.com"); } catch (failed) { out.why = failed.status ?? failed.message; }
      const entry = await (await Svc.DataSources.connect("seats")).findOne({ where: { Seat: payload.seat } });
      return { ...out, count: entry.data.count + 1, name: entry.data.name.toUpperCase() };
    }`;
    expect(await faults(daily)).to.deep.equal([]);
  });

  longTest(
    "marks nothing in the templates, the example app, and the code of README and the documentation",
    async () => {
      const pages = ["README.md", ...globSync("docs/**/*.md")].map(
        (path) => [path, readFileSync(path, "utf8")] as const,
      );
      const written = pages.flatMap(([path, text]) => [
        ...[...text.matchAll(/^```js\n(.*?)^```/gms)].map(([, block]) => [path, block!] as const),
        ...[...text.matchAll(/"code": ("(?:[^"\\]|\\.)*")/g)].map(([, json]) => [path, JSON.parse(json!)] as const),
      ]);
      // Leaves out code with imports, which test/docs/commands.test.ts builds, and code of pages, which has `execute` only in a string.
      const isAction = (text: string) => /^(?:async )?function execute\b/m.test(text) && !/^import /m.test(text);
      const documents = written.filter(([, text]) => isAction(text));
      // The service receives the code without `config`, and the editor checks that code.
      const examples = globSync("examples/*/actions/*/action.js").map(
        (path) => [path, removeConfigBlock(readFileSync(path, "utf8"))] as const,
      );
      const templates = Object.entries(ACTION_TEMPLATES).map(([name, { draft }]) => [name, draft.code ?? ""] as const);
      expect([documents.length > 7, examples.length, templates.length > 3]).to.deep.equal([true, 5, true]);
      for (const [where, text] of [...documents, ...examples, ...templates]) {
        // The editor gets the types of npm packages at a save, and this test saves nothing. "npm" stands for a package without types.
        expect(await faults(text, { dependencies: [...PACKAGE_NAMES, "npm"] }), `${where}\n${text}`).to.deep.equal([]);
      }
    },
  );
});
