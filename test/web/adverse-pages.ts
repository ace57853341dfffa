/**
 * Slows the pages of all tests if ADVERSE_PAGES is set: their processor, each response and each message of a WebSocket. The value is a
 * number that seeds the random delays.
 */
import type { Browser, BrowserContext } from "puppeteer";

const SLOWDOWN = 6;
const DELAY_MAX_MS = 400;

/** Script that delays responses and messages. It must run before the scripts of the page. */
const delayScript = (seed: number) => `{
  const { fetch, setTimeout } = globalThis;
  let state = ${seed};
  const delay = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return new Promise((end) => setTimeout(end, state % ${DELAY_MAX_MS}));
  };
  globalThis.fetch = async (...given) => {
    const response = await fetch(...given);
    await delay();
    return response;
  };
  // Each listener runs after the listener of the socket's previous event, because delayed events must keep their order.
  const lastEvents = new WeakMap();
  for (const name of ["onmessage", "onclose"]) {
    const property = Object.getOwnPropertyDescriptor(WebSocket.prototype, name);
    const set = function (listener) {
      property.set.call(this, listener && ((event) => {
        const last = lastEvents.get(this) ?? Promise.resolve();
        lastEvents.set(this, last.then(delay).then(() => listener.call(this, event)));
      }));
    };
    Object.defineProperty(WebSocket.prototype, name, { ...property, set });
  }
}`;

const slowedPages = new WeakSet<object>();

export function slowPages(browser: Browser): void {
  const seed = Number(process.env["ADVERSE_PAGES"] ?? "");
  const contexts = Object.getPrototypeOf(browser.defaultBrowserContext()) as Pick<BrowserContext, "newPage">;
  if (!seed || slowedPages.has(contexts)) return;
  slowedPages.add(contexts);
  const { newPage } = contexts;
  contexts.newPage = async function (this: BrowserContext, ...given) {
    const page = await newPage.apply(this, given);
    await page.evaluateOnNewDocument(delayScript(seed));
    await page.emulateCPUThrottling(SLOWDOWN);
    return page;
  };
}
