/** Validates the field `source` of an action: the files from which the service builds the action's code. */

import type { ActionSource, SourceLanguage } from "../data/action-types.js";
import { describeValue, findUnstorableCharacter, isObject } from "./describe-value.js";
import { UNSTORABLE_TEXT_FAULT } from "./fields.js";
import { createFlatShape, type Shape } from "./unknown-fields.js";

export const SOURCE_LANGUAGES: readonly SourceLanguage[] = ["typescript", "javascript"];
export const ACTION_SOURCE_FILES_MAX = 200;
/** Maximum total size in bytes of all paths and files of an action. The whole action must fit into one request. */
export const ACTION_SOURCE_MAX_BYTES = 900 * 1024;
const PATH_MAX_CHARACTERS = 255;
const SEGMENTS_MAX = 16;
const PATH_SEGMENT_PATTERN = /^[\w@$+-][\w@$+. -]{0,99}$/;
const PATH_RULES = `of at most ${PATH_MAX_CHARACTERS} characters and ${SEGMENTS_MAX} segments, in which each name has at most 100 characters, starts with a letter from A to Z, a digit or one of _@$+-, and is not node_modules`;

/** Allowed names of the main file, which defines `execute`, by language. */
export const ENTRY_POINT_FILE_NAMES: Record<SourceLanguage, readonly string[]> = {
  typescript: ["action.ts", "action.tsx"],
  javascript: ["action.js", "action.jsx"],
};

/** Allowed fields of `source`. The names of the fields in `files` are not checked here, because they are paths. */
export const ACTION_SOURCE_SHAPE: Shape = createFlatShape(["language", "files"], ["map"]);

/**
 * True if a file of an action can have this path. The path must be relative, with forward slashes. Its names must not start with a dot, and
 * must not be `node_modules` or `__proto__`.
 */
export function isValidSourcePath(path: string): boolean {
  const segments = path.split("/");
  const isValidPath = path.length <= PATH_MAX_CHARACTERS && segments.length <= SEGMENTS_MAX;
  return (
    isValidPath &&
    segments.every(
      (segment) => PATH_SEGMENT_PATTERN.test(segment) && segment !== "__proto__" && segment !== "node_modules",
    )
  );
}

export function findActionSourceFault(value: unknown): string | null {
  if (value === null) return null;
  if (!isObject(value)) return `source must be an object {language, files} (got ${describeValue(value)})`;
  const { language, files } = value;
  if (!SOURCE_LANGUAGES.includes(language as SourceLanguage))
    return `source.language must be "typescript" or "javascript" (got ${describeValue(language)})`;
  if (!isObject(files))
    return `source.files must be an object with the text of each file by its path (got ${describeValue(files)})`;
  const paths = Object.keys(files);
  if (paths.length > ACTION_SOURCE_FILES_MAX)
    return `source.files must have at most ${ACTION_SOURCE_FILES_MAX} files (got ${paths.length})`;
  return findFilesFault(files) ?? findMissingEntryPointFault(language as SourceLanguage, paths);
}

function findFilesFault(files: Record<string, unknown>): string | null {
  let bytes = 0;
  for (const [path, text] of Object.entries(files)) {
    if (!isValidSourcePath(path)) {
      return `source.files must have relative paths such as lib/dates.ts, ${PATH_RULES} (got ${describeValue(path)})`;
    }
    if (typeof text !== "string")
      return `source.files[${JSON.stringify(path)}] must be a string (got ${describeValue(text)})`;
    if (findUnstorableCharacter(text) >= 0) return `source.files[${JSON.stringify(path)}] ${UNSTORABLE_TEXT_FAULT}`;
    bytes += Buffer.byteLength(path) + Buffer.byteLength(text);
  }
  return bytes <= ACTION_SOURCE_MAX_BYTES
    ? null
    : `source.files must be at most ${ACTION_SOURCE_MAX_BYTES} bytes (got ${bytes})`;
}

function findMissingEntryPointFault(language: SourceLanguage, paths: readonly string[]): string | null {
  const fileNames = ENTRY_POINT_FILE_NAMES[language];
  if (paths.some((path) => fileNames.includes(path))) return null;
  return `source.files must contain the file ${fileNames.join(" or ")}, which defines "execute"`;
}

/** Returns the stored form of a valid `source`, with the files sorted by path. */
export function toStoredActionSource(value: unknown): ActionSource | null {
  if (value === null || value === undefined) return null;
  const { language, files, map } = value as ActionSource;
  const sorted = Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1));
  return { language, files: Object.fromEntries(sorted), ...(map !== undefined && { map }) };
}

/** Returns the source without its source map, which only the service uses. */
export const omitActionSourceMap = ({ language, files }: ActionSource): ActionSource => ({ language, files });
