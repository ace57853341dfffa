/** Tests what Studio's first screens load, by the requests of a browser, and an editor whose files load late or not at all. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { Browser, HTTPRequest, Page } from "puppeteer";
import { VIEW_NAMES } from "../../src/web/studio/shell/views.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium } from "../web/chromium.js";
import { studioPage } from "../web/studio-page.js";

const BUILT = fileURLToPath(new URL("../../web", import.meta.url));
const FIRST_LOAD_MAX_BYTES = 250 * 1024;

describe("the first load of Studio", () => {
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

  /** Returns the compressed size of all files that the page has requested, in bytes. */
  const loaded = () =>
    page.evaluate(`performance.getEntriesByType("resource").filter(({ name }) => name.includes("/assets/"))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`) as Promise<number>;

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

  it("requests all files of the editor at once", async () => {
    const { parts } = JSON.parse(readFileSync(`${BUILT}/pages.json`, "utf8")).studio as { parts: { editor: string[] } };
    const links = (await page.$$eval('link[rel="modulepreload"]', (all) => all.map(({ href }) => href))) as string[];
    for (const file of parts.editor) expect(links).to.include(`${service.url}${file}`);
  });

  /** Opens a new action in a page whose requests for the editor's files wait until `release` is called. */
  async function openWithoutEditor(name: string) {
    const { body } = await service.rest("POST", `/v3/apps/${service.appId}/actions`, {
      body: { name, active: true, triggers: [{ trigger: "manual" }], code: "async function execute() {}" },
    });
    const path = `/v3/apps/${service.appId}/actions/${body.action.id}`;
    let settle: ((request: HTTPRequest) => Promise<void>) | null = null;
    const held: HTTPRequest[] = [];
    const fresh = await browser.newPage();
    fresh.on("request", (request) => {
      if (!request.url().includes("/assets/code-editor-")) void request.continue();
      else if (settle) void settle(request);
      else held.push(request);
    });
    await fresh.setRequestInterception(true);
    await fresh.goto(`${service.url}/studio#/${service.appId}/actions/${body.action.id}`, {
      waitUntil: "domcontentloaded",
    });
    await fresh.waitForSelector(".plain-code");
    await fresh.focus(".plain-code");
    const end = async (how: (request: HTTPRequest) => Promise<void>) => {
      settle = how;
      for (const request of held) await how(request);
    };
    return {
      fresh,
      path,
      release: () => end((one) => one.continue()),
      refuse: () => end((one) => one.abort("failed")),
    };
  }

  const editorHasFocus = 'document.activeElement.closest(".code-editor") !== null';

  it("shows code as text that can be changed, saved and run until the editor is loaded, which continues at the same place", async () => {
    const { fresh, path, release } = await openWithoutEditor("plain");
    await fresh.evaluate("document.activeElement.setSelectionRange(26, 26)");
    await fresh.keyboard.type(" return 1;");
    const code = "async function execute() { return 1;}";
    expect(await fresh.$eval(".plain-code", ({ value }) => value)).to.equal(code);
    await studioPage(fresh).run();
    await fresh.waitForSelector('.outcome a[href*="/runs/"]');
    expect((await service.rest("GET", path)).body.action.code).to.equal(code);
    await fresh.focus(".plain-code");
    await release();
    await fresh.waitForSelector(".code-editor .view-line");
    await fresh.waitForFunction(editorHasFocus);
    await fresh.keyboard.type(" // here");
    await fresh.waitForFunction(
      `document.querySelector(".code-editor .view-lines").textContent.replaceAll("\u00a0", " ").includes("return 1; // here}")`,
    );
    await fresh.close();
  });

  it("shows the colors at the place of the text when code becomes short enough for them", async () => {
    const { fresh, release } = await openWithoutEditor("shortened");
    const lines = "const place = 1;\n".repeat(1_200);
    await fresh.evaluate(`{
      const text = document.querySelector(".plain-code");
      text.select();
      document.execCommand("insertText", false, ${JSON.stringify(lines)});
      text.scrollTop = 2000;
    }`);
    await fresh.waitForSelector(".plain-code-box:not(.colored)");
    await fresh.evaluate(`{
      const text = document.querySelector(".plain-code");
      text.setSelectionRange(110 * 17, 160 * 17);
      document.execCommand("delete");
    }`);
    await fresh.waitForSelector(".plain-code-box.colored");
    const [colors, text] = (await fresh.evaluate(
      '[new DOMMatrix(getComputedStyle(document.querySelector(".plain-code-colors")).transform).f, document.querySelector(".plain-code").scrollTop]',
    )) as [number, number];
    expect(text).to.be.above(1_000);
    expect(colors).to.equal(-text);
    await release();
    await fresh.close();
  });

  it("continues in the editor although all code was deleted before it was loaded", async () => {
    const { fresh, release } = await openWithoutEditor("emptied");
    await studioPage(fresh).replace(".plain-code", "");
    await fresh.waitForFunction('document.querySelector(".plain-code").value === ""');
    await release();
    await fresh.waitForFunction(editorHasFocus);
    await fresh.close();
  });

  it("keeps typed code, its place and the save if the editor cannot be loaded", async () => {
    const { fresh, path, refuse } = await openWithoutEditor("without-editor");
    const studio = studioPage(fresh);
    await fresh.evaluate("document.activeElement.setSelectionRange(26, 26)");
    await fresh.keyboard.type(" return 1;");
    await refuse();
    expect(await studio.textOf(".code .code-fault")).to.contain("The editor could not be loaded");
    await fresh.keyboard.type(" // here\n");
    const code = "async function execute() { return 1; // here\n}";
    expect(await fresh.$eval(".plain-code", ({ value }) => value)).to.equal(code);
    await studio.save();
    await studio.saved();
    expect((await service.rest("GET", path)).body.action.code).to.equal(code);
    await fresh.close();
  });
});
