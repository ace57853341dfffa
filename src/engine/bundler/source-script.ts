/**
 * Builds one script from the files of an action, in memory: modules are bundled into one function. Executes nothing,
 * and does not read the disk.
 */
import { dirname, extname, join } from "node:path/posix";
import { type BuildResult, build, type Loader, type Message, type OnLoadResult, type Plugin } from "esbuild";
import { PackageFault } from "./fault.js";
import { fileAt, fileByAlias, isOutsideFolder, isRelative } from "./source-modules.js";
import { TEST_MODULE } from "./test-module.js";

/** An action's source files and, for each package that they can import, the JavaScript expression that yields its exports. */
export interface SourceJob {
  entry: string;
  files: Record<string, string>;
  /** Expressions by package name, such as `globalThis.dayjs`. */
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
/**
 * Folder in which the bundler sees an action's files. It is two levels deep, as in a project, so that `../../lib/dates`
 * is the project's `lib/dates`.
 */
const ACTION_FOLDER = "actions/action";
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
/** Sources of modules that the service provides to authors, by import name. */
const HELPERS: Record<string, string> = {
  svc: "export const defineAction = (config) => config;\nexport const defineConfig = (config) => config;",
  "svc/test": TEST_MODULE,
};

/** esbuild plugin that resolves all imports in memory, so that esbuild does not read the disk. */
function filesOf({ entry, files, packages }: SourceJob, appended: string): Plugin {
  const fault = (text: string) => ({ errors: [{ text }] });
  const has = (path: string) => Object.hasOwn(files, path);
  return {
    name: NAMESPACE,
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /.*/ }, ({ path, importer, namespace }) => {
        if (namespace !== NAMESPACE) return { path: entry, namespace: NAMESPACE };
        if (isRelative(path)) {
          const target = join(dirname(importer), path);
          const filePath = fileAt(has, isOutsideFolder(target) ? join(ACTION_FOLDER, target) : target);
          if (filePath) return { path: filePath, namespace: NAMESPACE };
          if (isOutsideFolder(target)) return fault(`${JSON.stringify(path)} is outside of the action's files`);
          return fault(`there is no file ${JSON.stringify(target)}`);
        }
        const alias = fileByAlias(has, files["tsconfig.json"], path);
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

/** Returns esbuild's message with file, line and column, without the quoted source line. */
function reasonOf([first]: readonly Message[]): string {
  if (!first) return "it cannot be built";
  const { text, location } = first;
  const message = text.includes("Top-level await")
    ? "top-level await is not supported: an action is a function, so move the await into execute"
    : text;
  const place = location
    ? `${location.file.replace(`${NAMESPACE}:`, "")}, line ${location.line}, column ${location.column + 1}: `
    : "";
  return `${place}${message.slice(0, REASON_MAX_CHARACTERS).toWellFormed()}`;
}

/** Export that is appended to the file, because the author may declare the function without exporting it. At the end, it moves no line. */
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
      // The file already exports the function.
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
  const named = (sources as string[]).map((sourcePath) => sourcePath.replace(`${NAMESPACE}:`, ""));
  const bytes = Buffer.byteLength(code);
  if (bytes > job.maxBytes) throw new PackageFault(`the built code has ${bytes} bytes; ${job.maxBytes} is the most`);
  return { code, map: JSON.stringify({ version: 3, sources: named, names: [], mappings }) };
}
