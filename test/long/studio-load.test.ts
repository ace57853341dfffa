/** Tests which files Studio's first screens load, and their size. Also tests an editor whose files load late or not at all. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { Browser, HTTPRequest, Page } from "puppeteer";
import { VIEW_NAMES } from "../../src/web/studio/shell/views.js";
import { startTestService, type TestService } from "../harness/service.js";
import { untilEqual } from "../harness/until.js";
import { launchChromium } from "../web/chromium.js";
import { studioPage } from "../web/studio-page.js";

const WEB_FOLDER = fileURLToPath(new URL("../../web", import.meta.url));
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

  /** Returns the compressed size in bytes of the assets that the page has requested. */
  const measureLoadedBytes = () =>
    page.evaluate(`performance.getEntriesByType("resource").filter(({ name }) => name.includes("/assets/"))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`) as Promise<number>;

  it("takes at most 250 KB for all pages together, and more only when an editor is shown", async () => {
    await page.goto(`${service.url}/studio`);
    const studio = studioPage(page);
    await studio.signIn(service.tokens.editor);
    for (const view of VIEW_NAMES) {
      await studio.open(`${service.appId}/${view}`);
      await page.waitForFunction('!/^(Loading…)?$/.test(document.querySelector("#content").textContent)');
    }
    expect(await measureLoadedBytes()).to.be.within(1, FIRST_LOAD_MAX_BYTES);
    await studio.open(`${service.appId}/actions/new`);
    await page.waitForSelector(".code-editor .view-line");
    expect(await measureLoadedBytes()).to.be.above(FIRST_LOAD_MAX_BYTES);
  });

  it("requests all files of the editor at once", async () => {
    const { parts } = JSON.parse(readFileSync(`${WEB_FOLDER}/pages.json`, "utf8")).studio as {
      parts: { editor: string[] };
    };
    const links = (await page.$$eval('link[rel="modulepreload"]', (all) => all.map(({ href }) => href))) as string[];
    for (const file of parts.editor) expect(links).to.include(`${service.url}${file}`);
  });

  /** Opens a new action in a page whose requests for the editor's files wait until `release` is called. */
  async function openWithoutEditor(name: string, { code = "async function execute() {}", query = "" } = {}) {
    const { body } = await service.rest("POST", `/v3/apps/${service.appId}/actions`, {
      body: { name, active: true, triggers: [{ trigger: "manual" }], code },
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
    await fresh.goto(`${service.url}/studio#/${service.appId}/actions/${body.action.id}${query}`, {
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
      release: () => end((request) => request.continue()),
      refuse: () => end((request) => request.abort("failed")),
    };
  }

  const editorHasFocus = 'document.activeElement.closest(".code-editor") !== null';

  it("shows code as text that can be changed, saved and run until the editor is loaded, which continues at the same place", async () => {
    const { fresh, path, release } = await openWithoutEditor("plain");
    await fresh.evaluate("document.activeElement.setSelectionRange(26, 26)");
    await fresh.keyboard.type(" return 1;");
    const code = "async function execute() { return 1;}";
    const textLeft = await fresh.evaluate(`(() => {
      const text = document.querySelector(".plain-code");
      return text.getBoundingClientRect().left + Number.parseFloat(getComputedStyle(text).paddingLeft);
    })()`);
    expect(await fresh.$eval(".plain-code", ({ value }) => value)).to.equal(code);
    await studioPage(fresh).run();
    await fresh.waitForSelector('.outcome a[href*="/runs/"]');
    expect((await service.rest("GET", path)).body.action.code).to.equal(code);
    await fresh.focus(".plain-code");
    await release();
    await fresh.waitForSelector(".code-editor .view-line");
    await fresh.waitForFunction(editorHasFocus);
    const linesLeft = await fresh.$eval(".code-editor .view-lines", (lines) => lines.getBoundingClientRect().left);
    expect(linesLeft, "the code does not move").to.equal(textLeft);
    await fresh.keyboard.type(" // here");
    await fresh.waitForFunction(
      `document.querySelector(".code-editor .view-lines").textContent.replaceAll("\u00a0", " ").includes("return 1; // here}")`,
    );
    await fresh.close();
  });

  const readEditor = async (fresh: Page): Promise<string> => {
    const lines = (await fresh.evaluate(`[...document.querySelectorAll(".code-editor .view-line")]
      .sort((a, b) => Number.parseFloat(a.style.top) - Number.parseFloat(b.style.top))
      .map((line) => line.textContent.replaceAll("\u00a0", " "))`)) as string[];
    return lines.join("\n");
  };
  const waitForEditorText = (fresh: Page, code: string) => untilEqual(() => readEditor(fresh), code);
  const plainText = (fresh: Page) => fresh.$eval(".plain-code", ({ value }) => value);
  const pressWith = async (fresh: Page, modifier: "Control" | "Shift", key: "z" | "m" | "Tab") => {
    await fresh.keyboard.down(modifier);
    await fresh.keyboard.press(key);
    await fresh.keyboard.up(modifier);
  };

  it("indents, keeps the indentation of lines and undoes before the editor is loaded, and Ctrl+M lets Tab leave", async () => {
    const { fresh, release } = await openWithoutEditor("keys");
    await fresh.evaluate("document.activeElement.setSelectionRange(26, 26)");
    for (const key of ["Enter", "a", "Enter", "Tab", "b"] as const) await fresh.keyboard.press(key);
    expect(await plainText(fresh)).to.equal("async function execute() {\n  a\n    b\n}");
    await pressWith(fresh, "Shift", "Tab");
    expect(await plainText(fresh)).to.equal("async function execute() {\n  a\n  b\n}");
    await fresh.keyboard.type("c");
    expect(await plainText(fresh)).to.equal("async function execute() {\n  a\n  bc\n}");
    for (let step = 0; step < 10; step += 1) await pressWith(fresh, "Control", "z");
    expect(await plainText(fresh)).to.equal("async function execute() {}");
    await pressWith(fresh, "Control", "m");
    await fresh.keyboard.press("Tab");
    expect(await fresh.evaluate('document.activeElement.matches(".plain-code")')).to.equal(false);
    await release();
    await fresh.close();
  });

  it("loses no key that is pressed while the editor replaces the text, and undoes what was typed before", async () => {
    const { fresh, release } = await openWithoutEditor("keys-meanwhile");
    await fresh.evaluate("document.activeElement.setSelectionRange(26, 26)");
    await fresh.keyboard.type(" // ");
    const isReplaced = () => fresh.evaluate('document.querySelector(".code-editor .view-line") !== null');
    void release();
    let typed = "";
    // Types keys until 20 of them were typed after the editor appeared.
    for (let after = 0; after < 20; after += (await isReplaced()) ? 1 : 0) {
      const digit = String(typed.length % 10);
      await fresh.keyboard.sendCharacter(digit);
      typed += digit;
    }
    await waitForEditorText(fresh, `async function execute() { // ${typed}}`);
    for (let step = 0; step < 30 && (await readEditor(fresh)) !== "async function execute() {}"; step += 1)
      await pressWith(fresh, "Control", "z");
    expect(await readEditor(fresh)).to.equal("async function execute() {}");
    await fresh.close();
  });

  it("waits with the editor until an input method has composed its text", async () => {
    const { fresh, release } = await openWithoutEditor("composed");
    await fresh.evaluate("document.activeElement.setSelectionRange(26, 26)");
    const session = await fresh.createCDPSession();
    await session.send("Input.imeSetComposition", { text: "にほ", selectionStart: 2, selectionEnd: 2 });
    await release();
    await fresh.waitForNetworkIdle();
    expect(await plainText(fresh)).to.equal("async function execute() {にほ}");
    await session.send("Input.insertText", { text: "日本" });
    await fresh.waitForFunction(editorHasFocus);
    await waitForEditorText(fresh, "async function execute() {日本}");
    await fresh.close();
  });

  it("opens a position in the code once: the editor does not return there from another place", async () => {
    const code = `async function execute() {\n${"  await null;\n".repeat(300)}}`;
    const { fresh, release } = await openWithoutEditor("position", { code, query: "?line=200&column=3" });
    const READ_PLACE = `(() => {
      const { value, selectionStart, scrollTop } = document.querySelector(".plain-code");
      return [value.slice(0, selectionStart).split("\\n").length, scrollTop > 2000];
    })()`;
    await untilEqual(() => fresh.evaluate(READ_PLACE), [200, true]);
    await fresh.evaluate(`{
      const text = document.querySelector(".plain-code");
      text.setSelectionRange(26, 26);
      text.scrollTop = 0;
    }`);
    await release();
    await fresh.waitForFunction(editorHasFocus);
    await fresh.keyboard.type(" // here");
    await fresh.waitForFunction(
      'document.querySelector(".code-editor .view-line").textContent.replaceAll("\u00a0", " ") === "async function execute() { // here"',
    );
    await fresh.close();
  });

  it("shows the colors in the same position as the text when code becomes short enough to be colored", async () => {
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
