// @ts-check
/**
 * Finds the path of Chromium on this machine. It is JavaScript, because the set-up uses this module before the build and
 * on older versions of Node.
 */
import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/**
 * @typedef {object} ChromiumPaths
 * @property {string[]} programs folders that may contain Chromium, in order of preference
 * @property {string[]} caches folders of Puppeteer's download caches. Their layout is
 *   `<cache>/<browser>/<platform>-<version>/<folder>/<browser>`.
 */

/**
 * Puppeteer's download cache that all accounts can read. It is needed because the browser runs unprivileged and cannot
 * open root's home folder.
 */
export const PUBLIC_BROWSER_CACHE = "/var/cache/svc-app-actions/puppeteer";

/** Names of Chromium's programs in order of preference. The headless shell starts four times as fast as the complete browser. */
const CHROMIUM_PROGRAMS = ["chromium-headless-shell", "chromium", "google-chrome", "google-chrome-stable"];
const CACHED_PROGRAMS = ["chrome-headless-shell", "chrome"];
const MAC_PROGRAM_FOLDERS = [
  "/Applications/Google Chrome.app/Contents/MacOS",
  "/Applications/Chromium.app/Contents/MacOS",
];
const MAC_PROGRAM_NAMES = ["Google Chrome", "Chromium", "Google Chrome for Testing"];

/**
 * Returns the folders in which Chromium is usually installed.
 * @param {string | null} cacheDir value of PUPPETEER_CACHE_DIR; null if it is not set
 * @returns {ChromiumPaths}
 */
export function getDefaultChromiumPaths(cacheDir = null) {
  return {
    programs: ["/usr/local/bin", "/usr/bin", "/opt/google/chrome", "/snap/bin", ...MAC_PROGRAM_FOLDERS],
    caches: [cacheDir ?? join(homedir(), ".cache/puppeteer"), PUBLIC_BROWSER_CACHE],
  };
}

/** @param {string} path */
function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** @param {string} folder */
function listFolder(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/**
 * Compares two version folders, so that the newest comes first: `linux-156.0.7012.3` before `linux-99.0.1.2`.
 * @param {string} a
 * @param {string} b
 */
function compareNewestFirst(a, b) {
  return b.localeCompare(a, "en", { numeric: true });
}

/** @param {string} cache */
function findCachedPrograms(cache) {
  return CACHED_PROGRAMS.flatMap((browser) =>
    listFolder(join(cache, browser))
      .sort(compareNewestFirst)
      .flatMap((version) => {
        const folder = join(cache, browser, version);
        const app = "Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing";
        return listFolder(folder).flatMap((name) => [join(folder, name, browser), join(folder, name, app)]);
      }),
  );
}

/**
 * Returns the path of the Chromium program; null if there is none.
 * @param {string | null} explicit value of CHROME_PATH; if it is set, only this path is tried
 * @param {ChromiumPaths} paths
 * @returns {string | null}
 */
export function findChromium(explicit, paths = getDefaultChromiumPaths()) {
  if (explicit !== null) return isProgram(explicit) ? explicit : null;
  const installed = [...CHROMIUM_PROGRAMS, ...MAC_PROGRAM_NAMES].flatMap((name) =>
    paths.programs.map((folder) => join(folder, name)),
  );
  return [...installed, ...paths.caches.flatMap(findCachedPrograms)].find(isProgram) ?? null;
}
