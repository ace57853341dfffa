/** A real Chromium for tests of our own pages. */
import { type Browser, launch, type Page } from "puppeteer";
import { readConfig } from "../../src/config.js";
import { findChromium, usualPaths } from "../../src/engine/chromium-path.js";

/** Puppeteer gives up after 30 s, which a page needs on a busy machine now and then. */
const WAIT_LIMIT_MS = 120_000;

export async function launchChromium(): Promise<Browser> {
  const executablePath = findChromium(readConfig().chromePath, usualPaths(null));
  if (!executablePath) throw new Error("no Chromium found: set CHROME_PATH");
  // Chromium refuses its sandbox as root; these pages are trusted, so a test may run without it.
  const asRoot = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const browser = await launch({
    ...{ executablePath, pipe: true, protocolTimeout: 2 * WAIT_LIMIT_MS },
    args: ["--disable-background-networking", "--no-first-run", ...asRoot],
  });
  browser.on("targetcreated", async (target) => {
    if (target.type() !== "page") return;
    const page = await target.page().catch(() => null);
    page?.setDefaultTimeout(WAIT_LIMIT_MS);
  });
  return browser;
}

/** Observations of a page that tests must rule out. */
export interface PageWatch {
  /** Requested URLs outside the page's origin. */
  foreign: string[];
  /** Uncaught errors, console errors and violations of the content security policy. */
  errors: string[];
}

export function watchPage(page: Page, origin: string): PageWatch {
  const watch: PageWatch = { foreign: [], errors: [] };
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith("data:") && !url.startsWith("blob:")) watch.foreign.push(url);
  });
  page.on("pageerror", (error) => watch.errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") watch.errors.push(message.text());
  });
  return watch;
}
