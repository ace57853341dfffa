/** Converts names in a manifest, which use forward slashes on every system, to paths of this operating system, and back. */
import { createHash } from "node:crypto";
import nodePath, { type PlatformPath } from "node:path";

/** Matches file names that Windows reserves for devices, with any extension and in upper or lower case. */
const WINDOWS_DEVICE_NAME_PATTERN = /^(?:con|prn|aux|nul|conin\$|conout\$|com\d|lpt\d)(?:\.|$)/i;

const toHex = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

/** Maximum length of an encoded file name in characters. Operating systems allow 255 bytes, and the extension needs some of them. */
const ENCODED_NAME_MAX_CHARACTERS = 200;
const HASH_CHARACTERS = 16;

const encodeName = (name: string): string => encodeURIComponent(name).replace(/[.*]/g, toHex);

function shortenName(name: string): string {
  let prefix = "";
  for (const character of name) {
    const extendedPrefix = prefix + encodeName(character);
    if (extendedPrefix.length > ENCODED_NAME_MAX_CHARACTERS - HASH_CHARACTERS - 1) break;
    prefix = extendedPrefix;
  }
  return `${prefix}~${createHash("sha256").update(name).digest("hex").slice(0, HASH_CHARACTERS)}`;
}

/**
 * Encodes a name as a file name that is valid on every operating system. `decodeURIComponent` restores the name, unless it was shortened.
 */
export function encodeFileName(name: string): string {
  const encodedName = encodeName(name);
  const fileName = encodedName.length > ENCODED_NAME_MAX_CHARACTERS ? shortenName(name) : encodedName;
  return WINDOWS_DEVICE_NAME_PATTERN.test(fileName) ? toHex(fileName[0]!) + fileName.slice(1) : fileName;
}

/**
 * Returns a file's path relative to the project's root folder, with forward slashes; null if the file is not below the root.
 * @param system path functions of the operating system from which `root` and `file` come
 */
export function resolveInProject(root: string, file: string, system: PlatformPath = nodePath): string | null {
  const path = system.relative(root, file);
  const isOutside = path === "" || path === ".." || path.startsWith(`..${system.sep}`) || system.isAbsolute(path);
  return isOutside ? null : path.split(system.sep).join("/");
}

/** True if the path names the same file on every operating system: it has no backslash or colon, which are special on Windows. */
export const isPortablePath = (path: string): boolean => !/[\\:]/.test(path);

/** True if Windows cannot store a file under this path, or would store it under another name. */
export const isInvalidOnWindows = (path: string): boolean =>
  path.split("/").some((segment) => WINDOWS_DEVICE_NAME_PATTERN.test(segment) || /[<>:"|?*\\]|[. ]$/.test(segment));

/**
 * Returns two of the file names that differ only in upper and lower case; null if there are none. Windows and macOS
 * treat both names as the same file.
 */
export function findNamesEqualIgnoringCase(files: readonly string[]): [string, string] | null {
  const filesByLowerCaseName = new Map<string, string>();
  for (const file of files) {
    const other = filesByLowerCaseName.get(file.toLowerCase());
    if (other !== undefined) return [other, file];
    filesByLowerCaseName.set(file.toLowerCase(), file);
  }
  return null;
}
