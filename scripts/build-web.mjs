/**
 * Bundles src/web into dist/web. Names of page files contain a hash; those of the client library and the packages do not. The option
 * `--smallest`, for container images, selects the best compression.
 */
import { existsSync, globSync, statSync } from "node:fs";
import { readFile, rename, writeFile } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import lucide from "@iconify-json/lucide/icons.json" with { type: "json" };
import { WebBundles } from "./setup/web-bundles.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const OUT_FOLDER = join(ROOT, "dist/web");
const TYPES_FILE = "client/svc.d.ts";
const ASSETS_FOLDER = "assets";
const isSmallest = process.argv.includes("--smallest");
const bundles = new WebBundles(ROOT, "dist/web", isSmallest);
/**
 * Brotli's highest level takes as long as the rest of this build. Level 9 takes a twentieth of this time, for files that are 7 % larger.
 */
const BROTLI_QUALITY = isSmallest ? constants.BROTLI_MAX_QUALITY : 9;
/** Files up to this size always get a Brotli version, which takes little time. Larger files get one only if a page waits for them. */
const SMALL_FILE_MAX_BYTES = 64_000;

/**
 * Pages of the service. A browser loads `entry` first, then `scriptsAfter` if the caller is signed in. It loads `parts` later; each part
 * imports `core`.
 */
const WEB_PAGES = {
  consent: { entry: "src/web/consent/page.ts", title: "Allow access · App Actions" },
  docs: { entry: "src/web/docs/page.ts", title: "Docs · App Actions" },
  "sign-in": { entry: "src/web/sign-in/page.ts", title: "Sign in · App Actions" },
  graphiql: { entry: "src/web/graphiql/page.tsx", title: "GraphiQL · App Actions" },
  studio: {
    entry: "src/web/studio/page.ts",
    title: "Studio · App Actions",
    firstRequests: { all: ["/v1/session"], signedIn: ["/v1/apps", "/v1/auth/session"] },
    core: "src/web/studio/shell/root.tsx",
    scriptsAfter: ["src/web/studio/shell/root.tsx", "src/web/studio/home/home-page.tsx"],
    parts: {
      actions: "src/web/studio/actions/actions-page.tsx",
      runs: "src/web/studio/runs/runs-page.tsx",
      editor: "src/web/studio/actions/code-editor.tsx",
    },
  },
};

const MONACO_STYLE = "monaco-editor/min/vs/editor/editor.main.css";

const MONACO_WORKERS = {
  editor: "monaco-editor/esm/vs/editor/editor.worker.js",
  json: "monaco-editor/esm/vs/language/json/json.worker.js",
  graphql: "monaco-graphql/esm/graphql.worker.js",
  javascript: "src/web/studio/actions/code-worker.ts",
};

const COMMON_OPTIONS = {
  absWorkingDir: ROOT,
  bundle: true,
  minify: true,
  metafile: true,
  target: "es2022",
  legalComments: "linked",
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
};
const HASHED_OPTIONS = {
  ...COMMON_OPTIONS,
  outdir: join(OUT_FOLDER, ASSETS_FOLDER),
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
};

/** Leaves Monaco's styles out of the bundles. Pages with an editor get them from GraphiQL's style sheet or from MONACO_STYLE. */
const leaveOutMonacoStyles = {
  name: "monaco-styles-once",
  setup(bundler) {
    bundler.onLoad({ filter: /monaco-editor[\\/]esm[\\/].*\.css$/ }, () => ({ contents: "", loader: "css" }));
  },
};

const TEXT_LITERAL = String.raw`(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')`;
/** Matches the translation key or notes for translators before a text in Monaco's code. Monaco can show the text without them. */
const LOCALIZE_KEY_PATTERN = new RegExp(String.raw`\b(localize2?)\(\s*(?:\{[^{}]*\}|${TEXT_LITERAL})\s*,`, "g");
const LOCALIZE_TEXT_PATTERN = new RegExp(String.raw`\blocalize\(0,\s*${TEXT_LITERAL}`, "g");
/** Modules of Monaco whose texts describe settings and colors. Only VS Code's settings page shows these texts. */
const DESCRIBING_MODULES =
  /\/(?:editorOptions|editorConfigurationSchema|editorColorRegistry|listService)\.js$|\/theme\/common\/colors\//;

const DIFF_EDITOR_MODULES = /[\\/](?:diffEditorWidget|multiDiffEditorWidget)\.js$/i;
const ABSENT_NAMESPACE = "absent-part-of-monaco";
const createAbsentClass = (name) =>
  `export class ${name} { constructor() { throw new Error("${name} is not part of this build of Monaco"); } }`;

const shrinkMonaco = {
  name: "small-monaco",
  setup(bundler) {
    bundler.onResolve({ filter: DIFF_EDITOR_MODULES }, ({ path, importer }) =>
      /[\\/]standalone(?:Code)?Editor\.js$/.test(importer) ? { path, namespace: ABSENT_NAMESPACE } : undefined,
    );
    bundler.onLoad({ filter: /.*/, namespace: ABSENT_NAMESPACE }, ({ path }) => ({
      contents: createAbsentClass(path.includes("multiDiff") ? "MultiDiffEditorWidget" : "DiffEditorWidget"),
    }));
    bundler.onLoad({ filter: /monaco-editor[\\/]esm[\\/].*\.js$/ }, async ({ path }) => {
      const withoutKeys = (await readFile(path, "utf8")).replaceAll(LOCALIZE_KEY_PATTERN, "$1(0,");
      const isDescribing = DESCRIBING_MODULES.test(path.replaceAll("\\", "/"));
      return { contents: isDescribing ? withoutKeys.replaceAll(LOCALIZE_TEXT_PATTERN, 'localize(0,""') : withoutKeys };
    });
  },
};

const PART_NAMESPACE = "part-of-a-page";
/**
 * Adds an import of `core` to each part of a page. Then the bundler puts modules that parts share into one file, not into many small ones.
 * Many files would load slowly, because a browser requests only six at once.
 */
const importCoreInParts = {
  name: "parts-import-the-core",
  setup(bundler) {
    bundler.onResolve({ filter: /^\./ }, async ({ kind, path, resolveDir, importer }) => {
      if (kind !== "dynamic-import" || !importer.startsWith(join(ROOT, "src/web/studio/"))) return undefined;
      const { path: file, errors } = await bundler.resolve(path, { kind: "import-statement", resolveDir, importer });
      return errors.length > 0 ? { errors } : { path: relative(ROOT, file), namespace: PART_NAMESPACE };
    });
    bundler.onLoad({ filter: /.*/, namespace: PART_NAMESPACE }, ({ path }) => ({
      contents: `import "./${WEB_PAGES.studio.core}"; export * from "./${path}";`,
      resolveDir: ROOT,
    }));
  },
};

const ICON_NAMESPACE = "icon";
/**
 * Provides each icon of Lucide as a module, such as "icon:bell". One file with all icons is faster to install than a file for each icon.
 */
const provideIcons = {
  name: "icons-of-lucide",
  setup(bundler) {
    bundler.onResolve({ filter: /^icon:/ }, ({ path }) => ({ path: path.slice(5), namespace: ICON_NAMESPACE }));
    bundler.onLoad({ filter: /.*/, namespace: ICON_NAMESPACE }, ({ path: name }) => {
      const icon = lucide.icons[name] ?? lucide.icons[lucide.aliases[name]?.parent];
      if (!icon) return { errors: [{ text: `Lucide has no icon "${name}"` }] };
      const contents = `/*! Icons of Lucide, ISC license, https://lucide.dev/license */
        import { createIcon } from "./src/web/studio/shared/icon.tsx";
        export default /* @__PURE__ */ createIcon(${JSON.stringify(icon.body)});`;
      return { contents, resolveDir: ROOT };
    });
  },
};

const USE_STRICT = '"use strict";';
const FUNCTION_START = "(()=>{";

/** Moves "use strict" into a script's outer function. If it precedes the function, V8 compiles the function again for each global scope. */
const moveUseStrict = {
  name: "strict-within",
  setup(bundler) {
    bundler.onEnd(async ({ metafile }) => {
      for (const file of Object.keys(metafile.outputs).filter((path) => path.endsWith(".js"))) {
        const text = await readFile(join(ROOT, file), "utf8");
        if (!text.startsWith(USE_STRICT + FUNCTION_START))
          throw new Error(`${file} must begin with ${USE_STRICT}${FUNCTION_START}`);
        await writeFile(
          join(ROOT, file),
          FUNCTION_START + USE_STRICT + text.slice(USE_STRICT.length + FUNCTION_START.length),
        );
      }
    });
  },
};

/** Output options of files that other sites embed. Their names have no hash, so that their URLs never change. */
const CLIENT_OPTIONS = { ...COMMON_OPTIONS, outdir: join(OUT_FOLDER, "client") };
const SCRIPT_OPTIONS = { ...CLIENT_OPTIONS, format: "iife", plugins: [moveUseStrict] };
const PACKAGE_NAMES = [
  "datasources",
  "session",
  "csv",
  "encryption",
  "audio",
  "media",
  "communicate",
  "notifications",
  "ai",
];
/** Packages whose code calls `atob` while it loads. Some sandboxes for runs have no `atob`, so these packages bring their own. */
const DECODING_PACKAGES = ["barcode"];

const SHARED_TYPES = ["src/data/action-types.ts", "src/data/media-types.ts"];

async function joinTypes(runtime) {
  const names = ["public-types", "data-source-types", "message-types", "ai-types", "tool-types", "request-types"];
  const files = [...SHARED_TYPES, ...names.map((name) => `${runtime}/${name}.ts`)];
  const texts = await Promise.all(files.map((file) => readFile(join(ROOT, file), "utf8")));
  const all = texts.join("").replaceAll(/^import type [^;]*"(?:\.\.\/\.\.\/data|\.)\/[a-z-]+-types\.js";\n/gm, "");
  if (/^import /m.test(all)) throw new Error("svc.d.ts must not import other files");
  await writeFile(join(OUT_FOLDER, TYPES_FILE), all);
}

async function buildClient() {
  const runtime = "src/web/runtime";
  const scripts = {
    svc: `${runtime}/entry-script.ts`,
    "svc-run": `${runtime}/entry-run.ts`,
    "svc-response": `${runtime}/entry-response.ts`,
    "svc-requests": `${runtime}/entry-requests.ts`,
    debug: `${runtime}/entry-debug.ts`,
    "app-page": "src/web/app-page/entry.ts",
    "push-worker": `${runtime}/entry-push-worker.ts`,
  };
  const packageEntries = (names) =>
    Object.fromEntries(names.map((name) => [`packages/svc-${name}`, `src/web/packages/svc-${name}.ts`]));
  const module = { svc: `${runtime}/entry-module.ts` };
  await Promise.all([
    bundles.bundle({ ...SCRIPT_OPTIONS, entryPoints: { ...scripts, ...packageEntries(PACKAGE_NAMES) } }),
    bundles.bundle({
      ...SCRIPT_OPTIONS,
      entryPoints: packageEntries(DECODING_PACKAGES),
      inject: [join(ROOT, "src/web/packages/atob.ts")],
    }),
    bundles.bundle({ ...CLIENT_OPTIONS, format: "esm", entryPoints: module, outExtension: { ".js": ".mjs" } }),
  ]);
  await joinTypes(runtime);
}

function mapOutputsByEntry(outputs) {
  const entries = Object.entries(outputs).filter(([, output]) => output.entryPoint);
  return new Map(entries.map(([file, output]) => [output.entryPoint, { file, css: output.cssBundle }]));
}

const getAssetPath = (file) => `/${ASSETS_FOLDER}/${basename(file)}`;

async function buildWorkers() {
  const outputs = await bundles.bundle({ ...HASHED_OPTIONS, entryPoints: MONACO_WORKERS, format: "iife" });
  const built = [...mapOutputsByEntry(outputs)];
  const workerUrl = (entry) => getAssetPath(built.find(([path]) => path.endsWith(entry))[1].file);
  return Object.fromEntries(Object.entries(MONACO_WORKERS).map(([label, entry]) => [label, workerUrl(entry)]));
}

async function buildMonacoStyle() {
  const outputs = await bundles.bundle({
    ...HASHED_OPTIONS,
    entryPoints: { monaco: MONACO_STYLE },
    // The font with Monaco's icons is three quarters of the style sheet. As a separate file, it is loaded only with the first icon.
    loader: { ".ttf": "file" },
    assetNames: "[name]-[hash]",
  });
  return getAssetPath(Object.keys(outputs).find((file) => file.endsWith(".css")));
}

/** Returns a script, and then all files that it imports statically, directly or through other files. */
function listStaticImports(outputs, file, found = []) {
  if (found.includes(file)) return found;
  found.push(file);
  for (const { kind, path } of outputs[file].imports) {
    if (kind === "import-statement") listStaticImports(outputs, path, found);
  }
  return found;
}

async function buildPage(name, workerFiles, monacoStyle) {
  const { entry, title, firstRequests = { all: [], signedIn: [] }, scriptsAfter = [], parts = {} } = WEB_PAGES[name];
  const outputs = await bundles.bundle({
    ...HASHED_OPTIONS,
    entryPoints: { [name]: entry },
    format: "esm",
    splitting: true,
    jsx: "automatic",
    loader: { ".ttf": "dataurl" },
    define: {
      ...COMMON_OPTIONS.define,
      WORKER_FILES: `${JSON.stringify(workerFiles)}`,
      MONACO_STYLE: `${JSON.stringify(monacoStyle)}`,
    },
    plugins: [leaveOutMonacoStyles, importCoreInParts, provideIcons, ...(name === "studio" ? [shrinkMonaco] : [])],
  });
  const built = mapOutputsByEntry(outputs);
  const largestFirst = (files) => files.sort((a, b) => outputs[b].bytes - outputs[a].bytes).map(getAssetPath);
  const { file, css } = built.get(entry);
  const [script, ...requiredFiles] = listStaticImports(outputs, file);
  const partFiles = (module) => listStaticImports(outputs, built.get(`${PART_NAMESPACE}:${module}`).file);
  const first = [script, ...requiredFiles];
  const nextFiles = [...new Set(scriptsAfter.flatMap(partFiles))].filter((path) => !first.includes(path));
  const isLater = (path) => !first.includes(path) && !nextFiles.includes(path);
  const page = {
    title,
    script: getAssetPath(script),
    // The largest files come first: a browser requests six files at once, and a large file that starts late would delay the page.
    scriptsBefore: largestFirst(requiredFiles),
    scriptsAfter: largestFirst(nextFiles),
    parts: Object.fromEntries(
      Object.entries(parts).map(([part, module]) => [part, largestFirst(partFiles(module).filter(isLater))]),
    ),
    firstRequests,
    style: css ? getAssetPath(css) : null,
  };
  return [name, page];
}

/** Writes a file atomically. Later builds keep existing files, so they would never replace an incomplete one. */
async function writeAtomically(file, content) {
  await writeFile(`${file}.new`, content);
  await rename(`${file}.new`, file);
}

async function compressWithBrotli(file) {
  const content = await readFile(file);
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
    [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
  };
  await writeAtomically(`${file}.br`, await promisify(brotliCompress)(content, { params }));
}

/** Compresses all new files with gzip. Small files, and files that pages wait for, also get a version compressed with Brotli. */
async function compressFiles(pages, monacoStyle) {
  const files = globSync("**/*.{js,mjs,css,ttf}", { cwd: OUT_FOLDER }).map((file) => join(OUT_FOLDER, file));
  const compressWithGzip = async (file) =>
    writeAtomically(`${file}.gz`, await promisify(gzip)(await readFile(file), { level: 9 }));
  const withoutVersion = (paths, ending) => paths.filter((file) => !existsSync(file + ending));
  const first = Object.values(pages).flatMap(({ script, scriptsBefore: requiredFiles, scriptsAfter, parts, style }) => [
    script,
    ...requiredFiles,
    ...scriptsAfter,
    ...Object.values(parts).flat(),
    style ?? [],
  ]);
  const awaitedFiles = [...first.flat(), monacoStyle].map((path) => join(OUT_FOLDER, path));
  const smallFiles = files.filter((file) => statSync(file).size <= SMALL_FILE_MAX_BYTES);
  await Promise.all([
    ...withoutVersion(files, ".gz").map(compressWithGzip),
    ...withoutVersion([...new Set([...awaitedFiles, ...smallFiles])], ".br").map(compressWithBrotli),
  ]);
}

async function buildAll() {
  const files = await Promise.all([buildWorkers(), buildMonacoStyle()]);
  // Builds each page separately. Otherwise, pages would share files, and each page would need more requests to load them.
  const [pages] = await Promise.all([
    Promise.all(Object.keys(WEB_PAGES).map((name) => buildPage(name, ...files))).then(Object.fromEntries),
    buildClient(),
  ]);
  await writeFile(join(OUT_FOLDER, "pages.json"), JSON.stringify(pages));
  bundles.removeOldFiles(["pages.json", TYPES_FILE]);
  await compressFiles(pages, files[1]);
}

try {
  await buildAll();
} finally {
  bundles.save();
}
