/** One action's file: its `config` block and its code, and how each is read and replaced without the other. */
import { join } from "node:path";
import { build, type Plugin } from "esbuild";
import { CliError } from "./failure.js";
import type { Item } from "./manifest.js";

const IMPORT = 'import { defineAction } from "svc";';
const START = "export const config = defineAction(";

/** Index behind the `)` that closes the `(` before `from`, over strings and comments; -1 if there is none. */
function closingIndex(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at]!;
    if (character === '"' || character === "'" || character === "`") {
      for (at += 1; at < text.length && text[at] !== character; at += 1) if (text[at] === "\\") at += 1;
    } else if (text.startsWith("//", at)) {
      const end = text.indexOf("\n", at);
      if (end < 0) return -1;
      at = end;
    } else if (text.startsWith("/*", at)) {
      const end = text.indexOf("*/", at);
      if (end < 0) return -1;
      at = end + 1;
    } else if (character === "(") {
      depth += 1;
    } else if (character === ")") {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return -1;
}

interface Parts {
  /** The file without the config block and its import. */
  body: string;
  /** The same with as many lines as the file, so that faults name the author's lines. */
  blanked: string;
}

const IMPORT_LINE = /^import \{ defineAction \} from (?:"svc"|'svc');?\r?\n*/m;

export function splitFile(text: string): Parts {
  const start = text.indexOf(START);
  const end = start < 0 ? -1 : closingIndex(text, start + START.length);
  if (end < 0) return { body: text, blanked: text };
  const before = text.slice(0, start).replace(IMPORT_LINE, "");
  const after = text.slice(end).replace(/^;?(?:\r?\n){0,2}/, "");
  const blank = text.slice(start, end).replaceAll(/[^\n]/g, "");
  const emptied = text.slice(0, start).replace(IMPORT_LINE, (line) => line.replaceAll(/[^\n]/g, ""));
  return { body: before + after, blanked: emptied + blank + text.slice(end).replace(/^;/, "") };
}

const literal = (config: Item): string =>
  JSON.stringify(config, null, 2).replaceAll(/^( *)"([A-Za-z_$][\w$]*)":/gm, "$1$2:");

export const joinFile = (config: Item, body: string): string =>
  `${IMPORT}\n\n${START}${literal(config)});\n\n${body.trimEnd()}\n`;

/** The module "svc" of a project: the function that types the config. */
const SVC_MODULE: Plugin = {
  name: "svc",
  setup(bundler) {
    bundler.onResolve({ filter: /^svc$/ }, () => ({ path: "svc", namespace: "svc", sideEffects: false }));
    bundler.onLoad({ filter: /.*/, namespace: "svc" }, () => ({
      contents: "export const defineAction = (config) => config;",
    }));
  },
};

interface BuildFault {
  text: string;
  location: { file: string; line: number; column: number } | null;
}

/** Bundles one export of a file. @param contents of the file, where they are to be others than its own */
async function bundled(root: string, file: string, name: "config" | "execute", contents: string): Promise<string> {
  const entry: Plugin = {
    name: "action",
    setup(bundler) {
      bundler.onLoad({ filter: /[\\/]action\.[jt]s$/ }, ({ path }) =>
        path === join(root, file) ? { contents, loader: file.endsWith(".ts") ? "ts" : "js" } : undefined,
      );
    },
  };
  try {
    const { outputFiles } = await build({
      stdin: { contents: `export { ${name} } from ${JSON.stringify(`./${file}`)};`, resolveDir: root, loader: "js" },
      absWorkingDir: root,
      bundle: true,
      write: false,
      format: "esm",
      platform: "browser",
      target: "es2022",
      charset: "utf8",
      logLevel: "silent",
      plugins: [SVC_MODULE, entry],
    });
    return outputFiles[0]!.text;
  } catch (error) {
    const { errors = [] } = error as { errors?: BuildFault[] };
    if (errors.length === 0) throw error;
    const lines = errors.map(({ text, location }) =>
      location ? `${location.file}:${location.line}:${location.column + 1}: ${text}` : text,
    );
    throw new CliError(`${file} does not compile:\n${lines.join("\n")}`);
  }
}

/** Evaluates the config of the file, which is the author's own code. */
export async function readActionConfig(root: string, file: string, text: string): Promise<Item> {
  if (!/\bexport\s+const\s+config\b/.test(text)) return {};
  const script = await bundled(root, file, "config", text);
  const module = (await import(`data:text/javascript;base64,${Buffer.from(script).toString("base64")}`)) as {
    config: unknown;
  };
  const { config } = module;
  if (typeof config === "object" && config !== null && !Array.isArray(config)) return structuredClone(config) as Item;
  throw new CliError(`config of ${file} must be an object`);
}

/** The bundler's last lines for an entry that exports only `execute`. */
const EXPORT = "export {\n  execute\n};\n";

/** The code that the service stores: the body as it is, or bundled if it has types or modules. */
export async function buildActionCode(root: string, file: string, text: string): Promise<string> {
  const { body, blanked } = splitFile(text);
  const isModule = /^[ \t]*(?:import|export)\b/m.test(body);
  if (!isModule && !file.endsWith(".ts")) return body;
  const isExported = /^[ \t]*export\b/m.test(body);
  const code = await bundled(root, file, "execute", isExported ? blanked : `${blanked}\nexport { execute };`);
  if (!code.endsWith(EXPORT)) throw new CliError(`${file} must export the function execute`);
  return code.slice(0, -EXPORT.length);
}
