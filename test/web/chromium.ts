/** Starts a real Chromium for tests of the service's pages. Records a page's errors, WebSockets and requests to other origins. */
import { type Browser, launch, type Page } from "puppeteer";
import { readConfig } from "../../src/config.js";
import { findChromium, getDefaultChromiumPaths } from "../../src/engine/chromium-path.mjs";
import { runsAll } from "../harness/samples.js";
import { shareProcess, unshareProcess } from "../harness/shared-processes.js";
import { slowPages } from "./adverse-pages.js";

/** Time limit for each wait of a page, in milliseconds. A page sometimes exceeds Puppeteer's default of 30 s on a busy machine. */
const PAGE_TIMEOUT_MS = 120_000;

/** Starts another Chromium. Its first profile is not incognito, because an incognito profile cannot subscribe to push messages. */
export async function launchOwnChromium(): Promise<Browser> {
  const executablePath = findChromium(readConfig().chromePath, getDefaultChromiumPaths(null));
  if (!executablePath) throw new Error("no Chromium found: set CHROME_PATH");
  // Chromium cannot run its sandbox as root. The tests turn the sandbox off, because they open only trusted pages.
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

/** Creates a profile in the shared browser. Returns a `Browser` that uses this profile, and whose `close` keeps all other profiles open. */
async function openProfile(browser: Browser): Promise<Browser> {
  const first = await browser.createBrowserContext();
  const profiles = [first];
  const profileBrowser: Partial<Browser> = {
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
      const value =
        name in profileBrowser ? profileBrowser[name as keyof Browser] : Reflect.get(browser, name, browser);
      return typeof value === "function" ? value.bind(browser) : value;
    },
  });
}

/**
 * Opens a browser with its own profile. In `npm test`, the test files of a process share one Chromium. Their profiles are incognito: these
 * block third-party cookies and have a smaller storage quota. In the long tests, each file starts its own Chromium and uses its first
 * profile.
 */
export async function launchChromium(): Promise<Browser> {
  if (runsAll()) return launchOwnChromium();
  shared ??= launchShared().catch((error) => {
    shared = null;
    throw error;
  });
  return openProfile(await shared);
}

/** Faults of a page. Both lists are empty if the page has no fault. */
export interface PageWatch {
  /** URLs of other origins that the page has requested, except `data:` and `blob:` URLs. */
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

/** Returns a list to which each WebSocket of the page adds its URL when GraphQL has accepted its connection. */
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
