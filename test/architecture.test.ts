/** Checks the architecture of src/: the direction of imports, and the rules for files. Also limits the lines of tests and scripts. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { type Function as FunctionNode, parse } from "acorn";
import { ancestor } from "acorn-walk";
import { expect } from "chai";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const MAX_LINES = 400;
const MAX_FUNCTION_LINES = 60;

function read(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

/** Files of src/ that every part of the server may import. Each of them imports only files before it in this list. */
const FOUNDATION_FILES = ["limits", "errors", "config", "postgres", "garbage-collection", "background", "version"];

/** Reads the table in docs/internals/architecture.md. Returns, for each part of src/ (a folder or file), the parts that it may import. */
function allowedByTable(): Record<string, readonly string[]> {
  const allowed = Object.fromEntries(FOUNDATION_FILES.map((part, at) => [part, FOUNDATION_FILES.slice(0, at)]));
  for (const [, folders = "", imports = ""] of read("docs/internals/architecture.md").matchAll(
    /^\| (`src\/.*?) \| .* \| ?(.*?) ?\|$/gm,
  )) {
    const parts = [...folders.matchAll(/`src\/([a-z]+)(?:\.ts|\/)`/g)].map(([, part]) => part!);
    const below = parts.includes("web") ? [] : [...FOUNDATION_FILES, ...parts, ...imports.split(", ")];
    for (const part of parts) allowed[part] = below;
  }
  return allowed;
}

/** Files that run both in the server and in the browser. They import code only from each other, but types from any file. */
const FILES_SHARED_WITH_WEB = [
  "src/limits.ts",
  "src/rules/csv.ts",
  "src/rules/csv-types.ts",
  "src/rules/http/response.ts",
  "src/rules/trigger-match.ts",
  "src/rules/compile-script.ts",
];

interface Import {
  from: string;
  to: string;
  typeOnly: boolean;
}

const IMPORT_STATEMENT = /^[ \t]*(?:import|export)\s+(type\s+)?(?:([^;"'`]*?)\s*from\s*)?["']([^"']+)["']/gm;
const CALL = /\bimport\(\s*["']([^"']+)["']/g;

function importsOnlyTypes(clause: string | undefined): boolean {
  const names = /^\{([^}]*)\}$/.exec(clause?.trim() ?? "")?.[1]?.split(",") ?? [];
  const importedNames = names.map((name) => name.trim()).filter((name) => name !== "");
  return importedNames.length > 0 && importedNames.every((name) => name.startsWith("type "));
}

const files = globSync("src/**/*.{ts,tsx}", { cwd: ROOT }).filter((file) => !file.endsWith(".d.ts"));
const known = new Set([...files, ...globSync("{migrations/*.ts,*.ts}", { cwd: ROOT })]);

/**
 * Returns the project file that an import specifier refers to; null for a package and for a file that is no module, such as a style sheet.
 */
function resolveFile(from: string, specifier: string): string | null {
  if (!specifier.startsWith(".")) return null;
  const path = normalize(join(dirname(from), specifier));
  const stem = path.replace(/\.jsx?$/, "");
  const found = [`${stem}.ts`, `${stem}.tsx`, path].find((candidate) => known.has(candidate));
  if (!found && /\.(js|ts|tsx)$/.test(path))
    throw new Error(`${from} imports ${specifier}, which this test cannot find`);
  return found ?? null;
}

function importsIn(text: string): Array<{ specifier: string; typeOnly: boolean }> {
  const statements = [...text.matchAll(IMPORT_STATEMENT)].map(([, type, clause, specifier]) => ({
    specifier: specifier!,
    typeOnly: type !== undefined || importsOnlyTypes(clause),
  }));
  return [
    ...statements,
    ...[...text.matchAll(CALL)].map(([, specifier]) => ({ specifier: specifier!, typeOnly: false })),
  ];
}

const imports: Import[] = files.flatMap((from) =>
  importsIn(read(from)).flatMap(({ specifier, typeOnly }) => {
    const to = resolveFile(from, specifier);
    return to ? [{ from, to, typeOnly }] : [];
  }),
);

function partOf(file: string): string {
  const [top = "", second = ""] = file.split("/");
  return top === "src" ? second.replace(/\.ts$/, "") : top.replace(/\.ts$/, "");
}

/** Returns the mechanism to which an engine file belongs: `x` for `engine/x.ts` and all of `engine/x/`. */
function mechanismOf(file: string): string {
  return file.split("/")[2]!.replace(/\.ts$/, "");
}

/** Returns the folder of src/operations to which a file belongs; null for other files. */
function operationsFolderOf(file: string): string | null {
  const [, part, folder = "", inside] = file.split("/");
  return part === "operations" && inside !== undefined ? folder : null;
}

const allowed = allowedByTable();

const arrow = ({ from, to }: Import) => `${from} -> ${to}`;

/** Returns a cycle that can be reached from the nodes, or null if there is none. */
function findCycle(nodes: readonly string[], next: (node: string) => readonly string[]): string[] | null {
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (node: string): string[] | null => {
    if (path.includes(node)) return [...path.slice(path.indexOf(node)), node];
    if (done.has(node)) return null;
    path.push(node);
    for (const neighbour of next(node)) {
      const cycle = visit(neighbour);
      if (cycle) return cycle;
    }
    path.pop();
    done.add(node);
    return null;
  };
  for (const node of nodes) {
    const cycle = visit(node);
    if (cycle) return cycle;
  }
  return null;
}

/** Returns the functions of compiled JavaScript. The length of each excludes the lines of its inner functions. */
function functionLengths(text: string): { line: number; length: number }[] {
  const found = new Map<FunctionNode, { line: number; length: number }>();
  const enter = (node: FunctionNode, _state: unknown, path: { type: string }[]) => {
    const { start, end } = node.loc!;
    const lines = end.line - start.line + 1;
    found.set(node, { line: start.line, length: (found.get(node)?.length ?? 0) + lines });
    const outer = path.slice(0, -1).findLast(({ type }) => type.includes("Function")) as FunctionNode | undefined;
    if (!outer) return;
    const seen = found.get(outer) ?? { line: outer.loc!.start.line, length: 0 };
    found.set(outer, { ...seen, length: seen.length - lines });
  };
  const visitors = { FunctionDeclaration: enter, FunctionExpression: enter, ArrowFunctionExpression: enter };
  const program = parse(text, { ecmaVersion: "latest", sourceType: "module", locations: true });
  ancestor(program, visitors as Parameters<typeof ancestor>[1]);
  return [...found.values()];
}

describe("the source code", () => {
  it("is checked with every form of import", () => {
    const text = [
      'import "a";',
      'import b, { type B } from "b";',
      "import {\n  type C,\n  type D,\n} from 'c';",
      'import type { E } from "e";',
      'export { f } from "f";',
      'export * from "g";',
      'const h = await import("h");',
      ' * import nothing from "a-comment";',
      'export const said = "x"; const from = "no import";',
    ].join("\n");
    const found = importsIn(text).map(({ specifier, typeOnly }) => `${specifier}${typeOnly ? " (type)" : ""}`);
    expect(found).to.deep.equal(["a", "b", "c (type)", "e (type)", "f", "g", "h"]);
  });

  it("has only the folders of the architecture's table", () => {
    expect(files.map(partOf).filter((part) => !(part in allowed))).to.deep.equal([]);
  });

  it("has imports only in the directions of the architecture's table of folders", () => {
    const wrong = imports.filter(({ from, to, typeOnly }) => {
      const [source, target] = [partOf(from), partOf(to)];
      if (source === target || (typeOnly && (source === "web" || target === "web"))) return false;
      if (source === "web" && FILES_SHARED_WITH_WEB.includes(to)) return false;
      if (target === "migrations") return source !== "data";
      return !allowed[source]?.includes(target);
    });
    expect(wrong.map(arrow)).to.deep.equal([]);
  });

  it("puts no server code into the browser bundles except files that both sides use", () => {
    const shared = imports.filter(({ from, typeOnly }) => FILES_SHARED_WITH_WEB.includes(from) && !typeOnly);
    const leaving = shared.filter(({ to }) => !FILES_SHARED_WITH_WEB.includes(to));
    expect(leaving.map(arrow)).to.deep.equal([]);
  });

  it("keeps the modules of the engine independent", () => {
    const inside = imports.filter(({ from, to }) => partOf(from) === "engine" && partOf(to) === "engine");
    expect(inside.filter(({ from, to }) => mechanismOf(from) !== mechanismOf(to)).map(arrow)).to.deep.equal([]);
  });

  it("has imports between folders of operations in one direction; records imports none of them", () => {
    const below = new Map<string, Set<string>>();
    for (const { from, to } of imports) {
      const [source, target] = [operationsFolderOf(from), operationsFolderOf(to)];
      if (!source || !target || source === target) continue;
      below.set(source, (below.get(source) ?? new Set()).add(target));
    }
    expect([...(below.get("records") ?? [])]).to.deep.equal([]);
    expect(findCycle([...below.keys()], (folder) => [...(below.get(folder) ?? [])])).to.equal(null);
  });

  it("has no import cycles, also not of types", () => {
    const next = (file: string) => imports.filter(({ from }) => from === file).map(({ to }) => to);
    expect(findCycle(files, next)).to.equal(null);
  });

  it("reads process.env only in src/config.ts", () => {
    const readers = files.filter((file) =>
      /\bprocess\s*\.\s*env\b|\bprocess\s*\[|\{[^}]*\benv\b[^}]*\}\s*=\s*process\b/.test(read(file)),
    );
    expect(readers.filter((file) => file !== "src/config.ts")).to.deep.equal([]);
  });

  it("creates the errors of rate limits in one place, so that each has the time of the next valid request", () => {
    const creators = files.filter((file) => /ActionError\(\s*"RATE_LIMIT_EXCEEDED"/.test(read(file)));
    expect(creators).to.deep.equal(["src/errors.ts"]);
  });

  it("creates connections to PostgreSQL only in src/postgres.ts, each with an error listener", () => {
    const makers = (source: string) =>
      /\bnew\s+(?:pg\s*\.\s*)?(?:Client|Pool|Connection)\b/.test(source) && /from "pg"/.test(source);
    expect(files.filter((file) => makers(read(file)))).to.deep.equal(["src/postgres.ts"]);
    // Libraries get open connections from src/postgres.ts. With a connection string, a library would open connections itself.
    const namesConnectionString = (source: string) => /\bconnectionString\b/.test(source);
    expect(files.filter((file) => namesConnectionString(read(file)))).to.deep.equal(["src/postgres.ts"]);
    const sources = files.filter((file) => /\bnew\s+(?:DataSource|Database)\b/.test(read(file)));
    expect(sources).to.deep.equal(["src/data/database.ts"]);
    expect(read(sources[0]!)).to.match(/poolOptions: object = TIME_LIMITED_POOL_OPTIONS/);
  });

  it("reads settings in one folder, and all of them by one function that no response calls", () => {
    const of = (pattern: RegExp) => files.filter((file) => pattern.test(read(file)));
    const tables = /\b(?:FROM|INTO|UPDATE|JOIN)\s+(?:setting|app_version_setting)\b|\bSettingRow\b/;
    const filesWithSettings = [
      "src/operations/settings/settings.ts",
      "src/operations/settings/secret-values.ts",
      "src/operations/settings/setting-definitions.ts",
      "src/operations/apps/app-versions.ts",
    ];
    const rows = ["src/data/app.ts", "src/data/database.ts"];
    expect(of(tables).filter((file) => !filesWithSettings.includes(file) && !rows.includes(file))).to.deep.equal([]);
    // HTTP triggers also decrypt secrets. These belong to the triggers and are not settings.
    const openers = of(/\bdecryptText\(/).filter((file) => /engine\/cipher\.js/.test(read(file)));
    expect(openers).to.have.members([filesWithSettings[0], "src/operations/http/endpoints.ts"]);
    expect(of(/READ_TIERS|"all"\)/)).to.deep.equal([filesWithSettings[0]]);
    const callers = of(/\bsettings\.backend\b|\.backend\(/);
    expect(callers.filter((file) => !/^src\/operations\//.test(file))).to.deep.equal([]);
  });

  it("has no default export and no barrel", () => {
    const defaults = files.filter((file) => /^\s*export\s+default\b|\bas\s+default\b/m.test(read(file)));
    expect([...defaults, ...files.filter((file) => /^index\.tsx?$/.test(basename(file)))]).to.deep.equal([]);
  });

  it("has files with kebab-case names, each with a sentence about its content", () => {
    const faulty = files.filter((file) => {
      const text = read(file);
      if (text.startsWith("/** Generated ")) return false;
      const opened = text.startsWith("/**") || text.startsWith("//");
      return !opened || !/^[a-z0-9]+(-[a-z0-9]+)*\.tsx?$/.test(basename(file));
    });
    expect(faulty).to.deep.equal([]);
  });

  it("has fewer than 400 lines in each file, also of the tests and scripts", () => {
    const all = [...files, ...globSync("{test,scripts}/**/*.{ts,mjs}", { cwd: ROOT })];
    const long = all.filter((file) => {
      const text = read(file);
      return !text.startsWith("/** Generated ") && text.split("\n").length > MAX_LINES;
    });
    expect(long).to.deep.equal([]);
  });

  it("runs all cases of each test file in the long tests, if npm test runs only a sample of them", () => {
    const sampled = globSync("test/*/**/*.test.ts", { cwd: ROOT }).filter(
      (file) => !file.startsWith("test/long/") && /from "[./]*harness\/samples\.js"/.test(read(file)),
    );
    const long = ["all-samples", "subscription-ends"].map((name) => read(`test/long/${name}.test.ts`)).join("\n");
    const missing = sampled.filter((file) => !long.includes(`${file.slice("test/".length).replace(/\.ts$/, ".js")}`));
    expect(missing).to.deep.equal([]);
  });

  it("has all modules and tests that the mutation run names", async () => {
    const { TEST_GROUPS } = (await import(join(ROOT, "scripts/mutation/test-groups.mjs"))) as {
      TEST_GROUPS: { modules: string[]; tests: string[] }[];
    };
    const named = TEST_GROUPS.flatMap(({ modules, tests }) => [
      ...modules.map((module) => `src/${module}.ts`),
      ...tests.map((test) => `test/${test}.test.ts`),
    ]);
    expect(named.length).to.be.above(0);
    expect(named.filter((file) => !existsSync(join(ROOT, file)))).to.deep.equal([]);
  });

  it("measures a function without the functions inside it", () => {
    const text = "function outer() {\n  const inner = () => {\n    return 1;\n  };\n  return inner;\n}";
    expect(functionLengths(text)).to.have.deep.members([
      { line: 1, length: 3 },
      { line: 2, length: 3 },
    ]);
  });

  it(`has no function of more than ${MAX_FUNCTION_LINES} lines, without the functions inside it`, () => {
    const long = globSync("dist/src/**/*.js", { cwd: ROOT })
      .filter((file) => known.has(file.replace(/^dist\//, "").replace(/\.js$/, ".ts")))
      .flatMap((file) =>
        functionLengths(read(file))
          .filter(({ length }) => length > MAX_FUNCTION_LINES)
          .map(({ line, length }) => `${file}:${line} has ${length}`),
      );
    expect(long).to.deep.equal([]);
  });
});
