/** Builds one script from the files of an action in memory. Executes no code of the action, and does not read the disk. */
import { dirname, extname, join } from "node:path/posix";
import {
  type BuildResult,
  build,
  type Loader,
  type Message,
  type Metafile,
  type OnLoadResult,
  type Plugin,
} from "esbuild";
import { PackageError } from "./fault.js";
import { findImportedFile, findImportedFileByAlias, isOutsideFolder, isRelativeSpecifier } from "./source-modules.js";
import { TEST_MODULE_SOURCE } from "./test-module.js";

export interface SourceBuildJob {
  entry: string;
  files: Record<string, string>;
  /** JavaScript expressions that yield the exports of packages, by package name, such as `globalThis.dayjs`. */
  packages: Record<string, string>;
  maxBytes: number;
}

export interface BuiltSourceScript {
  code: string;
  /** Source map of `code` as JSON text. It does not contain the contents of the files. */
  map: string;
}

const SOURCE_NAMESPACE = "source";
const GENERATED_ENTRY = "svc-entry.js";
/** Virtual folder of an action. It is two levels deep, as in a project, so that `../../lib/dates` is the project's `lib/dates`. */
const ACTION_FOLDER = "actions/action";
const LOADER_BY_EXTENSION: Record<string, Loader> = {
  ".ts": "ts",
  ".mts": "ts",
  ".tsx": "tsx",
  ".js": "js",
  ".mjs": "js",
  ".jsx": "jsx",
  ".json": "json",
};
const REASON_MAX_CHARACTERS = 300;
/** Sources of modules that the service provides to authors, by the module's name in imports. */
const PROVIDED_MODULES: Record<string, string> = {
  svc: "export const defineAction = (config) => config;\nexport const defineConfig = (config) => config;",
  "svc/test": TEST_MODULE_SOURCE,
};

/** Resolves all imports in memory, so that esbuild does not read the disk. */
function createFilesPlugin(
  { entry, files, packages }: SourceBuildJob,
  filesWithAddedExport: ReadonlySet<string>,
): Plugin {
  const fault = (text: string) => ({ errors: [{ text }] });
  const has = (path: string) => Object.hasOwn(files, path);
  return {
    name: SOURCE_NAMESPACE,
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /.*/ }, ({ path, importer, namespace }) => {
        if (namespace !== SOURCE_NAMESPACE) return { path: entry, namespace: SOURCE_NAMESPACE };
        if (isRelativeSpecifier(path)) {
          const target = join(dirname(importer), path);
          const filePath = findImportedFile(has, isOutsideFolder(target) ? join(ACTION_FOLDER, target) : target);
          if (filePath) return { path: filePath, namespace: SOURCE_NAMESPACE };
          if (isOutsideFolder(target)) return fault(`${JSON.stringify(path)} is outside of the action's files`);
          return fault(`there is no file ${JSON.stringify(target)}`);
        }
        const alias = findImportedFileByAlias(has, files["tsconfig.json"], path);
        if (alias) return { path: alias, namespace: SOURCE_NAMESPACE };
        if (Object.hasOwn(packages, path)) return { path, namespace: "package" };
        if (Object.hasOwn(PROVIDED_MODULES, path)) return { path, namespace: "helper", sideEffects: false };
        if (path.startsWith("node:"))
          return fault(`${JSON.stringify(path)} is a module of Node, which actions do not have`);
        if (path.startsWith("/") || /^[a-z][a-z0-9+.-]*:/i.test(path))
          return fault(`${JSON.stringify(path)} must be a relative path or a package`);
        return fault(`${JSON.stringify(path)} is not in dependencies: add the package there to import it`);
      });
      onLoad({ filter: /.*/, namespace: "package" }, ({ path }) => ({
        contents: `module.exports = ${packages[path]};`,
      }));
      onLoad({ filter: /.*/, namespace: "helper" }, ({ path }) => ({ contents: PROVIDED_MODULES[path]! }));
      onLoad({ filter: /.*/, namespace: SOURCE_NAMESPACE }, ({ path }): OnLoadResult => {
        const contents = files[path]! + (filesWithAddedExport.has(path) ? EXECUTE_EXPORT : "");
        return { contents, loader: LOADER_BY_EXTENSION[extname(path)] ?? "text" };
      });
    },
  };
}

const toDisplayPath = (file: string): string => file.replace(`${SOURCE_NAMESPACE}:`, "");

function describeBuildError([first]: readonly Message[]): string {
  if (!first) return "the source files of the action cannot be built";
  const { text, location } = first;
  const message = text.includes("Top-level await")
    ? "top-level await is not supported: an action is a function, so move the await into execute"
    : text;
  const position = location
    ? `${toDisplayPath(location.file)}, line ${location.line}, column ${location.column + 1}: `
    : "";
  return `${position}${message.replaceAll(`"${SOURCE_NAMESPACE}:`, '"').slice(0, REASON_MAX_CHARACTERS).toWellFormed()}`;
}

/** Appended to a file that declares `execute` without exporting the function. As last line, the export does not change line numbers. */
const EXECUTE_EXPORT = "\nexport { execute };";

const ENTRY_FILE_PATTERN = /(?:^|\/)action\.[jt]sx?$/;

const isExportedTwice = ({ text }: Message): boolean => text.includes('Multiple exports with the same name "execute"');

/** esbuild's messages about an import of `execute` from a file that does not export it. The file's name is between the parts. */
const UNEXPORTED_MESSAGE_PARTS = [
  [`No matching export in "${SOURCE_NAMESPACE}:`, '" for import "execute"'],
  [`Import "execute" will always be undefined because the file "${SOURCE_NAMESPACE}:`, '" has no exports'],
] as const;

/** Returns the file that does not export `execute` although another file imports it; null if the message reports another fault. */
function findFileWithoutExport({ text }: Message): string | null {
  const messageParts = UNEXPORTED_MESSAGE_PARTS.find(([start, end]) => text.startsWith(start) && text.endsWith(end));
  return messageParts ? text.slice(messageParts[0].length, -messageParts[1].length) : null;
}

/** Returns the file that neither declares nor exports `execute`; null if the message reports another fault. */
const findFileWithoutExecute = (message: Message): string | null =>
  message.text.includes('"execute" is not declared') && message.location
    ? toDisplayPath(message.location.file)
    : findFileWithoutExport(message);

type SourceBuildResult = BuildResult<{ write: false; metafile: true }>;

function buildSource(job: SourceBuildJob, filesWithAddedExport: ReadonlySet<string>): Promise<SourceBuildResult> {
  return build({
    stdin: {
      contents: `import { execute as run } from ${JSON.stringify(`./${job.entry}`)};\nexport const execute = run;\n`,
      resolveDir: "/",
      sourcefile: GENERATED_ENTRY,
    },
    absWorkingDir: "/",
    outfile: "/action.js",
    bundle: true,
    write: false,
    metafile: true,
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
    plugins: [createFilesPlugin(job, filesWithAddedExport)],
  });
}

const getBuildErrors = (error: unknown): Message[] => (error as { errors?: Message[] }).errors ?? [];

/**
 * Builds a source. Adds an export if an entry file declares `execute` without exporting it: the job's own entry file, or that of another
 * action, which a test imports.
 */
async function buildWithExports(job: SourceBuildJob): Promise<SourceBuildResult> {
  const filesWithAddedExport = new Set([job.entry]);
  for (;;) {
    try {
      return await buildSource(job, filesWithAddedExport);
    } catch (error) {
      const errors = getBuildErrors(error);
      // The file already exports `execute`, so the next build does not append the export.
      if (errors.some(isExportedTwice) && filesWithAddedExport.delete(job.entry)) continue;
      const canAddExport = (file: string | null): file is string =>
        file !== null && file !== job.entry && ENTRY_FILE_PATTERN.test(file) && !filesWithAddedExport.has(file);
      const filesWithoutExport = errors.map(findFileWithoutExport).filter(canAddExport);
      if (filesWithoutExport.length === 0) throw error;
      for (const file of filesWithoutExport) filesWithAddedExport.add(file);
    }
  }
}

/** True if a file is a CommonJS module. Its code may not work in strict mode, and all files share one script. */
const containsCommonJs = ({ inputs }: Metafile): boolean =>
  Object.values(inputs).some(({ format }) => format === "cjs");

/** Builds the script of an action. @throws PackageError; for invalid code, its message contains file, line and column */
export async function buildSourceScript(job: SourceBuildJob): Promise<BuiltSourceScript> {
  const result = await buildWithExports(job).catch((error: unknown) => {
    const errors = getBuildErrors(error);
    const faultyFiles = errors.map(findFileWithoutExecute);
    const [file = null] = faultyFiles.includes(null) ? [] : faultyFiles;
    throw new PackageError(
      file === null ? describeBuildError(errors) : `${file} must declare or export the function execute`,
    );
  });
  const script = result.outputFiles.find(({ path }) => path.endsWith(".js"))!.text;
  // The first line of the script contains no code of the files, so the directive changes no position in the source map.
  const code = containsCommonJs(result.metafile) ? script : `"use strict";${script}`;
  const { sources, mappings } = JSON.parse(result.outputFiles.find(({ path }) => path.endsWith(".map"))!.text);
  const sourcePaths = (sources as string[]).map((sourcePath) => sourcePath.replace(`${SOURCE_NAMESPACE}:`, ""));
  const bytes = Buffer.byteLength(code);
  if (bytes > job.maxBytes)
    throw new PackageError(`the built code must have at most ${job.maxBytes} bytes (got ${bytes})`);
  return { code, map: JSON.stringify({ version: 3, sources: sourcePaths, names: [], mappings }) };
}
