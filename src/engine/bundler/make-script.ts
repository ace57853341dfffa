/** One script for browsers out of a tree of packages in memory. Runs nothing of theirs, and reads nothing of the disk. */
import { extname } from "node:path/posix";
import {
  type BuildOptions,
  type BuildResult,
  build,
  type Loader,
  type Message,
  type OnLoadResult,
  type Plugin,
  transform,
} from "esbuild";
import { declarationsOf } from "./declarations.js";
import { PackageFault } from "./fault.js";
import type { FileTree } from "./file-tree.js";
import { type GlobalName, nameInBuild, nameInCamelCase, nameInReadme } from "./global-name.js";
import { createResolution } from "./resolution.js";
import { neededModules, parsedScript, usedNames } from "./used-names.js";

/** A package of the tree, and the folder that it stands in. */
export interface Placed {
  name: string;
  version: string;
  folder: string;
}

export interface Script {
  source: string;
  /** The property of the global object that it sets. */
  global: string;
  /** What it uses of its surroundings (used-names.ts). */
  names: string[];
  /** The packages that it is made of, the first the one that was asked for; `licence` as they state it, null where they do not. */
  parts: { name: string; version: string; licence: string | null }[];
  /** Files of types, by number (declarations.ts); null where there are none. */
  declarations: string[] | null;
}

/** What every browser of today knows. */
const TARGET = "es2022";
const NAMESPACE = "package";
const REASON_MAX_CHARACTERS = 300;

const OF_NODE = "process";
/** What bundlers for browsers take these for; no loader of modules is looked for. */
const DEFINED = {
  [`${OF_NODE}.env.NODE_ENV`]: '"production"',
  [`${OF_NODE}.browser`]: "true",
  global: "globalThis",
  self: "globalThis",
  define: "undefined",
};

const LOADERS: Readonly<Record<string, Loader>> = {
  ".json": "json",
  ".css": "empty",
  ".txt": "text",
  ".svg": "text",
  ".wasm": "binary",
};

/** The newer form is a text; older ones an object, or a list of them of which one may be chosen. */
function licenceOf(manifest: Record<string, unknown>): string | null {
  const typeOf = (one: unknown) => (typeof one === "string" ? one : (one as { type?: unknown } | null)?.type);
  const { license, licenses } = manifest;
  const all = (Array.isArray(licenses) ? licenses : [license ?? licenses]).map(typeOf);
  const given = all.filter((one): one is string => typeof one === "string" && one !== "");
  if (given.length === 0) return null;
  return (given.length === 1 ? given[0]! : `(${given.join(" OR ")})`).slice(0, 200);
}

function readmeOf(tree: FileTree, folder: string, manifest: Record<string, unknown>): string {
  if (typeof manifest["readme"] === "string") return manifest["readme"];
  const names = ["README.md", "readme.md", "Readme.md", "README", "README.markdown"];
  return String(names.map((name) => tree.read(`${folder}/${name}`)).find(Boolean) ?? "");
}

/** A module behind a subpath is known by its last segment: `@noble/hashes/sha256` is sha256. */
function nameOfSubpath(subpath: string): GlobalName {
  const last = subpath.slice(subpath.lastIndexOf("/") + 1).replace(/\.[cm]?js$/, "");
  return { name: nameInCamelCase(last), namespace: false };
}

function globalOf(tree: FileTree, { name, folder }: Placed, subpath: string): GlobalName {
  if (subpath !== "") return nameOfSubpath(subpath);
  const manifest = tree.manifest(folder);
  const builds = [manifest["unpkg"], manifest["jsdelivr"]].filter((path) => typeof path === "string");
  for (const path of builds) {
    const file = tree.read(`${folder}/${path.replace(/^\.?\//, "")}`) ?? tree.read(`${folder}/${path}.js`);
    const found = file && nameInBuild(String(file), name);
    if (found) return found;
  }
  return nameInReadme(readmeOf(tree, folder, manifest), name) ?? { name: nameInCamelCase(name), namespace: false };
}

/** Everything goes this way, so that esbuild itself looks nowhere. */
function packagesOf(tree: FileTree, root: Placed): Plugin {
  const { resolve } = createResolution(tree);
  return {
    name: NAMESPACE,
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /.*/ }, async ({ path, importer, kind, namespace }) => {
        const isOurs = namespace !== NAMESPACE;
        const from = isOurs ? "/" : importer;
        // Ours is how the service asks for the package, whatever its form.
        const found = await resolve(path, from, kind.startsWith("require") && !isOurs ? "require" : "import");
        if (typeof found === "object") {
          const packageFolder = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(found.file)?.[1] ?? root.folder;
          const sideEffects = tree.manifest(packageFolder)["sideEffects"] !== false;
          return { path: found.file, namespace: NAMESPACE, sideEffects };
        }
        // What cannot be found may stand where nothing asks for it: what is left of it in the script is judged there.
        return found === "empty" ? { path, namespace: "empty" } : { path, external: true };
      });
      onLoad({ filter: /.*/, namespace: "empty" }, () => ({ contents: "module.exports = {}", loader: "js" }));
      onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path }): OnLoadResult => {
        const contents = tree.read(path);
        return contents ? { contents, loader: LOADERS[extname(path)] ?? "jsx" } : { errors: [{ text: "it is gone" }] };
      });
    },
  };
}

/** esbuild's words without the lines of source that it shows. */
function reasonOf(errors: readonly Message[] | undefined, fallback: unknown): string {
  const [first] = errors ?? [];
  if (!first)
    return String((fallback as Error)?.message ?? fallback)
      .slice(0, REASON_MAX_CHARACTERS)
      .toWellFormed();
  const at = first.location ? ` (${first.location.file.replace(/^package:\/node_modules\//, "")})` : "";
  return (first.text + at).slice(0, REASON_MAX_CHARACTERS).toWellFormed();
}

const SHARED = {
  absWorkingDir: "/",
  bundle: true,
  write: false,
  metafile: true,
  platform: "browser",
  target: TARGET,
  tsconfigRaw: "{}",
  define: DEFINED,
  legalComments: "eof",
  logLevel: "silent",
} as const satisfies BuildOptions;

/** Whether a package's own module is one of ES modules, and has a default export. What cannot be read is none; making the script says why. */
async function shapeOf(
  tree: FileTree,
  root: Placed,
  module: string,
): Promise<{ isModule: boolean; hasDefault: boolean }> {
  const alone: Plugin = {
    name: "alone",
    setup({ onResolve }) {
      onResolve({ filter: /.*/ }, ({ kind }) => (kind === "entry-point" ? undefined : { external: true }));
    },
  };
  try {
    const plugins = [alone, packagesOf(tree, root)];
    const { metafile } = await build({ ...SHARED, entryPoints: [module], format: "esm", outdir: "/", plugins });
    const [input] = Object.values(metafile.inputs);
    const [output] = Object.values(metafile.outputs);
    return { isModule: input?.format === "esm", hasDefault: output?.exports.includes("default") === true };
  } catch {
    return { isModule: false, hasDefault: false };
  }
}

/**
 * Sets the global: to what `import X from` gives, which is what a README means by its name, or to everything. Nothing is asked for that is
 * not wanted: to have all exports of a package under one name takes a copy of each, made anew by each run.
 */
async function wrapperOf(
  tree: FileTree,
  root: Placed,
  module: string,
  { name, namespace }: GlobalName,
): Promise<string> {
  const { isModule, hasDefault } = await shapeOf(tree, root, module);
  const from = JSON.stringify(module);
  const set = `globalThis[${JSON.stringify(name)}] =`;
  if (isModule) return `import ${hasDefault && !namespace ? "it" : "* as it"} from ${from};\n${set} it;\n`;
  const value = namespace ? "it" : 'it && it.__esModule && "default" in it ? it.default : it';
  return `const it = require(${from});\n${set} ${value};\n`;
}

async function bundled(
  tree: FileTree,
  root: Placed,
  module: string,
  global: GlobalName,
): Promise<BuildResult<{ write: false; metafile: true }>> {
  const contents = await wrapperOf(tree, root, module, global);
  try {
    return await build({
      ...SHARED,
      stdin: { contents, resolveDir: "/", sourcefile: "svc-package.js" },
      format: "iife",
      plugins: [packagesOf(tree, root)],
    });
  } catch (error) {
    throw new PackageFault(
      `it cannot be bundled for browsers: ${reasonOf((error as { errors?: Message[] }).errors, error)}`,
    );
  }
}

function judgeModules(needed: readonly string[], isBuiltin: (name: string) => boolean): void {
  const ofNode = needed.filter(isBuiltin);
  if (ofNode.length > 0)
    throw new PackageFault(`it needs Node's ${ofNode.slice(0, 5).join(", ")}, which a browser does not have`);
  if (needed.length > 0) throw new PackageFault(`it needs ${needed.slice(0, 5).join(", ")}, which it does not list`);
}

/** @param packages the first is the one that was asked for @param options.subpath of its module, "" for the main one @throws PackageFault */
export async function makeScript(
  tree: FileTree,
  packages: readonly Placed[],
  options: { maxBytes: number; subpath?: string; isBuiltin: (name: string) => boolean },
): Promise<Script> {
  const [root] = packages as [Placed];
  const { subpath = "" } = options;
  const global = globalOf(tree, root, subpath);
  const { outputFiles, metafile } = await bundled(tree, root, root.name + subpath, global);
  const whole = outputFiles[0]!.text;
  const program = parsedScript(whole);
  judgeModules(neededModules(program), options.isBuiltin);
  const inputs = Object.keys(metafile.inputs).map((path) => path.replace(`${NAMESPACE}:`, ""));
  const within = ({ folder }: Placed) =>
    inputs.some((path) => path.startsWith(`${folder}/`) && !path.startsWith(`${folder}/node_modules/`));
  const used = packages.filter((one) => one === root || within(one));
  // In ASCII, as is esbuild's way: a text with one character beyond Latin is held, sent and read at twice the size in every run.
  const { code } = await transform(whole, { minify: true, legalComments: "eof", target: TARGET });
  const source = `/*! ${used.map(({ name, version }) => `${name}@${version}`).join(" ")} */\n${code}`;
  if (Buffer.byteLength(source) > options.maxBytes) {
    const came = (Buffer.byteLength(source) / 2 ** 20).toFixed(1);
    throw new PackageFault(`it comes to ${came} MB as one script; ${options.maxBytes / 2 ** 20} MB is the most`);
  }
  const parts = used.map(({ name, version, folder }) => ({ name, version, licence: licenceOf(tree.manifest(folder)) }));
  // A package without types serves as well.
  const declarations = subpath === "" ? await declarationsOf(tree, root, global).catch(() => null) : null;
  return { source, global: global.name, names: usedNames(program), parts, declarations };
}
