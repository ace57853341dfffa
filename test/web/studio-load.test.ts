/** What Studio's first screens weigh, from the built files and from what a browser asks for. */

import { readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { VIEW_NAMES } from "../../src/web/studio/shell/views.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium } from "./chromium.js";
import { studioPage } from "./studio-page.js";

const BUILT = fileURLToPath(new URL("../../web", import.meta.url));
const FIRST_LOAD_MAX_BYTES = 250 * 1024;

describe("The first load of Studio", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;

  before(async () => {
    [service, browser] = await Promise.all([startTestService({ ROLES: "api" }), launchChromium()]);
    page = await browser.newPage();
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  /** Compressed bytes of all files that the page has asked for. */
  const loaded = () =>
    page.evaluate(`performance.getEntriesByType("resource").filter(({ name }) => name.includes("/assets/"))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`) as Promise<number>;

  it("takes less than 250 KB compressed", () => {
    const { script, needs, next, style } = JSON.parse(readFileSync(`${BUILT}/pages.json`, "utf8")).studio;
    const bytes = [script, ...needs, ...next, style].map((file) => statSync(`${BUILT}${file}.gz`).size);
    expect(bytes.reduce((sum, one) => sum + one)).to.be.within(1, FIRST_LOAD_MAX_BYTES);
  });

  it("takes less than that for all pages together, until an editor is shown", async () => {
    await page.goto(`${service.url}/studio`);
    const studio = studioPage(page);
    await studio.signIn(service.tokens.editor);
    for (const view of VIEW_NAMES) {
      await studio.open(`${service.appId}/${view}`);
      await page.waitForFunction('!/^(Loading…)?$/.test(document.querySelector("#content").textContent)');
    }
    expect(await loaded()).to.be.within(1, FIRST_LOAD_MAX_BYTES);
    await studio.open(`${service.appId}/actions/new`);
    await page.waitForSelector(".code-editor .view-line");
    expect(await loaded()).to.be.above(FIRST_LOAD_MAX_BYTES);
  });
});
