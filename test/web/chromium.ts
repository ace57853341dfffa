/** Starts a real Chromium for tests of the service's pages, and records the errors of a page. */
import { type Browser, launch, type Page } from "puppeteer";
import { readConfig } from "../../src/config.js";
import { defaultChromiumPaths, findChromium } from "../../src/engine/chromium-path.js";

/** Time limit for a page. Puppeteer's default is 30 s, which a page sometimes exceeds on a busy machine. */
const PAGE_TIMEOUT_MS = 120_000;

export async function launchChromium(): Promise<Browser> {
  const executablePath = findChromium(readConfig().chromePath, defaultChromiumPaths(null));
  if (!executablePath) throw new Error("no Chromium found: set CHROME_PATH");
  // Chromium refuses to run its sandbox as root. These pages are trusted, so the tests turn the sandbox off.
  const rootArguments = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const browser = await launch({
    ...{ executablePath, pipe: true, protocolTimeout: 2 * PAGE_TIMEOUT_MS },
    args: ["--disable-background-networking", "--no-first-run", ...rootArguments],
  });
  browser.on("targetcreated", async (target) => {
    if (target.type() !== "page") return;
    const page = await target.page().catch(() => null);
    page?.setDefaultTimeout(PAGE_TIMEOUT_MS);
  });
  return browser;
}

/** Faults of a page. Tests expect that both lists are empty. */
export interface PageWatch {
  /** URLs outside of the page's origin that the page has requested. */
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
