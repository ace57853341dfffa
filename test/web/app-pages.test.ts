import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { type Network, startNetwork } from "../harness/network.js";
import { createSignedInPerson } from "../harness/people.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";

const ON_PAGE_VIEW = [{ trigger: "analytics", where: { type: "analytics.pageView" } }];

/** Returns code of an action that writes a text and the number of the page view into the example page. */
const greetingCode = (text: string) =>
  `async function execute({ payload, settings }) {
     document.querySelector("#greeting").textContent = ${JSON.stringify(text)} + " on page " + payload.data._pageId;
     return Object.keys(settings).length;
   }`;

describe("the app's own pages", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  /** Network between the pages and the service, which the test can cut. The test itself sends requests to the service directly. */
  let network: Network;
  let actionCount = 0;

  before(async () => {
    network = await startNetwork();
    const environment = { ROLES: "api,runner", CLIENT_TIMEOUT_MS: "6000", PUBLIC_URL: network.url };
    [service, browser] = await Promise.all([startTestService(environment), launchChromium()]);
    network.setTarget(service.url);
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
  });
  beforeEach(async () => {
    page = await (await browser.createBrowserContext()).newPage();
    watch = watchPage(page, network.url);
  });
  afterEach(async () => {
    await page.browserContext().close();
    await service.db.query("DELETE FROM action");
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
    await network?.stop();
  });

  const actions = () => `/v3/apps/${service.appId}/actions`;
  const livePageUrl = () => `${network.url}/apps/${service.appId}`;
  const viewerUrl = () => `${livePageUrl()}/viewer`;

  async function createAction(code: string, more: object = {}): Promise<number> {
    const body = {
      name: `greet-${++actionCount}`,
      code,
      active: true,
      environment: "client",
      triggers: ON_PAGE_VIEW,
      ...more,
    };
    const { http, body: answer } = await service.rest("POST", actions(), { body });
    expect(http).to.equal(201);
    return answer.action.id;
  }

  const update = (id: number, body: object) => service.rest("PUT", `${actions()}/${id}`, { body });

  async function publish(id: number): Promise<number> {
    const { http, body } = await service.rest("POST", `${actions()}/${id}/publish`);
    expect(http).to.equal(200);
    return body.action.id;
  }

  const entriesOf = async (id: number) => (await service.rest("POST", `${actions()}/logs`, { body: { id } })).body.logs;
  const readGreeting = () => page.$eval("#greeting", (output) => output.textContent);
  const sendPageView = (id: number) => page.evaluate(`void Svc.App.Analytics.pageView({ _pageId: ${id} })`);

  /** Sends page views until the greeting in the page has this text. */
  async function viewUntilGreeting(text: string): Promise<void> {
    let id = 100;
    await until(async () => {
      await sendPageView(++id);
      return (await readGreeting())?.startsWith(`${text} on page`);
    });
  }

  async function signIn(token: string): Promise<void> {
    await page.waitForSelector("input[name=token]");
    await page.type("input[name=token]", token);
    await Promise.all([page.waitForNavigation(), page.click("button")]);
  }

  it("run actions by name in the viewer, and not in the live app", async () => {
    const readHeadings = () => page.$$eval("h2", (found) => found.map(({ textContent }) => textContent));
    await page.goto(livePageUrl());
    await page.waitForSelector("h2");
    expect(await readHeadings()).to.deep.equal(["Analytics events of this page"]);
    expect(await page.$$eval("input", (found) => found.length)).to.equal(0);
    await page.goto(viewerUrl());
    await signIn(service.tokens.editor);
    await page.waitForSelector("input[name=action]");
    expect(await readHeadings()).to.include("Run an action");
  });

  it("start a client action on a page view, with the live version in the live app and the draft in the viewer", async () => {
    const master = await createAction(greetingCode("production"));
    const production = await publish(master);
    await update(master, { code: greetingCode("master") });
    await page.goto(livePageUrl());
    await until(async () => (await readGreeting()) === "production on page 1");
    expect(watch.foreign).to.deep.equal([]);
    await page.goto(viewerUrl());
    await signIn(service.tokens.editor);
    await until(async () => (await readGreeting()) === "master on page 1");
    for (const id of [production, master]) {
      const [entry] = await until(async () => {
        const logs = await entriesOf(id);
        return logs.length > 0 && logs;
      });
      expect(entry.type).to.equal("app.task.completed");
      expect(entry.data).to.deep.include({ runOn: "client", mode: "on-demand", taskId: id });
      expect(entry.data.payload).to.have.property("type", "analytics.pageView");
      expect(entry.data.result).to.deep.equal({ data: 0, success: true });
    }
  });

  longTest("run what was published without a reload", async () => {
    const master = await createAction(greetingCode("old"));
    await publish(master);
    await page.goto(livePageUrl());
    await viewUntilGreeting("old");
    await page.evaluate("globalThis.notReloaded = true");
    await update(master, { code: greetingCode("new") });
    await publish(master);
    await viewUntilGreeting("new");
    expect(await page.evaluate("globalThis.notReloaded")).to.equal(true);
  });

  longTest("lose no change during a gap in the connection", async () => {
    const master = await createAction(greetingCode("before"));
    const production = await publish(master);
    await page.goto(livePageUrl());
    await viewUntilGreeting("before");
    network.cut();
    await update(master, { code: greetingCode("after") });
    await publish(master);
    const other = await createAction(greetingCode("unpublished"));
    await publish(other);
    await service.rest("POST", `${actions()}/${other}/unpublish`);
    network.restore();
    await viewUntilGreeting("after");
    const completedRun = await until(async () => {
      const logs = await entriesOf(production);
      return logs.length > 0 && logs;
    });
    expect(completedRun.every((entry: { type: string }) => entry.type === "app.task.completed")).to.equal(true);
  });

  longTest("stop an action at the limit of the service and log it as timed out", async () => {
    const id = await createAction("async function execute() { await new Promise(() => {}); }");
    await publish(id);
    const production = (await service.db.query("SELECT id FROM action WHERE master_id = $1", [id]))[0].id;
    await page.goto(livePageUrl());
    const [entry] = await until(async () => {
      const logs = await entriesOf(production);
      return logs.length > 0 && logs;
    });
    expect(entry.data.error).to.include({ name: "TimeoutError" });
  });

  it("can call every operation of a visitor, and no others", async () => {
    const id = await createAction("async function execute({ payload }) { return [payload.a, 2]; }", {
      name: "on-server",
      environment: "server",
      triggers: [{ trigger: "manual" }],
    });
    await createAction(greetingCode("x"), { name: "in-client" });
    await Promise.all([publish(id), service.rest("POST", `${actions()}/in-client/publish`)]);
    await page.goto(livePageUrl());
    const run = (call: string) =>
      page.evaluate(`Svc.App.V3.Actions.${call}.then((value) => ({ value }), (error) => ({ status: error.status }))`);
    expect(await run("runWithResult('on-server', { a: 1 })")).to.deep.equal({ value: [1, 2] });
    expect(await run("run('on-server')")).to.deep.equal({});
    for (const call of [
      "get()",
      "getById(1)",
      "create({})",
      "update(1, {})",
      "remove(1)",
      "publish(1)",
      "unpublish(1)",
    ]) {
      expect(await run(call), call).to.deep.equal({ status: "FORBIDDEN" });
    }
    expect(await run("getLogs()")).to.deep.equal({ status: "FORBIDDEN" });
  });

  it("hide the editor's cookie from the actions that run on them", async () => {
    const id = await createAction(
      `async function execute() {
         const answer = await fetch("/v1/apps", { credentials: "include" }).then((response) => response.status, () => "blocked");
         let cookie = "none";
         try { cookie = document.cookie; } catch { cookie = "refused"; }
         return { answer, cookie };
       }`,
    );
    await page.goto(viewerUrl());
    await signIn(service.tokens.admin);
    await page.waitForSelector("#greeting");
    const logs = await until(async () => {
      const all = await entriesOf(id);
      return all.length > 0 && all;
    });
    expect(logs[0].data.result.data).to.deep.equal({ answer: "blocked", cookie: "refused" });
  });

  longTest("start client actions also on the debug page, and log their runs", async () => {
    const id = await createAction("async function execute({ payload }) { return [origin, payload.data.plan]; }");
    await page.goto(`${network.url}${actions()}/${id}/compile?html`);
    await signIn(service.tokens.editor);
    await page.evaluate(`void Svc.App.Analytics.pageView({ plan: "free" })`);
    const [entry] = await until(async () => {
      const logs = await entriesOf(id);
      return logs.length > 0 && logs;
    });
    expect(entry.data).to.deep.include({ runOn: "client", result: { data: ["null", "free"], success: true } });
    expect(watch.foreign).to.deep.equal([]);
  });

  describe("have their own sessions", () => {
    const open = (path: string, cookie = "") =>
      fetch(service.url + path, { headers: { accept: "text/html", ...(cookie && { cookie }) }, redirect: "manual" });
    const visitLivePage = (cookie = "") => open(`/apps/${service.appId}`, cookie);
    const findToken = async (response: Response) => /svc_[a-z]+_[\w-]{49}/.exec(await response.text())?.[0] ?? "";
    const cookieOf = (token: string) => `auth_token=${token}`;
    const readEnv = async (token: string) =>
      (await service.rest("GET", `/v1/apps/${service.appId}/env.js`, { as: token })).http;
    const openViewer = (token: string) => open(`/apps/${service.appId}/viewer`, cookieOf(token));

    it("for a visitor of a published app: live, of this app, in the document and in no cookie", async () => {
      const response = await visitLivePage();
      expect([response.status, response.headers.get("set-cookie")]).to.deep.equal([200, null]);
      expect(response.headers.get("cache-control")).to.equal("no-store");
      const token = await findToken(response);
      expect(token).to.match(/^svc_live_/);
      expect(await readEnv(token)).to.equal(200);
    });

    longTest("without a trace by which Studio would regard the browser as the visitor's", async () => {
      await page.goto(livePageUrl());
      expect(await page.browserContext().cookies()).to.deep.equal([]);
      await page.goto(`${network.url}/studio`);
      await page.waitForSelector("input[name=email]");
    });

    it("the same for every signed-in person", async () => {
      const response = await visitLivePage(cookieOf(service.tokens.editor));
      expect(response.headers.get("set-cookie")).to.equal(null);
      expect(await findToken(response)).to.match(/^svc_live_/);
    });

    it("none for an app that is unpublished or does not exist; existing ones end when it is unpublished", async () => {
      const token = await findToken(await visitLivePage());
      await service.rest("POST", `/v1/apps/${service.appId}/unpublish`);
      const response = await visitLivePage();
      expect([response.status, await findToken(response)]).to.deep.equal([404, ""]);
      expect((await open("/apps/999")).status).to.equal(404);
      expect((await open("/apps/none")).status).to.equal(404);
      await until(async () => (await readEnv(token)) === 401);
      await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    });

    it("in the viewer only for editors of the app, until they lose the role", async () => {
      expect((await open(`/apps/${service.appId}/viewer`)).status).to.equal(401);
      expect((await openViewer(service.tokens.live)).status).to.equal(403);
      const body = { firstName: "A", lastName: "B", email: "a@b.example" };
      const made = await service.rest("POST", "/v1/admin/users", { as: "admin", body });
      expect((await openViewer(made.body.token)).status).to.equal(403);
      const { id: userId } = made.body.user;
      await service.rest("POST", `/v1/apps/${service.appId}/editors`, { body: { userId } });
      const opened = await openViewer(made.body.token);
      expect(opened.headers.get("set-cookie")).to.equal(null);
      const token = await findToken(opened);
      expect(token).to.match(/^svc_viewer_/);
      expect(await readEnv(token)).to.equal(200);
      await service.rest("DELETE", `/v1/apps/${service.appId}/editors`, { body: { userId } });
      expect(await readEnv(token)).to.equal(401);
    });

    it("in the viewer for the session of a person: it runs drafts, and ends with the session or the role", async () => {
      const [owner, other] = [await createSignedInPerson(service), await createSignedInPerson(service)];
      const ids = [owner.user.id, other.user.id];
      // Removes the rights of administrators, so that the two users of this test have only their roles.
      await service.db.query("UPDATE person SET is_administrator = false WHERE id = ANY ($1::bigint[])", [ids]);
      await createAction(greetingCode("a draft"), { access: "editors" });
      await page.setCookie({ name: "auth_token", value: owner.token, url: network.url });
      await page.goto(viewerUrl());
      await viewUntilGreeting("a draft");
      const token = await findToken(await openViewer(owner.token));
      expect(token).to.match(/^svc_viewer_/);
      expect(await readEnv(token)).to.equal(200);
      const headers = { cookie: cookieOf(owner.token), origin: network.url };
      expect((await service.rest("POST", "/v1/auth/sign-out", { as: null, headers })).http).to.equal(200);
      expect([await readEnv(token), (await openViewer(owner.token)).status]).to.deep.equal([401, 401]);

      const others = await findToken(await openViewer(other.token));
      expect(await readEnv(others)).to.equal(200);
      const member = `/v1/organizations/${service.organizationId}/members/${other.user.id}`;
      for (const role of ["reader", "operator"]) {
        expect((await service.rest("PUT", member, { as: "admin", body: { role } })).http).to.equal(200);
        expect([await readEnv(others), (await openViewer(other.token)).status], role).to.deep.equal([401, 403]);
      }
      await service.rest("DELETE", member, { as: "admin" });
    });

    it("for an editor's pages that end with the sign-in, and only then", async () => {
      const { editor, admin } = service.tokens;
      const [mine, others] = [await findToken(await openViewer(editor)), await findToken(await openViewer(admin))];
      expect([await readEnv(mine), await readEnv(others)]).to.deep.equal([200, 200]);
      const out = await service.rest("DELETE", "/v1/session", {
        as: null,
        headers: { cookie: cookieOf(editor), origin: network.url },
      });
      expect(out.http).to.equal(200);
      expect([await readEnv(mine), await readEnv(others), await readEnv(editor)]).to.deep.equal([401, 200, 200]);
    });

    it("on a debug page: only for the script of its own action in any state, and nothing else", async () => {
      const body = { environment: "server", active: false, triggers: [] };
      const create = (text: string) => createAction(greetingCode(text), body);
      const [ownId, otherId] = [await create("own"), await create("other")];
      const root = actions();
      const response = await open(`${root}/${ownId}/compile?html`, cookieOf(service.tokens.editor));
      expect([response.status, response.headers.get("set-cookie")]).to.deep.equal([200, null]);
      const text = await response.text();
      expect(text.match(/svc_[a-z]+_/g)).to.deep.equal(["svc_viewer_"]);
      const as = /svc_viewer_[\w-]{49}/.exec(text)![0];
      const paths = [`${root}/${ownId}/compile`, `${root}/${otherId}/compile`, root, `${root}/${ownId}`];
      const answers = await Promise.all(paths.map(async (path) => (await service.rest("GET", path, { as })).http));
      expect(answers).to.deep.equal([200, 404, 403, 403]);
      const settings = await service.rest("GET", `/v1/apps/${service.appId}/settings`, { as });
      expect(settings.http).to.equal(403);
    });

    it("that are not listed among the tokens that editors made", async () => {
      await visitLivePage();
      const { body } = await service.rest("GET", `/v1/apps/${service.appId}/tokens`);
      expect(body.tokens.filter(({ name }: { name: string }) => name === "visitor")).to.deep.equal([]);
    });

    longTest("at a limited rate for one address", async () => {
      let rejectedResponse: Response | null = null;
      for (let count = 0; count < 5_000 && !rejectedResponse; count += 1) {
        const response = await visitLivePage();
        if (response.status !== 200) rejectedResponse = response;
      }
      expect(rejectedResponse?.status).to.equal(429);
      expect(Number(rejectedResponse?.headers.get("retry-after"))).to.be.greaterThan(0);
    });
  });

  describe("sign in and out", () => {
    const session = (method: string, body?: object, origin?: string) =>
      service.rest(method, "/v1/session", { as: null, body, headers: origin ? { origin } : {} });

    it("with a valid token, into a cookie, and out of it", async () => {
      const into = await session("POST", { token: service.tokens.editor }, network.url);
      expect(into.http).to.equal(200);
      expect(into.body).to.deep.equal({ status: "SIGNED_IN", kind: "editor" });
      expect(into.headers.get("set-cookie")).to.match(/^auth_token=svc_editor_.*; Path=\/; HttpOnly; SameSite=Lax$/);
      const out = await session("DELETE");
      expect(out.headers.get("set-cookie")).to.match(/^auth_token=; Max-Age=0; Path=\//);
    });

    it("until the browser is closed unless it stays signed in, and show who is signed in", async () => {
      const into = await session("POST", { token: service.tokens.editor, keep: false }, network.url);
      expect(into.headers.get("set-cookie")).to.match(/^auth_token=svc_editor_[^;]*; Path=\/; HttpOnly; SameSite=Lax$/);
      const cookie = into.headers.get("set-cookie")!.split(";")[0]!;
      const currentSession = await service.rest("GET", "/v1/session", { as: null, headers: { cookie } });
      expect(currentSession.body).to.deep.equal({ status: "SIGNED_IN", kind: "editor" });
      expect((await session("GET")).body).to.deep.equal({ status: "SIGNED_OUT" });
      expect((await session("POST", { token: service.tokens.editor, keep: 1 })).body.status).to.equal(
        "REQUEST_INVALID",
      );
    });

    it("not with an invalid token, and not from another origin", async () => {
      for (const body of [{}, { token: 1 }, { token: "svc_editor_x" }]) {
        expect((await session("POST", body)).body.status).to.equal("UNAUTHORIZED");
      }
      const foreign = await session("POST", { token: service.tokens.editor }, "https://evil.example");
      expect(foreign.body.status).to.equal("CROSS_SITE_REQUEST");
      expect(foreign.headers.get("set-cookie")).to.equal(null);
      expect((await session("DELETE", undefined, "https://evil.example")).http).to.equal(403);
    });
  });
});
