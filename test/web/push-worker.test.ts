/**
 * Tests the service worker for push messages on the origin of a customer. Chromium's debugging protocol delivers the decrypted messages. A
 * headless Chromium shows no notifications, so the test records them.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { Browser, CDPSession, Page } from "puppeteer";
import { rows } from "../../src/data/database.js";
import { pushManagerOf, startPushService } from "../harness/push-service.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchOwnChromium } from "./chromium.js";

interface ShownNotification {
  title: string;
  body: string;
  tag: string;
  data: { navigate?: string; notificationId?: number };
}

const RECORD_NOTIFICATIONS = `
  const shown = new BroadcastChannel("shown");
  registration.showNotification = async (title, options) => shown.postMessage({ title, ...options });`;

describe("push messages in a browser", () => {
  let service: TestService;
  let browser: Browser;
  let site: Server;
  let origin: string;
  let page: Page;
  let session: CDPSession;
  let registrationId: string;
  let pushService: Awaited<ReturnType<typeof startPushService>> | undefined;

  before(async () => {
    [service, browser] = await Promise.all([
      startTestService({ ROLES: "api,scheduler", ALLOW_PRIVATE_NETWORK: "1" }),
      launchOwnChromium(),
    ]);
    site = createServer((request, response) => {
      const isWorker = request.url!.endsWith("/svc-push-worker.js");
      response.setHeader("content-type", isWorker ? "text/javascript" : "text/html");
      response.end(
        isWorker
          ? `${RECORD_NOTIFICATIONS}\nimportScripts("${service.url}/client/push-worker.js");`
          : "<!doctype html><title>shop</title>",
      );
    });
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", () => resolve()));
    origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
    page = await browser.newPage();
    await page.goto(origin);
    await page.evaluate(
      "window.shown = []; new BroadcastChannel('shown').onmessage = ({ data }) => shown.push(data); 0",
    );
    session = await page.createCDPSession();
    session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      registrationId =
        registrations.find(({ scopeURL }) => scopeURL.startsWith(origin))?.registrationId ?? registrationId;
    });
    await session.send("ServiceWorker.enable");
    await page.evaluate(
      "navigator.serviceWorker.register('/svc-push-worker.js').then(() => navigator.serviceWorker.ready).then(() => 1)",
    );
    await until(() => registrationId !== undefined);
  });
  after(async () => {
    await browser?.close();
    site?.close();
    pushService?.stop();
    await service?.stop();
  });

  const deliverMessage = (data: string) =>
    session.send("ServiceWorker.deliverPushMessage", { origin, registrationId, data });
  const waitForNotifications = (count: number) =>
    until(async () => {
      const all = (await page.evaluate("shown")) as ShownNotification[];
      return all.length === count ? all : null;
    });

  it("show title and body, have a link, and replace an earlier message of the same notification", async () => {
    await deliverMessage(
      JSON.stringify({ title: "Shipped", body: "Order 7", navigate: "/orders/7", notificationId: 7 }),
    );
    await deliverMessage(JSON.stringify({ title: "Delivered", body: "Order 7", notificationId: 7 }));
    await deliverMessage(JSON.stringify({ title: "Another", notificationId: 8 }));
    const all = await waitForNotifications(3);
    expect(all[0]).to.deep.include({ title: "Shipped", body: "Order 7" });
    expect(all[0]!.data).to.deep.equal({ navigate: "/orders/7", notificationId: 7 });
    expect(all.map(({ tag }) => tag)).to.deep.equal(["svc-7", "svc-7", "svc-8"]);
  });

  it("show something for every message, as browsers require, and end no worker", async () => {
    const odd = ["not JSON", "", "null", '{"title":{"a":1},"body":[1],"notificationId":9}'];
    for (const data of odd) await deliverMessage(data);
    await deliverMessage(JSON.stringify({ title: "Still there", notificationId: 10 }));
    const all = await waitForNotifications(3 + odd.length + 1);
    expect(all.at(-1)!.title).to.equal("Still there");
    expect(all.every(({ title, body }) => typeof title === "string" && typeof body === "string")).to.equal(true);
  });

  it("arrive at a page that has subscribed with Svc.Notifications, until it ends this", async () => {
    const app = `/v1/apps/${service.appId}`;
    await service.rest("POST", `${app}/publish`);
    await service.rest("PUT", `${app}/origins`, { body: { origins: [origin] } });
    const pushes = await startPushService();
    pushService = pushes;
    const device = pushes.device("device");
    await page.browserContext().overridePermissions(origin, ["notifications"]);
    await page.evaluate(pushManagerOf(device));
    for (const file of ["svc.js", "packages/svc-notifications.js"])
      await page.addScriptTag({ url: `${service.url}/client/${file}` });
    await page.evaluate(`Svc.init({ app: ${service.appId}, url: "${service.url}" }).then(() => 1)`);
    const before = ((await page.evaluate("shown")) as ShownNotification[]).length;
    expect(await page.evaluate("Svc.Notifications.subscribe().then(({ id }) => typeof id)")).to.equal("number");
    const pushNotification = { payload: { title: "Two seats are left", body: "Row 7" } };
    const body = { status: "published", pushNotification };
    expect((await service.rest("POST", `${app}/notifications`, { as: "api", body })).http).to.equal(201);
    const sent = await until(() => pushes.pushed[0]);
    const message = device.decrypt(sent.body);
    expect(message).to.include(pushNotification.payload);
    await deliverMessage(JSON.stringify(message));
    expect((await waitForNotifications(before + 1)).at(-1)).to.deep.include(pushNotification.payload);
    const owner = async () =>
      (
        await rows<{ credential: number | null }>(
          service.db,
          "SELECT credential_id AS credential FROM push_subscription",
        )
      )[0]!.credential;
    const firstSession = await owner();
    expect(firstSession).to.be.a("number");
    const init = () =>
      page.evaluate(`localStorage.clear(); Svc.init({ app: ${service.appId}, url: "${service.url}" }).then(() => 1)`);
    await init();
    await until(async () => (await owner()) !== firstSession);
    const secondSession = await owner();
    // The page reads another key at first, as if the subscription were for another app or another push service.
    await page.evaluate(`navigator.serviceWorker.getRegistration().then(({ pushManager }) => pushManager.getSubscription())
      .then(({ options }) => {
        const key = options.applicationServerKey;
        let reads = 0;
        Object.defineProperty(options, "applicationServerKey", { get: () => (reads++ === 0 ? new ArrayBuffer(65) : key) });
      })`);
    const requested: string[] = [];
    page.on("request", (request) => void requested.push(`${request.method()} ${new URL(request.url()).pathname}`));
    await init();
    await init();
    await until(async () => (await owner()) !== secondSession);
    // The browser may report a request to this test after the service has handled it.
    await until(() => requested.includes(`POST ${app}/push/subscriptions`));
    expect(requested.filter((request) => request === `POST ${app}/push/subscriptions`)).to.have.length(1);
    const { body: made } = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "other" } });
    const otherApp = made.app.id;
    await service.rest("POST", `/v1/apps/${otherApp}/publish`, { as: "admin" });
    await service.rest("PUT", `/v1/apps/${otherApp}/origins`, { as: "admin", body: { origins: [origin] } });
    await page.evaluate(`Svc.init({ app: ${otherApp}, url: "${service.url}" }).then(() => 1)`);
    expect(await page.evaluate("Svc.Notifications.unsubscribe()"), "of another app").to.equal(false);
    expect(await service.db.query("SELECT FROM push_subscription")).to.have.length(1);
    const thirdSession = await owner();
    await init();
    // The page assigns the device to its new session in the background.
    await until(async () => (await owner()) !== thirdSession);
    expect(await page.evaluate("Svc.Notifications.unsubscribe()")).to.equal(true);
    expect(await page.evaluate("Svc.Notifications.unsubscribe()")).to.equal(false);
    expect(await service.db.query("SELECT FROM push_subscription")).to.deep.equal([]);
    const worker = "/scripts/svc-push-worker.js";
    const subscribed = await page.evaluate(
      `Svc.Notifications.subscribe({ worker: "${worker}" }).then(({ id }) => typeof id)`,
    );
    expect(subscribed, "by a worker whose scope does not contain the page").to.equal("number");
    expect(await page.evaluate("Svc.Notifications.unsubscribe()")).to.equal(true);
  });
});
