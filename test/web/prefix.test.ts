/** Tests the service behind a proxy with a path prefix: pages, scripts, sockets, redirects, cookies and packages use the prefix. */
import { discoverOAuthServerInfo } from "@modelcontextprotocol/sdk/client/auth.js";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { type PrefixProxy, startPrefixProxy } from "../harness/prefix-proxy.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium, type PageWatch, watchPage, watchSockets } from "./chromium.js";

const ON_PAGE_VIEW = [{ trigger: "analytics", where: { type: "analytics.pageView" } }, { trigger: "manual" }];

/** Code of an action that calls a package of the service and writes the result into the example page. */
const GREETING_CODE = `async function execute() {
  const { user } = await Svc.Session.get();
  const text = Svc.CSV.stringify([{ a: user?.firstName ?? "nobody" }]);
  const greeting = document.querySelector("#greeting");
  if (greeting) greeting.textContent = text;
  return text;
}`;

describe("under a path of another host", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let proxy: PrefixProxy;
  let actionId: number;

  before(async () => {
    proxy = await startPrefixProxy("/team/actions");
    [service, browser] = await Promise.all([
      startTestService({ PUBLIC_URL: `${proxy.url}/`, ROLES: "api,runner" }),
      launchChromium(),
    ]);
    proxy.setTarget(service.url);
    const actions = `/v3/apps/${service.appId}/actions`;
    const body = { name: "both", code: GREETING_CODE, active: true, environment: "any", triggers: ON_PAGE_VIEW };
    const createdAction = await service.rest("POST", actions, {
      body: { ...body, dependencies: ["svc-csv", "svc-session"] },
    });
    actionId = createdAction.body.action.id;
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    await service.rest("POST", `${actions}/${actionId}/publish`);
  });
  beforeEach(async () => {
    page = await (await browser.createBrowserContext()).newPage();
    watch = watchPage(page, proxy.url);
    proxy.outside.length = 0;
  });
  afterEach(async () => {
    const { foreign } = watch;
    await page.browserContext().close();
    expect([foreign, proxy.outside]).to.deep.equal([[], []]);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
    await proxy?.stop();
  });

  async function signIn(): Promise<void> {
    await page.waitForSelector("input[name=token]");
    await page.type("input[name=token]", service.tokens.editor);
    await Promise.all([page.waitForNavigation(), page.click("button")]);
  }
  const greeting = () => page.$eval("#greeting", (output) => output.textContent);

  longTest("the root address leads to Studio, which signs in, edits, and follows the log over its socket", async () => {
    const socketUrls = await watchSockets(page);
    await page.goto(`${proxy.url}/`);
    expect(page.url()).to.equal(`${proxy.url}/studio`);
    const tokenForm = await page.waitForSelector('::-p-xpath(//button[normalize-space(.)="Use a token"])');
    await tokenForm!.click();
    await page.waitForSelector("input[name=token]");
    await page.type("input[name=token]", service.tokens.editor);
    await page.click("input[type=checkbox]");
    await page.click("button.primary");
    await page.waitForSelector(".top-bar");
    await page.evaluate(`location.hash = "#/${service.appId}/actions/${actionId}"`);
    await page.waitForSelector(".code-editor .view-line");
    await page.evaluate(`location.hash = "#/${service.appId}/log"`);
    await until(() => socketUrls.length > 0);
    expect(socketUrls[0]).to.equal(`${proxy.url.replace("http", "ws")}/graphql`);
    const [cookie] = await page.browserContext().cookies();
    expect(cookie).to.include({ name: "auth_token", path: "/team/actions", httpOnly: true });
  });

  longTest("GraphiQL loads the schema", async () => {
    const postResponse = page.waitForResponse((response) => response.request().method() === "POST");
    await page.goto(`${proxy.url}/graphql`);
    expect((await postResponse).url()).to.equal(`${proxy.url}/graphql`);
    await page.waitForSelector(".monaco-editor .view-line");
  });

  it("the live page runs its client actions with their packages, for an anonymous visitor", async () => {
    await page.goto(`${proxy.url}/apps/${service.appId}`);
    await until(async () => (await greeting()) === "a\r\nnobody");
    expect(watch.errors).to.deep.equal([]);
  });

  longTest("the viewer asks for a sign-in, and then runs them", async () => {
    await page.goto(`${proxy.url}/apps/${service.appId}/viewer`);
    await signIn();
    await until(async () => (await greeting()) === "a\r\nFirst");
  });

  longTest("the debug page runs its action with its packages, for a signed-in person", async () => {
    await page.goto(`${proxy.url}/v3/apps/${service.appId}/actions/${actionId}/compile?html`);
    await signIn();
    expect(await page.evaluate(`Svc.App.V3.Actions.runWithResult("both")`)).to.equal("a\r\nFirst");
  });

  it("a run on the server has its packages and reaches the API", async () => {
    const code =
      "async function execute() { return [await Svc.App.V3.Actions.runWithResult('one'), Svc.CSV.parse('a\\n1')]; }";
    const actions = `/v3/apps/${service.appId}/actions`;
    const manual = { active: true, triggers: [{ trigger: "manual" }] };
    const fields = { ...manual, name: "one", code: "async function execute() { return 1; }" };
    await service.rest("POST", actions, { body: fields });
    await service.rest("POST", actions, { body: { ...manual, name: "two", code, dependencies: ["svc-csv"] } });
    const { body } = await service.rest("POST", `${actions}/two/runWithResult`);
    expect(body.result).to.deep.equal([1, [{ a: "1" }]]);
  });

  it("a page of another origin finds the service by the address of its library", async () => {
    await page.goto(`${service.url}/client/svc.d.ts`);
    watch.foreign.length = 0;
    await page.addScriptTag({ url: `${proxy.url}/client/svc.js` });
    await page.evaluate(`Svc.configure({ appId: ${service.appId}, token: "${service.tokens.live}" })`);
    const refused = `Svc.App.V3.Actions.get().then(() => "", ({ status }) => status)`;
    expect(await page.evaluate(refused)).to.equal("FORBIDDEN");
  });

  it("an MCP client finds the sign-in by the rules of RFC 9728 and RFC 8414", async () => {
    const { authorizationServerUrl, authorizationServerMetadata, resourceMetadata } = await discoverOAuthServerInfo(
      `${proxy.url}/mcp`,
    );
    expect(authorizationServerUrl).to.equal(proxy.url);
    expect(authorizationServerMetadata).to.include({
      issuer: proxy.url,
      token_endpoint: `${proxy.url}/oauth/token`,
    });
    expect(resourceMetadata).to.include({ resource: `${proxy.url}/mcp` });
    const { origin, pathname } = new URL(proxy.url);
    const statusOf = async (url: string) => (await fetch(url)).status;
    for (const document of ["oauth-authorization-server", "oauth-protected-resource"]) {
      expect(await statusOf(`${origin}/.well-known/${document}${pathname}`), document).to.equal(200);
      expect(await statusOf(`${proxy.url}/.well-known/${document}`), document).to.equal(200);
      expect(await statusOf(`${origin}/.well-known/${document}${pathname}/x`), document).to.equal(404);
    }
  });
});
