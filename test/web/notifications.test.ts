import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium } from "./chromium.js";
import { type StudioPage, studioPage } from "./studio-page.js";

describe("notifications in pages and Studio", function () {
  this.timeout(180_000);
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let studio: StudioPage;

  before(async () => {
    [service, browser] = await Promise.all([startTestService({ ROLES: "api,scheduler" }), launchChromium()]);
    page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    studio = studioPage(page);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  const insert = (title: string) => {
    const body = { status: "published", data: { title } };
    return service.rest("POST", `/v1/apps/${service.appId}/notifications`, { body });
  };

  it("a page gets each once, also those that were published while it was disconnected", async () => {
    await page.goto(`${service.url}/client/svc.js`);
    await page.addScriptTag({ url: `${service.url}/client/svc.js` });
    await page.addScriptTag({ url: `${service.url}/client/packages/svc-notifications.js` });
    await page.evaluate(`{
      Svc.configure({ appId: ${service.appId}, token: ${JSON.stringify(service.tokens.live)} });
      window.came = [];
      window.stop = Svc.Notifications.init().stream(({ data, readStatus }) => came.push(data.title + " " + readStatus));
    }`);
    const received = () => page.evaluate("came") as Promise<string[]>;
    // A page receives no notifications from before the start of its subscription. So the test inserts notifications until one arrives.
    for (let n = 0; (await received()).length === 0; n += 1) {
      await insert(`first ${n}`);
      await until(async () => (await received()).length > 0, 300).catch(() => undefined);
    }
    await until(async () => (await rowsPublished()) === (await newest()));
    const missed = async () => (await received()).filter((title) => title.startsWith("missed"));
    const network = await page.createCDPSession();
    await network.send("Network.enable");
    const gone = { offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0 };
    await network.send("Network.emulateNetworkConditions", gone);
    await service.rest("GET", "/health/ready", { as: null });
    for (let n = 0; n < 5; n += 1) await insert(`missed ${n}`);
    await network.send("Network.emulateNetworkConditions", {
      ...gone,
      offline: false,
      downloadThroughput: -1,
      uploadThroughput: -1,
    });
    await until(async () => (await missed()).length >= 5);
    expect(await missed()).to.deep.equal(Array.from({ length: 5 }, (_, n) => `missed ${n} false`));
    const read = await page.evaluate(`(async () => {
      const { markNotificationsAsRead, unread } = Svc.Notifications;
      await markNotificationsAsRead("all");
      return unread.count();
    })()`);
    expect(read).to.equal(0);
    await page.evaluate("stop()");
  });

  const newest = async () => (await page.evaluate("came[came.length - 1]")) as string;
  const rowsPublished = async () => {
    const { entries } = (await service.rest("GET", `/v1/apps/${service.appId}/notifications?limit=1`)).body;
    return `${entries[0].data.title} false`;
  };

  longTest("Studio writes one, shows it as its readers will see it and who they are, and publishes it", async () => {
    await page.goto(`${service.url}/studio#/${service.appId}/notifications`);
    await studio.signIn(service.tokens.editor);
    await studio.button("New");
    const field = (label: string) => `::-p-xpath(//label[.="${label}"]/following-sibling::*[1])`;
    await studio.replace(field("Title"), "We ship today");
    await studio.replace(field("Message"), "Orders before noon.");
    expect(await studio.textOf(".notification-preview .hint")).to.equal(
      "All users of the app, and anonymous visitors.",
    );
    await page.select(field("Recipients"), "users");
    const fault = (text: string) =>
      page.waitForFunction(`document.querySelector(".notification-editor .field .fault").textContent === ${JSON.stringify(text)}
        && document.querySelector(".notification-editor .primary").disabled`);
    const noFault = () =>
      page.waitForFunction(`document.querySelector(".notification-editor .field .fault").textContent === ""
        && !document.querySelector(".notification-editor .primary").disabled`);
    for (const wrong of ["1e3", "-4", "0x5", "1234567890123456", "abc"]) {
      await studio.replace('input[aria-label="IDs of the users"]', `3, ${wrong}, 5`);
      await fault(`“${wrong}” is not an ID.`);
      expect(await studio.textOf(".notification-preview .hint")).to.contain("Users of the app with the ID 3 or 5.");
    }
    await studio.replace('input[aria-label="IDs of the users"]', "3, 5");
    await noFault();
    expect(await studio.textOf(".notification-preview .hint")).to.contain("Users of the app with the ID 3 or 5.");
    await page.select(field("Recipients"), "json");
    await studio.replace('textarea[aria-label="Scope"]', '{"id": 3}');
    expect(await studio.textOf(".notification-card")).to.equal("We ship todayOrders before noon.");
    expect(await studio.textOf(".notification-preview .hint")).to.contain("Users of the app whose id is “3”.");
    await page.select(field("Recipients"), "everyone");
    await page.select(field("Recipients"), "conditions");
    await studio.replace('input[aria-label="Column 1"]', "id");
    await studio.replace('input[aria-label="Value 1"]', "three");
    await noFault();
    await page.select('select[aria-label="Type of value 1"]', "number");
    await fault('Value 1 must be a number (got "three"). Your change is not saved until you correct it.');
    await studio.replace('input[aria-label="Value 1"]', "3");
    await noFault();
    expect(await studio.textOf(".notification-preview .hint")).to.contain("Users of the app whose id is “3”.");
    await studio.button("Add a condition");
    await studio.replace('input[aria-label="Column 2"]', "id");
    await fault('Two rows are for "id $eq". Your change is not saved until they differ.');
    await page.select('select[aria-label="Comparison 2"]', "$gt");
    await page.select('select[aria-label="Type of value 2"]', "number");
    await studio.replace('input[aria-label="Value 2"]', "2.5");
    await studio.button("Add a condition");
    await studio.replace('input[aria-label="Column 3"]', "vip");
    await page.select('select[aria-label="Comparison 3"]', "$ne");
    await page.select('select[aria-label="Type of value 3"]', "boolean");
    await page.select('select[aria-label="Value 3"]', "false");
    await studio.button("Add a condition");
    await studio.replace('input[aria-label="Column 4"]', "since");
    await page.select('select[aria-label="Comparison 4"]', "$gt");
    await studio.replace('input[aria-label="Value 4"]', "2026");
    await noFault();
    await page.select('select[aria-label="When"]', "scheduled");
    await page.type('input[aria-label="Date"]', "01312030");
    await page.select('select[aria-label="Hour"]', "15");
    await page.select('select[aria-label="Minute"]', "5");
    await studio.button("Save");
    await page.waitForSelector(".reader .chip.scheduled");
    const stored = (await service.rest("GET", `/v1/apps/${service.appId}/notifications?limit=1`)).body.entries[0];
    expect(stored.orderAt).to.equal(await page.evaluate('new Date("2030-01-31T15:05").toISOString()'));
    await page.select('select[aria-label="When"]', "published");
    await studio.button("Publish");
    await page.waitForSelector(".reader .chip.published");
    const { entries } = (await service.rest("GET", `/v1/apps/${service.appId}/notifications?limit=1`)).body;
    const scope = { id: { $eq: 3, $gt: 2.5 }, vip: { $ne: false }, since: { $gt: "2026" } };
    expect(entries[0]).to.deep.include({ status: "published", scope });
    expect(entries[0].data).to.include({ title: "We ship today", message: "Orders before noon." });
  });
});
