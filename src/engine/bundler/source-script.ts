/** One script out of the files of an action, in memory: modules are bundled into one function. Runs nothing, and reads nothing of the disk. */
import { dirname, extname, join } from "node:path/posix";
import { type BuildResult, build, type Loader, type Message, type OnLoadResult, type Plugin } from "esbuild";
import { PackageFault } from "./fault.js";

/** Files of an action, and what the packages that they may import are in the finished script. */
export interface SourceJob {
  entry: string;
  files: Record<string, string>;
  /** Expressions by the name of the package, such as `globalThis.dayjs`. */
  packages: Record<string, string>;
  maxBytes: number;
}

export interface SourceScript {
  code: string;
  /** Source map of `code`, JSON, without contents. */
  map: string;
}

const NAMESPACE = "source";
const ENTRY = "svc-entry.js";
const EXTENSIONS = ["", ".ts", ".tsx", ".js", ".jsx", ".mts", ".mjs", ".json"];
const INDEX = ["/index.ts", "/index.tsx", "/index.js", "/index.jsx"];
/** TypeScript lets authors import a module by the name that it would be compiled to. */
const WRITTEN: Record<string, readonly string[]> = { ".js": [".ts", ".tsx"], ".jsx": [".tsx"], ".mjs": [".mts"] };
const LOADERS: Record<string, Loader> = {
  ".ts": "ts",
  ".mts": "ts",
  ".tsx": "tsx",
  ".js": "js",
  ".mjs": "js",
  ".jsx": "jsx",
  ".json": "json",
};
const REASON_MAX_CHARACTERS = 300;
/** Helpers for authors, which leave nothing in the script. */
const HELPERS: Record<string, string> = {
  svc: "export const defineAction = (config) => config;\nexport const defineConfig = (config) => config;",
};

/** Index after the JSON string that begins at `start`; the end of the text if it is not closed. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}

/** Index after the comment that begins at `start`; `start` itself if none does. */
function endOfComment(text: string, start: number): number {
  const isLine = text.startsWith("//", start);
  if (!isLine && !text.startsWith("/*", start)) return start;
  const end = text.indexOf(isLine ? "\n" : "*/", start + 2);
  if (end === -1) return text.length;
  return isLine ? end : end + 2;
}

/** The text without comments and without commas at the end of lists, which a tsconfig.json may have. Reads each character once. */
function plainJson(text: string): string {
  const pieces: string[] = [];
  /** Index of a comma that only space has followed; -1 if there is none. */
  let comma = -1;
  for (let at = 0; at < text.length; ) {
    const afterComment = endOfComment(text, at);
    if (afterComment > at) {
      at = afterComment;
      continue;
    }
    const character = text[at]!;
    const end = character === '"' ? endOfString(text, at) : at + 1;
    if (comma !== -1 && (character === "]" || character === "}")) pieces[comma] = "";
    if (character === ",") comma = pieces.length;
    else if (character.trim() !== "") comma = -1;
    pieces.push(text.slice(at, end));
    at = end;
  }
  return pieces.join("");
}

function tsconfigOf(text: string | undefined): { baseUrl: string; paths: [string, string[]][] } {
  const none = { baseUrl: "", paths: [] };
  if (text === undefined) return none;
  let options: { baseUrl?: unknown; paths?: unknown };
  try {
    options = (JSON.parse(plainJson(text)) as { compilerOptions?: object }).compilerOptions ?? {};
  } catch {
    throw new PackageFault("tsconfig.json: it is not valid JSON");
  }
  const { baseUrl, paths } = options;
  const given = typeof paths === "object" && paths !== null ? Object.entries(paths) : [];
  const lists = given.map(([pattern, targets]): [string, string[]] => [
    pattern,
    (Array.isArray(targets) ? targets : []).filter((one) => typeof one === "string"),
  ]);
  // The longest prefix wins, as in TypeScript.
  lists.sort(([a], [b]) => b.split("*")[0]!.length - a.split("*")[0]!.length);
  return { baseUrl: typeof baseUrl === "string" ? baseUrl : "", paths: lists };
}

/** The file that a path without extension names; null if there is none. */
function fileAt(files: Record<string, string>, path: string): string | null {
  const has = (one: string) => Object.hasOwn(files, one);
  for (const suffix of [...EXTENSIONS, ...INDEX]) if (has(path + suffix)) return path + suffix;
  const extension = extname(path);
  const stem = path.slice(0, path.length - extension.length);
  return WRITTEN[extension]?.map((written) => stem + written).find(has) ?? null;
}

const isOutside = (path: string): boolean => path === ".." || path.startsWith("../");

function aliased(files: Record<string, string>, path: string): string | null {
  const { baseUrl, paths } = tsconfigOf(files["tsconfig.json"]);
  for (const [pattern, targets] of paths) {
    const [before = "", after] = pattern.split("*");
    const fits = after === undefined ? path === pattern : path.startsWith(before) && path.endsWith(after);
    if (!fits) continue;
    const star = after === undefined ? "" : path.slice(before.length, path.length - after.length);
    for (const target of targets) {
      const found = fileAt(
        files,
        join(
          baseUrl,
          target.replace("*", () => star),
        ),
      );
      if (found) return found;
    }
  }
  return baseUrl === "" ? null : fileAt(files, join(baseUrl, path));
}

/** Everything is resolved here, so that esbuild itself looks nowhere. */
function filesOf({ entry, files, packages }: SourceJob, appended: string): Plugin {
  const fault = (text: string) => ({ errors: [{ text }] });
  return {
    name: NAMESPACE,
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /.*/ }, ({ path, importer, namespace }) => {
        if (namespace !== NAMESPACE) return { path: entry, namespace: NAMESPACE };
        if (path.startsWith("./") || path.startsWith("../") || path === "." || path === "..") {
          const target = join(dirname(importer), path);
          if (isOutside(target)) return fault(`${JSON.stringify(path)} is outside of the action's files`);
          const found = fileAt(files, target);
          return found ? { path: found, namespace: NAMESPACE } : fault(`there is no file ${JSON.stringify(target)}`);
        }
        const alias = aliased(files, path);
        if (alias) return { path: alias, namespace: NAMESPACE };
        if (Object.hasOwn(packages, path)) return { path, namespace: "package" };
        if (Object.hasOwn(HELPERS, path)) return { path, namespace: "helper", sideEffects: false };
        if (path.startsWith("node:"))
          return fault(`${JSON.stringify(path)} is a module of Node, which actions do not have`);
        if (path.startsWith("/") || /^[a-z][a-z0-9+.-]*:/i.test(path))
          return fault(`${JSON.stringify(path)} must be a relative path or a package`);
        return fault(`${JSON.stringify(path)} is not in dependencies: add the package there to import it`);
      });
      onLoad({ filter: /.*/, namespace: "package" }, ({ path }) => ({
        contents: `module.exports = ${packages[path]};`,
      }));
      onLoad({ filter: /.*/, namespace: "helper" }, ({ path }) => ({ contents: HELPERS[path]! }));
      onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path }): OnLoadResult => {
        const contents = files[path]! + (path === entry ? appended : "");
        return { contents, loader: LOADERS[extname(path)] ?? "text" };
      });
    },
  };
}

/** esbuild's words, with file, line and column and without the lines of source that it shows. */
function reasonOf([first]: readonly Message[]): string {
  if (!first) return "it cannot be built";
  const { text, location } = first;
  const said = text.includes("Top-level await")
    ? "top-level await is not supported: an action is a function, so move the await into execute"
    : text;
  const place = location
    ? `${location.file.replace(`${NAMESPACE}:`, "")}, line ${location.line}, column ${location.column + 1}: `
    : "";
  return `${place}${said.slice(0, REASON_MAX_CHARACTERS).toWellFormed()}`;
}

/** At the end of the file, so that no line moves: the function may be declared without being exported. */
const EXPORTED = "\nexport { execute };";

const isExportedTwice = ({ text }: Message): boolean => text.includes('Multiple exports with the same name "execute"');

const isMissingExecute = ({ text }: Message): boolean =>
  text.includes('"execute" is not declared') ||
  (text.startsWith("No matching export in ") && text.endsWith('for import "execute"'));

function builtWith(job: SourceJob, appended: string): Promise<BuildResult<{ write: false }>> {
  return build({
    stdin: {
      contents: `import { execute as run } from ${JSON.stringify(`./${job.entry}`)};\nexport const execute = run;\n`,
      resolveDir: "/",
      sourcefile: ENTRY,
    },
    absWorkingDir: "/",
    outfile: "/action.js",
    bundle: true,
    write: false,
    platform: "browser",
    target: "es2022",
    format: "iife",
    globalName: "svcAction",
    charset: "utf8",
    tsconfigRaw: "{}",
    legalComments: "none",
    logLevel: "silent",
    logOverride: { "import-is-undefined": "error" },
    sourcemap: "external",
    sourcesContent: false,
    footer: { js: "async function execute(context) {\n  return svcAction.execute(context);\n}" },
    plugins: [filesOf(job, appended)],
  });
}

const errorsOf = (error: unknown): Message[] => (error as { errors?: Message[] }).errors ?? [];

/** @throws PackageFault that names file, line and column */
export async function makeSourceScript(job: SourceJob): Promise<SourceScript> {
  const result = await builtWith(job, EXPORTED)
    .catch(async (error: unknown) => {
      // The file exports it already.
      if (errorsOf(error).some(isExportedTwice)) return builtWith(job, "");
      throw error;
    })
    .catch((error: unknown) => {
      const errors = errorsOf(error);
      const isUndeclared = errors.length > 0 && errors.every(isMissingExecute);
      const reason = isUndeclared ? `${job.entry}: it must declare or export the function execute` : reasonOf(errors);
      throw new PackageFault(reason);
    });
  const code = result.outputFiles.find(({ path }) => path.endsWith(".js"))!.text;
  const { sources, mappings } = JSON.parse(result.outputFiles.find(({ path }) => path.endsWith(".map"))!.text);
  const named = (sources as string[]).map((one) => one.replace(`${NAMESPACE}:`, ""));
  const bytes = Buffer.byteLength(code);
  if (bytes > job.maxBytes) throw new PackageFault(`the built code has ${bytes} bytes; ${job.maxBytes} is the most`);
  return { code, map: JSON.stringify({ version: 3, sources: named, names: [], mappings }) };
}
