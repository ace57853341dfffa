/** Tests Studio on a phone and at 200 % zoom: every screen fits the width, and the way from a list to a run and back works. */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { startTestService, type TestService } from "../harness/service.js";
import { untilEqual } from "../harness/until.js";
import { launchChromium } from "../web/chromium.js";
import { type StudioPage, studioPage } from "../web/studio-page.js";

const CODE = `async function execute() {
  console.log("a line that is longer than any phone is wide, ${"and then some ".repeat(10)}");
  return { text: ${JSON.stringify("a result as wide ".repeat(20))} };
}
`;

for (const width of [390, 640]) {
  describe(`Studio ${width} pixels wide`, () => {
    let service: TestService;
    let browser: Browser;
    let page: Page;
    let studio: StudioPage;
    let nightlyId: number;

    before(async () => {
      [service, browser] = await Promise.all([startTestService(), launchChromium()]);
      const name = `a-name-that-is-long-${"x".repeat(120)}`;
      const action = { name, active: true, triggers: [{ trigger: "manual" }], code: CODE };
      await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: action });
      const { appId } = service;
      const nightly = await service.rest("POST", `/v3/apps/${appId}/actions`, {
        body: {
          ...action,
          name: "nightly",
          frequency: "*/15 2-5 1,15 * 1-5",
          triggers: [...action.triggers, { trigger: "schedule" }],
        },
      });
      nightlyId = nightly.body.action.id;
      await service.rest("POST", `/v1/apps/${appId}/publish`);
      await service.rest("POST", `/v3/apps/${appId}/actions/${nightlyId}/publish`);
      await service.rest("POST", `/v1/apps/${appId}/settings`, {
        body: { ["k".repeat(90)]: "v".repeat(300), _b: { c: 1 } },
      });
      page = await browser.newPage();
      await page.setViewport({ width, height: 800, isMobile: width < 500, hasTouch: width < 500 });
      studio = studioPage(page);
      await page.goto(`${service.url}/studio`);
      await studio.signIn(service.tokens.editor);
    });

    after(async () => {
      await browser?.close();
      await service?.stop();
    });

    /** Returns the start of the HTML of each element beyond the right edge. Skips hidden elements and the content of those that scroll. */
    const findWideElements = (shownWidth: number) =>
      page.evaluate(`[...document.querySelectorAll("body *")].filter((element) => {
        if (element.closest(".code-editor, .tabs, .figures-box")) return false;
        const { right, width } = element.getBoundingClientRect();
        return width > 0 && right > ${shownWidth} + 0.5;
      }).map((element) => element.outerHTML.slice(0, 120))`);
    /** Returns texts that a flex container splits into items. The items wrap separately, so a word and its bracket can be on two lines. */
    const findSplitTexts = () =>
      page.evaluate(`[...document.querySelectorAll("body *")].filter((element) => {
        const texts = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim() !== "");
        return texts.length > 1 && /flex/.test(getComputedStyle(element).display) && element.checkVisibility();
      }).map((element) => element.textContent)`);
    const expectToFit = async (shownWidth = width) => {
      expect(await findSplitTexts()).to.deep.equal([]);
      expect(await page.evaluate("document.documentElement.scrollWidth")).to.equal(shownWidth);
      expect(await findWideElements(shownWidth)).to.deep.equal([]);
    };

    it("goes from the list to the action and its run, and back", async () => {
      await page.waitForSelector(".action-list .action");
      await expectToFit();
      await page.click(".action-list .action");
      await page.waitForSelector(".code-editor .view-line");
      await expectToFit();
      await studio.button("Log", '//*[@role="tablist"]');
      const inView = (selector: string) =>
        page.waitForFunction(`(() => {
          const head = document.querySelector(".workspace-top").getBoundingClientRect();
          const { top, bottom } = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect();
          return top >= head.bottom && bottom <= innerHeight;
        })()`);
      await studio.button("Publish", '//*[@class="workspace-head"]');
      await inView("#dock [data-tab=Publish][aria-selected=true]");
      await page.$eval(".workspace", (box) => box.scrollTo(0, 0));
      await studio.button("Run", '//*[@class="workspace-head"]');
      await inView("#dock [data-tab=Run][aria-selected=true]");
      await page.waitForSelector('.outcome[data-state="completed"]');
      await page.waitForSelector(".console li");
      await expectToFit();
      for (const tab of ["Test", "Log", "Publish", "Versions", "Run"]) {
        await studio.button(tab, '//*[@role="tablist"]');
        const opened = { Log: ".entry button", Versions: ".versions li button" }[tab];
        if (opened) await (await page.waitForSelector(opened))!.click();
        await expectToFit();
      }
      if (width < 500) {
        expect(await page.$eval(".action-list", (list) => list.checkVisibility())).to.equal(false);
        await page.click(".workspace-head .narrow-only");
        await page.waitForSelector(".action-list .action", { visible: true });
      }
    });

    it("shows the whole Save button of an action whose draft differs from its live version", async () => {
      const path = `/v3/apps/${service.appId}/actions/${nightlyId}`;
      expect((await service.rest("PUT", path, { body: { description: "changed" } })).http).to.equal(200);
      await studio.open(`${service.appId}/actions/${nightlyId}`);
      await page.setViewport({ width: 360, height: 800, isMobile: true, hasTouch: true });
      await page.waitForSelector(".workspace-head .chip.behind");
      await expectToFit(360);
      await studio.button("Fields of the action");
      await studio.replace('[data-field="description"] textarea', "not saved");
      await page.waitForSelector(".workspace-head .primary:enabled");
      await expectToFit(360);
      await studio.save();
      await studio.saved();
      await page.setViewport({ width, height: 800, isMobile: width < 500, hasTouch: width < 500 });
    });

    it("gives a form beside a list enough width for its fields", async () => {
      for (const shownWidth of [768, width]) {
        await page.setViewport({ width: shownWidth, height: 800 });
        for (const place of ["alerts", "notifications"]) {
          await studio.open(`${service.appId}/${place}/new`);
          await page.waitForSelector(".notification-editor input");
          const narrowest = `Math.min(...[...document.querySelectorAll(".notification-editor .field :is(input:not([type=checkbox]), textarea)")]
            .map((field) => field.getBoundingClientRect().width))`;
          expect(await page.evaluate(narrowest), `${place}, ${shownWidth}`).to.be.at.least(200);
        }
      }
      await page.setViewport({ width, height: 800, isMobile: width < 500, hasTouch: width < 500 });
      await page.reload();
      await page.waitForSelector(".top-bar");
    });

    it("leads from an unknown action to the list", async () => {
      await page.goto(`${service.url}/studio#/${service.appId}/actions/999999`);
      await page.waitForSelector(".welcome .fault");
      await expectToFit();
      await studio.button("All actions", '//*[@class="welcome"]');
      await page.waitForSelector(".action-list .action", { visible: true });
    });

    it("shows the runs without scrolling, and their filters and charts on request", async () => {
      const shown = () =>
        page.evaluate(`(() => {
          const isShown = (selector) => document.querySelector(selector)?.checkVisibility() ?? false;
          return {
            button: isShown(".runs-filters [aria-expanded]"),
            filters: isShown(".runs-filters select"),
            charts: isShown(".runs-chart canvas"),
            isRunInWindow: document.querySelector(".runs-box .run-link").getBoundingClientRect().bottom <= innerHeight,
          };
        })()`);
      const closed = { button: true, filters: false, charts: false, isRunInWindow: true };
      await studio.follow("Runs");
      await page.waitForSelector(".runs-box .run-link");
      await page.waitForSelector(".runs-chart canvas");
      expect(await shown()).to.deep.equal(closed);
      await page.setViewport({ width: 1280, height: 800, isMobile: width < 500, hasTouch: width < 500 });
      await untilEqual(shown, { button: false, filters: true, charts: true, isRunInWindow: true });
      await page.setViewport({ width, height: 800, isMobile: width < 500, hasTouch: width < 500 });
      await untilEqual(shown, closed);
      await page.click(".charts-box > summary");
      await studio.button("Filters");
      await page.waitForFunction(`[".runs-filters select", ".runs-chart canvas"].every((selector) =>
        document.querySelector(selector)?.checkVisibility())`);
      await expectToFit();
      await page.select('.runs-filters select[name="state"]', "completed");
      await page.waitForSelector(studio.withText("button", "Filters (1)"));
      await studio.button("Clear filters");
      await page.waitForSelector(studio.withText("button", "Filters"));
    });

    it("shows the runs, one of them, the week of schedules and the settings within the width", async () => {
      await studio.follow("Runs");
      await page.waitForSelector(".runs-box .run-link");
      await page.waitForSelector(".runs-chart canvas");
      await expectToFit();
      await page.click(".runs-box .run-link");
      await page.waitForSelector(".run-page .timeline");
      await expectToFit();
      await studio.open(`${service.appId}/app/general`);
      await page.waitForSelector("::-p-xpath(//label[contains(., 'svc publish --tested')])");
      await expectToFit();
      await studio.follow("Schedules");
      await page.waitForSelector('::-p-aria([name="Run now: nightly"])');
      await expectToFit();
      await studio.follow("Settings");
      await page.waitForSelector(".setting");
      await expectToFit();
    });

    it("has the same order for Tab as on the screen in a setting with changes", async () => {
      await studio.open(`${service.appId}/settings`);
      await studio.replace('[aria-label="_b"]', '{"c":2}');
      await page.waitForSelector('[data-key="_b"] .save', { visible: true });
      const names = (order: string) =>
        page.evaluate(`[...document.querySelectorAll('[data-key="_b"] :is(button, input, select, textarea, a)')]
          .map((control) => ({ control, box: control.getBoundingClientRect() }))${order}
          .map(({ control }) => control.ariaLabel ?? control.textContent ?? control.type)`);
      const order =
        ".toSorted((a, b) => (a.box.bottom <= b.box.top ? -1 : b.box.bottom <= a.box.top ? 1 : a.box.left - b.box.left))";
      expect(await names("")).to.deep.equal(await names(order));
      await studio.button("Save", '//li[@data-key="_b"]');
      await page.waitForSelector('[data-key="_b"] .save', { hidden: true });
    });

    it("closes the drawer when the link of the open page is pressed, also after the window was wide", async () => {
      await page.setViewport({ width: 1280, height: 800, isMobile: width < 500, hasTouch: width < 500 });
      await page.waitForSelector(".drawer-button", { hidden: true });
      await page.setViewport({ width, height: 800, isMobile: width < 500, hasTouch: width < 500 });
      await page.waitForSelector(".drawer-button", { visible: true });
      for (const name of ["Settings", "Settings"]) await studio.follow(name);
      await page.waitForFunction('document.activeElement.matches(".drawer-button")');
    });

    it("names the open page in the bar, and has all pages and the account in the navigation", async () => {
      await studio.follow("Import and export");
      await page.waitForFunction(`document.querySelector(".top-bar h1").textContent === "Import and export"`);
      const open = `[...document.querySelectorAll('nav[aria-label="Views"] a[aria-current]')].map((link) => link.textContent)`;
      if (width <= 800) {
        await page.click('button[aria-label="Open the navigation"]');
        await page.waitForSelector(".sidebar.drawer");
      }
      expect(await page.evaluate(open)).to.deep.equal(["Import and export"]);
      await page.waitForSelector(".sidebar .account-button");
      if (width <= 800) {
        await page.keyboard.press("Escape");
        await page.waitForSelector(".sidebar.drawer", { hidden: true });
        await page.waitForFunction('document.activeElement.matches(".drawer-button")');
      }
      await expectToFit();
    });

    it("shows the names of tokens in one line beside their other details", async () => {
      await studio.open(`${service.appId}/app/tokens`);
      await page.waitForSelector(".records b");
      const lines = await page.evaluate(`[...document.querySelectorAll(".records b")].map((name) => {
        const text = document.createRange();
        text.selectNodeContents(name);
        return new Set([...text.getClientRects()].map(({ top }) => top)).size;
      })`);
      expect(new Set(lines as number[])).to.deep.equal(new Set([1]));
      await expectToFit();
    });

    it("scrolls to the field for which a save was rejected", async () => {
      await studio.open(`${service.appId}/actions`);
      await page.waitForSelector(".action-list .action", { visible: true });
      await page.click(".action-list .action");
      await page.waitForSelector(".code-editor .view-line");
      await studio.button("Fields of the action");
      await studio.replace('[data-field="name"] input', "not a name");
      await studio.button("Fields of the action");
      await page.waitForSelector(".workspace-head .primary:enabled");
      await page.focus("#payload");
      await studio.save();
      await page.waitForFunction(`(() => {
        const input = document.querySelector('[data-field="name"] input[aria-invalid="true"]');
        const { top, bottom } = input?.getBoundingClientRect() ?? {};
        return input !== null && document.activeElement === input && document.elementFromPoint(40, (top + bottom) / 2) === input;
      })()`);
    });
  });
}
