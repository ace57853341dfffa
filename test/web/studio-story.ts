/**
 * The whole story of an action for its authors, in windows of a given width: written, failed, fixed, scheduled, published, watched,
 * replayed, restored, and changed by two people at once.
 */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { type StudioPage, studioPage } from "./studio-page.js";

const code = (words: string) =>
  `async function execute({ payload }) {\n  console.log("for", payload.name);\n  return payload.name.toUpperCase() + "${words}";\n}\n`;

interface Seat {
  page: Page;
  watch: PageWatch;
  studio: StudioPage;
}

/** Declares the test. */
export function tellStory(width: number): void {
  describe(`The story of an action in windows ${width} pixels wide`, () => {
    let service: TestService;
    let browser: Browser;
    let other: string;

    before(async () => {
      [service, browser] = await Promise.all([startTestService(), launchChromium()]);
      const person = { firstName: "Grace", lastName: "Hopper", email: "grace@example.com" };
      const { user, token } = (await service.rest("POST", "/v1/admin/users", { as: "admin", body: person })).body;
      await service.rest("POST", `/v1/apps/${service.appId}/editors`, { body: { userId: user.id } });
      other = token;
    });
    after(async () => {
      await browser?.close();
      await service?.stop();
    });

    async function sit(token: string, place: string): Promise<Seat> {
      const page = await (await browser.createBrowserContext()).newPage();
      await page.setViewport({ width, height: 800, isMobile: width < 500, hasTouch: width < 500 });
      const watch = watchPage(page, service.url);
      await page.goto(`${service.url}/studio#/${service.appId}/${place}`);
      const studio = studioPage(page);
      await studio.signIn(token);
      await page.waitForSelector(".code-editor .view-line");
      return { page, watch, studio };
    }
    const stored = async () => (await service.rest("GET", `/v3/apps/${service.appId}/actions`)).body.actions[0];
    const saved = ({ studio }: Seat) => studio.saved();
    const outcome = ({ page }: Seat, state: string) => page.waitForSelector(`.outcome[data-state="${state}"]`);
    const tab = ({ studio }: Seat, name: string) => studio.button(name, '//*[@role="tablist"]');

    it("is written, fails, is mended, scheduled, published, watched, run again, restored and changed by two at once", async () => {
      const mine = await sit(service.tokens.editor, "actions/new");
      const { page, studio } = mine;

      await studio.write(code(""));
      await studio.replace('[data-field="name"] input', "shout");
      await studio.save();
      await saved(mine);
      await studio.run();
      await outcome(mine, "failed");
      expect(await studio.textOf(".result.failed")).to.contain("TypeError");

      await studio.write(code("!"));
      await studio.replace("#payload", '{"name": "ada"}');
      await studio.run();
      await outcome(mine, "completed");
      expect(await studio.textOf(".result")).to.equal('"ADA!"');

      await page.select('[data-field="triggers"] select:has(option[value="schedule"])', "schedule");
      await studio.replace('[data-field="frequency"] input', "0 9 * * 1-5");
      await page.waitForSelector(".ticks li:nth-child(5)");
      await studio.save();
      await saved(mine);

      await tab(mine, "Publish");
      await studio.button("Publish the app");
      await studio.button("Publish", '//*[@role="tabpanel"]');
      await page.waitForSelector(studio.withText("button", "Publish again"));

      await tab(mine, "Log");
      await page.waitForFunction('document.querySelectorAll(".entry").length === 2');
      const run = `/v3/apps/${service.appId}/actions/shout/runWithResult`;
      const live = await service.rest("POST", run, { as: "live", body: { name: "grace" } });
      expect(live.body.result).to.equal("GRACE!");
      await page.waitForFunction('document.querySelectorAll(".entry").length === 3');
      expect(await studio.textOf(".entry:first-child .gist")).to.contain("GRACE!");

      await tab(mine, "Run");
      await studio.run();
      await page.waitForFunction(
        `document.querySelector('.outcome[data-state="completed"] .result')?.textContent === '"ADA!"'`,
      );

      await tab(mine, "Versions");
      await page.waitForSelector(".versions li:nth-child(3) button");
      const oldest = await page.waitForSelector(".versions li:last-child button");
      await oldest!.click();
      await page.waitForSelector(".diff .added");
      await studio.button("Restore", '//*[contains(@class, "version-panel")]');
      await studio.button("Restore", "//dialog");
      await page.waitForSelector(studio.withText("span", "before a restore"));
      expect(await stored()).to.include({ code: code(""), frequency: null });

      const theirs = await sit(other, `actions/${(await stored()).id}`);
      await theirs.studio.write(code("?"));
      await theirs.studio.save();
      await saved(theirs);
      await page.bringToFront();
      await page.waitForFunction('/Grace Hopper changed code/.test(document.querySelector(".news")?.textContent)');
      await studio.write(code("mine"));
      await theirs.page.bringToFront();
      await theirs.studio.write(code("theirs"));
      await theirs.studio.save();
      await saved(theirs);
      await page.bringToFront();
      await page.waitForFunction('/Grace Hopper has saved/.test(document.querySelector(".banner")?.textContent)');
      await studio.button("Go on with mine");
      await studio.save();
      await saved(mine);
      expect((await stored()).code).to.equal(code("mine"));
      expect([...mine.watch.errors, ...theirs.watch.errors]).to.deep.equal([]);
    });
  });
}
