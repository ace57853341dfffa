/** Tests dependencies in Studio: the form shows the resolved version of each package, and an error at the dependency's field. */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { startRegistry, type TestRegistry } from "../harness/npm-registry.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium } from "../web/chromium.js";
import { type StudioPage, studioPage } from "../web/studio-page.js";

const FIELD = '[data-field="dependencies"]';

describe("dependencies in Studio", () => {
  let registry: TestRegistry;
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let studio: StudioPage;

  before(async () => {
    registry = await startRegistry();
    registry.publish({ name: "small-thing", version: "1.2.3", files: { "index.js": "module.exports = 1" } });
    registry.publish({
      name: "makes-code",
      version: "1.0.0",
      files: { "index.js": "module.exports = (a) => eval(a)" },
    });
    const index =
      "export = p; declare function p(): p.Thing; declare namespace p { interface Thing { weight: number } }";
    registry.publish({
      name: "typed-thing",
      version: "2.0.0",
      files: { "index.js": "module.exports = () => ({ weight: 2 })", "index.d.ts": index },
    });
    const environment = { ROLES: "api", NPM_PACKAGES: "on", NPM_REGISTRY: registry.url };
    [service, browser] = await Promise.all([startTestService(environment), launchChromium()]);
    const body = { name: "with-packages", code: "async function execute() {}" };
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
    page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 900 });
    studio = studioPage(page);
    await page.goto(`${service.url}/studio`);
    await studio.signIn(service.tokens.editor);
    await page.locator("::-p-text(with-packages)").click();
    await page.waitForSelector(`${FIELD} input`);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
    await registry?.close();
  });

  async function add(name: string): Promise<void> {
    await page.type(`${FIELD} input`, name);
    await page.keyboard.press("Enter");
    await page.waitForSelector(`${FIELD} [aria-label="Remove ${name}"]`);
    await studio.save();
  }

  it("show version, licence, size and the name of the global", async () => {
    await add("small-thing@^1");
    const became = await studio.textOf(`${FIELD} .became`);
    expect(became).to.match(/^1\.2\.3 · MIT · \d+ B · in code: smallThing$/);
  });

  it("show the use of eval, which works only on the server", async () => {
    await add("makes-code");
    const noticeSelector = "::-p-xpath(//*[contains(@class, 'became')][contains(., 'on the server alone')])";
    expect(await page.waitForSelector(noticeSelector)).not.to.equal(null);
    await page.click(`${FIELD} [aria-label="Remove makes-code"]`);
    await studio.save();
    await page.waitForSelector("::-p-xpath(//*[@role='status'][normalize-space(.)='saved'])");
  });

  it("show that a script is not stored yet if its host does not answer", async () => {
    const address = "https://nowhere.invalid/x.js";
    await add(address);
    const noticeSelector = "::-p-xpath(//*[contains(@class, 'became')][contains(., 'not stored yet')])";
    expect(await page.waitForSelector(noticeSelector)).not.to.equal(null);
    await page.click(`${FIELD} [aria-label="Remove ${address}"]`);
    await studio.save();
    await page.waitForSelector("::-p-xpath(//*[@role='status'][normalize-space(.)='saved'])");
  });

  it("have their declarations in the editor, from the save on that adds them", async () => {
    await add("typed-thing");
    await page.waitForSelector("::-p-xpath(//*[contains(@class, 'became')][contains(., 'in code: typedThing')])");
    await studio.write("async function execute() {\n  return typedThing().wait;\n}");
    await page.waitForSelector(".code-editor .squiggly-error");
    await page.focus(".code-editor textarea");
    await page.keyboard.press("F8");
    const noticeSelector =
      "::-p-xpath(//*[contains(@class, 'marker-widget')][contains(., \"does not exist on type 'Thing'\")])";
    expect(await page.waitForSelector(noticeSelector)).not.to.equal(null);
    await page.keyboard.press("Escape");
    await page.waitForSelector(".marker-widget", { hidden: true });
    await studio.write("async function execute() {\n  return typedThing().weight;\n}");
    await page.waitForFunction('!document.querySelector(".code-editor .squiggly-error")');
    await studio.save();
    await studio.saved();
  });

  it("that cannot be resolved are rejected at their field, and the rest stays as saved", async () => {
    await add("not-there");
    await page.waitForSelector(`${FIELD} input[aria-invalid="true"]`);
    expect(await studio.textOf(`${FIELD} .fault`)).to.match(
      /"not-there" does not exist in the registry.*DEPENDENCY_UNRESOLVED/,
    );
    expect(await studio.textOf(`${FIELD} .became`)).to.match(/^1\.2\.3/);
  });

  it("offer names from npm beside the service's own packages", async () => {
    const offered = await page.$$eval("#packages option", (options) =>
      options.map((option) => option.getAttribute("value")),
    );
    expect(offered).to.include.members(["svc-csv", "date-fns", "zod"]);
  });

  it("are named where a publish would change their scripts", async () => {
    const path = `/v3/apps/${service.appId}/actions`;
    const body = { name: "changes-scripts", code: "async function execute() {}", dependencies: ["small-thing@^1"] };
    const { id } = (await service.rest("POST", path, { body })).body.action;
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    expect((await service.rest("POST", `${path}/${id}/publish`)).http).to.equal(200);
    const dependencies = ["typed-thing@^2"];
    expect((await service.rest("PUT", `${path}/${id}`, { body: { dependencies } })).http).to.equal(200);
    // The first page has an unsaved draft, so closing it would open a dialog.
    const fresh = await browser.newPage();
    await fresh.goto(`${service.url}/studio#/${service.appId}/actions/${id}`);
    await studioPage(fresh).button("Publish", '//*[@role="tablist"]');
    const scripts = await fresh.waitForSelector(".publish-panel .diff ul");
    expect(await scripts!.$$eval("li", (items) => items.map(({ textContent }) => textContent))).to.deep.equal([
      "small-thing@^1 removed, was version 1.2.3",
      "typed-thing@^2 added, version 2.0.0",
    ]);
  });
});
