/** Tests the file with the types of an app, with the compiler that projects use. */
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { collectDeclarations } from "../../src/engine/bundler/declarations.js";
import { FileTree } from "../../src/engine/bundler/file-tree.js";
import { buildProjectTypes, collectPackageHashes } from "../../src/rules/project-types.js";

const MODULES_FOLDER = new URL("../../../node_modules/", import.meta.url).pathname;
const require = createRequire(import.meta.url);
const CLIENT_TYPES = readFileSync(new URL("../../web/client/svc.d.ts", import.meta.url), "utf8");

async function typesOf(name: string, namespace: boolean): Promise<string[] | null> {
  const files = new Map<string, Buffer>();
  for (const folder of [name, `@types/${name}`]) {
    try {
      const found = readdirSync(join(MODULES_FOLDER, folder), { recursive: true, withFileTypes: true });
      for (const file of found.filter((each) => each.isFile())) {
        const path = join(file.parentPath, file.name);
        const isRead = /\.d\.[cm]?ts$|^package\.json$/.test(file.name);
        files.set(`/node_modules/${path.slice(MODULES_FOLDER.length)}`, isRead ? readFileSync(path) : Buffer.alloc(0));
      }
    } catch {}
  }
  const tree = new FileTree();
  tree.add("", files);
  return collectDeclarations(tree, { name }, { name, isNamespace: namespace });
}

function compile(folder: string): Promise<string> {
  const compiler = join(require.resolve("typescript/package.json"), "../bin/tsc");
  return new Promise((resolve) => {
    execFile(process.execPath, [compiler, "--pretty", "false", "-p", "."], { cwd: folder }, (_error, out, err) =>
      resolve(out + err),
    );
  });
}

const OPTIONS = {
  target: "es2022",
  module: "esnext",
  moduleResolution: "bundler",
  lib: ["es2023", "dom", "dom.iterable"],
};

describe("types of an app", () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-types-"));
  after(() => rmSync(folder, { recursive: true, force: true }));

  async function check(text: string, types: string): Promise<string[]> {
    writeFileSync(join(folder, "svc.d.ts"), types);
    writeFileSync(join(folder, "action.ts"), text);
    const compilerOptions = { ...OPTIONS, strict: true, noEmit: true, skipLibCheck: true, types: [] };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["svc.d.ts", "action.ts"] }));
    return (await compile(folder)).split("\n").filter((line) => line !== "" && !line.startsWith(" "));
  }

  it("give packages their own types, by default, name and namespace; `any` to those without", async () => {
    const packages = new Map<string, string[] | null>([
      ["dayjs", await typesOf("dayjs", false)],
      ["croner", await typesOf("croner", true)],
      ["minisearch", await typesOf("minisearch", false)],
      ["papaparse", await typesOf("papaparse", false)],
      ["untyped", null],
    ]);
    for (const [name, files] of packages) expect(files === null, name).to.equal(name === "untyped");
    const right = `import dayjs, { type Dayjs } from "dayjs";
import { Cron } from "croner";
import MiniSearch, { type SearchResult } from "minisearch";
import Papa from "papaparse";
import anything, { other } from "untyped";
const day: Dayjs = dayjs("2026-01-01").add(1, "day");
const found: SearchResult[] = new MiniSearch<{ id: number }>({ fields: ["id"] }).search("a");
const text: string = Papa.unparse([[1]]);
export const all = [day, found, text, new Cron("0 4 * * *").nextRun()?.getTime(), anything.x.y, other(1)];
`;
    const types = buildProjectTypes({}, {}, packages, CLIENT_TYPES);
    expect(await check(right, types)).to.deep.equal([]);
    const wrong = `import dayjs from "dayjs";
import { Cron } from "croner";
import Papa from "papaparse";
export const a = dayjs("2026-01-01").ad(1, "day");
export const b = new Cron("0 4 * * *").nextRn();
export const c: number = Papa.unparse([[1]]);
`;
    const faults = await check(wrong, types);
    expect(faults.map((line) => /^action\.ts\((\d+),/.exec(line)?.[1])).to.deep.equal(["4", "5", "6"]);
  });

  it("are those of the scripts that the drafts use, under the name that code imports", () => {
    const integrity = `sha256-${"A".repeat(43)}=`;
    const found = collectPackageHashes([
      { dependencies: ["dayjs@1", "svc-csv", "https://example.com/x.js", 7], assets: [{ name: "dayjs@1", integrity }] },
      { dependencies: ["dayjs", "@scope/a@2/sub"] },
      { dependencies: "dayjs" },
    ]);
    expect([...found]).to.deep.equal([
      ["@scope/a/sub", null],
      ["dayjs", integrity],
      ["svc-csv", null],
    ]);
  });

  it("leave out types of packages above the maximum of an editor", () => {
    const large = ["", `export const a: "${"x".repeat(4_000_000)}";\n`];
    const types = buildProjectTypes(
      {},
      {},
      new Map([
        ["one", large],
        ["two", large],
      ]),
      CLIENT_TYPES,
    );
    expect(types).to.include('declare module "two";').and.to.include('declare module "svc-types:one/1"');
    expect(types.length).to.be.below(7_000_000);
  });

  it("have the settings that code receives: all private and protected ones without a sealed binding", () => {
    const settings = ["title", "_zone", "__key", "__pay", "__own"].map((key) => ({ key }));
    const binding = (key: string, sealed: boolean) => ({ key, sealed, origin: "https://a.example", in: "header" });
    const server = { settings, secretBindings: [binding("__key", false), binding("__pay", true)] };
    const types = buildProjectTypes(server, { secretBindings: [binding("__own", true)] }, new Map(), "");
    const [, received] = /interface SvcSettings \{([^}]*)\}/.exec(types)!;
    expect(received!.trim().split(/\s*\n\s*/)).to.deep.equal(['"_zone"?: any;', '"__key"?: any;']);
  });
});
