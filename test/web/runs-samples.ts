import type { Page } from "puppeteer";
import { deleteStoredRuns, insertSearchedRuns } from "../harness/searched-runs.js";
import type { TestService } from "../harness/service.js";

export const BOOKING_CODE = `async function execute(context) {
  console.log("seen", context.payload.seat);
  if (context.payload.fail) {
    throw new RangeError("seat " + context.payload.seat + " is taken");
  }
  return { booked: context.payload.seat };
}`;
export const ENDLESS_CODE = "async function execute() { console.log('begun'); await new Promise(() => {}) }";

/** ID that no action has. */
const ABSENT_ACTION = 999_999;

export const listedLinks = (page: Page): Promise<string[]> =>
  page.$$eval(".runs-box .run-link", (all) => all.map((element) => element.getAttribute("href")!.split("?")[0]!));

/** Waits until the chart shows these numbers, and the text above the list states the same number of runs (no text for 0). */
export function waitForChart(page: Page, runs: number, failed: number) {
  const label = `: ${runs} ${runs === 1 ? "run" : "runs"}, ${failed} failed`;
  const count = runs === 0 ? "" : `${runs} found`;
  return page.waitForFunction(
    `document.querySelector(".runs-chart canvas") && document.querySelector(".runs-chart").getAttribute("aria-label").endsWith(${JSON.stringify(label)}) &&
      document.querySelector(".runs-count [role=status]")?.textContent === ${JSON.stringify(count)}`,
  );
}

/** Checks the chart with filters that match no run, with an invalid filter (which shows one error), and with more runs than it counts. */
export async function checkCharts(
  service: TestService,
  page: Page,
  open: (fragment: string) => Promise<unknown>,
): Promise<void> {
  for (const filter of ["trigger=log", "copy=production", "person=999", "version=1", "state=queued"]) {
    await open(`runs?${filter}`);
    await waitForChart(page, 0, 0);
  }
  await open("runs?search=a");
  await page.waitForFunction(
    `!document.querySelector(".runs-chart") && document.querySelectorAll(".runs-page .fault").length === 1`,
  );
  await insertSearchedRuns(service, { actionId: ABSENT_ACTION, word: "tirana", count: 1001 });
  await open("runs?search=tirana");
  await page.waitForFunction(
    '/partial: runs before .* are not counted/.test(document.querySelector(".runs-chart figcaption")?.textContent)',
  );
  await deleteStoredRuns(service, ABSENT_ACTION);
}

/** Waits until the list has exactly these links in this order. Ignores cancelled runs. */
export function waitForLinks(page: Page, links: readonly string[]) {
  const shown =
    '[...document.querySelectorAll(".runs-box .run-row:not(.cancelled) .run-link")].map((one) => one.getAttribute("href").split("?")[0])';
  return page.waitForFunction(`JSON.stringify(${shown}) === ${JSON.stringify(JSON.stringify(links))}`);
}
