/** Tests long lists in Studio with the real service: search, filters, and scrolling to the end. */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { createLogData } from "../harness/log-entries.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium } from "../web/chromium.js";
import { type StudioPage, studioPage } from "../web/studio-page.js";

const CODE = "async function execute(context) { if (context.payload.fail) throw new Error('as asked'); return 1; }";

describe("Studio with a thousand actions and a long log", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let studio: StudioPage;

  before(async () => {
    [service, browser] = await Promise.all([startTestService(), launchChromium()]);
    const { db, appId } = service;
    const action = { name: "ran", active: true, triggers: [{ trigger: "manual" }], code: CODE };
    await service.rest("POST", `/v3/apps/${appId}/actions`, { body: action });
    await service.rest("POST", `/v3/apps/${appId}/actions/ran/runWithResult`, { body: { fail: true } });
    // Adds so many log entries that the first failure is not on the first pages of the list.
    for (let round = 0; round < 12; round += 1) {
      const runs = Array.from({ length: 10 }, () =>
        service.rest("POST", `/v3/apps/${appId}/actions/ran/runWithResult`),
      );
      await Promise.all(runs);
    }
    await db.query(
      `INSERT INTO action (app_id, name, description, code, environment, action_version, active, triggers, dependencies, assets)
       SELECT $1, 'many-' || place, 'number ' || place, $2, 'server', 'v3', true, '[]', '[]', '[]'
         FROM generate_series(1, 1100) place`,
      [appId, CODE],
    );
    page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    studio = studioPage(page);
    await page.goto(`${service.url}/studio`);
    await studio.signIn(service.tokens.editor);
  });

  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  it("scrolls the list to the action of the URL, however far down it is", async () => {
    const [{ id }] = await service.db.query("SELECT id FROM action WHERE name = 'many-600'");
    const tab = await browser.newPage();
    await tab.setViewport({ width: 1280, height: 800 });
    await tab.goto(`${service.url}/studio#/${service.appId}/actions/${id}`);
    const row = ".action-list .action[aria-current]";
    await tab.waitForSelector(row);
    await tab.waitForFunction(`document.querySelector("${row}").getBoundingClientRect().bottom <= innerHeight`);
    expect(await tab.$eval(row, (element) => element.getBoundingClientRect().top)).to.be.above(0);
    await tab.close();
  });

  it("finds an action that is older than the thousand in the list", async () => {
    await page.waitForSelector(".action-list .action");
    expect(await studio.textOf(".action-list > .hint")).to.contain("1000 of 1101");
    await studio.replace(".action-list input", "ran");
    const found = await page.waitForSelector(studio.withText("b", "ran", '//*[@class="action-name"]'));
    await found!.click();
    await page.waitForSelector(studio.withText("h2", "ran"));
  });

  it("shows only failures, as the service finds them, and the whole log to its first entry", async () => {
    await studio.button("Log", '//*[@role="tablist"]');
    await page.waitForSelector(".entry");
    expect(await page.$(".entry.failed")).to.equal(null);
    expect(await studio.textOf(".entry .chip")).to.equal("draft");
    await page.click(".log-head label:last-of-type input");
    await page.waitForSelector(".entry.failed");
    expect(await page.$$eval(".entry", (entries) => entries.length)).to.equal(1);
    await page.click(".log-head label:last-of-type input");
    await page.waitForFunction('document.querySelectorAll(".entry").length > 1');
    // Scrolls to the end repeatedly, because each page that the list loads makes it longer.
    await page.waitForFunction(`(() => {
      const box = document.querySelector(".entries");
      box.scrollTop = box.scrollHeight;
      return document.querySelector('.entry.failed[data-index="120"]') !== null;
    })()`);
    expect(await page.$$eval(".entry", (entries) => entries.length)).to.be.lessThan(60);
  });

  it("shows a log to its first entry, even if its entries are too large for a whole page", async () => {
    const { db, appId } = service;
    const code = "async function execute() { return 'first'; }";
    const action = { name: "large", active: true, triggers: [{ trigger: "manual" }], code };
    const made = await service.rest("POST", `/v3/apps/${appId}/actions`, { body: action });
    await service.rest("POST", `/v3/apps/${appId}/actions/large/runWithResult`);
    const { id } = made.body.action;
    const data = { ...createLogData({}), taskId: id, result: { data: "x".repeat(400_000), success: true } };
    await db.query(
      `INSERT INTO execution_log (app_id, task_id, run_id, type, data)
       SELECT $1, $2, -place, 'app.task.completed', $3 FROM generate_series(1, 60) place`,
      [appId, id, JSON.stringify(data)],
    );
    await studio.open(`${appId}/actions/${id}`);
    await page.waitForSelector(studio.withText("h2", "large"));
    await studio.button("Log", '//*[@role="tablist"]');
    await page.waitForSelector(".entry");
    await page.waitForFunction(`(() => {
      const box = document.querySelector(".entries");
      box.scrollTop = box.scrollHeight;
      return document.querySelector('.entry[data-index="60"]')?.textContent.includes("first");
    })()`);
  });
});
