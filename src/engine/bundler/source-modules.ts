/** Finds the file to which an import in an action's source refers. The service and the command line both use it. */
import { extname, join } from "node:path/posix";
import { PackageError } from "./fault.js";

const EXTENSIONS = ["", ".ts", ".tsx", ".js", ".jsx", ".mts", ".mjs", ".json"];
const INDEX_FILES = ["/index.ts", "/index.tsx", "/index.js", "/index.jsx"];
/** Extensions of source files, by the extension in an import. In TypeScript, an import may name the compiled file. */
const SOURCE_EXTENSIONS: Record<string, readonly string[]> = {
  ".js": [".ts", ".tsx"],
  ".jsx": [".tsx"],
  ".mjs": [".mts"],
};

function findStringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}

/** Returns the index after the comment that begins at `start`; `start` itself if there is no comment. */
function findCommentEnd(text: string, start: number): number {
  const isLineComment = text.startsWith("//", start);
  if (!isLineComment && !text.startsWith("/*", start)) return start;
  const commentEnd = text.indexOf(isLineComment ? "\n" : "*/", start + 2);
  if (commentEnd === -1) return text.length;
  return isLineComment ? commentEnd : commentEnd + 2;
}

/** Removes comments and trailing commas from a tsconfig.json for JSON.parse. Reads each character only once. */
function toPlainJson(text: string): string {
  const tokens: string[] = [];
  /** Index in `tokens` of the last comma, if only white space and comments have followed it; otherwise -1. */
  let lastCommaIndex = -1;
  for (let at = 0; at < text.length; ) {
    const afterComment = findCommentEnd(text, at);
    if (afterComment > at) {
      at = afterComment;
      continue;
    }
    const character = text[at]!;
    const tokenEnd = character === '"' ? findStringEnd(text, at) : at + 1;
    if (lastCommaIndex !== -1 && (character === "]" || character === "}")) tokens[lastCommaIndex] = "";
    if (character === ",") lastCommaIndex = tokens.length;
    else if (character.trim() !== "") lastCommaIndex = -1;
    tokens.push(text.slice(at, tokenEnd));
    at = tokenEnd;
  }
  return tokens.join("");
}

/** Parses the settings of a tsconfig.json that affect imports. @throws PackageError if it is not valid JSON */
export function parseTsconfig(text: string | undefined): { baseUrl: string; paths: [string, string[]][] } {
  const none = { baseUrl: "", paths: [] };
  if (text === undefined) return none;
  let options: { baseUrl?: unknown; paths?: unknown };
  try {
    options = (JSON.parse(toPlainJson(text)) as { compilerOptions?: object }).compilerOptions ?? {};
  } catch {
    throw new PackageError("tsconfig.json is not valid JSON");
  }
  const { baseUrl, paths } = options;
  const input = typeof paths === "object" && paths !== null ? Object.entries(paths) : [];
  const lists = input.map(([pattern, targets]): [string, string[]] => [
    pattern,
    (Array.isArray(targets) ? targets : []).filter((target) => typeof target === "string"),
  ]);
  // Sorts the longest prefix first: as in TypeScript, the longest prefix that matches an import applies.
  lists.sort(([a], [b]) => b.split("*")[0]!.length - a.split("*")[0]!.length);
  return { baseUrl: typeof baseUrl === "string" ? baseUrl : "", paths: lists };
}

type HasFile = (path: string) => boolean;

/** Finds the file for the path in an import, which may lack the extension or name the compiled file. Returns null if there is none. */
export function findImportedFile(hasFile: HasFile, path: string): string | null {
  for (const suffix of [...EXTENSIONS, ...INDEX_FILES]) if (hasFile(path + suffix)) return path + suffix;
  const extension = extname(path);
  const stem = path.slice(0, path.length - extension.length);
  return SOURCE_EXTENSIONS[extension]?.map((sourceExtension) => stem + sourceExtension).find(hasFile) ?? null;
}

export const isRelativeSpecifier = (specifier: string): boolean =>
  specifier.startsWith("./") || specifier.startsWith("../") || specifier === "." || specifier === "..";

export const isOutsideFolder = (path: string): boolean => path === ".." || path.startsWith("../");

/** Modules that the service provides. A file of the project, such as svc.json, never replaces them, even if `baseUrl` is set. */
const PROVIDED_MODULE_NAMES = ["svc", "svc/test"];

/** Returns the file that the tsconfig.json assigns to an import, relative to the tsconfig's folder; null if there is none. */
export function findImportedFileByAlias(hasFile: HasFile, tsconfig: string | undefined, path: string): string | null {
  const { baseUrl, paths } = parseTsconfig(tsconfig);
  if (PROVIDED_MODULE_NAMES.includes(path)) return null;
  for (const [pattern, targets] of paths) {
    const [before = "", after] = pattern.split("*");
    const matches = after === undefined ? path === pattern : path.startsWith(before) && path.endsWith(after);
    if (!matches) continue;
    const wildcardText = after === undefined ? "" : path.slice(before.length, path.length - after.length);
    for (const target of targets) {
      const targetPath = target.replace("*", () => wildcardText);
      const path = findImportedFile(hasFile, join(baseUrl, targetPath));
      if (path) return path;
    }
  }
  return baseUrl === "" ? null : findImportedFile(hasFile, join(baseUrl, path));
}
