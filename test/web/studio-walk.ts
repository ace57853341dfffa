/** Every screen of Studio, one after the other, each judged by axe and by its width. New pages are walked by the table of routes. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { VIEW_NAMES } from "../../src/web/studio/views.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { type Content, fillApp } from "./studio-content.js";
import { type StudioPage, studioPage } from "./studio-page.js";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

export interface Look {
  width: number;
  theme: "light" | "dark";
}

/** What of a page is open, and what is done there before it is judged again. */
interface Screen {
  place: string;
  steps?: (studio: StudioPage, page: Page) => AsyncGenerator<string>;
}

async function* dockTabs(studio: StudioPage, page: Page): AsyncGenerator<string> {
  await page.waitForSelector(".code-editor .view-line");
  await studio.button("Run", '//*[@role="tabpanel"]');
  await page.waitForSelector('.outcome[data-state="completed"]');
  yield "a run";
  for (const [tab, shown] of [
    ["Log", ".entry"],
    ["Publish", ".standing"],
    ["Versions", ".versions li"],
  ] as const) {
    await studio.button(tab, '//*[@role="tablist"]');
    await page.waitForSelector(shown);
    yield tab;
  }
  await page.click(".versions li button");
  yield "a version";
  await studio.button("Delete this action");
  await page.waitForSelector("dialog[open]");
  yield "a question";
  await studio.button("Cancel", "//dialog");
  await studio.press("k");
  await page.waitForSelector(".palette");
  yield "the palette";
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { hidden: true });
}

/** Beside the page itself. A page that is not named here has no other screens. */
const MORE: Record<string, (content: Content) => Screen[]> = {
  actions: ({ actionId }) => [
    { place: "actions/new?template=schedule" },
    { place: `actions/${actionId}`, steps: dockTabs },
  ],
  runs: ({ runId }) => [{ place: `runs/${runId}` }],
  data: ({ sourceId }) => [{ place: `data/${sourceId}` }],
  app: () => ["tokens", "editors", "audit", "versions", "transfer"].map((part) => ({ place: `app/${part}` })),
};

interface Violation {
  id: string;
  nodes: { html: string; failureSummary: string }[];
}

/** Who reads "Loading…" has not got the page yet; what follows is asked for at once and drawn within the network's idleness. */
async function settle(page: Page): Promise<void> {
  await page.waitForFunction(`!/^(Loading…)?$/.test(document.querySelector("#content").textContent)`);
  await page.waitForNetworkIdle({ idleTime: 100 });
}

async function judge(page: Page, name: string): Promise<void> {
  const violations = (await page.evaluate(`axe.run(document, { resultTypes: ["violations"] })
    .then(({ violations }) => violations.map(({ id, nodes }) => ({ id,
      nodes: nodes.map(({ html, failureSummary }) => ({ html: html.slice(0, 200), failureSummary })) })))`)) as Violation[];
  expect(violations, name).to.deep.equal([]);
  const [scrolled, shown] = (await page.evaluate(
    "[document.documentElement.scrollWidth, document.documentElement.clientWidth]",
  )) as [number, number];
  expect(scrolled, `${name} is wider than the window`).to.equal(shown);
}

/** Declares the tests of one look. */
export function walkStudio({ width, theme }: Look): void {
  describe(`Studio, ${theme}, ${width} pixels wide`, () => {
    let service: TestService;
    let browser: Browser;
    let page: Page;
    let watch: PageWatch;
    let studio: StudioPage;
    let content: Content;

    before(async () => {
      [service, browser] = await Promise.all([startTestService(), launchChromium()]);
      content = await fillApp(service);
      page = await browser.newPage();
      watch = watchPage(page, service.url);
      await page.setViewport({ width, height: 800 });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
      studio = studioPage(page);
      await page.goto(`${service.url}/studio`);
      await page.waitForSelector('form[aria-busy="false"]');
    });
    after(async () => {
      await browser?.close();
      await service?.stop();
    });

    it("has a way in without a fault that axe knows", async () => {
      // Evaluated through the protocol: the page's policy allows no script but the service's own.
      await page.evaluate(readFileSync(AXE, "utf8"));
      await judge(page, "signing in");
      await studio.signIn(service.tokens.editor);
    });

    for (const view of VIEW_NAMES) {
      it(`has no fault that axe knows on the page “${view}”, and nothing there is wider than the window`, async () => {
        const screens: Screen[] = [{ place: view }, ...(MORE[view]?.(content) ?? [])];
        for (const { place, steps } of screens) {
          await studio.open(`${service.appId}/${place}`);
          await settle(page);
          await judge(page, place);
          if (!steps) continue;
          for await (const step of steps(studio, page)) await judge(page, `${place}: ${step}`);
        }
      });
    }

    it("is walked without an error of the page", () => {
      expect(watch.errors).to.deep.equal([]);
    });
  });
}
