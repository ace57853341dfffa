/**
 * Bundles src/web into dist/web. Pages get hashed file names; the client library and the packages get fixed names. `--smallest`, which the
 * image uses, selects Brotli's highest level.
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
/** Brotli's highest level takes as long as all other work of this build. Level 9 takes a twentieth of that time. Its files are 7 % larger. */
const BROTLI_QUALITY = isSmallest ? constants.BROTLI_MAX_QUALITY : 9;
/** Files up to this size are always compressed with Brotli, because this takes little time. Larger ones only if a page waits for them. */
const SMALL_FILE_MAX_BYTES = 64_000;

/**
 * Pages of the service, by name. `entry` is the page's script. The page first requests the routes in `firstRequests`: those in `all` for
 * every caller, those in `signedIn` only for signed-in callers. For signed-in callers, it then loads the modules in `scriptsAfter`. It
 * loads the modules in `parts` later; all of them import the module `core`.
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

/** Monaco's complete style sheet, which Studio loads with the first editor. The bundles contain no other styles of Monaco. */
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

/** Removes styles that would be bundled twice: GraphiQL's style sheet contains Monaco's, and Studio loads Monaco's complete style sheet. */
const leaveOutMonacoStyles = {
  name: "monaco-styles-once",
  setup(bundler) {
    bundler.onLoad({ filter: /monaco-editor[\\/]esm[\\/].*\.css$/ }, () => ({ contents: "", loader: "css" }));
  },
};

const TEXT_LITERAL = String.raw`(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')`;
/**
 * Matches the translation key before each text in Monaco's code, and the notes for translators. Monaco shows the text itself if there is no
 * translation, so the build removes both.
 */
const LOCALIZE_KEY_PATTERN = new RegExp(String.raw`\b(localize2?)\(\s*(?:\{[^{}]*\}|${TEXT_LITERAL})\s*,`, "g");
const LOCALIZE_TEXT_PATTERN = new RegExp(String.raw`\blocalize\(0,\s*${TEXT_LITERAL}`, "g");
/** Modules of Monaco with texts that describe settings and colors. Only VS Code's settings page shows these texts. */
const DESCRIBING_MODULES =
  /\/(?:editorOptions|editorConfigurationSchema|editorColorRegistry|listService)\.js$|\/theme\/common\/colors\//;

/** Monaco's diff editors. Studio does not use them, because it shows differences as lines. */
const DIFF_EDITOR_MODULES = /[\\/](?:diffEditorWidget|multiDiffEditorWidget)\.js$/i;
const ABSENT_NAMESPACE = "absent-part-of-monaco";
const absentClass = (name) =>
  `export class ${name} { constructor() { throw new Error("${name} is not part of this build of Monaco"); } }`;

/** Removes parts of Monaco's modules that Studio never shows. */
const shrinkMonaco = {
  name: "small-monaco",
  setup(bundler) {
    bundler.onResolve({ filter: DIFF_EDITOR_MODULES }, ({ path, importer }) =>
      /[\\/]standalone(?:Code)?Editor\.js$/.test(importer) ? { path, namespace: ABSENT_NAMESPACE } : undefined,
    );
    bundler.onLoad({ filter: /.*/, namespace: ABSENT_NAMESPACE }, ({ path }) => ({
      contents: absentClass(path.includes("multiDiff") ? "MultiDiffEditorWidget" : "DiffEditorWidget"),
    }));
    bundler.onLoad({ filter: /monaco-editor[\\/]esm[\\/].*\.js$/ }, async ({ path }) => {
      const withoutKeys = (await readFile(path, "utf8")).replaceAll(LOCALIZE_KEY_PATTERN, "$1(0,");
      const isDescribing = DESCRIBING_MODULES.test(path.replaceAll("\\", "/"));
      return { contents: isDescribing ? withoutKeys.replaceAll(LOCALIZE_TEXT_PATTERN, 'localize(0,""') : withoutKeys };
    });
  },
};

/**
 * Modules that all parts of a page use go into one core file, which each part imports. Otherwise, modules that some parts share would be
 * split into many small files. A browser requests only six files at once.
 */
const PART_NAMESPACE = "part-of-a-page";
const partsImportTheCore = {
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
/** Provides each icon of Lucide as a module, such as "icon:bell". The file with all icons is installed faster than a file for each icon. */
const iconsOfLucide = {
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

/**
 * Moves a script's leading "use strict" into the script's outer function. With "use strict" in front of the function, V8 would compile
 * this function again for each global scope.
 */
const moveUseStrict = {
  name: "strict-within",
  setup(bundler) {
    bundler.onEnd(async ({ metafile }) => {
      for (const file of Object.keys(metafile.outputs).filter((one) => one.endsWith(".js"))) {
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

/** Output options of files that other sites embed. The files have fixed names and are served with ETags. */
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
/**
 * Packages that contain a library that calls `atob` while it loads. Runs on the server may load them outside of a browser page, where
 * `atob` does not exist.
 */
const DECODING_PACKAGES = ["barcode"];

/** Files that the client library shares with the server. */
const SHARED_TYPES = ["src/data/action-types.ts", "src/data/media-types.ts"];

/** Joins the type files into one that imports nothing. */
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

function namesByEntry(outputs) {
  const entries = Object.entries(outputs).filter(([, output]) => output.entryPoint);
  return new Map(entries.map(([file, output]) => [output.entryPoint, { file, css: output.cssBundle }]));
}

const assetPath = (file) => `/${ASSETS_FOLDER}/${basename(file)}`;

async function buildWorkers() {
  const outputs = await bundles.bundle({ ...HASHED_OPTIONS, entryPoints: MONACO_WORKERS, format: "iife" });
  const built = [...namesByEntry(outputs)];
  const workerUrl = (entry) => assetPath(built.find(([path]) => path.endsWith(entry))[1].file);
  return Object.fromEntries(Object.entries(MONACO_WORKERS).map(([label, entry]) => [label, workerUrl(entry)]));
}

async function buildMonacoStyle() {
  const outputs = await bundles.bundle({
    ...HASHED_OPTIONS,
    entryPoints: { monaco: MONACO_STYLE },
    // The font with Monaco's icons is three quarters of the style sheet's size. As a separate file, it is loaded only with the first icon.
    loader: { ".ttf": "file" },
    assetNames: "[name]-[hash]",
  });
  return assetPath(Object.keys(outputs).find((file) => file.endsWith(".css")));
}

/** Returns a script and all files that it imports statically, directly or through other files. The script is first. */
function staticImportsOf(outputs, file, found = []) {
  if (found.includes(file)) return found;
  found.push(file);
  for (const { kind, path } of outputs[file].imports) {
    if (kind === "import-statement") staticImportsOf(outputs, path, found);
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
    plugins: [leaveOutMonacoStyles, partsImportTheCore, iconsOfLucide, ...(name === "studio" ? [shrinkMonaco] : [])],
  });
  const built = namesByEntry(outputs);
  const largestFirst = (files) => files.sort((a, b) => outputs[b].bytes - outputs[a].bytes).map(assetPath);
  const { file, css } = built.get(entry);
  const [script, ...requiredFiles] = staticImportsOf(outputs, file);
  const partFiles = (module) => staticImportsOf(outputs, built.get(`${PART_NAMESPACE}:${module}`).file);
  const first = [script, ...requiredFiles];
  const nextFiles = [...new Set(scriptsAfter.flatMap(partFiles))].filter((one) => !first.includes(one));
  const isLater = (one) => !first.includes(one) && !nextFiles.includes(one);
  const page = {
    title,
    script: assetPath(script),
    // A browser requests six files at once, so a large file that is requested last would delay the page.
    scriptsBefore: largestFirst(requiredFiles),
    scriptsAfter: largestFirst(nextFiles),
    parts: Object.fromEntries(
      Object.entries(parts).map(([part, module]) => [part, largestFirst(partFiles(module).filter(isLater))]),
    ),
    firstRequests,
    style: css ? assetPath(css) : null,
  };
  return [name, page];
}

/** Writes a file atomically. Later builds keep existing files, so an incomplete file would never be replaced. */
async function writeWhole(file, content) {
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
  await writeWhole(`${file}.br`, await promisify(brotliCompress)(content, { params }));
}

/**
 * Compresses all new files once with gzip, so that the service needs no processor time for this. Files that pages wait for, and small files,
 * also get a version that Brotli has compressed.
 */
async function compress(pages, monacoStyle) {
  const files = globSync("**/*.{js,mjs,css,ttf}", { cwd: OUT_FOLDER }).map((file) => join(OUT_FOLDER, file));
  const compressWithGzip = async (file) =>
    writeWhole(`${file}.gz`, await promisify(gzip)(await readFile(file), { level: 9 }));
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
  // Builds each page separately, because files shared by pages would cost each page another request.
  const [pages] = await Promise.all([
    Promise.all(Object.keys(WEB_PAGES).map((name) => buildPage(name, ...files))).then(Object.fromEntries),
    buildClient(),
  ]);
  await writeFile(join(OUT_FOLDER, "pages.json"), JSON.stringify(pages));
  bundles.removeOldFiles(["pages.json", TYPES_FILE]);
  await compress(pages, files[1]);
}

try {
  await buildAll();
} finally {
  bundles.save();
}
