/** `source` of an action: the files that its author writes. Validates their form and paths. */
import type { ActionSource, SourceLanguage } from "../data/action-types.js";
import { describeValue, isObject, unstorableCharacterIndex } from "./described.js";
import { flatShape, type Shape } from "./unknown-fields.js";

export const SOURCE_LANGUAGES: readonly SourceLanguage[] = ["typescript", "javascript"];
export const SOURCE_FILES_MAX = 200;
/** Maximum size of a source, so that an action with its source fits into a request. */
export const SOURCE_MAX_BYTES = 900 * 1024;
const PATH_MAX_CHARACTERS = 255;
const SEGMENTS_MAX = 16;
const PATH_SEGMENT = /^[\w@$+-][\w@$+. -]{0,99}$/;

/** File that defines `execute`, by language. */
export const ENTRY_FILES: Record<SourceLanguage, readonly string[]> = {
  typescript: ["action.ts", "action.tsx"],
  javascript: ["action.js", "action.jsx"],
};

/** Allowed fields of a source. Names in `files` are data. The service sets `map`. */
export const SOURCE_SHAPE: Shape = flatShape(["language", "files"], ["map"]);

/** True for a relative path with forward slashes, and without `.` and `..`. */
export function isSourcePath(path: string): boolean {
  const segments = path.split("/");
  const isValidPath = path.length <= PATH_MAX_CHARACTERS && segments.length <= SEGMENTS_MAX;
  return (
    isValidPath &&
    segments.every((segment) => PATH_SEGMENT.test(segment) && segment !== "__proto__" && segment !== "node_modules")
  );
}

/** Describes what is wrong with the value; null if it is valid. */
export function sourceFault(value: unknown): string | null {
  if (value === null) return null;
  if (!isObject(value)) return `source must be {language, files} (got ${describeValue(value)})`;
  const { language, files } = value;
  if (!SOURCE_LANGUAGES.includes(language as SourceLanguage))
    return `source.language must be "typescript" or "javascript" (got ${describeValue(language)})`;
  if (!isObject(files)) return `source.files must be an object of texts by path (got ${describeValue(files)})`;
  const paths = Object.keys(files);
  if (paths.length > SOURCE_FILES_MAX)
    return `source.files must have at most ${SOURCE_FILES_MAX} files (got ${paths.length})`;
  return filesFault(files) ?? entryFault(language as SourceLanguage, paths);
}

function filesFault(files: Record<string, unknown>): string | null {
  let bytes = 0;
  for (const [path, text] of Object.entries(files)) {
    if (!isSourcePath(path)) {
      return `source.files has a path that is not allowed (got ${describeValue(path)}); use relative paths such as lib/dates.ts`;
    }
    if (typeof text !== "string")
      return `source.files[${JSON.stringify(path)}] must be a text (got ${describeValue(text)})`;
    if (unstorableCharacterIndex(text) >= 0)
      return `source.files[${JSON.stringify(path)}] must not have U+0000 or half of a surrogate pair`;
    bytes += Buffer.byteLength(path) + Buffer.byteLength(text);
  }
  return bytes <= SOURCE_MAX_BYTES ? null : `source.files must be at most ${SOURCE_MAX_BYTES} bytes (got ${bytes})`;
}

function entryFault(language: SourceLanguage, paths: readonly string[]): string | null {
  const [first] = ENTRY_FILES[language];
  return paths.some((path) => ENTRY_FILES[language].includes(path)) ? null : `source.files must have ${first}`;
}

/** Returns the stored form of a value that `sourceFault` accepts, with files in the order of their paths. */
export function storedSource(value: unknown): ActionSource | null {
  if (value === null || value === undefined) return null;
  const { language, files, map } = value as ActionSource;
  const sorted = Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1));
  return { language, files: Object.fromEntries(sorted), ...(map !== undefined && { map }) };
}

/** Returns the source as callers see it, without its source map. */
export const shownSource = ({ language, files }: ActionSource): ActionSource => ({ language, files });
