/** Tests Studio's pages of an app: tokens, audit log, versions, import and export, apps, stages, Git, and warnings about settings. */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { Browser, HTTPRequest, Page } from "puppeteer";
import { type GitServer, startGitServer } from "../harness/git-server.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { findTextsLostByReads } from "./late-responses.js";
import { type StudioPage, studioPage } from "./studio-page.js";

const SETTING_READING_CODE = `async function execute({ settings }) { return Boolean(settings.__shopKey); }`;

describe("Studio's pages of an app", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let studio: StudioPage;
  const folder = mkdtempSync(join(tmpdir(), "svc-studio-app-"));
  /** Server that receives the requests with which Studio tests a secret binding. */
  const target = createServer(({ method, url, headers }, response) => {
    response.end(`${method} ${url} ${headers.authorization}`);
  });

  const gitServers: GitServer[] = [];
  before(async () => {
    target.listen(0, "127.0.0.1");
    await once(target, "listening");
    const environment = { ROLES: "api", ALLOW_PRIVATE_NETWORK: "1" };
    [service, browser] = await Promise.all([startTestService(environment), launchChromium()]);
    const body = { name: "reader", code: SETTING_READING_CODE, active: true, triggers: [{ trigger: "manual" }] };
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
    page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    watch = watchPage(page, service.url);
    studio = studioPage(page);
    await page.goto(`${service.url}/studio#/${service.appId}/app`);
    await studio.signIn(service.tokens.admin);
  });
  after(async () => {
    for (const server of gitServers) await server.stop();
    await browser?.close();
    await service?.stop();
    target.closeAllConnections();
    target.close();
    rmSync(folder, { recursive: true });
  });

  const app = (path: string) => `/v1/apps/${service.appId}${path}`;
  const part = async (name: string) => {
    await studio.follow(name);
    await page.waitForSelector(studio.withText("h2", name));
  };

  it("renames the app, and publishes and unpublishes it", async () => {
    await studio.replace('[aria-label="Name of the app"]', "Shop");
    await studio.button("Rename");
    await page.waitForFunction('document.title === "App · Shop · Studio"');
    await studio.button("Publish the app");
    await page.waitForSelector(studio.withText("span", "published", '//*[@class="top-bar"]'));
    await studio.button("Unpublish the app");
    await studio.button("Unpublish", "//dialog");
    await page.waitForSelector(studio.withText("span", "not published", '//*[@class="top-bar"]'));
  });

  it("adds, tests and removes secret bindings, shows which actions use each, and lists the origins of actions", async () => {
    const origin = `http://localhost:${(target.address() as AddressInfo).port}`;
    const code = `async function execute() { return Svc.App.V3.Actions.request({ url: "${origin}", auth: "__stripe" }); }`;
    const body = { name: "caller", code, integrationOrigins: [origin] };
    const { action } = (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body })).body;
    await part("Connections");
    await page.waitForSelector(studio.withText("span", origin));
    await studio.replace('[name="key"]', "__stripe");
    await studio.replace('[name="origin"]', origin);
    await studio.replace('[name="value"]', "sk_live_0123456789");
    await page.click('input[type="checkbox"]');
    await studio.button("Add the binding");
    await page.waitForSelector(studio.withText("b", "__stripe"));
    const { bindings } = (await service.rest("GET", app("/secret-bindings"))).body;
    expect(bindings).to.have.length(1);
    expect(bindings[0]).to.include({ key: "__stripe", origin, in: "header", sealed: true });
    await page.waitForSelector(".used-by a");
    expect(await page.$eval(".used-by", (line) => line.textContent)).to.equal("Used by caller");
    await page.click(`[aria-label="Send a request with __stripe to ${origin}"]`);
    await studio.replace('[aria-label="Path"]', "/v1/balance");
    await studio.button("Send");
    await page.waitForSelector(".binding-test .result");
    const shown = await page.$eval(".binding-test", (form) => form.textContent!);
    expect(shown).to.include("GET /v1/balance Bearer «__stripe»").and.include("200").and.not.include("sk_live");
    await page.click(`[aria-label="Remove __stripe for ${origin}"]`);
    await studio.button("Remove", "//dialog");
    await page.waitForSelector(studio.withText("p", "No secret bindings yet."));
    expect((await service.rest("GET", app("/secret-bindings"))).body.bindings).to.deep.equal([]);
    await service.rest("DELETE", `/v3/apps/${service.appId}/actions/${action.id}`);
  });

  it("creates a token whose secret is shown once, and ends it at once", async () => {
    await part("Tokens");
    await studio.replace('[aria-label="Name of the new token"]', "the till");
    await studio.button("Create token");
    const token = (await studio.textOf(".secret-once code"))!;
    expect((await service.rest("GET", app("/settings"), { as: token })).http).to.equal(200);
    const { body } = await service.rest("GET", app("/tokens"), { as: "admin" });
    const expiry = Date.parse(body.tokens[0].expiresAt) - Date.now();
    expect(expiry / 86_400_000).to.be.within(89, 90);
    await studio.button("Done");
    await page.waitForSelector(".secret-once", { hidden: true });
    expect(await page.evaluate("document.body.textContent")).not.to.contain(token);
    await page.click('[aria-label="Revoke the till"]');
    await studio.button("Revoke", "//dialog");
    await page.waitForSelector('[aria-label="Revoke the till"]', { hidden: true });
    expect((await service.rest("GET", app("/settings"), { as: token })).http).to.equal(401);
  });

  it("says that a token no longer exists if someone else has revoked it, and removes it from the list", async () => {
    const { body } = await service.rest("POST", app("/tokens"), { body: { kind: "api", name: "the kiosk" } });
    await part("Versions");
    await part("Tokens");
    await page.waitForSelector('[aria-label="Revoke the kiosk"]');
    await service.rest("DELETE", app(`/tokens/${body.id}`));
    await page.click('[aria-label="Revoke the kiosk"]');
    await studio.button("Revoke", "//dialog");
    await page.waitForSelector("::-p-text(no such token)");
    await page.waitForSelector('[aria-label="Revoke the kiosk"]', { hidden: true });
  });

  it("creates an API token with scopes", async () => {
    await part("Tokens");
    await studio.replace('[aria-label="Name of the new token"]', "the shop");
    await (await page.waitForSelector("::-p-xpath(//label[b='read']/input)"))!.click();
    await (await page.waitForSelector("::-p-xpath(//label[b='data']/input)"))!.click();
    await studio.button("Create token");
    const token = (await studio.textOf(".secret-once code"))!;
    await studio.button("Done");
    expect((await service.rest("GET", app("/data-sources"), { as: token })).http).to.equal(200);
    expect((await service.rest("GET", app("/settings/status"), { as: token })).http).to.equal(403);
    const { body } = await service.rest("GET", app("/tokens"), { as: "admin" });
    expect(body.tokens[0].scopes).to.deep.equal(["read", "data"]);
  });

  it("warns before a value that looks like a secret becomes public, and saves it only after confirmation", async () => {
    await studio.button("Settings");
    await studio.replace('[aria-label="Key of the new setting"]', "mailToken");
    await studio.replace('[aria-label="Value of the new setting"]', "sk_live_0123456789abcdef");
    await studio.button("Add");
    await page.waitForSelector("dialog[open]");
    await studio.button("Cancel", "//dialog");
    await page.waitForSelector("dialog", { hidden: true });
    expect((await service.rest("GET", app("/settings"))).body).to.deep.equal({});
    await studio.replace('[aria-label="Key of the new setting"]', "__shopKey");
    await studio.replace('[aria-label="Value of the new setting"]', "sk_live_0123456789abcdef");
    await studio.button("Add");
    await page.waitForSelector('.setting[data-key="__shopKey"]');
  });

  it("shows how much of the settings' size is used, which actions read a key, and who changed it last", async () => {
    await page.waitForFunction('document.querySelector("meter")?.value > 30');
    expect(await studio.textOf(".gauge label")).to.match(/take \d+ B of 100 KB$/);
    await page.click('[aria-label="Who reads it? __shopKey"]');
    expect(await studio.textOf('.setting[data-key="__shopKey"] .readers')).to.equal("Read by reader");
    expect(await studio.textOf('.setting[data-key="__shopKey"] .hint')).to.match(/^set just now by \S+/);
  });

  longTest(
    "overwrites no setting that someone else changed, and says so; a change of another key is no conflict",
    async () => {
      const set = (body: object) => service.rest("POST", app("/settings"), { body });
      await set({ shared: "first" });
      await studio.open(`${service.appId}/app`);
      await studio.button("Settings");
      const line = '.setting[data-key="shared"]';
      await studio.replace('[aria-label="shared"]', "mine");
      await set({ other: 1 });
      await studio.button("Save", `//li[@data-key="shared"]`);
      await page.waitForSelector(`.setting[data-key="other"]`);
      await page.waitForFunction(`document.querySelector('${line} > .row button').disabled`);
      expect((await service.rest("GET", app("/settings"))).body.shared).to.equal("mine");

      await studio.replace('[aria-label="shared"]', "mine again");
      // A hidden page does not read the settings again. So only the save can detect the change of the other person.
      await page.evaluate(
        'Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true })',
      );
      await set({ shared: "theirs" });
      await studio.button("Save", `//li[@data-key="shared"]`);
      await page.waitForFunction(`document.querySelector('${line} .fault').textContent !== ""`);
      expect(await studio.textOf(`${line} .fault`)).to.contain("someone else changed this setting");
      expect((await service.rest("GET", app("/settings"))).body.shared).to.equal("theirs");
      await page.evaluate("delete document.visibilityState");
      await studio.button("Go on with mine", `//li[@data-key="shared"]`);
      await studio.button("Save", `//li[@data-key="shared"]`);
      await page.waitForFunction(`document.querySelector('${line} > .row button').disabled`);
      expect((await service.rest("GET", app("/settings"))).body.shared).to.equal("mine again");
    },
  );

  it("shows the audit log", async () => {
    const source = await service.rest("POST", app("/data-sources"), { body: { name: "seats" } });
    await service.rest("POST", app(`/data-sources/${source.body.dataSource.id}/entries`), { body: { Seat: "A1" } });
    await studio.open(`${service.appId}/app/audit`);
    await page.waitForFunction('/Settings changed/.test(document.querySelector(".records")?.textContent)');
    expect(await studio.textOf(".records"))
      .to.contain("keys __shopKey")
      .and.to.contain("Data source entries changed")
      .and.not.to.contain("sk_live")
      .and.not.to.contain("[object")
      .and.not.to.match(/[{}[\]]/);
  });

  it("creates a version, and restores the app to it", async () => {
    await part("Versions");
    await studio.button("Take a version now");
    await page.waitForFunction('/taken/.test(document.querySelector(".records li")?.textContent)');
    await service.rest("PUT", app(""), { body: { name: "Renamed" } });
    await studio.button("Restore", '(//*[@class="records"]/li)[1]');
    await studio.button("Restore", "//dialog");
    await page.waitForFunction('/before a restore/.test(document.querySelector(".records")?.textContent)');
    const { apps } = (await service.rest("GET", "/v1/apps")).body;
    expect(apps[0].name).to.equal("Shop");
  });

  it("shows what an import would do before it does it, and rejects a file that is no export", async () => {
    await part("Import and export");
    const choose = async (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      const [chooser] = await Promise.all([page.waitForFileChooser(), page.locator('input[type="file"]').click()]);
      await chooser.accept([join(folder, name)]);
    };
    await choose("none.json", "no JSON");
    await page.waitForFunction('document.querySelector(".app-part .fault").textContent !== ""');
    const { body: exported } = await service.rest("GET", `/v1/apps/${service.appId}/manifest`);
    const href = await page.$eval("a[download]", (link) => (link as unknown as { href: string }).href);
    expect(href).to.equal(`${service.url}/v1/apps/${service.appId}/manifest`);
    await choose("faulty.json", JSON.stringify({ version: 1, actions: [{ name: "a b", code: "x" }] }));
    await page.waitForFunction('/actions\\[0\\].name: /.test(document.querySelector(".app-part .fault").textContent)');
    // Chromium logs each failed request as an error. The imports of the two faulty files failed.
    expect(watch.errors.splice(0)).to.deep.equal(
      Array(2).fill("Failed to load resource: the server responded with a status of 400 (Bad Request)"),
    );
    exported.actions.push({ ...exported.actions[0], name: "imported" });
    await choose("faulty.json", JSON.stringify(exported));
    await page.waitForFunction('/createdaction imported/.test(document.querySelector(".records")?.textContent)');
    expect((await service.rest("GET", `/v3/apps/${service.appId}/actions`)).body.actions).to.have.length(1);
    await studio.button("Import it");
    await page.waitForSelector("::-p-xpath(//*[@role='status'][.='Imported.'])");
    expect((await service.rest("GET", `/v3/apps/${service.appId}/actions`)).body.actions).to.have.length(2);
  });

  longTest("creates stages, promotes after a review of the difference, rolls back, and deletes a preview", async () => {
    const id = service.appId;
    const list = (label: string) => `ul[aria-label="${label}"]`;
    const shows = (label: string, text: string) =>
      page.waitForFunction(`document.querySelector('${list(label)}')?.textContent.includes(${JSON.stringify(text)})`);
    await part("Stages");
    await studio.replace('[aria-label="Name of the new stage"]', "branch");
    await page.select(".app-part select", "24");
    await studio.button("Create a stage");
    await shows("Stages", "Review changes of branch");
    const { stages } = (await service.rest("GET", `/v1/apps/${id}/stages`)).body;
    const branch = stages.find(({ name }: { name: string }) => name === "branch").appId;
    const body = { name: "on-branch", code: "async function execute() {\n  return 1;\n}", triggers: [] };
    const made = await service.rest("POST", `/v3/apps/${branch}/actions`, { body });
    await studio.button("Review changes of branch");
    await shows("Changes of the promotion", "createdaction on-branch");
    await studio.button("Difference of on-branch");
    await page.waitForFunction('/\\+  return 1;/.test(document.querySelector(".app-part .diff")?.textContent)');
    // Changes the stage after the review: adds an action, and later changes the reviewed action.
    const later = { name: "after-review", code: body.code, triggers: [] };
    await service.rest("POST", `/v3/apps/${branch}/actions`, { body: later });
    const isRefused = 'document.querySelector(".app-part .fault").textContent.startsWith("Not promoted: ")';
    await studio.button("Promote");
    await page.waitForFunction(isRefused);
    await shows("Changes of the promotion", "createdaction after-review");
    await studio.button("Review changes of branch");
    await page.waitForFunction(`!(${isRefused})`);
    await shows("Changes of the promotion", "createdaction after-review");
    const change = (result: number) => {
      const changed = { code: `async function execute() { return ${result}; }` };
      return service.rest("PUT", `/v3/apps/${branch}/actions/${made.body.action.id}`, { body: changed });
    };
    await change(2);
    const errors = [{ message: "no plan for now", extensions: { status: "OVERLOADED" } }];
    const refusePlans = (request: HTTPRequest) => {
      if (!request.postData()?.includes("PlanPromotion")) return void request.continue();
      void request.respond({ contentType: "application/json", body: JSON.stringify({ errors }) });
    };
    page.on("request", refusePlans);
    await page.setRequestInterception(true);
    await studio.button("Promote");
    await page.waitForFunction('document.querySelector(".app-part .fault").textContent === "no plan for now"');
    page.off("request", refusePlans);
    await page.setRequestInterception(false);
    await studio.button("Review changes of branch");
    await shows("Changes of the promotion", "createdaction after-review");
    await change(3);
    await studio.button("Promote");
    await page.waitForFunction(isRefused);
    expect((await service.rest("GET", `/v1/apps/${id}/promotions`)).body.promotions).to.have.length(0);
    await studio.button("Promote");
    await shows("Promotions to this app", "From branch");
    const names = async () =>
      (await service.rest("GET", `/v3/apps/${id}/actions`)).body.actions.map(({ name }: { name: string }) => name);
    expect(await names()).to.include("on-branch");
    const [{ id: promotion }] = (await service.rest("GET", `/v1/apps/${id}/promotions`)).body.promotions;
    await studio.button(`Roll back ${promotion}`);
    await studio.button("Roll back", "//dialog");
    await shows("Promotions to this app", `By “Roll back ${promotion}”`);
    expect(await names()).not.to.include("on-branch");
    await studio.button("Delete branch");
    await studio.button("Delete", "//dialog");
    await page.waitForFunction(`!document.querySelector('${list("Stages")}').textContent.includes("branch")`);
    expect((await service.rest("GET", `/v1/apps/${id}/stages`)).body.stages).to.have.length(1);
  });

  longTest("connects a git repository, shows the secret of its webhook once, and pulls after a review", async () => {
    const server = await startGitServer();
    gitServers.push(server);
    const commit = server.commit({ "actions/from-git/action.js": "async function execute() {\n  return 1;\n}\n" });
    await part("Git repository");
    await studio.replace('[placeholder="https://github.com/example/shop"]', server.url);
    await studio.button("Connect the repository");
    await page.waitForFunction(
      '/shown only now: [\\w-]{43}$/.test(document.querySelector(".app-part [role=status]")?.textContent)',
    );
    await studio.button("Review changes of main");
    await page.waitForFunction('/createdaction from-git/.test(document.querySelector(".records")?.textContent)');
    await studio.button("Pull");
    const short = commit.slice(0, 7);
    await page.waitForFunction(
      `document.querySelector(".app-part").textContent.includes("refs/heads/main at ${short}")`,
    );
    const { actions } = (await service.rest("GET", `/v3/apps/${service.appId}/actions`)).body;
    expect(actions.map(({ name }: { name: string }) => name)).to.include("from-git");
    await studio.replace('[aria-label="Git repository"] [type="password"]', "token");
    await studio.button("Save the connection");
    const remove = studio.withText("label", "Remove the stored token");
    await (await page.waitForSelector(remove))!.click();
    await studio.button("Save the connection");
    await page.waitForSelector(remove, { hidden: true });
    expect((await service.rest("GET", app("/git"))).body.git.hasToken).to.equal(false);
    // Another person changes the git connection while this person edits it.
    const branch = '[aria-label="Git repository"] [placeholder="main"]';
    await studio.replace(branch, "mine");
    const theirs = { provider: "github", url: server.url, branch: "theirs" };
    expect((await service.rest("PUT", app("/git"), { body: theirs })).http).to.equal(200);
    await studio.button("Save the connection");
    await page.waitForSelector(studio.withText("span", "The connection changed elsewhere while you edited it."));
    const storedBranch = async () => (await service.rest("GET", app("/git"))).body.git.branch;
    expect(await storedBranch()).to.equal("theirs");
    expect(await page.$eval(branch, ({ value }) => value)).to.equal("mine");
    await studio.button("Go on with mine");
    await studio.button("Save the connection");
    await page.waitForFunction(`!document.querySelector('[aria-label="Git repository"] .banner')`);
    await page.waitForSelector(studio.withText("button", "Disconnect the repository"));
    await until(async () => (await storedBranch()) === "mine");
    await studio.button("Disconnect the repository");
    await studio.button("Disconnect", "//dialog");
    await page.waitForSelector(studio.withText("button", "Connect the repository"));
    expect((await service.rest("GET", app("/git"))).body).to.deep.equal({ git: null });
  });

  it("lists the origins of the app's own pages, and explains what is wrong with one", async () => {
    await studio.open(`${service.appId}/app`);
    const origins = async () => (await service.rest("GET", `/v1/apps/${service.appId}/origins`)).body.origins;
    await studio.replace('[aria-label="Origins, one a line"]', "https://shop.example/path");
    await studio.button("Save the origins");
    await page.waitForFunction('/origins\\[0\\] must be/.test(document.querySelector(".origins .fault").textContent)');
    await studio.replace('[aria-label="Origins, one a line"]', "https://Shop.example\n\nhttp://localhost:5173");
    await studio.button("Save the origins");
    await page.waitForFunction('document.querySelector(".origins textarea").value.startsWith("https://shop.example")');
    expect(await origins()).to.deep.equal(["https://shop.example", "http://localhost:5173"]);
  });

  // test/long/studio-late-responses.test.ts tests all pages, also while they save.
  it("keeps what a person types before it has read the stored values", async () => {
    expect(await findTextsLostByReads(page, `#/${service.appId}/app`)).to.deep.equal([]);
  });

  it("lists the apps with their state, and creates one", async () => {
    await studio.open("apps");
    await studio.replace('[aria-label="Name of the new app"]', "A second app");
    await studio.button("Create app");
    await page.waitForFunction('document.title === "Actions · A second app · Studio"');
    await page.goBack();
    await page.waitForSelector(studio.withText("a", "A second app"));
    expect(await studio.textOf(".records")).to.match(/A second app.*not published/);
  });

  it("does everything without an error in the page", () => {
    expect(watch).to.deep.equal({ foreign: [], errors: [] });
  });
});
