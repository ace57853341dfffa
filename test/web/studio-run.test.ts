/**
 * Tests runs in Studio: many console lines, a large result, and a cancellation. Also tests which data Studio reads again, and data that
 * another person changes.
 */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { APP_SUBPAGE_LABELS, VIEW_NAMES } from "../../src/web/studio/shell/views.js";
import { longTest, sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { COUNT_FETCHES, settle } from "./studio-crawl.js";
import { leaveOutCompiler, type StudioPage, studioPage } from "./studio-page.js";

const RUN_RATE_LIMIT = 20;
/** Rate limit of the class MANAGE. No other class has this number, so the number in a response identifies the class. */
const MANAGE_RATE_LIMIT = 977;
/** Maximum wait for the end of a run in milliseconds. Without a graphics card, drawing the page leaves little processor time for runs. */
const RUN_TIMEOUT_MS = 120_000;

/** The long time limit of server actions lets the run with many lines last until the test cancels it. */
const ENVIRONMENT = {
  ROLES: "api,runner",
  RATE_LIMIT_RUN: String(RUN_RATE_LIMIT),
  RATE_LIMIT_MANAGE: String(MANAGE_RATE_LIMIT),
  SERVER_TIMEOUT_MS: "3600000",
};

/** Returns the body of an action that prints numbered lines and then does not end by itself. */
const printingCode = (count: number) =>
  `for (let at = 0; at < ${count}; at += 1) console.log("line " + at); await new Promise(() => {});`;

const ACTION_CODES = {
  lines: printingCode(500),
  full: printingCode(10_500),
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
  /** Requests of the page that the service counts towards the rate limit of runs. */
  const counted: string[] = [];

  before(async () => {
    [service, browser] = await Promise.all([startTestService(ENVIRONMENT), launchChromium()]);
    for (const [name, body] of Object.entries(ACTION_CODES)) {
      const action = { name, active: true, triggers: [{ trigger: "manual" }] };
      const code = `async function execute() { ${body} }`;
      const path = `/v3/apps/${service.appId}/actions`;
      ids[name] = (await service.rest("POST", path, { body: { ...action, code } })).body.action.id;
    }
    page = await browser.newPage();
    await leaveOutCompiler(page);
    await page.setViewport({ width: 1280, height: 800 });
    watch = watchPage(page, service.url);
    studio = studioPage(page);
    page.on("response", (response) => {
      if (response.headers()["ratelimit-limit"] === String(RUN_RATE_LIMIT))
        counted.push(response.request().postData() ?? response.url());
    });
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

  /** Runs the open action. Checks that the console has this number of lines and shows the last line. */
  async function runAndReadConsole(count: number, lastLine: RegExp): Promise<void> {
    await studio.run();
    await page.waitForSelector(`.console[aria-label="Console, ${count} lines"]`);
    await page.waitForFunction(`${lastLine}.test(document.querySelector(".console li:last-child")?.textContent)`);
    expect(await page.$$eval(".console li", (lines) => lines.length)).to.be.lessThan(60);
    expect(await isInView(".console li:last-child")).to.equal(true);
    expect(await isInView(".payload .row button")).to.equal(true);
  }

  it("shows the lines while it executes, the last one visible, few of them drawn", () =>
    runAndReadConsole(500, /line 499$/));

  it("stays at the person's scroll position, and is cancelled with a button that is always visible", async () => {
    await page.hover(".console");
    await page.mouse.wheel({ deltaY: -1_000_000 });
    await page.waitForFunction('/line 0$/.test(document.querySelector(".console li").textContent)');
    await studio.button("Cancel the run");
    await waitForOutcome("cancelled");
    expect(await studio.textOf(".outcome .state")).to.equal("Cancelled");
  });

  it("takes one slot of the app's limit", () => {
    expect(counted).to.have.length(1);
    expect(counted[0]).to.include("mutation RunAction");
  });

  longTest("shows the stored lines of a run that prints more than the console stores", async () => {
    await page.goto(`${service.url}/studio#/${service.appId}/actions/${ids["full"]}`);
    await page.waitForSelector(studio.withText("h2", "full"));
    await runAndReadConsole(10_001, /console is full/);
    await studio.button("Cancel the run");
    await waitForOutcome("cancelled");
  });

  longTest("shows the beginning of megabytes, and saves them completely", async () => {
    await page.goto(`${service.url}/studio#/${service.appId}/actions/${ids["large"]}`);
    await page.waitForSelector(studio.withText("h2", "large"));
    await studio.run();
    await waitForOutcome("completed");
    expect(await studio.textOf(".result-view .hint")).to.match(/The beginning of \d\.\d MB/);
    expect(await page.$eval(".result", (result) => result.textContent!.length)).to.be.lessThan(30_000);
    // Resolves with the number of items in the file that the page creates for the download.
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

  describe("and data that is read again", () => {
    let tab: Page;
    let other: StudioPage;
    /** Requests that count towards the rate limit of the class MANAGE: the body of each, or its URL if it has no body. */
    const manageRequests: string[] = [];
    let isMediaFailing = false;

    before(async () => {
      tab = await browser.newPage();
      await leaveOutCompiler(tab);
      other = studioPage(tab);
      await tab.setViewport({ width: 1280, height: 800 });
      await tab.evaluateOnNewDocument(COUNT_FETCHES);
      tab.on("request", (request) => {
        if (isMediaFailing && request.postData()?.includes("query ListMedia")) void request.abort("failed");
        else void request.continue();
      });
      tab.on("response", (response) => {
        const { url, postData } = { url: response.url(), postData: response.request().postData() };
        if (response.headers()["ratelimit-limit"] === String(MANAGE_RATE_LIMIT)) manageRequests.push(postData ?? url);
      });
      await tab.setRequestInterception(true);
      const { appId, rest } = service;
      await rest("POST", `/v3/apps/${appId}/actions/${ids["small"]}/publish`);
      await rest("POST", `/v1/apps/${appId}/settings`, { body: { shown: 1 } });
      await tab.goto(`${service.url}/studio#/${appId}/actions`);
      await tab.waitForSelector(".action-list .action");
    });

    const focusWindow = () => tab.evaluate('dispatchEvent(new Event("focus"))');
    async function readAtFocus(): Promise<string[]> {
      await settle(tab);
      manageRequests.length = 0;
      await focusWindow();
      await settle(tab);
      return [...manageRequests];
    }

    longTest("reads nothing at the focus of the window that counts towards the rate limit of saves", async () => {
      const { appId } = service;
      const places = [...VIEW_NAMES, ...Object.keys(APP_SUBPAGE_LABELS).map((part) => `app/${part}`)];
      for (const place of sampleOf(places, 0, 6)) {
        await other.open(`${appId}/${place}`);
        expect(await readAtFocus(), place).to.deep.equal([]);
      }
      await other.open(`${appId}/settings`);
      await (await tab.waitForSelector('[aria-label="Who reads it? shown"]'))!.click();
      await tab.waitForSelector('[aria-label="Who reads it? shown"]', { hidden: true });
      expect(await readAtFocus(), "readers of a setting").to.deep.equal([]);
      const { runId } = (await service.rest("POST", `/v3/apps/${appId}/actions/${ids["small"]}/run`)).body;
      await other.open(`${appId}/runs/${runId}`);
      await tab.waitForSelector("#again-target");
      manageRequests.length = 0;
      await tab.focus("#again-target");
      await until(() => manageRequests.join().includes("ListActionVersions"));
      expect(await readAtFocus(), "versions of a run's action").to.deep.equal([]);
      await other.open(`${appId}/actions/${ids["small"]}`);
      await tab.waitForSelector(".code-editor .view-line");
      for (const name of sampleOf(["Run", "Test", "Call", "Log", "Publish", "Versions"], 2, 4)) {
        await other.button(name, '//*[@role="tablist"]');
        expect(await readAtFocus(), name).to.deep.equal([]);
      }
    });

    longTest("saves and deletes no payload that another person has replaced since it was loaded", async () => {
      const path = `/v3/apps/${service.appId}/actions/${ids["small"]}/presets`;
      const stored = async () => (await service.rest("GET", path)).body.presets[0];
      await service.rest("PUT", `${path}/seat`, { body: { from: "first" } });
      await other.open(`${service.appId}/actions/${ids["small"]}`);
      await tab.waitForSelector(".code-editor .view-line");
      await other.button("Run", '//*[@role="tablist"]');
      await focusWindow();
      await tab.waitForSelector('.presets option[value="preset seat"]');
      await tab.select(".presets select", "preset seat");
      await tab.waitForFunction('document.querySelector("#payload").value.includes("first")');
      const { http } = await service.rest("PUT", `${path}/seat`, { body: { from: "second" } });
      expect(http).to.be.within(200, 201);
      await focusWindow();
      await settle(tab);
      await other.button("Save this payload");
      await other.replace('input[aria-label="Name of this payload"]', "seat");
      await other.button("Save payload");
      await tab.waitForSelector(".presets .fault:not(:empty)");
      expect((await stored()).payload).to.deep.equal({ from: "second" });
      await other.button("Cancel", '//*[@class="presets"]');
      await (await tab.waitForSelector("::-p-xpath(//button[contains(., 'Delete “seat”')])"))!.click();
      await settle(tab);
      expect((await stored())?.payload).to.deep.equal({ from: "second" });
    });

    longTest("says that another person has renamed the app, and does not rename it back", async () => {
      const path = `/v1/apps/${service.appId}`;
      await other.open(`${service.appId}/app`);
      await other.replace('[aria-label="Name of the app"]', "Mine");
      const theirs = await service.rest("PUT", path, { body: { name: "Theirs" } });
      expect(theirs.http).to.equal(200);
      await other.button("Rename");
      await tab.waitForSelector(other.withText("span", "The name changed elsewhere while you edited it."));
      expect(await tab.$(other.withText("button[@disabled]", "Rename"))).to.not.equal(null);
      const { apps } = (await service.rest("GET", "/v1/apps")).body;
      expect(apps.map(({ name }: { name: string }) => name)).to.deep.equal(["Theirs"]);
      await other.button("Take theirs");
      await tab.waitForFunction(`document.querySelector('[aria-label="Name of the app"]').value === "Theirs"`);
    });

    longTest("keeps the shown files if the next read fails", async () => {
      await service.rest("POST", `/v1/apps/${service.appId}/media/folders`, { body: { name: "Invoices" } });
      await other.open(`${service.appId}/media`);
      await tab.waitForSelector('.tile[title="Invoices"]');
      isMediaFailing = true;
      await other.open(`${service.appId}/media?search=Inv`);
      await tab.waitForSelector('.media [role="alert"]:not(:empty)');
      expect(await tab.$('.tile[title="Invoices"]')).to.not.equal(null);
      isMediaFailing = false;
    });
  });
});
