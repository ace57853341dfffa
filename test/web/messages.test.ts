/** Tests messages: `Svc.Communicate` in a server action and in a page, and Studio's outbox. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { forwardPlainOrigin, PLAIN_ORIGIN } from "./plain-origin.js";
import { type StudioPage, studioPage } from "./studio-page.js";

const MESSAGE_HTML = `<h1 id="hello">Dear {{name}}</h1><script>parent.document.title = document.title = "ran"</script>
  <img src="x" onerror="parent.document.title = 'ran'"><img src="https://tracker.example/pixel.png">`;

const ACTION_CODE = `async function execute({ payload }) {
  const mail = Svc.Communicate.init();
  return mail.sendEmail(
    { to: [{ email: payload.email, name: "Ann" }], subject: "Order {{number}} has shipped", html: payload.html,
      attachments: [{ name: "list.csv", type: "text/csv", content: "a,b" }] },
    { name: "<i>Ann</i>", number: 7 });
}`;

describe("messages in actions, pages and Studio", function () {
  this.timeout(180_000);
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let studio: StudioPage;
  const blockedRequests: (string | undefined)[][] = [];
  let sent: { id: number; status: string };

  before(async () => {
    [service, browser] = await Promise.all([startTestService(), launchChromium()]);
    page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    watch = watchPage(page, service.url);
    page.on("requestfailed", (request) => blockedRequests.push([request.url(), request.failure()?.errorText]));
    studio = studioPage(page);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  it("a server action sends one, which stays in the outbox without a server", async () => {
    const body = {
      ...{ name: "shipped", active: true, triggers: [{ trigger: "manual" }], code: ACTION_CODE },
      dependencies: ["svc-communicate"],
    };
    const made = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
    expect(made.body.action.assets[0].path).to.equal("/client/packages/svc-communicate.js");
    const payload = { email: "ann@example.com", html: MESSAGE_HTML };
    const ran = await service.rest("POST", `/v3/apps/${service.appId}/actions/shipped/runWithResult`, {
      body: payload,
    });
    sent = ran.body.result;
    expect(sent).to.include({ status: "kept" });
  });

  it("Studio shows it as a mail program would, and runs and loads nothing of it", async () => {
    await page.goto(`${service.url}/studio#/${service.appId}/outbox`);
    await studio.signIn(service.tokens.editor);
    await (await page.waitForSelector(".message-line"))!.click();
    const frame = await (await page.waitForSelector("iframe.mail-frame"))!.contentFrame();
    await frame!.waitForSelector("#hello");
    expect(await page.$eval(".reader h2", (e) => e.textContent)).to.equal("Order 7 has shipped");
    expect(await page.$eval("iframe.mail-frame", (e) => e.getAttribute("sandbox"))).to.equal("");
    expect(await page.title()).to.match(/^Outbox · .* · Studio$/);
    await until(() => blockedRequests.some(([url]) => url === "https://tracker.example/pixel.png"));
    expect(blockedRequests).to.deep.include(["https://tracker.example/pixel.png", "csp"]);
    expect(watch.foreign).to.deep.equal(["https://tracker.example/pixel.png"]);
    const text = await page.$eval("iframe.mail-frame", (e) => e.getAttribute("srcdoc"));
    expect(text).to.contain("Dear &lt;i&gt;Ann&lt;/i&gt;");
    expect(await page.$eval(".attachments", (e) => e.textContent))
      .to.contain("list.csv")
      .and.contain("3 bytes");
    await studio.button("Headers");
    expect(await studio.textOf(".mail-text")).to.contain("Subject: Order 7 has shipped");
  });

  it("Studio asks before it sends a message with an unknown result again", async () => {
    await service.db.query("UPDATE message SET status = 'unknown', updated_at = now() WHERE id = $1", [sent.id]);
    await page.reload();
    await (await page.waitForSelector(".message-line"))!.click();
    await studio.button("Mark as sent");
    await studio.button("Mark as sent", "//dialog");
    await page.waitForSelector(".reader .chip.sent");
    const { message } = (await service.rest("GET", `/v1/apps/${service.appId}/communicate/messages/${sent.id}`)).body;
    expect(message.status).to.equal("sent");
  });

  it("Studio's outbox has an address for each status, which an open message keeps", async () => {
    await page.select(".mailbox-list select", "sent");
    await page.waitForFunction('location.hash.endsWith("?status=sent")');
    await (await page.waitForSelector(".message-line"))!.click();
    await page.waitForFunction(`location.hash.endsWith("/outbox/${sent.id}?status=sent")`);
    await page.reload();
    await page.waitForSelector(".reader .chip.sent");
    expect(await page.$eval(".mailbox-list select", (field) => (field as never as { value: string }).value)).to.equal(
      "sent",
    );
  });

  it("Studio's outbox sets an e-mail server in a form, with errors beside the fields, and shows the result of a test", async () => {
    await studio.open(`${service.appId}/outbox/email`);
    const field = (label: string) => `::-p-xpath(//article//div[label[starts-with(., "${label}")]]/input)`;
    await studio.replace(field("Port"), "99999");
    await studio.button("Save", "//article");
    await page.waitForSelector(
      `::-p-xpath(//*[@role='alert'][.='Port must be a number from 1 to 65535 (got "99999").'])`,
    );
    await page.waitForSelector("::-p-xpath(//*[@role='alert'][.='Host is required.'])");
    await studio.follow("Home");
    await studio.button("Cancel", "//dialog");
    await studio.replace(field("Host"), "mail.example.com");
    await studio.replace(field("Port"), "2525");
    await studio.replace(field("Sender"), "Shop <shop@example.com>");
    await studio.button("Save", "//article");
    await page.waitForSelector(studio.withText("button[@disabled]", "Replace"));
    await page.waitForSelector("::-p-xpath(//span[starts-with(., 'configured')])");
    const settings = `/v1/apps/${service.appId}/settings`;
    const removed = await service.rest("DELETE", settings, { body: { keys: ["__smtp"] } });
    expect(removed.http, JSON.stringify(removed.body)).to.equal(200);
    await studio.replace('input[aria-label="Address for the test"]', "ann@example.com");
    await studio.button("Send a test");
    await page.waitForSelector(".test-message .chip.kept");
    await (await page.waitForSelector(studio.withText("a", "Open the message")))!.click();
    await page.waitForSelector(".reader .chip.kept");
  });

  it("Studio's outbox fits a narrow screen: the list, or the open message", async () => {
    await page.setViewport({ width: 390, height: 800 });
    const READ_WIDTHS = "[document.documentElement.scrollWidth, innerWidth]";
    const [wide, seen] = (await page.evaluate(READ_WIDTHS)) as number[];
    expect(wide).to.equal(seen);
    await studio.button("← Outbox");
    await page.waitForSelector(".mailbox:not(.opened) .message-line", { visible: true });
  });

  longTest("the first example of docs/reference/messages.md sends a customer a mail when an order ships", async () => {
    const docs = readFileSync(new URL("../../../docs/reference/messages.md", import.meta.url), "utf8");
    const code = /```js\n([\s\S]*?)```/.exec(docs)![1]!;
    expect(code.trim().split("\n").length).to.be.at.most(12);
    const { appId } = service;
    const triggers = [{ trigger: "log", where: { type: "order.shipped" } }];
    const body = { name: "order-shipped", active: true, triggers, dependencies: ["svc-communicate"], code };
    const { action } = (await service.rest("POST", `/v3/apps/${appId}/actions`, { body })).body;
    await service.rest("POST", `/v1/apps/${appId}/publish`);
    await service.rest("POST", `/v3/apps/${appId}/actions/${action.id}/publish`);
    const newest = async () =>
      (await service.rest("GET", `/v1/apps/${appId}/communicate/messages?limit=1`)).body.messages[0];
    const { id: before } = await newest();
    const data = { email: "ann@example.com", name: "Ann", number: 7 };
    await service.rest("POST", `/v1/apps/${appId}/logs`, { body: { type: "order.shipped", data }, as: "api" });
    await until(async () => (await newest()).id > before);
    expect(await newest()).to.include({ subject: "Order 7 has shipped", status: "kept" });
  });

  it("a page has the same functions, and an app user's token cannot use them", async () => {
    await page.goto(`${service.url}/client/svc.js`);
    await page.addScriptTag({ url: `${service.url}/client/packages/svc-communicate.js` });
    await page.addScriptTag({ url: `${service.url}/client/svc.js` });
    const call = (token: string) =>
      page.evaluate(`(async () => {
        Svc.configure({ appId: ${service.appId}, token: ${JSON.stringify(token)} });
        const text = { to: "+15550100", body: "hello" };
        return Svc.Communicate.sendSMS(text).catch(({ status }) => ({ status }));
      })()`);
    expect(await call(service.tokens.live)).to.deep.equal({ status: "FORBIDDEN" });
    expect(await call(service.tokens.api)).to.include({ status: "kept" });
    const names = (await page.evaluate("Object.keys(Svc.Communicate.init()).sort()")) as string[];
    expect(names).to.include.members([
      "sendEmail",
      "batchSendEmail",
      "sendSMS",
      "batchSendSMS",
      "composeEmail",
      "shareURL",
    ]);
  });

  it("a server action cannot open the mail program, in an isolate or a document", async () => {
    for (const [name, global] of Object.entries({ inIsolate: "1", inDocument: "document.title" })) {
      const call = "Svc.Communicate.composeEmail().then(() => 'opened', ({ message }) => message)";
      const body = {
        ...{ name, active: true, triggers: [{ trigger: "manual" }], dependencies: ["svc-communicate"] },
        code: `async function execute() { ${global}; return ${call}; }`,
      };
      await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
      const ran = await service.rest("POST", `/v3/apps/${service.appId}/actions/${name}/runWithResult`, { body: {} });
      expect(ran.body.result).to.contain("works only in a page that a user has opened");
    }
  });

  it("a page without HTTPS opens the mail program, and explains that it cannot share its URL", async () => {
    const plain = await browser.newPage();
    const session = await plain.createCDPSession();
    const navigations: string[] = [];
    session.on("Page.frameRequestedNavigation", ({ url }) => void navigations.push(url));
    await session.send("Page.enable");
    await forwardPlainOrigin(plain, service.url);
    await plain.goto(`${PLAIN_ORIGIN}/client/svc.js`);
    for (const script of ["svc", "packages/svc-communicate"]) {
      await plain.addScriptTag({ url: `/client/${script}.js` });
    }
    expect(await plain.evaluate("isSecureContext")).to.equal(false);
    await plain.evaluate('Svc.Communicate.composeEmail({ to: [{ email: "ann@example.com" }] })');
    await until(() => navigations.includes("mailto:ann%40example.com"));
    const refusal = await plain.evaluate("Svc.Communicate.shareURL().catch(({ message }) => message)");
    expect(refusal).to.equal("Svc.Communicate.shareURL needs a page that was loaded over HTTPS");
  });
});
