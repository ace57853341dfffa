/** Bundles src/web into dist/web: pages get hashed file names; the client library and the packages get fixed names. */
import { createHash } from "node:crypto";
import { existsSync, globSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const OUT = join(ROOT, "dist/web");
const ASSETS = "assets";

/**
 * Pages of the service, by name. `entry` is the page's script. `asks` lists the routes that it requests first: for all callers, and for
 * signed-in callers. `next` lists the modules that signed-in callers load first. `parts` lists modules that are loaded later; the page
 * requests all files of a part at once. All parts share the loaded `core`.
 */
const PAGES = {
  consent: { entry: "src/web/consent/page.ts", title: "Allow access · App Actions" },
  docs: { entry: "src/web/docs/page.ts", title: "Docs · App Actions" },
  "sign-in": { entry: "src/web/sign-in/page.ts", title: "Sign in · App Actions" },
  graphiql: { entry: "src/web/graphiql/page.tsx", title: "GraphiQL · App Actions" },
  studio: {
    entry: "src/web/studio/page.ts",
    title: "Studio · App Actions",
    asks: { all: ["/v1/session"], signedIn: ["/v1/apps", "/v1/auth/session"] },
    core: "src/web/studio/shell/root.tsx",
    next: ["src/web/studio/shell/root.tsx", "src/web/studio/home/home-page.tsx"],
    parts: {
      actions: "src/web/studio/actions/actions-page.tsx",
      runs: "src/web/studio/runs/runs-page.tsx",
      editor: "src/web/studio/actions/code-editor.tsx",
    },
  },
};

/** Monaco's complete style sheet. The rules in its modules are left out of the bundles. It is loaded with the first editor. */
const MONACO_STYLE = "monaco-editor/min/vs/editor/editor.main.css";

const WORKERS = {
  editor: "monaco-editor/esm/vs/editor/editor.worker.js",
  json: "monaco-editor/esm/vs/language/json/json.worker.js",
  graphql: "monaco-graphql/esm/graphql.worker.js",
  javascript: "src/web/studio/actions/code-worker.ts",
};

const COMMON = {
  absWorkingDir: ROOT,
  bundle: true,
  minify: true,
  metafile: true,
  target: "es2022",
  legalComments: "linked",
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
};
const HASHED = { ...COMMON, outdir: join(OUT, ASSETS), entryNames: "[name]-[hash]", chunkNames: "[name]-[hash]" };

/**
 * Leaves out styles that would be bundled twice: GraphiQL's style sheet contains Monaco's, and Studio loads Monaco's complete style sheet.
 */
const monacoStylesOnce = {
  name: "monaco-styles-once",
  setup(bundler) {
    bundler.onLoad({ filter: /monaco-editor[\\/]esm[\\/].*\.css$/ }, () => ({ contents: "", loader: "css" }));
  },
};

const TEXT = String.raw`(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')`;
/**
 * Matches a Monaco text's key and its notes for translators. Without a translation, Monaco shows the text itself, so both can be removed.
 */
const KEY = new RegExp(String.raw`\b(localize2?)\(\s*(?:\{[^{}]*\}|${TEXT})\s*,`, "g");
const DESCRIPTION = new RegExp(String.raw`\blocalize\(0,\s*${TEXT}`, "g");
/** Modules with texts that describe settings and colors. Only VS Code's settings page shows these texts. */
const DESCRIBING =
  /\/(?:editorOptions|editorConfigurationSchema|editorColorRegistry|listService)\.js$|\/theme\/common\/colors\//;

/** Monaco's diff editors. Studio does not use them, because it shows differences as lines. */
const DIFF_EDITOR = /[\\/](?:diffEditorWidget|multiDiffEditorWidget)\.js$/i;
const ABSENT = "absent-part-of-monaco";
const absent = (name) =>
  `export class ${name} { constructor() { throw new Error("${name} is not part of this build"); } }`;

/** Removes parts of Monaco's modules that Studio never shows. */
const smallMonaco = {
  name: "small-monaco",
  setup(bundler) {
    bundler.onResolve({ filter: DIFF_EDITOR }, ({ path, importer }) =>
      /[\\/]standalone(?:Code)?Editor\.js$/.test(importer) ? { path, namespace: ABSENT } : undefined,
    );
    bundler.onLoad({ filter: /.*/, namespace: ABSENT }, ({ path }) => ({
      contents: absent(path.includes("multiDiff") ? "MultiDiffEditorWidget" : "DiffEditorWidget"),
    }));
    bundler.onLoad({ filter: /monaco-editor[\\/]esm[\\/].*\.js$/ }, async ({ path }) => {
      const keyless = (await readFile(path, "utf8")).replaceAll(KEY, "$1(0,");
      const describes = DESCRIBING.test(path.replaceAll("\\", "/"));
      return { contents: describes ? keyless.replaceAll(DESCRIPTION, 'localize(0,""') : keyless };
    });
  },
};

/**
 * Groups modules into one core file per page, which all parts of the page import. Otherwise each set of parts that share a module would get
 * its own file, and a browser requests only six of twenty files at once.
 */
const PART = "part-of-a-page";
const partsImportTheCore = {
  name: "parts-import-the-core",
  setup(bundler) {
    bundler.onResolve({ filter: /^\./ }, async ({ kind, path, resolveDir, importer }) => {
      if (kind !== "dynamic-import" || !importer.startsWith(join(ROOT, "src/web/studio/"))) return undefined;
      const { path: file, errors } = await bundler.resolve(path, { kind: "import-statement", resolveDir, importer });
      return errors.length > 0 ? { errors } : { path: relative(ROOT, file), namespace: PART };
    });
    bundler.onLoad({ filter: /.*/, namespace: PART }, ({ path }) => ({
      contents: `import "./${PAGES.studio.core}"; export * from "./${path}";`,
      resolveDir: ROOT,
    }));
  },
};

const STRICT = '"use strict";';
const FUNCTION = "(()=>{";

/** Moves a script's leading "use strict" into its function. Otherwise V8 would compile the script again in each scope. */
const strictWithin = {
  name: "strict-within",
  setup(bundler) {
    bundler.onEnd(async ({ metafile }) => {
      for (const file of Object.keys(metafile.outputs).filter((one) => one.endsWith(".js"))) {
        const text = await readFile(join(ROOT, file), "utf8");
        if (!text.startsWith(STRICT + FUNCTION)) throw new Error(`${file} does not begin as scripts do`);
        await writeFile(join(ROOT, file), FUNCTION + STRICT + text.slice(STRICT.length + FUNCTION.length));
      }
    });
  },
};

/** Files that other sites embed. They have fixed names and are served with ETags. */
const CLIENT = { ...COMMON, outdir: join(OUT, "client") };
const PLAIN = { ...CLIENT, format: "iife", plugins: [strictWithin] };
const PACKAGES = [
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
/** Packages whose library decodes base64 while it loads. They must also work in a language isolate, which has no `atob`. */
const DECODING = ["barcode"];

/** Files that the client library shares with the server. */
const SHARED_TYPES = ["src/data/action-types.ts", "src/data/media-types.ts"];

/** Joins the type files into one that imports nothing. */
async function joinTypes(runtime) {
  const names = ["public-types", "data-source-types", "message-types", "ai-types", "tool-types", "request-types"];
  const files = [...SHARED_TYPES, ...names.map((name) => `${runtime}/${name}.ts`)];
  const texts = await Promise.all(files.map((file) => readFile(join(ROOT, file), "utf8")));
  const all = texts.join("").replaceAll(/^import type [^;]*"(?:\.\.\/\.\.\/data|\.)\/[a-z-]+-types\.js";\n/gm, "");
  if (/^import /m.test(all)) throw new Error("svc.d.ts must be whole: it may import nothing");
  await writeFile(join(OUT, "client/svc.d.ts"), all);
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
  const entriesOf = (names) =>
    Object.fromEntries(names.map((name) => [`packages/svc-${name}`, `src/web/packages/svc-${name}.ts`]));
  const module = { svc: `${runtime}/entry-module.ts` };
  await Promise.all([
    build({ ...PLAIN, entryPoints: { ...scripts, ...entriesOf(PACKAGES) } }),
    build({ ...PLAIN, entryPoints: entriesOf(DECODING), inject: [join(ROOT, "src/web/packages/atob.ts")] }),
    build({ ...CLIENT, format: "esm", entryPoints: module, outExtension: { ".js": ".mjs" } }),
  ]);
  await joinTypes(runtime);
}

function namesByEntry(metafile) {
  const outputs = Object.entries(metafile.outputs).filter(([, output]) => output.entryPoint);
  return new Map(outputs.map(([file, output]) => [output.entryPoint, { file, css: output.cssBundle }]));
}

const address = (file) => `/${ASSETS}/${basename(file)}`;

async function buildWorkers() {
  const { metafile } = await build({ ...HASHED, entryPoints: WORKERS, format: "iife" });
  const built = [...namesByEntry(metafile)];
  const urlOf = (entry) => address(built.find(([path]) => path.endsWith(entry))[1].file);
  return Object.fromEntries(Object.entries(WORKERS).map(([label, entry]) => [label, urlOf(entry)]));
}

async function buildMonacoStyle() {
  const { metafile } = await build({
    ...HASHED,
    entryPoints: { monaco: MONACO_STYLE },
    // This image is three quarters of the style sheet's size. As a file, it is loaded with the first icon.
    loader: { ".ttf": "file" },
    assetNames: "[name]-[hash]",
  });
  return address(Object.keys(metafile.outputs).find((file) => file.endsWith(".css")));
}

/** Returns a script and the files that it imports statically, with the script first. The browser needs them to render the page. */
function importedBy(outputs, file, found = []) {
  if (found.includes(file)) return found;
  found.push(file);
  for (const { kind, path } of outputs[file].imports) {
    if (kind === "import-statement") importedBy(outputs, path, found);
  }
  return found;
}

async function buildPage(name, workerFiles, monacoStyle) {
  const { entry, title, asks = { all: [], signedIn: [] }, next = [], parts = {} } = PAGES[name];
  const { metafile } = await build({
    ...HASHED,
    entryPoints: { [name]: entry },
    format: "esm",
    splitting: true,
    jsx: "automatic",
    loader: { ".ttf": "dataurl" },
    define: {
      ...COMMON.define,
      WORKER_FILES: `${JSON.stringify(workerFiles)}`,
      MONACO_STYLE: `${JSON.stringify(monacoStyle)}`,
    },
    plugins: [monacoStylesOnce, partsImportTheCore, ...(name === "studio" ? [smallMonaco] : [])],
  });
  const { outputs } = metafile;
  const built = namesByEntry(metafile);
  const largestFirst = (files) => files.sort((a, b) => outputs[b].bytes - outputs[a].bytes).map(address);
  const { file, css } = built.get(entry);
  const [script, ...needs] = importedBy(outputs, file);
  const filesOf = (module) => importedBy(outputs, built.get(`${PART}:${module}`).file);
  const first = [script, ...needs];
  const soon = [...new Set(next.flatMap(filesOf))].filter((one) => !first.includes(one));
  const isLater = (one) => !first.includes(one) && !soon.includes(one);
  const page = {
    title,
    script: address(script),
    // A browser requests six files at once, so a large file that is requested last would delay the page.
    needs: largestFirst(needs),
    next: largestFirst(soon),
    parts: Object.fromEntries(
      Object.entries(parts).map(([part, module]) => [part, largestFirst(filesOf(module).filter(isLater))]),
    ),
    asks,
    style: css ? address(css) : null,
  };
  return [name, page];
}

/** Compresses a file with Brotli's highest level, which takes seconds for an editor. */
async function packSmall(file) {
  const content = await readFile(file);
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
    [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
  };
  await writeFile(`${file}.br`, await promisify(brotliCompress)(content, { params }));
}

/**
 * Compresses all files once, so that the service only reads files and uses no processor time. Files that pages wait for are also compressed
 * by Brotli.
 */
async function compress(pages, monacoStyle) {
  const files = globSync("**/*.{js,mjs,css,ttf}", { cwd: OUT }).map((file) => join(OUT, file));
  const pack = async (file) => writeFile(`${file}.gz`, await promisify(gzip)(await readFile(file), { level: 9 }));
  const first = Object.values(pages).flatMap(({ script, needs, next, parts, style }) => [
    script,
    ...needs,
    ...next,
    ...Object.values(parts).flat(),
    style ?? [],
  ]);
  const small = new Set([...first.flat(), monacoStyle]);
  await Promise.all([...files.map(pack), ...[...small].map((path) => packSmall(join(OUT, path)))]);
}

/** Inputs of the output: the sources by content, including files shared with the server, and the libraries by lock file. */
async function fingerprint() {
  const shared = [
    "src/limits.ts",
    ...SHARED_TYPES,
    "src/rules/packages.json",
    "src/rules/trigger-match.ts",
    "src/rules/compile-script.ts",
  ];
  const own = globSync("src/web/**/*.{ts,tsx,css,json}", { cwd: ROOT }).sort();
  const hash = createHash("sha256");
  for (const file of ["scripts/build-web.mjs", "package-lock.json", ...shared, ...own]) {
    if (existsSync(join(ROOT, file))) hash.update(file).update(await readFile(join(ROOT, file)));
  }
  return hash.digest("hex");
}

const stampFile = join(OUT, "stamp");
const stamp = await fingerprint();
const unchanged = existsSync(stampFile) && (await readFile(stampFile, "utf8")) === stamp;
if (!unchanged) {
  await rm(OUT, { recursive: true, force: true });
  await mkdir(OUT, { recursive: true });
  const files = await Promise.all([buildWorkers(), buildMonacoStyle()]);
  // Builds each page separately, because files shared by pages would cost each page another request.
  const [pages] = await Promise.all([
    Promise.all(Object.keys(PAGES).map((name) => buildPage(name, ...files))).then(Object.fromEntries),
    buildClient(),
  ]);
  await writeFile(join(OUT, "pages.json"), JSON.stringify(pages));
  await compress(pages, files[1]);
  await writeFile(stampFile, stamp);
}
