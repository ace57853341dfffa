/** Tests a search in Studio's list of runs. Only the first page has a match. The older pages are empty, and their number is unlimited. */
import { expect } from "chai";
import type { HTTPRequest, Page } from "puppeteer";
import { until } from "../harness/until.js";
import type { StudioPage } from "./studio-page.js";

function parseFindRuns(request: HTTPRequest): { before: number | null } | null {
  const body = request.postData() ?? "";
  const { query = "", variables } = body.startsWith("{") ? JSON.parse(body) : {};
  return query.includes("query FindRuns(") ? variables : null;
}

/** Answers a read of runs. The first page has the service's runs. All further pages are empty, and another page follows each page. */
async function answerWithEndlessPages(page: Page, request: HTTPRequest, before: number | null): Promise<void> {
  // An intercepted request does not list its cookies.
  const cookies = await page.browserContext().cookies();
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  const headers = { ...request.headers(), cookie };
  const response = await fetch(request.url(), { method: "POST", headers, body: request.postData()! });
  const body = JSON.parse(await response.text());
  body.data.found.pagination.nextBefore = (before ?? 1_000_000) - 100;
  if (before !== null) body.data.found.runs = [];
  await request.respond({ contentType: "application/json", body: JSON.stringify(body) });
}

/** Checks that a search reads ten pages without a match, and ten more for each click. @param open opens a search that finds a run */
export async function checkEndlessSearch(page: Page, studio: StudioPage, open: () => Promise<unknown>): Promise<void> {
  let pageCount = 0;
  const onRequest = (request: HTTPRequest) => {
    const variables = parseFindRuns(request);
    if (variables === null) return void request.continue();
    pageCount += 1;
    void answerWithEndlessPages(page, request, variables.before);
  };
  const waitForPause = () => page.waitForSelector("::-p-text(Look through older runs)");
  page.on("request", onRequest);
  await page.setRequestInterception(true);
  await open();
  await waitForPause();
  expect(pageCount).to.equal(11);
  await studio.button("Look through older runs");
  await until(() => pageCount === 21);
  await waitForPause();
  expect(pageCount).to.equal(21);
  page.off("request", onRequest);
  await page.setRequestInterception(false);
}
