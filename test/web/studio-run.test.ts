/** Tests a run in Studio: thousands of console lines, a result of megabytes, a cancellation, and a single slot. */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { type StudioPage, studioPage } from "./studio-page.js";

const RUN_RATE_LIMIT = 20;
/** Time limit for a run. The page and other tests leave little processor time to runs on a machine without a graphics card. */
const RUN_TIMEOUT_MS = 120_000;

/** Settings of the service. The run with many lines lasts until it is cancelled, even on a slow machine. */
const ENVIRONMENT = { RATE_LIMIT_RUN: String(RUN_RATE_LIMIT), SERVER_TIMEOUT_MS: "3600000" };

const ACTION_CODES = {
  lines: "for (let at = 0; at < 10_500; at += 1) console.log(`line ${at}`); await new Promise(() => {});",
  small: "return 1;",
  large: 'return Array.from({ length: 30_000 }, (_, at) => ({ at, text: "x".repeat(60) }));',
};

describe("a run in Studio", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let studio: StudioPage;
  const ids: Record<string, number> = {};

  before(async () => {
    [service, browser] = await Promise.all([startTestService(ENVIRONMENT), launchChromium()]);
    for (const [name, body] of Object.entries(ACTION_CODES)) {
      const action = { name, active: true, triggers: [{ trigger: "manual" }] };
      const code = `async function execute() { ${body} }`;
      const path = `/v3/apps/${service.appId}/actions`;
      ids[name] = (await service.rest("POST", path, { body: { ...action, code } })).body.action.id;
    }
    page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    watch = watchPage(page, service.url);
    studio = studioPage(page);
    await page.goto(`${service.url}/studio#/${service.appId}/actions/${ids["lines"]}`);
    await studio.signIn(service.tokens.editor);
    await page.waitForSelector(".code-editor .view-line");
  });

  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  const isInView = (selector: string) =>
    page.evaluate(`(() => {
      const { top, bottom } = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight;
    })()`);
  const waitForOutcome = (state: string) =>
    page.waitForSelector(`.outcome[data-state="${state}"]`, { timeout: RUN_TIMEOUT_MS });

  it("shows the stored lines while it executes, the last one visible, few of them drawn", async () => {
    await studio.run();
    await page.waitForSelector('.console[aria-label="Console, 10001 lines"]');
    await page.waitForFunction('/console is full/.test(document.querySelector(".console li:last-child")?.textContent)');
    expect(await page.$$eval(".console li", (lines) => lines.length)).to.be.lessThan(60);
    expect(await isInView(".console li:last-child")).to.equal(true);
    expect(await isInView(".payload .row button")).to.equal(true);
  });

  it("stays at the person's scroll position, and is cancelled with a button that is always visible", async () => {
    await page.hover(".console");
    await page.mouse.wheel({ deltaY: -1_000_000 });
    await page.waitForFunction('/line 0$/.test(document.querySelector(".console li").textContent)');
    await studio.button("Cancel the run");
    await waitForOutcome("cancelled");
    expect(await studio.textOf(".outcome .state")).to.equal("Cancelled");
  });

  it("takes one slot of the app's limit", async () => {
    const other = `/v3/apps/${service.appId}/actions/${ids["small"]}/run`;
    const { headers } = await service.rest("POST", other);
    expect(headers.get("ratelimit-remaining")).to.equal(String(RUN_RATE_LIMIT - 2));
  });

  it("shows the beginning of megabytes, and saves them completely", async () => {
    await page.goto(`${service.url}/studio#/${service.appId}/actions/${ids["large"]}`);
    await page.waitForSelector(studio.withText("h2", "large"));
    await studio.run();
    await waitForOutcome("completed");
    expect(await studio.textOf(".result-view .hint")).to.match(/The beginning of \d\.\d MB/);
    expect(await page.$eval(".result", (result) => result.textContent!.length)).to.be.lessThan(30_000);
    // Reads the file that the person would save when the page creates it.
    const saved = page.evaluate(`new Promise((resolve) => {
      const { createObjectURL } = URL;
      URL.createObjectURL = (file) => {
        resolve(file.text().then((text) => JSON.parse(text).length));
        return createObjectURL.call(URL, file);
      };
    })`);
    await studio.button("Download");
    expect(await saved).to.equal(30_000);
  });

  it("does everything without an error in the page", () => {
    expect(watch.errors).to.deep.equal([]);
  });
});
