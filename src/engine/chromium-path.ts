/** Where a Chromium is on this machine. Starts none, installs none; runs on any Node, because the set-up asks too. */
import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export interface ChromiumPlaces {
  /** Folders of programs, the first one wins. */
  programs: string[];
  /** Puppeteer's caches: `<cache>/<browser>/<platform>-<version>/<folder>/<browser>`. */
  caches: string[];
}

/** Puppeteer's cache for all accounts: the browser runs unprivileged, and root's home is closed to it. */
export const PUBLIC_BROWSER_CACHE = "/var/cache/svc-app-actions/puppeteer";

/** In this order: the headless shell starts four times as fast as the whole browser. */
const PROGRAMS = ["chromium-headless-shell", "chromium", "google-chrome", "google-chrome-stable"];
const CACHED = ["chrome-headless-shell", "chrome"];
const MAC_PROGRAMS = ["/Applications/Google Chrome.app/Contents/MacOS", "/Applications/Chromium.app/Contents/MacOS"];
const MAC_NAMES = ["Google Chrome", "Chromium", "Google Chrome for Testing"];

/** `cacheDir` is the value of PUPPETEER_CACHE_DIR. */
export function usualPlaces(cacheDir: string | null = null): ChromiumPlaces {
  return {
    programs: ["/usr/local/bin", "/usr/bin", "/opt/google/chrome", "/snap/bin", ...MAC_PROGRAMS],
    caches: [cacheDir ?? join(homedir(), ".cache/puppeteer"), PUBLIC_BROWSER_CACHE],
  };
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** `linux-156.0.7012.3` before `linux-99.0.1.2`: by number, not by letter. */
function newestFirst(a: string, b: string): number {
  return b.localeCompare(a, "en", { numeric: true });
}

function inCache(cache: string): string[] {
  return CACHED.flatMap((browser) =>
    entriesOf(join(cache, browser))
      .sort(newestFirst)
      .flatMap((version) => {
        const folder = join(cache, browser, version);
        const app = "Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing";
        return entriesOf(folder).flatMap((name) => [join(folder, name, browser), join(folder, name, app)]);
      }),
  );
}

/**
 * The Chromium to use, or null. `explicit` (CHROME_PATH) is taken or nothing is: a wrong one never falls back in silence.
 */
export function findChromium(explicit: string | null, places: ChromiumPlaces = usualPlaces()): string | null {
  if (explicit !== null) return isProgram(explicit) ? explicit : null;
  const installed = [...PROGRAMS, ...MAC_NAMES].flatMap((name) => places.programs.map((folder) => join(folder, name)));
  return [...installed, ...places.caches.flatMap(inCache)].find(isProgram) ?? null;
}
