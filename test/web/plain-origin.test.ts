/** Tests the service's pages and the client library on a page that was loaded without HTTPS from another host than localhost. */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { FIRST_VISIT_QUERY } from "../../src/web/graphiql/first-visit.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { mediaOf } from "../media/support.js";
import { launchChromium } from "./chromium.js";
import { rejectionCode, useClientPage } from "./client-page.js";
import { forwardPlainOrigin, PLAIN_ORIGIN } from "./plain-origin.js";
import { leaveOutCompiler, studioPage } from "./studio-page.js";

describe("buttons that copy, on pages without HTTPS", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  /** Page on localhost that reads the clipboard. */
  let reader: Page;

  before(async () => {
    [service, browser] = await Promise.all([useSharedService("api"), launchChromium()]);
    await browser
      .defaultBrowserContext()
      .overridePermissions(service.url, ["clipboard-read", "clipboard-sanitized-write"]);
    [reader, page] = [await browser.newPage(), await browser.newPage()];
    await reader.goto(`${service.url}/client/svc.js`);
    await leaveOutCompiler(page);
    await page.setViewport({ width: 1280, height: 900 });
    await forwardPlainOrigin(page, service.url, { "auth-token": service.tokens.editor });
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  const readClipboard = async (): Promise<unknown> => {
    await reader.bringToFront();
    const text = await reader.evaluate("navigator.clipboard.readText()");
    await page.bringToFront();
    return text;
  };

  it("copies a code block of the docs, and keeps the reader's selection", async () => {
    await page.goto(`${PLAIN_ORIGIN}/docs/start/laptop`);
    expect(await page.evaluate("[isSecureContext, typeof navigator.clipboard]")).to.deep.equal([false, "undefined"]);
    const code = await page.$eval("main .code code", (element) => element.textContent);
    await page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))");
    await page.click("main .code .copy");
    await page.waitForFunction("document.querySelector('main .code .copy').textContent !== 'Copy'");
    expect(await page.$eval("main .code .copy", (button) => button.textContent)).to.equal("Copied");
    expect(await page.evaluate("getSelection().toString() === document.querySelector('h1').innerText")).to.equal(true);
    expect(await readClipboard()).to.equal(code);
  });

  it("copies a request in Studio, and the link of a file from a dialog", async () => {
    const studio = studioPage(page);
    const code = "async function execute() { return 1; }";
    const data = { name: "called", code, active: true, triggers: [{ trigger: "manual" }] };
    const { action } = (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: data })).body;
    await mediaOf(service).upload("hello.txt", "hello");
    await page.goto(`${PLAIN_ORIGIN}/studio#/${service.appId}/actions/${action.id}`);
    await studio.button("Call", '//*[@role="tablist"]');
    await (await page.waitForSelector(".call-example summary"))!.click();
    const example = await page.waitForSelector(".call-example pre");
    await studio.button("Copy", '//*[contains(@class, "call-example")]');
    await page.waitForSelector(studio.withText("button", "Copied"));
    expect(await readClipboard()).to.equal(await example!.evaluate((element) => element.textContent));
    await studio.open(`${service.appId}/media`);
    await (await page.waitForSelector('.tile[title="hello.txt"]'))!.click();
    await studio.button("Copy link");
    await page.waitForFunction(
      'document.querySelector(".media-details [role=status]").textContent.startsWith("Copied")',
    );
    expect(await (await fetch(String(await readClipboard()))).text()).to.equal("hello");
  });

  it("copies the query of GraphiQL", async () => {
    await page.goto(`${PLAIN_ORIGIN}/graphql`);
    await page.waitForSelector(".graphiql-query-editor .view-line");
    await page.click('.graphiql-container [aria-label^="Copy query"]');
    expect(await readClipboard()).to.equal(FIRST_VISIT_QUERY);
  });
});

describe("the client library on a page without HTTPS", () => {
  const client = useClientPage({ isOpened: false });

  it("records analytics events, makes random values, and explains which encryption needs HTTPS", async () => {
    await forwardPlainOrigin(client.page, client.service.origin);
    await client.page.goto(`${PLAIN_ORIGIN}/page?with=/client/packages/svc-encryption.js,/client/svc.js`);
    expect(await client.run("isSecureContext")).to.equal(false);
    await client.run(`for (let n = 0; n < 20; n += 1) Svc.App.Analytics.event("event " + n)`);
    const [sent] = await client.service.requests("/v1/apps/1/analytics");
    const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
    const { data } = (sent!.body as { events: { data: Record<string, string> }[] }).events[0]!;
    expect(data["_deviceTrackingId"]).to.match(uuid);
    const ids = (await client.run("Array.from({ length: 100 }, Svc.Encryption.randomUUID)")) as string[];
    expect(new Set(ids).size).to.equal(100);
    for (const id of ids) expect(id).to.match(uuid);
    for (const call of ["hash('a')", "hmac('a', 'b')", "generateKey().then((key) => Svc.Encryption.encrypt('a', key))"])
      expect(await client.run(rejectionCode(`Svc.Encryption.${call}`))).to.include({
        message: "this function of Svc.Encryption needs a page that was loaded over HTTPS",
      });
  });
});
