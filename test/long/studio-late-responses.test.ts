import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { APP_SUBPAGE_LABELS, VIEW_NAMES } from "../../src/web/studio/shell/views.js";
import { createSignedInPerson } from "../harness/people.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium, type PageWatch, watchPage } from "../web/chromium.js";
import { findLostTexts } from "../web/late-responses.js";
import { fillApp } from "../web/studio-content.js";
import { studioPage } from "../web/studio-page.js";

/** Endings of the URLs that open an item, a form or a tab of a page. `ID` stands for the ID of an item in the sample data. */
const ITEMS = {
  actions: ["new", "ID"],
  data: ["ID", "ID?tab=rules", "ID?tab=import"],
  outbox: ["email", "sms", "1"],
  notifications: ["new", "1"],
  alerts: ["new", "1"],
  media: ["?file=1"],
  runs: ["1"],
  people: ["1"],
  access: ["1"],
  app: Object.keys(APP_SUBPAGE_LABELS),
};

describe("late responses in Studio", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let actionId: number;

  before(async () => {
    [service, browser] = await Promise.all([startTestService(), launchChromium()]);
    ({ actionId } = await fillApp(service));
    page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    watch = watchPage(page, service.url);
    const person = await createSignedInPerson(service);
    await page.goto(`${service.url}/studio#/apps`);
    await studioPage(page).signIn(person.token);
    await page.waitForSelector("#apps");
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  for (const view of VIEW_NAMES) {
    const items: readonly string[] = ITEMS[view as keyof typeof ITEMS] ?? [];
    for (const item of ["", ...items]) {
      const name = item === "" ? view : `${view}/${item}`;
      it(`replace no typed text on the page “${name}”`, async () => {
        const path = name.replace("ID", String(view === "actions" ? actionId : 1)).replace("/?", "?");
        const place = view === "apps" ? "#/apps" : `#/${service.appId}/${path}`;
        expect((await findLostTexts(page, place)).join("\n")).to.equal("");
      });
    }
  }

  it("cause no error in the page", () => {
    // The service rejects some of the typed values, and Chromium logs each of these responses. The test ignores these errors.
    expect(watch.errors.filter((error) => !error.startsWith("Failed to load resource"))).to.deep.equal([]);
  });
});
