import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { longTest } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { untilEqual } from "../harness/until.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { leaveOutCompiler, type StudioPage, studioPage } from "./studio-page.js";

const ACTION_CODE = `async function execute({ payload, settings }) {
  console.log("for", payload.name);
  if (!payload.name) throw new TypeError("a name is required");
  return { hello: payload.name, keys: Object.keys(settings).sort() };
}
`;

describe("Studio at GET /studio", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let studio: StudioPage;

  before(async () => {
    [service, browser] = await Promise.all([useSharedService("api,runner"), launchChromium()]);
    page = await browser.newPage();
    await leaveOutCompiler(page);
    await page.setViewport({ width: 1280, height: 800 });
    watch = watchPage(page, service.url);
    studio = studioPage(page);
    await page.goto(`${service.url}/studio`);
  });

  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  const waitForOutcome = (state: string) => page.waitForSelector(`.outcome[data-state="${state}"]`);
  const readFromApi = async (path: string) => (await service.rest("GET", `/v3/apps/${service.appId}${path}`)).body;

  it("rejects an invalid token, with a message at its field", async () => {
    await studio.button("Use a token");
    await studio.replace('input[name="token"]', "svc_editor_of-nobody");
    await studio.button("Sign in");
    await page.waitForSelector('input[name="token"][aria-invalid="true"]');
    expect(await studio.textOf("#sign-in-fault")).to.contain("not valid");
  });

  it("rejects a token of another kind with an explanation, and signs no one in", async () => {
    await studio.replace('input[name="token"]', service.tokens.api);
    await studio.button("Sign in");
    await page.waitForFunction('/kind .api./.test(document.querySelector("#sign-in-fault").textContent)');
    expect(await page.browserContext().cookies()).to.deep.equal([]);
    // The test has caused exactly one error.
    expect(watch.errors.splice(0)).to.have.length(1);
  });

  it("shows a page and a way back for an unknown address", async () => {
    const answer = await page.goto(`${service.url}/studio/nowhere`);
    expect(answer?.status()).to.equal(404);
    await page.waitForSelector(studio.withText("h1", "This page does not exist"));
    await studio.button("Go to Studio");
    await page.waitForSelector('form[aria-busy="false"]');
    expect((await service.rest("GET", "/studio/nowhere", { as: null })).body.status).to.equal("NOT_FOUND");
    // Chromium logs the status 404 of the page as an error.
    expect(watch.errors.splice(0)).to.have.length(1);
  });

  it("signs in with a cookie that no script can read, which survives a reload and not the browser", async () => {
    await studio.signIn(service.tokens.editor);
    await page.reload();
    await page.waitForSelector(".top-bar");
    const READ_STORAGE = "JSON.stringify([localStorage, sessionStorage, document.cookie])";
    expect(await page.evaluate(READ_STORAGE)).to.equal('[{},{},""]');
    const cookies = await page.browserContext().cookies();
    expect(cookies.map(({ session, httpOnly }) => ({ session, httpOnly }))).to.deep.equal([
      { session: true, httpOnly: true },
    ]);
    await studio.signOut();
    await page.waitForSelector('input[name="email"]');
    expect(await page.browserContext().cookies()).to.deep.equal([]);
  });

  it("stays signed in for a week on request", async () => {
    await page.waitForSelector('form[aria-busy="false"]');
    await studio.button("Use a token");
    await page.click('input[type="checkbox"]');
    await studio.signIn(service.tokens.editor);
    const [cookie] = await page.browserContext().cookies();
    const days = (cookie!.expires - Date.now() / 1000) / 86_400;
    expect(days).to.be.within(6, 7);
  });

  it("reports an unknown app, and leads to an existing one", async () => {
    await page.evaluate('location.hash = "#/99/actions"');
    expect(await studio.textOf(".welcome h1")).to.equal("No app 99");
    await studio.button("Go to First app");
    await page.waitForSelector(".top-bar");
  });

  it("offers templates while there is no action, also on a phone", async () => {
    for (const width of [390, 1280]) {
      await page.setViewport({ width, height: 800 });
      await page.waitForSelector(".templates a", { visible: true });
      expect(await studio.textOf(".welcome h2")).to.equal("No actions yet");
    }
  });

  it("shows a rejected name at the name, and creates the action when it is right", async () => {
    await studio.button("New");
    await page.waitForSelector(".code-editor .view-line");
    await studio.write(ACTION_CODE);
    await studio.replace('[data-field="name"] input', "not a name");
    await studio.save();
    await page.waitForSelector('[data-field="name"] input[aria-invalid="true"]');
    expect(await studio.textOf('[data-field="name"] .fault')).to.contain("NAME_INVALID_CHARS");
    await studio.replace('[data-field="name"] input', "greet");
    await studio.save();
    await page.waitForSelector(studio.withText("b", "greet", '//*[@class="action-name"]'));
    const { actions } = await readFromApi("/actions");
    expect(actions.map(({ name, code }: { name: string; code: string }) => ({ name, code }))).to.deep.equal([
      { name: "greet", code: ACTION_CODE },
    ]);
  });

  it("runs the action with Ctrl+Enter and the payload, and shows what it prints and returns", async () => {
    await studio.replace("#payload", '{"name": "Ada"}');
    await studio.run();
    await waitForOutcome("completed");
    expect(JSON.parse((await studio.textOf(".result"))!)).to.deep.equal({ hello: "Ada", keys: [] });
    await page.waitForSelector(".console li");
    expect(await studio.textOf(".console li span:last-child")).to.equal("for Ada");
  });

  it("shows what the action threw, also at its line in the code, and adds its entry to the open log when it is written", async () => {
    await studio.replace("#payload", "{}");
    await studio.run();
    await waitForOutcome("failed");
    expect(await studio.textOf(".result.failed")).to.equal("TypeError: a name is required");
    await page.waitForSelector(".code-editor .squiggly-error");
    await page.focus(".code-editor textarea");
    await page.keyboard.press("F8");
    expect(await studio.textOf(".marker-widget .message")).to.contain("TypeError: a name is required");
    await page.keyboard.press("Escape");
    await studio.button("Log", '//*[@role="tablist"]');
    await page.waitForSelector(".entry.failed");
    const body = { name: "live" };
    await service.rest("POST", `/v3/apps/${service.appId}/actions/greet/runWithResult`, { body });
    await page.waitForFunction('document.querySelectorAll(".entry").length === 3');
    expect(await studio.textOf(".entry:first-child .gist")).to.contain('"hello":"live"');
    await page.click(".entry.failed button");
    expect(await studio.textOf(".entry-details pre.failed")).to.match(/TypeError: a name is required\n.*execute/);
  });

  it("marks the line of rejected code", async () => {
    await studio.write("async function execute() {\n  return 1 +;\n}");
    await studio.save();
    expect(await studio.textOf(".code-fault")).to.match(/line 2, column \d+.*CODE_VALIDATION_FAILED/);
    await page.waitForSelector(".code-editor .squiggly-error");
  });

  it("asks before unsaved work is left, and stays if the person wishes so", async () => {
    await studio.button("Settings");
    await page.waitForSelector("dialog[open]");
    await studio.button("Cancel", "//dialog");
    await page.waitForSelector("dialog", { hidden: true });
    expect(await studio.textOf(".workspace-head h2")).to.equal("greet");
    await studio.write(`// second\n${ACTION_CODE}`);
    await studio.save();
    await studio.saved();
  });

  it("asks before Alt+N replaces an unsaved new action that was started from a template", async () => {
    const opened = await page.evaluate("location.hash");
    await studio.open(`${service.appId}/actions/new?template=fetch`);
    await studio.replace('[data-field="name"] input', "half");
    await page.keyboard.down("Alt");
    await page.keyboard.press("KeyN");
    await page.keyboard.up("Alt");
    await studio.button("Cancel", "//dialog");
    expect(await page.$eval('[data-field="name"] input', (field) => field.value)).to.equal("half");
    await page.evaluate(`location.hash = ${JSON.stringify(opened)}`);
    await studio.button("Discard changes", "//dialog");
    await page.waitForSelector(studio.withText("h2", "greet"));
  });

  it("publishes the app and the action, and shows what the next publication would change", async () => {
    await studio.button("Publish", '//*[@role="tablist"]');
    expect(await studio.textOf(".publish-panel")).to.contain(
      "Switching the draft off leaves the live version as it is",
    );
    await studio.button("Publish the app");
    await page.waitForSelector(studio.withText("span", "published", '//*[@class="top-bar"]'));
    await studio.button("Publish", '//*[@role="tabpanel"]');
    await page.waitForSelector(studio.withText("button", "Publish again"));
    await page.click('[data-field="active"] input');
    await studio.save();
    await page.waitForSelector(".diff td.added");
    const change = await page.$$eval(".diff tbody tr > *", (cells) => cells.map((cell) => cell.textContent));
    expect(change).to.deep.equal(["active", "true", "false"]);
    expect(await studio.textOf(".publish-panel .notice")).to.contain("the live version still runs");
  });

  it("restores a version and says so in the history", async () => {
    await studio.button("Versions", '//*[@role="tablist"]');
    await page.waitForSelector(".versions li:nth-child(3) button");
    const history = await page.$$eval(".versions li", (rows) => rows.map((row) => row.textContent ?? ""));
    expect(history.map((text) => text.includes("live"))).to.deep.equal(history.map((_, at) => at === 1));
    await page.click(".versions li:nth-child(3) button");
    await page.waitForSelector(".diff .added");
    await studio.button("Restore");
    await studio.button("Restore", "//dialog");
    await page.waitForSelector(studio.withText("span", "before a restore"));
    const { actions } = await readFromApi("/actions");
    expect(actions[0]).to.include({ code: ACTION_CODE, active: true });
  });

  it("describes a frequency while it is typed, or explains why it is rejected", async () => {
    await page.select('[data-field="triggers"] select:has(option[value="schedule"])', "schedule");
    const valueIn = (selector: string) =>
      page.$eval(selector, (field) => (field as unknown as { value: string }).value);
    const here = await page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone");
    expect(await valueIn('[data-field="timezone"] input')).to.equal(here);
    await page.select('select[aria-label="Repeats"]', "weekly");
    await page.click(".weekdays label:nth-of-type(3)");
    expect(await valueIn('[data-field="frequency"] input')).to.equal("0 9 * * 1,3");
    const hours = await page.$$eval('select[aria-label="Hour"] option', (all) => all.map((hour) => hour.textContent));
    expect(hours).to.deep.equal(Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, "0")));
    const group = await page.waitForSelector('::-p-aria([name="Time of day"][role="group"])');
    expect(await group!.$$eval("select", (all) => all.map((select) => select.ariaLabel))).to.deep.equal([
      ...["Hour", "Minute"],
    ]);
    await page.select('select[aria-label="Hour"]', "14");
    await page.select('select[aria-label="Minute"]', "5");
    expect(await valueIn('[data-field="frequency"] input')).to.equal("5 14 * * 1,3");
    await studio.replace('[data-field="frequency"] input', "0 9 L * *");
    await page.waitForSelector('[data-field="frequency"] input[aria-invalid="true"]');
    expect(await studio.textOf('[data-field="frequency"] .fault')).to.contain("FREQUENCY_INVALID");
    await studio.replace('[data-field="frequency"] input', "0 9 * * 1-5");
    await page.waitForSelector(".ticks li:nth-child(5)");
    expect(await page.$('[data-field="frequency"] input[aria-invalid="true"]')).to.equal(null);
    expect(await studio.textOf('[data-field="frequency"] .hint')).to.contain("09:00");
    expect(await studio.textOf(".ticks li")).to.match(
      /^(Mon|Tue|Wed|Thu|Fri), [A-Z][a-z]{2} \d{1,2}, 20\d\d, 09:00:00 \(UTC[+-]\d\d:00\)$/,
    );
    await studio.replace('[data-field="frequency"] input', "");
    expect(await studio.textOf('[data-field="frequency"] .notice')).to.contain("never runs on schedule");
  });

  longTest("reports in the service's words that code is too long", async () => {
    await studio.write(`// long\n${`// ${"x".repeat(97)}\n`.repeat(11_000)}// the end`);
    await studio.save();
    await page.waitForFunction('/PAYLOAD_TOO_LARGE/.test(document.querySelector(".workspace").textContent)');
    watch.errors.splice(0);
  });

  it("asks before signing out would lose unsaved work", async () => {
    await studio.signOut();
    await page.waitForSelector("dialog[open]");
    await studio.button("Discard changes", "//dialog");
    await page.waitForSelector('input[name="email"]');
    await studio.signIn(service.tokens.editor);
  });

  it("keeps settings in their tiers: a protected value is written and never shown again", async () => {
    await studio.button("Settings");
    for (const [key, value] of [
      ["title", "Shop"],
      ["_region", "eu"],
      ["__apiKey", "a-very-secret-value"],
    ] as const) {
      await studio.replace('[aria-label="Key of the new setting"]', key);
      await studio.replace('[aria-label="Value of the new setting"]', value);
      await studio.button("Add");
      await page.waitForSelector(`.setting[data-key="${key}"]`);
    }
    const tiers = await page.$$eval("section[data-tier]", (sections) =>
      sections.map((section) => [...section.querySelectorAll(".setting code")].map((key) => key.textContent).join()),
    );
    expect(tiers).to.deep.equal(["title", "_region", "__apiKey"]);
    expect(await studio.textOf('.setting[data-key="__apiKey"] .hint')).to.contain("set ");
    const shown = await page.evaluate(
      '[...document.querySelectorAll("input, textarea")].map((e) => e.value).join() + document.body.textContent',
    );
    expect(shown).to.contain("Shop").and.not.to.contain("a-very-secret-value");
  });

  it("shows the Save button of a setting only while the value has changes", async () => {
    const shown = () => page.$$eval(".setting .save", (buttons) => buttons.map((button) => button.checkVisibility()));
    expect(await shown()).to.deep.equal([false, false, false]);
    await studio.replace('[aria-label="title"]', "Store");
    await untilEqual(shown, [true, false, false]);
    await studio.replace('[aria-label="title"]', "Shop");
    await untilEqual(shown, [false, false, false]);
    await studio.replace('[aria-label="__apiKey"]', "another-value");
    await untilEqual(shown, [false, false, true]);
    await studio.button("Replace", '//li[@data-key="__apiKey"]');
    await untilEqual(shown, [false, false, false]);
  });

  longTest(
    "keeps the focus at a setting that is saved, added or deleted by keyboard, and announces the result",
    async () => {
      const readState = () =>
        page.evaluate(`[document.activeElement.ariaLabel ?? document.activeElement.textContent,
        [...document.querySelectorAll(".settings [role=status]")].map((status) => status.textContent).filter(Boolean).join()]`);
      const pressSave = async (key: string) => {
        await page.focus(`.setting[data-key="${key}"] .save`);
        await page.keyboard.press("Enter");
      };
      await page.reload();
      await studio.replace('[aria-label="title"]', "Store");
      await pressSave("title");
      await untilEqual(readState, ["title", "Saved"]);
      await studio.replace('[aria-label="__apiKey"]', "a-third-value");
      await untilEqual(readState, ["__apiKey", "Saved"]);
      await pressSave("__apiKey");
      await untilEqual(readState, ["__apiKey", "Saved,Saved"]);
      await page.reload();
      await studio.replace('[aria-label="Key of the new setting"]', "color");
      await studio.replace('[aria-label="Value of the new setting"]', "red");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.waitForSelector('.setting[data-key="color"]');
      await untilEqual(readState, ["Key of the new setting", "Added color"]);
      await page.focus('[aria-label="Delete color"]');
      await page.keyboard.press("Enter");
      await studio.button("Delete", "//dialog");
      await page.waitForSelector('.setting[data-key="color"]', { hidden: true });
      await untilEqual(readState, ["Public 1", "Deleted color."]);
      await studio.replace('[aria-label="title"]', "Shop");
      await pressSave("title");
      await untilEqual(readState, ["title", "Deleted color.,Saved"]);
    },
  );

  it("shows one arrow in each select with forced colors", async () => {
    const client = await page.createCDPSession();
    const readArrows = () =>
      page.evaluate(`(() => {
        const { appearance, backgroundImage } = getComputedStyle(document.querySelector("select"));
        return [appearance !== "none", backgroundImage !== "none"];
      })()`);
    expect(await readArrows()).to.deep.equal([false, true]);
    await client.send("Emulation.setEmulatedMedia", { features: [{ name: "forced-colors", value: "active" }] });
    expect(await readArrows()).to.deep.equal([true, false]);
    await client.send("Emulation.setEmulatedMedia", { features: [] });
    await client.detach();
  });

  it("loads nothing from other hosts and does not violate its content security policy", () => {
    expect(watch).to.deep.equal({ foreign: [], errors: [] });
  });
});
