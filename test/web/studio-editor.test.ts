/** What Studio's editor knows of an action while it is written: what a save would refuse, what follows a dot, and payloads to try it with. */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { type StudioPage, studioPage } from "./studio-page.js";

const CODE = "async function execute(context) {\n  return Object.keys(context);\n}";

describe("Studio's editor", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let studio: StudioPage;
  let actionId: number;

  before(async () => {
    [service, browser] = await Promise.all([startTestService(), launchChromium()]);
    const path = `/v3/apps/${service.appId}/actions`;
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, {
      body: { __apiKey: "k-123456789", _note: "n", open: 1 },
    });
    const fields = {
      name: "write",
      active: true,
      triggers: [{ trigger: "manual" }],
      dependencies: ["svc-csv"],
      code: CODE,
    };
    actionId = (await service.rest("POST", path, { body: fields })).body.action.id;
    await service.rest("POST", `${path}/write/runWithResult`, { body: { seat: { row: 12, place: "A" }, guests: 2 } });
    page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    watch = watchPage(page, service.url);
    studio = studioPage(page);
    await page.goto(`${service.url}/studio#/${service.appId}/actions/${actionId}`);
    await studio.signIn(service.tokens.editor);
    await page.waitForSelector(".code-editor .view-line");
  });

  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  /** The code with the cursor before its last line, and what the editor suggests once that is typed. */
  async function suggestedAfter(text: string): Promise<string[]> {
    await studio.write(`async function execute(context) {\n  const one = 1;\n}\n${text.slice(0, -1)}`);
    await page.keyboard.down("Control");
    await page.keyboard.press("End");
    await page.keyboard.up("Control");
    await page.keyboard.type(text.slice(-1));
    await page.waitForSelector(".suggest-widget.visible .monaco-list-row");
    const names = await page.$$eval(".suggest-widget.visible .monaco-list-row .label-name", (rows) =>
      rows.map((row) => row.textContent),
    );
    await page.keyboard.press("Escape");
    await page.waitForFunction('!document.querySelector(".suggest-widget.visible")');
    return names;
  }

  it("suggests the settings' keys that a run sees, the keys that past payloads had, and the listed packages", async () => {
    expect(await suggestedAfter("context.")).to.deep.equal(["payload", "settings"]);
    expect(await suggestedAfter("context.settings.")).to.deep.equal(["__apiKey", "_note"]);
    expect(await suggestedAfter("context.payload.")).to.deep.equal(["guests", "seat"]);
    expect(await suggestedAfter("context.payload.seat.")).to.deep.equal(["place", "row"]);
    expect(await suggestedAfter("Svc.CSV.")).to.deep.equal(["parse", "stringify"]);
    expect(await suggestedAfter("Svc."))
      .to.include("CSV")
      .and.not.include("Media");
  });

  it("marks what a save would be refused for while one types, by the service's own words, and unmarks it", async () => {
    await studio.write("async function execute(context) {\n  return Svc.Media;\n}");
    await page.waitForSelector(".code-editor .squiggly-error");
    await studio.write(`${CODE}\n// mended`);
    await page.waitForFunction('!document.querySelector(".code-editor .squiggly-error")');
    await studio.write("async function execute(context) {\n  return (1;\n}");
    await page.waitForSelector(".code-editor .squiggly-error");
    await studio.write(`${CODE}\n// mended`);
    await page.waitForFunction('!document.querySelector(".code-editor .squiggly-error")');
  });

  it("keeps a payload with the action by name, and fills it from there or from a past run", async () => {
    await studio.replace("#payload", '{ "seat": "window" }');
    await studio.button("Keep this payload");
    await studio.replace('input[aria-label="Name of this payload"]', "by the window");
    await studio.button("Keep");
    await page.waitForSelector("::-p-xpath(//button[contains(., 'by the window')])");
    await studio.replace("#payload", "{}");
    await page.focus(".presets select");
    await page.waitForSelector('.presets option[value^="run "]');
    const run = await page.$eval('.presets option[value^="run "]', (option) => option.getAttribute("value"));
    await page.select(".presets select", run!);
    await page.waitForFunction('document.querySelector("#payload").value.includes("guests")');
    await page.select(".presets select", "preset by the window");
    await page.waitForFunction('document.querySelector("#payload").value.includes("window")');
    const { body } = await service.rest("GET", `/v3/apps/${service.appId}/actions/${actionId}/presets`);
    expect(body.presets.map(({ name }: { name: string }) => name)).to.deep.equal(["by the window"]);
    await page.click("::-p-xpath(//button[contains(., 'Delete “by the window”')])");
    await page.waitForFunction("!document.querySelector(\".presets optgroup[label='Kept with the action']\")");
    expect(watch.errors).to.deep.equal([]);
  });
});
