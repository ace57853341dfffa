/**
 * Tests what all pages of Studio share: keyboard, focus, Back, title, command palette, and the notice of a lost connection. The pages come
 * through a proxy with a path prefix.
 */
import { expect } from "chai";
import type { Browser, HTTPRequest, Page, SerializedAXNode } from "puppeteer";
import { type PrefixProxy, startPrefixProxy } from "../harness/prefix-proxy.js";
import { longTest, runsAll } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until, untilEqual } from "../harness/until.js";
import { launchChromium, type PageWatch, watchPage, watchSockets } from "./chromium.js";
import { checkPaletteKeys, checkPaletteSearch } from "./palette-checks.js";
import { leaveOutCompiler, type StudioPage, studioPage } from "./studio-page.js";

const SLOW_CODE = "async function execute() { await new Promise(() => undefined); }";

describe("the frame of Studio", () => {
  let service: TestService;
  let proxy: PrefixProxy;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let studio: StudioPage;
  let ids: number[];
  let socketUrls: string[];

  before(async () => {
    proxy = await startPrefixProxy("/svc");
    // Only the long tests run actions, for which the service needs the role `runner`.
    const environment = { PUBLIC_URL: `${proxy.url}/`, ROLES: runsAll() ? "api,runner" : "api" };
    [service, browser] = await Promise.all([startTestService(environment), launchChromium()]);
    proxy.setTarget(service.url);
    ids = [];
    for (const [name, code] of [
      ["quick", "async function execute() { return 1 }"],
      ["slow", SLOW_CODE],
    ]) {
      const body = { name, code, active: true, triggers: [{ trigger: "manual" }] };
      const made = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
      ids.push(made.body.action.id);
    }
    page = await browser.newPage();
    await leaveOutCompiler(page);
    await page.setViewport({ width: 1280, height: 800 });
    watch = watchPage(page, proxy.url);
    studio = studioPage(page);
    socketUrls = await watchSockets(page);
    await page.goto(`${proxy.url}/`);
    expect(page.url()).to.equal(`${proxy.url}/studio`);
    await studio.signIn(service.tokens.editor);
    await page.waitForSelector(".action-list .action");
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
    await proxy?.stop();
  });
  afterEach(() => expect([watch.foreign, proxy.outside]).to.deep.equal([[], []]));

  const title = (text: string) => page.waitForFunction(`document.title === ${JSON.stringify(text)}`);
  const focused = (selector: string) =>
    page.waitForFunction(`document.activeElement?.matches(${JSON.stringify(selector)})`);

  it("opens addresses with the app from the palette, also if the address after the sign-in names none", async () => {
    for (const view of ["runs", "actions"]) {
      await studio.press("k");
      await focused(".palette input");
      await page.keyboard.sendCharacter(`go to ${view}`);
      await page.keyboard.press("Enter");
      await page.waitForFunction(`location.hash === "#/${service.appId}/${view}"`);
    }
  });

  it("uses the path prefix for the cookie and the socket", async () => {
    await untilEqual(async () => socketUrls[0], `${proxy.url.replace("http", "ws")}/graphql`);
    const [cookie] = await page.browserContext().cookies();
    expect(cookie).to.include({ name: "auth_token", path: "/svc", httpOnly: true });
  });

  it("shows the open item in the window's title, with an icon", async () => {
    await title("Actions · First app · Studio");
    await studio.open(`${service.appId}/actions/${ids[0]}`);
    await title("quick · First app · Studio");
    const icon = await page.$eval('link[rel="icon"]', (link) => (link as unknown as { href: string }).href);
    expect(icon).to.match(/^data:image\/svg/);
  });

  it("draws an icon beside each link of the sidebar", async () => {
    const widths = (await page.evaluate(
      `[...document.querySelectorAll('nav[aria-label="Views"] a')].map((link) => link.querySelector("svg > *")?.getBBox().width ?? 0)`,
    )) as number[];
    expect(widths.length).to.be.above(10);
    expect(widths.filter((width) => width < 10)).to.deep.equal([]);
  });

  longTest(
    "keeps the fields of an action closed in one column, and opens them when the service rejects one",
    async () => {
      await page.waitForSelector("#payload");
      for (const width of [768, 390]) {
        await page.setViewport({ width, height: 800 });
        await page.waitForSelector(".fields", { hidden: true });
        const [bottom, height] = (await page.evaluate(
          '[document.querySelector("#dock [data-tab=Run]").getBoundingClientRect().bottom, innerHeight]',
        )) as [number, number];
        expect(bottom, `end of the tab Run at ${width} pixels`).to.be.below(height);
      }
      await studio.button("Fields of the action");
      await studio.replace('[data-field="name"] input', "not a name");
      await studio.button("Fields of the action");
      await page.waitForSelector(".fields", { hidden: true });
      await studio.save();
      await focused('[data-field="name"] input[aria-invalid="true"]');
      expect(await studio.textOf('[data-field="name"] .fault')).to.contain("NAME_INVALID_CHARS");
      await studio.replace('[data-field="name"] input', "quick");
      await page.setViewport({ width: 1280, height: 800 });
      await page.waitForSelector('[aria-label="Fields of the action"]', { visible: true });
      expect(await page.$eval(".fields-button", (button) => button.checkVisibility())).to.equal(false);
      await studio.saved();
    },
  );

  longTest("loads the library of menus when a menu is first opened, and opens it", async () => {
    const loaded = () =>
      page.evaluate('performance.getEntriesByType("resource").some(({ name }) => /\\/menus-\\w+\\.js$/.test(name))');
    expect(await loaded()).to.equal(false);
    for (const _ of ["first", "second"]) {
      await page.click(".account-button");
      await page.waitForSelector(studio.withText("*[@role='menuitem']", "Sign out"));
      expect(await loaded()).to.equal(true);
      await page.keyboard.press("Escape");
      await page.waitForFunction('!document.querySelector("[role=menuitem]")');
      await focused(".account-button");
    }
  });

  it("goes back and forward through pages, items and apps with the browser's buttons", async () => {
    await studio.open(`${service.appId}/settings`);
    await page.waitForSelector(".settings");
    await studio.open(`${service.appId}/app/audit`);
    await title("Audit log · First app · Studio");
    await page.goBack();
    await page.waitForSelector(".settings");
    await page.goBack();
    await title("quick · First app · Studio");
    await page.goForward();
    await page.waitForSelector(".settings");
    await studio.press("k");
    await focused(".palette input");
    await page.goBack();
    await title("quick · First app · Studio");
    // The palette closes, so it shows no commands of the page that was left.
    await page.waitForSelector(".palette", { hidden: true });
  });

  longTest("keeps the browser's history if Back was rejected for unsaved work", async () => {
    await page.waitForSelector(".code-editor .view-line");
    await studio.write("async function execute() { return 2 }");
    await page.evaluate("history.back()");
    await page.waitForSelector("dialog[open]");
    await studio.button("Cancel", "//dialog");
    await page.waitForSelector("dialog", { hidden: true });
    expect(await page.evaluate("location.hash")).to.equal(`#/${service.appId}/actions/${ids[0]}`);
    await page.evaluate("history.back()");
    await page.waitForSelector("dialog[open]");
    await studio.button("Discard changes", "//dialog");
    await title("Actions · First app · Studio");
    await page.goForward();
    await title("quick · First app · Studio");
  });

  longTest("lets the keyboard skip to the content, and leave the editor", async () => {
    // After a reload, the focus starts at the beginning of the page.
    await page.reload();
    await page.waitForSelector(".code-editor .view-line");
    await page.keyboard.press("Tab");
    await focused(".skip");
    await page.keyboard.press("Enter");
    await focused("#content");
    await page.focus(".code-editor textarea");
    expect(await studio.textOf("#code-keys")).to.contain("Ctrl M");
    await studio.press("m");
    await page.keyboard.press("Tab");
    await page.waitForFunction('!document.activeElement.closest(".code-editor")');
    await page.focus(".code-editor textarea");
    await studio.press("m");
  });

  it("returns the focus to the button that opened a dialog", async () => {
    const button = await page.waitForSelector(studio.withText("button", "Delete this action"));
    await button!.focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.press("Escape");
    await page.waitForFunction('document.activeElement.textContent === "Delete this action"');
  });

  longTest("returns the focus when the palette is left by Escape, although something was typed", async () => {
    for (const place of [".code-editor textarea", '[data-field="name"] input', '[title="Ctrl+K"]', "#content"]) {
      await page.focus(place);
      await studio.press("k");
      await focused(".palette input");
      await page.keyboard.sendCharacter("open");
      await page.keyboard.press("Escape");
      await page.waitForSelector("dialog", { hidden: true });
      await focused(place);
    }
  });

  it("opens the palette although it was closed at the same moment", async () => {
    await studio.press("k");
    await focused(".palette input");
    await page.evaluate(`{
      document.querySelector(".palette").close();
      dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, cancelable: true }));
    }`);
    await page.waitForFunction('document.querySelector(".palette[open] input")?.matches(":focus")');
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))");
    await focused(".palette[open] input");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { hidden: true });
  });

  it("runs with Ctrl+K every command of the page, found by its words", async () => {
    await studio.press("k");
    await focused(".palette input");
    await page.keyboard.sendCharacter("open slow");
    await page.waitForFunction('document.querySelector(".palette [role=option] .grow")?.textContent === "Open slow"');
    await page.keyboard.press("Enter");
    await title("slow · First app · Studio");
    await page.waitForSelector(".payload .primary:enabled");
    await studio.press("k");
    await focused(".palette input");
    await page.keyboard.sendCharacter("run this");
    await page.keyboard.press("Enter");
    await page.waitForSelector(studio.withText("button[not(@disabled)]", "Cancel the run"));
    await studio.press("k");
    const names = await page.$$eval(".palette [role=option] .grow", (all) => all.map((element) => element.textContent));
    expect(names).to.include.members(["Cancel the run", "Format", "Delete this action", "Go to Tokens"]);
    expect(new Set(names).size).to.equal(names.length);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { hidden: true });
  });

  longTest("selects commands of the palette with the arrow keys, also for screen readers", () =>
    checkPaletteKeys(page, studio),
  );

  longTest("finds tables, settings, people, runs and docs in the palette", () =>
    checkPaletteSearch(service, page, studio),
  );

  it("opens the documentation of a page beside it, with the reader's address and app, and follows its links there", async () => {
    const before = await page.evaluate("location.hash");
    await page.click('[aria-label="Docs of this page"]');
    await page.waitForSelector(".docs-panel .docs-text p");
    expect(await studio.textOf(".docs-panel h2")).to.equal("Actions");
    const text = (await studio.textOf(".docs-text"))!;
    expect(text).to.contain(`${proxy.url}/v3/apps/${service.appId}`);
    const link = await page.waitForSelector('.docs-text a[href*="/docs/"]');
    await link!.evaluate((element) => (element as unknown as { click(): void }).click());
    await page.waitForFunction('document.querySelector(".docs-panel h2").textContent !== "Actions"');
    await studio.replace(".docs-panel input", "curl an action");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".docs-hits button");
    expect(await page.evaluate("location.hash")).to.equal(before);
    await page.keyboard.press("Escape");
    await page.waitForSelector(".docs-panel", { hidden: true });
    await focused('[aria-label="Docs of this page"]');
  });

  longTest("shows “Cancelled” for a cancelled run, and does not count it as a failure", async () => {
    await studio.button("Cancel the run");
    await page.waitForSelector('.outcome[data-state="cancelled"]');
    await studio.button("Log", '//*[@role="tablist"]');
    await page.waitForSelector(".entry.cancelled");
    await (await page.waitForSelector(studio.withText("label", "failures only")))!.click();
    expect(await studio.textOf(".log-panel .empty")).to.equal("No execution has failed.");
  });

  longTest("marks a result as one of other code after the code has changed", async () => {
    await studio.open(`${service.appId}/actions/${ids[0]}`);
    await title("quick · First app · Studio");
    await page.waitForSelector(".code-editor .view-line");
    await studio.run();
    await page.waitForSelector('.outcome[data-state="completed"]');
    expect(await page.$(".outcome .behind")).to.equal(null);
    await studio.write("async function execute() { return 3 }");
    await page.waitForSelector(".outcome .behind");
    await studio.save();
    await studio.saved();
  });

  longTest("duplicates an action, and starts one from a template", async () => {
    await studio.button("Duplicate");
    await page.waitForFunction(`document.querySelector('[data-field="name"] input')?.value === "quick-copy"`);
    await studio.save();
    await title("quick-copy · First app · Studio");
    await studio.open(`${service.appId}/actions`);
    await page.waitForSelector(".templates a");
    await (await page.waitForSelector(studio.withText("b", "Every working day")))!.click();
    await page.waitForSelector(".ticks li");
    await studio.save();
    await title("every-working-day · First app · Studio");
  });

  longTest("has a heading for screen readers on pages that draw only the breadcrumb", async () => {
    const content = (await page.$("#content"))!;
    for (const [place, name] of [
      ["runs", "Runs"],
      ["schedule", "Schedules"],
      ["account", "Account"],
      ["app/audit", "Audit log"],
    ] as const) {
      await studio.open(`${service.appId}/${place}`);
      const heading = (await page.waitForSelector(studio.withText("h2", name, '//*[@id="content"]')))!;
      const listHeadings = ({ role, level, name: text, children = [] }: SerializedAXNode): unknown[] => [
        ...(role === "heading" && level === 2 ? [text] : []),
        ...children.flatMap(listHeadings),
      ];
      expect(listHeadings((await page.accessibility.snapshot({ root: content }))!)).to.include(name);
      expect((await heading.boundingBox())!.width, `drawn width of ${name}`).to.equal(1);
    }
  });

  it("starts an action with Alt+N on every page", async () => {
    await studio.open(`${service.appId}/app/tokens`);
    await title("Tokens · First app · Studio");
    await page.keyboard.down("Alt");
    await page.keyboard.press("KeyN");
    await page.keyboard.up("Alt");
    await page.waitForSelector(studio.withText("h2", "New action"));
    await focused('[data-field="name"] input');
  });

  longTest("formats the code, and explains if it cannot", async () => {
    await page.waitForSelector(".code-editor .view-line");
    await studio.write("async function execute(){return   {a:0}}");
    // The page loads the formatter at its first use. The formatter must not replace code that a person types during the load.
    const held: HTTPRequest[] = [];
    const hold = (request: HTTPRequest) => void held.push(request);
    page.on("request", hold);
    await page.setRequestInterception(true);
    await studio.button("Format");
    await until(() => held.some((request) => request.resourceType() === "script"));
    await studio.write("async function execute(){return   {a:1}}");
    page.off("request", hold);
    const pass = (request: HTTPRequest) => void request.continue();
    page.on("request", pass);
    for (const request of held) await request.continue();
    await page.waitForSelector(studio.withText("span", "Not formatted: you have changed the code meanwhile."));
    page.off("request", pass);
    await page.setRequestInterception(false);
    await studio.button("Format");
    await page.waitForFunction(`document.querySelector(".code-editor .view-lines").textContent.replaceAll("\\u00a0", " ")
      .includes("  return { a: 1 };")`);
    await studio.write("async function execute() { return }}");
    await studio.button("Format");
    await page.waitForFunction('/cannot be formatted: .*1:/.test(document.querySelector(".code-foot").textContent)');
    expect(watch.errors).to.deep.equal([]);
  });

  longTest("shows a lost connection as long as it is lost, and follows again afterwards", async () => {
    proxy.cut();
    await page.waitForFunction(
      '/connection to the service is lost/.test(document.querySelector(".connection").textContent)',
    );
    proxy.restore();
    await page.waitForSelector(".connection:empty");
    await service.rest("PUT", `/v3/apps/${service.appId}/actions/${ids[1]}`, { body: { name: "renamed-meanwhile" } });
    await page.waitForSelector(studio.withText("b", "renamed-meanwhile"));
  });

  longTest("shows each line of a run once, although the connection was lost in between", async () => {
    const code = `async function execute() {
      for (const n of [1, 2, 3]) console.log("line", n);
      await new Promise((resolve) => setTimeout(resolve, 60_000));
    }`;
    const action = { name: "talks", active: true, triggers: [{ trigger: "manual" }], code };
    const { body } = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: action });
    await studio.open(`${service.appId}/actions/${body.action.id}`);
    await studio.button("Discard changes", "//dialog");
    await title("talks · First app · Studio");
    await page.waitForSelector(".code-editor .view-line");
    await studio.run();
    await page.waitForSelector('.console[aria-label="Console, 3 lines"]');
    proxy.cut();
    await page.waitForSelector(".connection:not(:empty)");
    proxy.restore();
    await page.waitForSelector(".connection:empty");
    await studio.button("Cancel the run");
    // Studio shows this state when it has received the end of the run.
    await page.waitForSelector('.outcome[data-state="cancelled"]');
    expect(
      await page.$$eval(".console li span:last-child", (lines) => lines.map((line) => line.textContent)),
    ).to.deep.equal(["line 1", "line 2", "line 3"]);
  });
});
