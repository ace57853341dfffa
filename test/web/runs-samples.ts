/** Actions and helpers for the tests of runs in Studio. */
import type { Page } from "puppeteer";

export const BOOKING_CODE = `async function execute(context) {
  console.log("seen", context.payload.seat);
  if (context.payload.fail) {
    throw new RangeError("seat " + context.payload.seat + " is taken");
  }
  return { booked: context.payload.seat };
}`;
export const ENDLESS_CODE = "async function execute() { console.log('begun'); await new Promise(() => {}) }";

/** Returns the links to runs in the list, without their search parameters. */
export const listedLinks = (page: Page): Promise<string[]> =>
  page.$$eval(".runs-box .run-link", (all) => all.map((one) => one.getAttribute("href")!.split("?")[0]!));

/** Waits until the list has exactly these links in this order. Cancelled runs are ignored. */
export function waitForLinks(page: Page, links: readonly string[]) {
  const shown =
    '[...document.querySelectorAll(".runs-box .run-row:not(.cancelled) .run-link")].map((one) => one.getAttribute("href").split("?")[0])';
  return page.waitForFunction(`JSON.stringify(${shown}) === ${JSON.stringify(JSON.stringify(links))}`);
}
