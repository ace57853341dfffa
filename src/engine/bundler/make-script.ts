/** Builds a browser script from packages in memory. Executes no code of the packages, and does not read the disk. */
import { extname } from "node:path/posix";
import {
  type BuildOptions,
  type BuildResult,
  build,
  type Loader,
  type Message,
  type Metafile,
  type OnLoadResult,
  type Plugin,
  transform,
} from "esbuild";
import { collectDeclarations } from "./declarations.js";
import { PackageError } from "./fault.js";
import type { FileTree } from "./file-tree.js";
import {
  findGlobalNameInBuild,
  findGlobalNameInReadme,
  type PackageGlobalName,
  toCamelCaseName,
} from "./global-name.js";
import { Resolution } from "./resolution.js";
import { findRequiredModules, findUsedGlobalNames, parsePackageScript } from "./used-names.js";

export interface PackageInTree {
  name: string;
  version: string;
  folder: string;
}

export interface BundledScript {
  source: string;
  global: string;
  /** Names of the globals that the script uses (used-names.ts). */
  names: string[];
  /** Packages in the script, the requested package first. `licence` is null if a package declares none. */
  parts: { name: string; version: string; licence: string | null }[];
  /** Texts of the declaration files (declarations.ts); null if there are none. */
  declarations: string[] | null;
}

/** All current browsers support this JavaScript version. */
const LANGUAGE_TARGET = "es2022";
const PACKAGE_NAMESPACE = "package";
const REASON_MAX_CHARACTERS = 300;

const PROCESS_GLOBAL = "process";
/** Names that bundlers for browsers usually replace, such as `global`, each with the expression that replaces it. */
const BUILD_DEFINITIONS = {
  [`${PROCESS_GLOBAL}.env.NODE_ENV`]: '"production"',
  [`${PROCESS_GLOBAL}.browser`]: "true",
  global: "globalThis",
  self: "globalThis",
  define: "undefined",
};

const LOADER_BY_EXTENSION: Readonly<Record<string, Loader>> = {
  ".json": "json",
  ".css": "empty",
  ".txt": "text",
  ".svg": "text",
  ".wasm": "binary",
};

/** Returns the licence; null if none is declared. Older package.json files have an object, or a list of objects to choose from. */
function readLicence(manifest: Record<string, unknown>): string | null {
  const getLicenceType = (licence: unknown) =>
    typeof licence === "string" ? licence : (licence as { type?: unknown } | null)?.type;
  const { license, licenses } = manifest;
  const all = (Array.isArray(licenses) ? licenses : [license ?? licenses]).map(getLicenceType);
  const licences = all.filter((licence): licence is string => typeof licence === "string" && licence !== "");
  if (licences.length === 0) return null;
  return (licences.length === 1 ? licences[0]! : `(${licences.join(" OR ")})`).slice(0, 200);
}

function readReadme(tree: FileTree, folder: string, manifest: Record<string, unknown>): string {
  if (typeof manifest["readme"] === "string") return manifest["readme"];
  const names = ["README.md", "readme.md", "Readme.md", "README", "README.markdown"];
  return String(names.map((name) => tree.read(`${folder}/${name}`)).find(Boolean) ?? "");
}

/** Returns a global whose name is the last segment of the path: sha256 for `@noble/hashes/sha256`. */
function createGlobalOfSubpath(subpath: string): PackageGlobalName {
  const last = subpath.slice(subpath.lastIndexOf("/") + 1).replace(/\.[cm]?js$/, "");
  return { name: toCamelCaseName(last), isNamespace: false };
}

function findGlobalName(tree: FileTree, { name, folder }: PackageInTree, subpath: string): PackageGlobalName {
  if (subpath !== "") return createGlobalOfSubpath(subpath);
  const manifest = tree.readManifest(folder);
  const builds = [manifest["unpkg"], manifest["jsdelivr"]].filter((path) => typeof path === "string");
  for (const path of builds) {
    const file = tree.read(`${folder}/${path.replace(/^\.?\//, "")}`) ?? tree.read(`${folder}/${path}.js`);
    const buildGlobal = file && findGlobalNameInBuild(String(file), name);
    if (buildGlobal) return buildGlobal;
  }
  return (
    findGlobalNameInReadme(readReadme(tree, folder, manifest), name) ?? {
      name: toCamelCaseName(name),
      isNamespace: false,
    }
  );
}

/** Resolves all imports in the file tree, so that esbuild does not read the disk. */
function createPackagesPlugin(tree: FileTree, root: PackageInTree): Plugin {
  const resolution = new Resolution(tree);
  return {
    name: PACKAGE_NAMESPACE,
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /.*/ }, async ({ path, importer, kind, namespace }) => {
        const isServiceScript = namespace !== PACKAGE_NAMESPACE;
        const from = isServiceScript ? "/" : importer;
        // The script that the service generates gets the package's ES module, even if the script calls `require`.
        const resolvedModule = await resolution.resolve(
          path,
          from,
          kind.startsWith("require") && !isServiceScript ? "require" : "import",
        );
        if (typeof resolvedModule === "object") {
          const packageFolder =
            /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(resolvedModule.file)?.[1] ?? root.folder;
          const sideEffects = tree.readManifest(packageFolder)["sideEffects"] !== false;
          return { path: resolvedModule.file, namespace: PACKAGE_NAMESPACE, sideEffects };
        }
        // A missing module is no error yet, because the bundler may remove its import. checkModules checks the final script.
        return resolvedModule === "empty" ? { path, namespace: "empty" } : { path, external: true };
      });
      onLoad({ filter: /.*/, namespace: "empty" }, () => ({ contents: "module.exports = {}", loader: "js" }));
      onLoad({ filter: /.*/, namespace: PACKAGE_NAMESPACE }, ({ path }): OnLoadResult => {
        const contents = tree.read(path);
        return contents
          ? { contents, loader: LOADER_BY_EXTENSION[extname(path)] ?? "jsx" }
          : { errors: [{ text: "the file does not exist in the package" }] };
      });
    },
  };
}

function describeBuildError(errors: readonly Message[] | undefined, fallback: unknown): string {
  const [first] = errors ?? [];
  if (!first)
    return String((fallback as Error)?.message ?? fallback)
      .slice(0, REASON_MAX_CHARACTERS)
      .toWellFormed();
  const at = first.location ? ` (${first.location.file.replace(/^package:\/node_modules\//, "")})` : "";
  return (first.text + at).slice(0, REASON_MAX_CHARACTERS).toWellFormed();
}

const SHARED_BUILD_OPTIONS = {
  absWorkingDir: "/",
  bundle: true,
  write: false,
  metafile: true,
  platform: "browser",
  target: LANGUAGE_TARGET,
  tsconfigRaw: "{}",
  define: BUILD_DEFINITIONS,
  legalComments: "eof",
  logLevel: "silent",
} as const satisfies BuildOptions;

/**
 * Detects if a module is an ES module, and if it has a default export. Both results are false for a module that cannot be read: the build
 * of the final script then reports the reason.
 */
async function detectModuleShape(
  tree: FileTree,
  root: PackageInTree,
  module: string,
): Promise<{ isModule: boolean; hasDefault: boolean }> {
  const externalImportsPlugin: Plugin = {
    name: "alone",
    setup({ onResolve }) {
      onResolve({ filter: /.*/ }, ({ kind }) => (kind === "entry-point" ? undefined : { external: true }));
    },
  };
  try {
    const plugins = [externalImportsPlugin, createPackagesPlugin(tree, root)];
    const { metafile } = await build({
      ...SHARED_BUILD_OPTIONS,
      entryPoints: [module],
      format: "esm",
      outdir: "/",
      plugins,
    });
    const [input] = Object.values(metafile.inputs);
    const [output] = Object.values(metafile.outputs);
    return { isModule: input?.format === "esm", hasDefault: output?.exports.includes("default") === true };
  } catch {
    return { isModule: false, hasDefault: false };
  }
}

/**
 * Returns the code that sets the package's global. Its value is the default export. If there is none, or if `namespace` is true, the value
 * is an object with all exports.
 */
async function createEntrySource(
  tree: FileTree,
  root: PackageInTree,
  module: string,
  { name, isNamespace: namespace }: PackageGlobalName,
): Promise<string> {
  const { isModule, hasDefault } = await detectModuleShape(tree, root, module);
  const from = JSON.stringify(module);
  const set = `globalThis[${JSON.stringify(name)}] =`;
  if (isModule) return `import ${hasDefault && !namespace ? "it" : "* as it"} from ${from};\n${set} it;\n`;
  const value = namespace ? "it" : 'it && it.__esModule && "default" in it ? it.default : it';
  return `const it = require(${from});\n${set} ${value};\n`;
}

async function bundleModule(
  tree: FileTree,
  root: PackageInTree,
  module: string,
  packageGlobal: PackageGlobalName,
): Promise<BuildResult<{ write: false; metafile: true }>> {
  const contents = await createEntrySource(tree, root, module, packageGlobal);
  try {
    return await build({
      ...SHARED_BUILD_OPTIONS,
      stdin: { contents, resolveDir: "/", sourcefile: "svc-package.js" },
      format: "iife",
      plugins: [createPackagesPlugin(tree, root)],
    });
  } catch (error) {
    throw new PackageError(
      `the package cannot be bundled for browsers: ${describeBuildError((error as { errors?: Message[] }).errors, error)}`,
    );
  }
}

/**
 * Makes the script strict if all its modules are ES modules. CommonJS modules can depend on non-strict code, and all modules share one
 * function.
 */
function toStrictScript(script: string, { inputs }: Metafile): string {
  const isStrict = Object.values(inputs).every(({ format }) => format === "esm");
  return isStrict ? script.replace("(() => {", '(() => {\n"use strict";') : script;
}

function checkModules(moduleNames: readonly string[], isBuiltin: (name: string) => boolean): void {
  const nodeModules = moduleNames.filter(isBuiltin);
  if (nodeModules.length > 0)
    throw new PackageError(
      `the package needs the Node modules ${nodeModules.slice(0, 5).join(", ")}, which a browser does not have`,
    );
  if (moduleNames.length > 0)
    throw new PackageError(
      `the package needs ${moduleNames.slice(0, 5).join(", ")}, which neither the package nor its dependencies contain`,
    );
}

/**
 * Builds the script of a package.
 * @param packages the requested package, and then its dependencies
 * @param options `subpath` is a module in the requested package; "" for its main module
 * @throws PackageError
 */
export async function buildPackageScript(
  tree: FileTree,
  packages: readonly PackageInTree[],
  options: { maxBytes: number; subpath?: string; isBuiltin: (name: string) => boolean },
): Promise<BundledScript> {
  const [root] = packages as [PackageInTree];
  const { subpath = "" } = options;
  const packageGlobal = findGlobalName(tree, root, subpath);
  const { outputFiles, metafile } = await bundleModule(tree, root, root.name + subpath, packageGlobal);
  const bundleText = toStrictScript(outputFiles[0]!.text, metafile);
  const program = parsePackageScript(bundleText);
  const neededModules = findRequiredModules(program);
  if (subpath !== "" && neededModules.includes(root.name + subpath))
    throw new PackageError(`the package has no file or export ${JSON.stringify(subpath.slice(1))}`);
  checkModules(neededModules, options.isBuiltin);
  const inputs = Object.keys(metafile.inputs).map((path) => path.replace(`${PACKAGE_NAMESPACE}:`, ""));
  const isInBundle = ({ folder }: PackageInTree) =>
    inputs.some((path) => path.startsWith(`${folder}/`) && !path.startsWith(`${folder}/node_modules/`));
  const usedPackages = packages.filter((placed) => placed === root || isInBundle(placed));
  // esbuild writes only ASCII by default. This saves memory: one character beyond Latin-1 would double the size of the text.
  const { code } = await transform(bundleText, { minify: true, legalComments: "eof", target: LANGUAGE_TARGET });
  const source = `/*! ${usedPackages.map(({ name, version }) => `${name}@${version}`).join(" ")} */\n${code}`;
  if (Buffer.byteLength(source) > options.maxBytes) {
    const megabytes = (Buffer.byteLength(source) / 2 ** 20).toFixed(1);
    throw new PackageError(
      `the package's script must have at most ${options.maxBytes / 2 ** 20} MB (got ${megabytes} MB)`,
    );
  }
  const parts = usedPackages.map(({ name, version, folder }) => ({
    name,
    version,
    licence: readLicence(tree.readManifest(folder)),
  }));
  // Only the main module of a package has declarations. Ignores errors, because actions can use a package without its declarations.
  const declarations = subpath === "" ? await collectDeclarations(tree, root, packageGlobal).catch(() => null) : null;
  return { source, global: packageGlobal.name, names: findUsedGlobalNames(program), parts, declarations };
}
