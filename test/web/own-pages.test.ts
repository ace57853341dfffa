/** Tests pages on other origins: the list of allowed origins, sessions and limits of visitors, and the example page of the docs. */
import { createServer, type Server } from "node:http";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { SVC_NAMESPACES } from "../../src/cli/reference/svc-examples.js";
import * as limits from "../../src/limits.js";
import { hashVisitorAddress } from "../../src/operations/client/visitors.js";
import { blocksOf, filledIn, readPage } from "../docs/pages.js";
import { pushDevice, pushManagerOf } from "../harness/push-service.js";
import { sampleOf } from "../harness/samples.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium } from "./chromium.js";
import { INVALID_ORIGINS, SHOP_ORIGIN, UNNORMALIZED_ORIGINS } from "./origins.js";
import { buildReactPage, listenAsLocalhost, readPageToken, readSentCode, signIn, waitForText } from "./own-sites.js";

const HASH_PASSWORD_HOOKS = [{ type: "operations", runOn: ["insert", "update"], fields: { Password: ["hash"] } }];
const HOUR_MS = 3_600_000;
const NAMESPACES_WITH_EXAMPLE = SVC_NAMESPACES.filter(({ pageExample }) => pageExample);

describe("pages on other origins", () => {
  let service: TestService;
  let app: string;
  let addresses = 0;

  before(async () => {
    service = await startTestService({ ROLES: "api,runner", TRUST_PROXY: "1" });
    app = `/v1/apps/${service.appId}`;
    await service.rest("POST", `${app}/publish`);
    await service.rest("POST", `${app}/data-sources`, {
      body: { name: "Users", hooks: HASH_PASSWORD_HOOKS, isUsers: true },
    });
    for (const Email of ["ada@example.org", "bob@example.org"]) {
      const data = { Email, Password: `${Email} password` };
      await service.rest("POST", `${app}/data-sources/Users/entries`, { body: { data } });
    }
  });
  after(() => service.stop());

  const setOrigins = (origins: unknown, as?: string) =>
    service.rest("PUT", `${app}/origins`, { body: { origins }, ...(as && { as }) });
  const createAddress = () => `203.0.113.${++addresses}`;
  /** Requests a session of a visitor, as a page of this origin would. */
  const requestVisitorSession = (
    origin: string | null = SHOP_ORIGIN,
    as: string | null = null,
    address = createAddress(),
    path = app,
  ) =>
    service.rest("POST", `${path}/visitors`, {
      as,
      headers: { ...(origin !== null && { origin }), "x-forwarded-for": address },
    });
  const fillIn = (text: string) => filledIn(text, { ...service, token: service.tokens.editor });
  const statusOf = ({ http, body }: { http: number; body: { status?: string } }) => `${http} ${body.status}`;
  const countCredentials = async (address: string) => {
    const sql = "SELECT count(*)::int AS count FROM credential WHERE visitor_block = $1";
    return (await service.db.query(sql, [hashVisitorAddress(service.appId, address)]))[0].count;
  };

  describe("the list of origins", () => {
    it("is normalized, each once, over REST and GraphQL, and is in the audit log", async () => {
      expect((await service.rest("GET", `${app}/origins`)).body).to.deep.equal({ origins: [] });
      const normalizedOrigins = [SHOP_ORIGIN, "http://localhost:5173", "https://xn--bcher-kva.example"];
      expect((await setOrigins(UNNORMALIZED_ORIGINS)).body).to.deep.equal({ origins: normalizedOrigins });
      expect((await service.rest("GET", `${app}/origins`)).body).to.deep.equal({ origins: normalizedOrigins });
      const [entry] = (await service.rest("GET", `${app}/audit`)).body.entries;
      expect(entry).to.deep.include({ type: "app.origins", data: { origins: normalizedOrigins } });
      const { data } = await service.graphql(
        "mutation ($app: Int!, $origins: [String!]) { setAppOrigins(appId: $app, origins: $origins) }",
        { app: service.appId, origins: [SHOP_ORIGIN] },
      );
      expect(data.setAppOrigins).to.deep.equal([SHOP_ORIGIN]);
      const read = await service.graphql(`{ appOrigins(appId: ${service.appId}) }`);
      expect(read.data.appOrigins).to.deep.equal([SHOP_ORIGIN]);
    });

    for (const origin of INVALID_ORIGINS) {
      it(`rejects ${JSON.stringify(origin).slice(0, 60)}`, async () => {
        const answer = await setOrigins([SHOP_ORIGIN, origin]);
        expect(statusOf(answer)).to.equal("400 REQUEST_INVALID");
        expect(answer.body.error).to.match(/^origins\[1\] must be an https origin/);
      });
    }

    it("is an array of at most 50", async () => {
      const many = Array.from({ length: 51 }, (_, at) => `https://shop${at}.example`);
      for (const origins of [undefined, null, SHOP_ORIGIN, {}, many]) {
        expect(statusOf(await setOrigins(origins))).to.equal("400 REQUEST_INVALID");
      }
      expect((await setOrigins(many.slice(1))).http).to.equal(200);
      await setOrigins([SHOP_ORIGIN]);
    });
  });

  describe("a visitor's session", () => {
    it("is created for pages of listed origins only, and other callers do not learn which apps exist", async () => {
      const { http, body } = await requestVisitorSession();
      expect([http, Object.keys(body).sort()]).to.deep.equal([201, ["expiresAt", "token"]]);
      expect(body.token).to.match(/^svc_live_/);
      expect(Date.parse(body.expiresAt) - Date.now()).to.be.within(11.9 * HOUR_MS, 12 * HOUR_MS);
      const unknownApp = "/v1/apps/999999";
      for (const origin of [
        null,
        "null",
        "https://evil.example",
        "http://shop.example",
        "https://shop.example.evil.example",
      ]) {
        for (const path of [app, unknownApp]) {
          const refused = await requestVisitorSession(origin, null, createAddress(), path);
          expect(statusOf(refused), `${origin} ${path}`).to.equal("403 FORBIDDEN");
        }
      }
      const ofUnknownApp = await requestVisitorSession(SHOP_ORIGIN, null, createAddress(), unknownApp);
      const ofEditor = await requestVisitorSession("https://evil.example", service.tokens.editor);
      for (const refused of [ofUnknownApp, ofEditor]) expect(statusOf(refused)).to.equal("403 FORBIDDEN");
    });

    it("has the rights of a live token, is in no list of tokens, and has its own sign-in", async () => {
      const [ada, bob] = [(await requestVisitorSession()).body.token, (await requestVisitorSession()).body.token];
      expect(ada).to.not.equal(bob);
      expect(statusOf(await service.rest("GET", `${app}/settings`, { as: ada }))).to.equal("403 FORBIDDEN");
      const { tokens } = (await service.rest("GET", `${app}/tokens`)).body;
      expect(tokens.filter(({ name }: { name: string }) => name === "visitor")).to.deep.equal([]);
      const where = { Email: "ada@example.org", Password: "ada@example.org password" };
      const signedIn = await service.rest("POST", `${app}/session`, {
        as: ada,
        body: { dataSourceId: "Users", where },
      });
      expect(signedIn.http).to.equal(200);
      const userOf = async (as: string) => (await service.rest("GET", `${app}/session`, { as })).body.session.entries;
      expect((await userOf(ada)).dataSource.data.Email).to.equal("ada@example.org");
      expect(await userOf(bob)).to.equal(undefined);
    });

    it("is renewed with its token, for 30 days; one that has ended is replaced", async () => {
      const { token } = (await requestVisitorSession()).body;
      const change = (sql: string) =>
        service.db.query(`UPDATE credential SET ${sql} WHERE id = (SELECT max(id) FROM credential)`);
      await change("expires_at = now() + interval '1 hour'");
      const renewed = (await requestVisitorSession(SHOP_ORIGIN, token)).body;
      expect(renewed.token).to.equal(token);
      expect(Date.parse(renewed.expiresAt) - Date.now()).to.be.above(11 * HOUR_MS);
      expect(statusOf(await requestVisitorSession("https://evil.example", token))).to.equal("403 FORBIDDEN");
      await change("created_at = now() - interval '29 days 13 hours'");
      const last = (await requestVisitorSession(SHOP_ORIGIN, token)).body;
      expect(last.token).to.not.equal(token);
      const after = (await requestVisitorSession(SHOP_ORIGIN, `svc_live_${"a".repeat(43)}`)).body;
      expect(after.token).to.match(/^svc_live_/);
    });

    it("is not extended for a live token that an editor made, nor for a session of another app", async () => {
      expect((await requestVisitorSession(SHOP_ORIGIN, service.tokens.live)).body.token).to.not.equal(
        service.tokens.live,
      );
      const other = (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "other" } })).body.app
        .id;
      const path = `/v1/apps/${other}`;
      await service.rest("PUT", `${path}/origins`, { as: "admin", body: { origins: [SHOP_ORIGIN] } });
      expect(statusOf(await requestVisitorSession(SHOP_ORIGIN, null, createAddress(), path))).to.equal(
        "409 APP_NOT_PUBLISHED",
      );
      await service.rest("POST", `${path}/publish`, { as: "admin" });
      const { token } = (await requestVisitorSession()).body;
      const elsewhere = (await requestVisitorSession(SHOP_ORIGIN, token, createAddress(), path)).body.token;
      expect(elsewhere).to.not.equal(token);
      const left = await service.rest("GET", `${app}/session`, { as: elsewhere });
      expect(statusOf(left)).to.equal("403 FORBIDDEN");
    });

    it("ends when the app is unpublished", async () => {
      const { token } = (await requestVisitorSession()).body;
      await service.rest("POST", `${app}/unpublish`);
      expect((await service.rest("GET", `${app}/session`, { as: token })).http).to.equal(401);
      expect(statusOf(await requestVisitorSession())).to.equal("409 APP_NOT_PUBLISHED");
      await service.rest("POST", `${app}/publish`);
    });

    it("has a rate limit for one address, while other addresses get theirs", async () => {
      const address = createAddress();
      const began = performance.now();
      const answers: Answer[] = [];
      // While a slow machine sends requests, the limit allows further ones. So the test sends batches until the service rejects a request.
      while (!answers.some(({ http }) => http === 429)) {
        const requests = Array.from({ length: 40 }, () => requestVisitorSession(SHOP_ORIGIN, null, address));
        answers.push(...(await Promise.all(requests)));
      }
      const limit = limits.NEW_VISITOR_SESSIONS_PER_ADDRESS_AND_MINUTE;
      const refilledRequests = ((performance.now() - began) / limits.RATE_WINDOW_MS) * limit;
      const accepted = answers.filter(({ http }) => http === 201).length;
      expect(accepted).to.be.within(limit, limit + refilledRequests);
      expect(Number(answers.find(({ http }) => http === 429)!.headers.get("retry-after"))).to.be.within(1, 60);
      expect((await requestVisitorSession()).http).to.equal(201);
    });

    it("has a maximum number for one address: sessions without a sign-in are replaced", async () => {
      const address = createAddress();
      const signedIn = (await requestVisitorSession(SHOP_ORIGIN, null, address)).body.token;
      const where = { Email: "bob@example.org", Password: "bob@example.org password" };
      await service.rest("POST", `${app}/session`, { as: signedIn, body: { dataSourceId: "Users", where } });
      await service.db.query(
        `INSERT INTO credential (kind, hash, app_id, page_session, visitor_block, expires_at)
         SELECT 'live', sha256(n::text::bytea), $1, true, $2, now() + interval '1 hour' FROM generate_series(1, $3::int) AS n`,
        [service.appId, hashVisitorAddress(service.appId, address), limits.VISITOR_SESSIONS_PER_ADDRESS_MAX],
      );
      for (let time = 0; time < 3; time += 1)
        expect((await requestVisitorSession(SHOP_ORIGIN, null, address)).http).to.equal(201);
      expect(await countCredentials(address)).to.be.at.most(limits.VISITOR_SESSIONS_PER_ADDRESS_MAX);
      expect((await service.rest("GET", `${app}/session`, { as: signedIn })).body.session.entries).to.not.equal(
        undefined,
      );
    });
  });

  describe("the guides for front ends", () => {
    let browser: Browser;
    let site: Server;
    let url: string;

    before(async () => {
      const of = (guide: string, name: string) =>
        fillIn(blocksOf(readPage(`docs/guides/${guide}`)).find(({ file }) => file === name)!.text);
      const react = await buildReactPage(of("react.md", "app.jsx"), service.url);
      const pages: Record<string, [type: string, text: string]> = {
        "/": ["text/html", of("front-end.md", "index.html")],
        "/react": ["text/html", '<!doctype html><div id="root"></div><script type="module" src="/app.js"></script>'],
        "/app.js": ["text/javascript", react],
      };
      const [self, socket] = ["'self' 'unsafe-inline'", service.url.replace("http", "ws")];
      const policy = `default-src 'none'; script-src ${self} ${service.url}; connect-src ${service.url} ${socket}`;
      site = createServer(({ url: path }, response) => {
        const [type, text] = pages[path ?? ""] ?? ["text/plain", ""];
        response.setHeader("content-security-policy", policy).setHeader("content-type", type).end(text);
      });
      url = await listenAsLocalhost(site);
      await setOrigins([url]);
      const rules = [{ type: ["select"], allow: "all" }];
      await service.rest("POST", `${app}/data-sources`, { body: { name: "Talks", accessRules: rules } });
      const greetCode = "async function execute({ payload }) { return `Hello ${payload.name}`; }";
      const body = { name: "greet", active: true, triggers: [{ trigger: "manual" }], code: greetCode };
      const { action } = (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body })).body;
      await service.rest("POST", `/v3/apps/${service.appId}/actions/${action.id}/publish`);
      browser = await launchChromium();
    });
    after(async () => {
      await browser?.close();
      site?.close();
    });

    it("get the reader's app and token from fields, without shell syntax", async () => {
      const page = await (await browser.createBrowserContext()).newPage();
      await page.goto(`${service.url}/docs/guides/first-action`);
      const [id, token] = await page.$$(".values input");
      await id!.evaluate((input) => {
        (input as unknown as { value: string }).value = "";
      });
      await id!.type("7;");
      await token!.type('svc_api_a-b" $(x)');
      const text = await page.$eval("main pre code", (code) => code.textContent ?? "");
      expect(text).to.contain(`SVC_URL=${service.url} SVC_APP=7 SVC_TOKEN="svc_api_a-bx"`);
    });

    const subscriptions = async (): Promise<number> => {
      const metrics = (await service.rest("GET", "/metrics")).body as string;
      return Number(/svc_sockets\{what="subscriptions"\} (\d+)/.exec(metrics)![1]);
    };

    for (const path of sampleOf(["/", "/react"], 0, 2)) {
      it(`call an action and follow the data live at ${path}`, async () => {
        const before = await subscriptions();
        const page = await (await browser.createBrowserContext()).newPage();
        await page.goto(`${url}${path}`);
        const waitForGreeting = (name: string) =>
          page.waitForFunction(`document.querySelector("#greeting")?.textContent === "Hello ${name}"`);
        await waitForGreeting("Ann");
        if (path === "/") await page.click("#greet").then(() => waitForGreeting("Bob"));
        await until(async () => (await subscriptions()) > before);
        const Title = `Live at ${path}`;
        const shows = page.waitForFunction(`document.querySelector("#talks").textContent.includes("${Title}")`);
        await service.rest("POST", `${app}/data-sources/Talks/entries`, { body: { data: { Title } } });
        await shows;
      });
    }
  });

  describe("the page of the documentation", () => {
    let browser: Browser;
    let site: Server;
    let url: string;

    before(async () => {
      const page = fillIn(
        blocksOf(readPage("docs/guides/own-pages.md")).find(({ file }) => file === "shop.html")!.text,
      );
      const worker = `importScripts("${service.url}/client/push-worker.js");`;
      site = createServer((request, response) => {
        const isWorker = request.url === "/svc-push-worker.js";
        response.setHeader("content-type", isWorker ? "text/javascript" : "text/html").end(isWorker ? worker : page);
      });
      url = await listenAsLocalhost(site);
      await setOrigins([url]);
      await service.rest("POST", `${app}/settings`, { body: { _verify: { dataSource: "Users", email: "Email" } } });
      browser = await launchChromium();
    });
    after(async () => {
      await browser?.close();
      site?.close();
    });

    const openPage = async (): Promise<Page> => {
      const page = await (await browser.createBrowserContext()).newPage();
      await page.goto(url);
      return page;
    };
    it("gives each visitor a session of their own, signed in again after a reload", async () => {
      const [ada, bob] = [await openPage(), await openPage()];
      for (const page of [ada, bob]) await waitForText(page, "Not signed in.");
      await signIn(ada, "ada@example.org");
      await waitForText(ada, "Hello ada@example.org");
      await bob.reload();
      await waitForText(bob, "Not signed in.");
      await signIn(bob, "bob@example.org");
      await waitForText(bob, "Hello bob@example.org");
      await ada.reload();
      await waitForText(ada, "Hello ada@example.org");
      expect(await readPageToken(ada)).to.not.equal(await readPageToken(bob));
      // The script env.js has set ENV in the page, but no session.
      expect(await ada.evaluate("[ENV.environment, ENV.appId, ENV.session]")).to.deep.equal([
        "live",
        service.appId,
        null,
      ]);
    });

    it("keeps its session after a wrong password, and gets another one when its session has ended", async () => {
      const page = await openPage();
      await waitForText(page, "Not signed in.");
      const token = await readPageToken(page);
      const wrong = await page.evaluate(
        `Svc.Session.authorize({ dataSourceId: "Users", where: { Email: "ada@example.org", Password: "no" } }).catch((e) => e.status)`,
      );
      expect([wrong, await readPageToken(page)]).to.deep.equal(["UNAUTHORIZED", token]);
      for (const call of ["Session.set({ locale: 'fr' })", "Session.get()"]) {
        const endedToken = (await readPageToken(page)) as string;
        await service.db.query("UPDATE credential SET revoked_at = now() WHERE id = (SELECT max(id) FROM credential)");
        await service.db.query("SELECT pg_notify('svc_credential', '')");
        await until(async () => (await service.rest("GET", `${app}/session`, { as: endedToken })).http === 401);
        expect(await page.evaluate(`Svc.${call}.then((session) => session?.environment)`), call).to.equal("production");
        expect(await readPageToken(page)).to.not.equal(endedToken);
      }
    });

    /** Opens the example page. Enters the code of the newest e-mail in its dialogs. `navigations` lists the URLs that the page opens. */
    async function openExamplePage() {
      const page = await (await browser.createBrowserContext()).newPage();
      await page.browserContext().overridePermissions(url, ["notifications", "clipboard-read", "clipboard-write"]);
      page.on("dialog", async (dialog) => dialog.accept(await readSentCode(service, "ada@example.org")));
      const navigations: string[] = [];
      const session = await page.createCDPSession();
      session.on("Page.frameRequestedNavigation", ({ url: opened }) => void navigations.push(opened));
      await session.send("Page.enable");
      await page.evaluateOnNewDocument(pushManagerOf(pushDevice("https://push.example.com/device")));
      await page.goto(url);
      // The clipboard needs the focus.
      await page.bringToFront();
      await page.waitForFunction("document.hasFocus()");
      await waitForText(page, "Not signed in.");
      return { page, navigations };
    }

    for (const { path, package: name, pageExample } of sampleOf(NAMESPACES_WITH_EXAMPLE, 0, 4)) {
      if (!pageExample) continue;
      it(`gets the result that the reference shows for ${path}`, async () => {
        const { page } = await openExamplePage();
        if (name !== null) await page.addScriptTag({ url: `${service.url}/client/packages/${name}.js` });
        const code = fillIn(pageExample.code);
        expect(await page.evaluate(`(async () => {\n${code}\n})()`)).to.deep.equal(pageExample.result);
      });
    }

    it("opens the mail program with a composed e-mail", async () => {
      const { page, navigations } = await openExamplePage();
      await page.addScriptTag({ url: `${service.url}/client/packages/svc-communicate.js` });
      const to = '[{ email: "ann@example.com" }, { email: "bob@example.com", type: "cc" }]';
      await page.evaluate(`Svc.Communicate.composeEmail({ to: ${to}, subject: "Two seats & more", text: "a\\nb" })`);
      const query = "cc=bob%40example.com&subject=Two%20seats%20%26%20more&body=a%0Ab";
      await until(() => navigations.includes(`mailto:ann%40example.com?${query}`));
    });

    it("gets an explanation when its origin is no longer listed", async () => {
      await setOrigins([SHOP_ORIGIN]);
      const page = await openPage();
      const refusal = await page.evaluate(`Svc.init({ app: ${service.appId} }).catch((error) => error.status)`);
      expect(refusal).to.equal("FORBIDDEN");
    });
  });
});
