/** Starts a real Chromium for tests of the service's pages, and records the errors of a page. */
import { type Browser, launch, type Page } from "puppeteer";
import { readConfig } from "../../src/config.js";
import { defaultChromiumPaths, findChromium } from "../../src/engine/chromium-path.mjs";
import { runsAll } from "../harness/samples.js";
import { shareProcess, unshareProcess } from "../harness/shared-processes.js";
import { slowPages } from "./adverse-pages.js";

/** Time limit for a page. Puppeteer's default is 30 s, which a page sometimes exceeds on a busy machine. */
const PAGE_TIMEOUT_MS = 120_000;

/** Starts a separate Chromium. Its first profile is not incognito: an incognito profile cannot subscribe to push messages. */
export async function launchOwnChromium(): Promise<Browser> {
  const executablePath = findChromium(readConfig().chromePath, defaultChromiumPaths(null));
  if (!executablePath) throw new Error("no Chromium found: set CHROME_PATH");
  // Chromium refuses to run its sandbox as root. These pages are trusted, so the tests turn the sandbox off.
  const rootArguments = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const browser = await launch({
    ...{ executablePath, pipe: true, protocolTimeout: 2 * PAGE_TIMEOUT_MS },
    args: ["--disable-background-networking", "--no-first-run", ...rootArguments],
  });
  slowPages(browser);
  browser.on("targetcreated", async (target) => {
    if (target.type() !== "page") return;
    const page = await target.page().catch(() => null);
    page?.setDefaultTimeout(PAGE_TIMEOUT_MS);
  });
  return browser;
}

/** Chromium that all test files of this process share. */
let shared: Promise<Browser> | null = null;

async function launchShared(): Promise<Browser> {
  const browser = await launchOwnChromium();
  const { pid } = browser.process()!;
  shareProcess(pid!, () => browser.close());
  browser.once("disconnected", () => {
    shared = null;
    unshareProcess(pid!);
  });
  return browser;
}

/** Returns a view of the browser with a profile of its own. `close` closes its profiles only. */
async function profileOf(browser: Browser): Promise<Browser> {
  const first = await browser.createBrowserContext();
  const profiles = [first];
  const own: Partial<Browser> = {
    newPage: (options) => first.newPage(options),
    defaultBrowserContext: () => first,
    setCookie: (...cookies) => first.setCookie(...cookies),
    createBrowserContext: async (options) => {
      const profile = await browser.createBrowserContext(options);
      profiles.push(profile);
      return profile;
    },
    close: async () => {
      await Promise.all(profiles.filter(({ closed }) => !closed).map((profile) => profile.close()));
    },
  };
  return new Proxy(browser, {
    get(_browser, name) {
      const value = name in own ? own[name as keyof Browser] : Reflect.get(browser, name, browser);
      return typeof value === "function" ? value.bind(browser) : value;
    },
  });
}

/**
 * Opens a browser with a profile of its own. In `npm test`, the files of this process share one Chromium, and their profiles are incognito:
 * they block third-party cookies and have a smaller storage quota. In the long tests, each file has the first profile of its own Chromium.
 */
export async function launchChromium(): Promise<Browser> {
  if (runsAll()) return launchOwnChromium();
  shared ??= launchShared().catch((error) => {
    shared = null;
    throw error;
  });
  return profileOf(await shared);
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

/** Records the URLs of the page's sockets on which GraphQL has accepted a connection. */
export async function watchSockets(page: Page): Promise<string[]> {
  const accepted: string[] = [];
  const urls = new Map<string, string>();
  const session = await page.createCDPSession();
  session.on("Network.webSocketCreated", ({ requestId, url }) => urls.set(requestId, url));
  session.on("Network.webSocketFrameReceived", ({ requestId, response }) => {
    if (response.payloadData.includes("connection_ack")) accepted.push(urls.get(requestId)!);
  });
  await session.send("Network.enable");
  return accepted;
}
