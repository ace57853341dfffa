/** Converts between names in a manifest, which have forward slashes on every system, and paths on this system's disk. */
import nodePath, { type PlatformPath } from "node:path";

/** File names that Windows reserves for devices, with any extension and in any case. */
const DEVICE_NAME = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

const toHex = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

/** Encodes a name as a file name that is valid on every system. `decodeURIComponent` restores the name. */
export function fileNameOf(name: string): string {
  const encoded = encodeURIComponent(name).replace(/[.*]/g, toHex);
  return DEVICE_NAME.test(encoded) ? toHex(encoded[0]!) + encoded.slice(1) : encoded;
}

/**
 * Returns the path of a file from the project's root, with forward slashes; null if the file is not below the root.
 * @param system path functions of the system to which root and file belong
 */
export function projectPathOf(root: string, file: string, system: PlatformPath = nodePath): string | null {
  const path = system.relative(root, file);
  const isOutside = path === "" || path === ".." || path.startsWith(`..${system.sep}`) || system.isAbsolute(path);
  return isOutside ? null : path.split(system.sep).join("/");
}

/** True for a path that names the same file on every system: Windows gives backslashes and colons a meaning. */
export const isSystemNeutral = (path: string): boolean => !/[\\:]/.test(path);

/** True if Windows cannot store a file under the path, or stores it under another name. */
export const isInvalidOnWindows = (path: string): boolean =>
  path.split("/").some((segment) => DEVICE_NAME.test(segment) || /[<>:"|?*\\]|[. ]$/.test(segment));
