/** Tests data that Studio has read before: Studio shows the data while it reads the data again, but never in another app or session. */
import { expect } from "chai";
import type { Browser, HTTPRequest, Page } from "puppeteer";
import { type PrefixProxy, startPrefixProxy } from "../harness/prefix-proxy.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium } from "../web/chromium.js";
import { type StudioPage, studioPage } from "../web/studio-page.js";

describe("data that Studio has read before", () => {
  let tab: Page;
  let other: StudioPage;
  /** Requests for the list of tokens. The test holds them back while `isHolding` is true. */
  const held: HTTPRequest[] = [];
  let isHolding = false;

  let service: TestService;
  let proxy: PrefixProxy;
  let browser: Browser;

  before(async () => {
    proxy = await startPrefixProxy("/svc");
    const environment = { PUBLIC_URL: `${proxy.url}/`, ROLES: "api" };
    [service, browser] = await Promise.all([startTestService(environment), launchChromium()]);
    proxy.setTarget(service.url);
    tab = await browser.newPage();
    other = studioPage(tab);
    tab.on("request", (request) => {
      if (isHolding && request.postData()?.includes("query ListTokens")) held.push(request);
      else void request.continue();
    });
    await tab.setRequestInterception(true);
    await tab.goto(`${proxy.url}/studio`);
    await other.signIn(service.tokens.admin);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
    await proxy?.stop();
  });

  const createToken = (name: string) =>
    service.rest("POST", `/v1/apps/${service.appId}/tokens`, { as: "admin", body: { kind: "api", name } });
  const tokens = () => tab.$$eval(".tokens b", (all) => all.map((element) => element.textContent));
  const shows = (name: string) => tab.waitForSelector(other.withText("b", name));
  async function openHeld(appId: number): Promise<void> {
    isHolding = true;
    await other.open(`${appId}/app/tokens`);
    await until(() => held.length === 1);
  }
  async function make(name: string): Promise<void> {
    isHolding = false;
    await other.replace('[aria-label="Name of the new token"]', name);
    await other.button("Create token");
    await shows(name);
  }

  it("is shown while it is read again, and a response that is late does not replace a newer one", async () => {
    await createToken("first");
    await other.open(`${service.appId}/app/tokens`);
    await shows("first");
    await other.open(`${service.appId}/alerts`);
    await tab.waitForSelector(".tokens", { hidden: true });
    await createToken("second");
    await openHeld(service.appId);
    expect(await tokens())
      .to.include("first")
      .and.not.to.include("second");
    await make("third");
    await held.pop()!.respond({ contentType: "application/json", body: JSON.stringify({ data: { tokens: [] } }) });
    await tab.evaluate("new Promise((done) => setTimeout(done, 200))");
    expect(await tokens()).to.include.members(["first", "second", "third"]);
  });

  it("is read again when the window gets the focus, and when a lost connection is back", async () => {
    await createToken("before the focus");
    await tab.evaluate('dispatchEvent(new Event("focus"))');
    await shows("before the focus");
    proxy.cut();
    await tab.waitForSelector(".connection:not(:empty)");
    await createToken("meanwhile");
    proxy.restore();
    await shows("meanwhile");
  });

  it("is not shown for another app, nor after signing out", async () => {
    const { body } = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "Second app" } });
    await tab.reload();
    await shows("first");
    await openHeld(body.app.id);
    expect(await tokens()).to.deep.equal([]);
    isHolding = false;
    await held.pop()!.continue();
    await other.open(`${service.appId}/app/tokens`);
    await shows("first");
    await other.signOut();
    isHolding = true;
    await other.signIn(service.tokens.admin);
    await until(() => held.length === 1);
    expect(await tokens()).to.deep.equal([]);
    // Studio must accept a change although the first read of the list is still pending.
    await make("fourth");
  });
});
