/**
 * Tests Studio's page of alerts. Also tests that Studio asks before a person leaves unsaved changes of alerts, notifications and settings.
 */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { untilEqual } from "../harness/until.js";
import { launchChromium } from "./chromium.js";
import { type StudioPage, studioPage } from "./studio-page.js";

describe("alerts in Studio", function () {
  this.timeout(180_000);
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let studio: StudioPage;

  before(async () => {
    [service, browser] = await Promise.all([useSharedService("api"), launchChromium()]);
    page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    studio = studioPage(page);
    await page.goto(`${service.url}/studio#/${service.appId}/alerts`);
    await studio.signIn(service.tokens.editor);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  const field = (label: string) => `::-p-xpath(//label[.="${label}"]/following-sibling::*[1])`;

  it("are created, tested, and explain what is wrong with them", async () => {
    await page.waitForSelector(".mailbox-list .empty");
    await studio.button("New");
    await page.waitForSelector(field("Name"));
    await studio.replace(field("Name"), "nightly");
    await studio.replace(field("Failures"), "2");
    await studio.replace(field("Of the last runs"), "5");
    await studio.replace(field("Addresses"), "ann@example");
    await studio.button("Create");
    await page.waitForSelector("::-p-xpath(//*[@role='alert'][contains(., 'to[0] must be an e-mail address')])");
    // Enters an invalid value for Minutes, and selects a condition that hides this field. The service still rejects the value.
    await page.select(field("Condition"), "silent");
    await studio.replace(field("Minutes"), "0");
    await page.select(field("Condition"), "failed");
    await studio.replace(field("Addresses"), "ann@example.com");
    await studio.button("Create");
    await page.waitForSelector("::-p-xpath(//*[@role='alert'][starts-with(., 'minutes ')])");
    await page.select(field("Condition"), "silent");
    await studio.replace(field("Minutes"), "60");
    await page.select(field("Condition"), "failed");
    await studio.replace(field("Addresses"), "ann@example.com, bob@example.com");
    await studio.button("Create");
    await page.waitForSelector("::-p-xpath(//h2[.='nightly'])");
    expect(await studio.textOf(".message-line .gist")).to.equal("2 of the last 5 runs failed");
    await studio.button("Send a test");
    await page.waitForSelector(".reader aside .chip.outbox");
    const { body } = await service.rest("GET", `/v1/apps/${service.appId}/alerts`);
    expect(body.alerts[0]).to.deep.include({
      name: "nightly",
      failures: 2,
      of: 5,
      to: ["ann@example.com", "bob@example.com"],
    });
    const outbox = await service.rest("GET", `/v1/apps/${service.appId}/communicate/messages`);
    expect(outbox.body.messages[0].subject).to.contain("this is a test of the alert nightly");
  });

  it("have an address each, and unsaved edits are left only after a question", async () => {
    const address = "location.hash";
    const opened = await page.evaluate(address);
    expect(opened).to.match(/\/alerts\/[0-9]+$/);
    await studio.replace(field("Name"), "renamed");
    await studio.button("New");
    await studio.button("Cancel", "//dialog");
    expect(await page.evaluate(address)).to.equal(opened);
    await studio.button("Home", "//nav");
    await studio.button("Discard changes", "//dialog");
    await page.waitForSelector(".home .usage");
    await page.goBack();
    await page.waitForSelector("::-p-xpath(//h2[.='nightly'])");
    expect(await page.$eval(field("Name"), (input) => (input as unknown as { value: string }).value)).to.equal(
      "nightly",
    );
  });

  for (const [title, place, input] of [
    ["notification", "notifications/new", field("Title")],
    ["setting", "settings", 'input[aria-label="Key of the new setting"]'],
  ] as const) {
    it(`stays on an unsaved ${title} until the person discards it`, async () => {
      const hash = `#/${service.appId}/${place}`;
      await studio.open(`${service.appId}/${place}`);
      await studio.replace(input, "half");
      await studio.button("Home", "//nav");
      await studio.button("Cancel", "//dialog");
      await page.waitForSelector("dialog", { hidden: true });
      expect(await page.evaluate("location.hash")).to.equal(hash);
      expect(await page.$eval(input, (element) => (element as unknown as { value: string }).value)).to.equal("half");
      await studio.button("Home", "//nav");
      await studio.button("Discard changes", "//dialog");
      await page.waitForSelector(".home .usage");
    });
  }

  it("asks before Back leaves the unsaved text of a cell, and keeps the text if the person wishes so", async () => {
    const sources = `/v1/apps/${service.appId}/data-sources`;
    const { dataSource } = (await service.rest("POST", sources, { body: { name: "Unsaved cells" } })).body;
    const entry = (await service.rest("POST", `${sources}/${dataSource.id}/entries`, { body: { seat: "A1" } })).body;
    await studio.open(`${service.appId}/data/${dataSource.id}`);
    await (await page.waitForSelector(".grid-rows button.cell"))!.click();
    await studio.replace(".grid-rows input.cell", "typed");
    await page.evaluate("history.back()");
    await studio.button("Cancel", "//dialog");
    await page.waitForSelector("dialog", { hidden: true });
    expect(await page.$eval(".grid-rows input.cell", (cell) => cell.value)).to.equal("typed");
    await page.focus(".grid-rows input.cell");
    await page.keyboard.press("Enter");
    const readSeat = async () =>
      (await service.rest("GET", `${sources}/${dataSource.id}/entries/${entry.id}`)).body.data.seat;
    await untilEqual(readSeat, "typed");
    await studio.open(`${service.appId}/home`);
    await page.waitForSelector(".home .usage");
  });

  it("asks no question about a form that has disappeared because the person may no longer save it", async () => {
    const { organizationId } = service;
    const body = { firstName: "Grace", lastName: "Hopper", email: "grace@alerts.example", organizationId };
    const { user, token } = (await service.rest("POST", "/v1/admin/users", { as: "admin", body })).body;
    const setRole = (role: string) =>
      service.rest("PUT", `/v1/apps/${service.appId}/members/${user.id}`, { as: "admin", body: { role } });
    await setRole("editor");
    const other = await (await browser.createBrowserContext()).newPage();
    const otherStudio = studioPage(other);
    await other.goto(`${service.url}/studio#/${service.appId}/settings`);
    await otherStudio.signIn(token);
    await otherStudio.replace('input[aria-label="Key of the new setting"]', "half");
    await setRole("reader");
    await other.evaluate('dispatchEvent(new Event("focus"))');
    await other.waitForSelector('input[aria-label="Key of the new setting"]', { hidden: true });
    await otherStudio.button("Runs", "//nav");
    await other.waitForFunction('location.hash.endsWith("/runs")');
    expect(await other.$("dialog[open]")).to.equal(null);
  });
});
