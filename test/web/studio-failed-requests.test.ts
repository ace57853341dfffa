/** Tests that Studio shows an error, and no empty list or wrong success, if a request fails because the service is away. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { Browser, HTTPRequest, Page } from "puppeteer";
import { type PrefixProxy, startPrefixProxy } from "../harness/prefix-proxy.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium } from "./chromium.js";
import { leaveOutCompiler, type StudioPage, studioPage } from "./studio-page.js";

const NO_ANSWER = "the service does not answer";

describe("failed requests in Studio", () => {
  let service: TestService;
  let proxy: PrefixProxy;
  let browser: Browser;
  let page: Page;
  let studio: StudioPage;
  let actionId: number;

  before(async () => {
    proxy = await startPrefixProxy("/svc");
    [service, browser] = await Promise.all([
      startTestService({ PUBLIC_URL: `${proxy.url}/`, ROLES: "api" }),
      launchChromium(),
    ]);
    proxy.setTarget(service.url);
    const code = "async function execute() { return 1; }";
    const data = { name: "called", code, active: true, triggers: [{ trigger: "manual" }] };
    actionId = (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: data })).body.action.id;
    page = await browser.newPage();
    await leaveOutCompiler(page);
    await page.setViewport({ width: 1280, height: 900 });
    studio = studioPage(page);
    await page.goto(`${proxy.url}/studio`);
    await studio.signIn(service.tokens.editor);
    await page.waitForSelector(".action-list .action");
  });
  afterEach(() => proxy.restore());
  after(async () => {
    await browser?.close();
    await service?.stop();
    await proxy?.stop();
  });

  it("shows that a search in the docs failed, and searches again afterwards", async () => {
    await page.click('[aria-label="Docs of this page"]');
    await page.waitForSelector(".docs-panel .docs-text p");
    proxy.cut();
    await studio.replace(".docs-panel input", "curl an action");
    await page.keyboard.press("Enter");
    expect(await studio.textOf(".docs-body [role=alert]")).to.equal(`The search failed: ${NO_ANSWER}`);
    expect(await studio.textOf(".docs-body")).to.not.contain("No section contains");
    proxy.restore();
    await page.focus(".docs-panel input");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".docs-hits button");
    await page.keyboard.press("Escape");
    await page.waitForSelector(".docs-panel", { hidden: true });
  });

  it("says that a file was changed after the person had chosen it, and accepts it when it is chosen again", async () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-studio-import-"));
    const file = join(folder, "seats.csv");
    writeFileSync(file, "Row\nA\n");
    const sources = `/v1/apps/${service.appId}/data-sources`;
    const { dataSource } = (await service.rest("POST", sources, { body: { name: "seats" } })).body;
    await studio.open(`${service.appId}/data/${dataSource.id}?tab=import`);
    const choose = async () => {
      const input = await page.waitForSelector('.data-import input[type="file"]:enabled');
      const [chooser] = await Promise.all([page.waitForFileChooser(), input!.click()]);
      await chooser.accept([file]);
    };
    await choose();
    // Before Studio has read the file for the preview, the browser does not regard a change as made after the choice.
    await page.waitForSelector(".data-import table");
    writeFileSync(file, "Row\nA\nB\n");
    await studio.button("Import", "//*[contains(@class,'data-import')]");
    expect(await studio.textOf(".data-import [role=alert]")).to.equal(
      "The file was changed or removed after you had chosen it. Choose it again.",
    );
    await choose();
    await studio.button("Import", "//*[contains(@class,'data-import')]");
    await page.waitForSelector("::-p-text(2 entries were imported)");
    rmSync(folder, { recursive: true });
  });

  it("does not report an error in its own code as a missing response", async () => {
    await page.click('[aria-label="Docs of this page"]');
    await page.waitForSelector(".docs-panel .docs-text p");
    await page.evaluate(`
      DOMParser.prototype.parse = DOMParser.prototype.parseFromString;
      DOMParser.prototype.parseFromString = () => { throw new TypeError("it is broken"); }; 0`);
    await studio.replace(".docs-panel input", "curl an action");
    await page.keyboard.press("Enter");
    expect(await studio.textOf(".docs-body [role=alert]")).to.equal(
      "The search failed: an error occurred in Studio (TypeError: it is broken); reload the page",
    );
    await page.evaluate("DOMParser.prototype.parseFromString = DOMParser.prototype.parse; 0");
    await page.keyboard.press("Escape");
    await page.waitForSelector(".docs-panel", { hidden: true });
  });

  it("shows that the palette could not search the docs", async () => {
    await studio.press("k");
    proxy.cut();
    await page.keyboard.type("curl an action");
    expect(await studio.textOf(".palette [role=alert]")).to.equal(`The search in the docs failed: ${NO_ANSWER}`);
    expect(await studio.textOf(".palette")).to.not.contain("Nothing matches");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { hidden: true });
  });

  it("shows that the last requests of an action could not be read", async () => {
    await studio.open(`${service.appId}/actions/${actionId}`);
    await page.waitForSelector(".code-editor .view-line");
    proxy.cut();
    await studio.button("Call", '//*[@role="tablist"]');
    await page.waitForSelector(studio.withText("p[@role='alert']", NO_ANSWER, "//*[@aria-label='Call this action']"));
    expect(await studio.textOf(".call-panel")).to.not.contain("No requests yet");
  });

  /** Loads no file of Studio whose name begins with `name` until `work` has ended. */
  async function withoutFile(name: string, work: () => Promise<unknown>): Promise<void> {
    const answer = (request: HTTPRequest) =>
      void (request.url().includes(`/assets/${name}-`) ? request.abort() : request.continue());
    page.on("request", answer);
    await page.setRequestInterception(true);
    await work();
    page.off("request", answer);
    await page.setRequestInterception(false);
  }

  it("keeps the list of runs if the file of the chart could not be loaded, and loads the file again", async () => {
    const [content, text] = ["//*[@id='content']", "This part of the page could not be loaded. Try again"];
    await withoutFile("runs-chart", async () => {
      await studio.open(`${service.appId}/runs`);
      await page.waitForSelector(studio.withText("p[@role='alert']", text, content));
    });
    await page.waitForSelector(".runs-box");
    await studio.button("Try again", content);
    await page.waitForSelector(".runs-chart:not(.loading)");
  });

  it("loads the file of a page again at the next visit if it could not be loaded", async () => {
    await withoutFile("schedule-page", async () => {
      await studio.open(`${service.appId}/schedule`);
      await page.waitForSelector(studio.withText("h2", "This page could not be loaded"));
    });
    await studio.open(`${service.appId}/runs`);
    await page.waitForSelector(".runs-box");
    await studio.open(`${service.appId}/schedule`);
    await page.waitForSelector(studio.withText("h2", "Schedules"));
  });

  it("shows that a run could not be cancelled, in the list of runs, on its page and beside its action", async () => {
    // The service has no runner, so the run stays queued.
    await studio.open(`${service.appId}/actions/${actionId}`);
    await studio.button("Run", '//*[@role="tablist"]');
    await studio.run();
    await page.waitForSelector(studio.withText("button[not(@disabled)]", "Cancel the run"));
    const href = await page.$eval(".outcome a", (link) => link.getAttribute("href")!);
    proxy.cut();
    await studio.button("Cancel the run");
    await page.waitForSelector(studio.withText("p[@role='alert']", `Not cancelled: ${NO_ANSWER}`));
    proxy.restore();
    await studio.open(href.replace("#/", ""));
    await page.waitForSelector(".run-page .run-head");
    proxy.cut();
    await studio.button("Cancel the run", "//*[@class='run-page']");
    await page.waitForSelector(studio.withText("p[@role='alert']", NO_ANSWER, "//*[@class='run-page']"));
    proxy.restore();
    await studio.open(`${service.appId}/runs`);
    const cancelButton = await page.waitForSelector('.runs-box [aria-label^="Cancel run"]');
    proxy.cut();
    await cancelButton!.click();
    await page.waitForSelector(studio.withText("span[@role='alert']", `Not cancelled: ${NO_ANSWER}`));
    proxy.restore();
    await cancelButton!.click();
    await page.waitForSelector('.runs-box [aria-label^="Cancel run"]', { hidden: true });
  });

  it("keeps the button that allows an origin if the request failed, and allows the origin afterwards", async () => {
    const origin = "https://named.example";
    const actions = `/v3/apps/${service.appId}/actions`;
    const body = { name: "asking", code: "async function execute() {}", environment: "client", active: true };
    const { action } = (await service.rest("POST", actions, { body: { ...body, triggers: [{ trigger: "manual" }] } }))
      .body;
    // A report of a run in a browser stores the error without a runner. Only a server action can then allow the origin.
    const error = { name: "Error", message: `${origin} is not allowed for this action` };
    const report = { payload: {}, error, duration: 1 };
    const { runId } = (await service.rest("POST", `${actions}/${action.id}/clientRuns`, { as: "viewer", body: report }))
      .body;
    await service.rest("PUT", `${actions}/${action.id}`, { body: { environment: "server" } });
    await studio.open(`${service.appId}/runs/${runId}`);
    const button = await page.waitForSelector(studio.withText("button", `Allow ${origin} for this action`));
    proxy.cut();
    await button!.click();
    await page.waitForSelector(
      studio.withText("p[@role='alert']", `Not allowed: ${NO_ANSWER}`, "//*[@class='run-page']"),
    );
    proxy.restore();
    await button!.click();
    const success = "The draft allows it now. Publish the action to allow it for live runs.";
    await page.waitForSelector(studio.withText("p[@role='status']", success));
    const stored = (await service.rest("GET", `${actions}/${action.id}`)).body.action;
    expect(stored.integrationOrigins).to.deep.equal([origin]);
  });

  it("shows that the person is still signed in if the sign-out failed", async () => {
    await (await page.waitForSelector(".account-button"))!.click();
    const menuItem = await page.waitForSelector(studio.withText("*[@role='menuitem']", "Sign out"));
    proxy.cut();
    await menuItem!.click();
    await page.waitForSelector(studio.withText("p[@role='alert']", `You are still signed in: ${NO_ANSWER}`));
    proxy.restore();
    expect((await page.evaluate(`fetch("${proxy.url}/v1/session").then(({ status }) => status)`)) as number).to.equal(
      200,
    );
    await studio.signOut();
    await page.waitForSelector('form[aria-busy="false"]');
    expect(
      (await page.evaluate(`fetch("${proxy.url}/v1/session").then((answer) => answer.json())`)) as object,
    ).to.not.have.property("kind");
  });
});
