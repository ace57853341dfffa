/** Tests that Studio's pages update when another person changes the app, and after a lost connection is restored. */
import { expect } from "chai";
import type { Browser, HTTPRequest, Page } from "puppeteer";
import { type PrefixProxy, startPrefixProxy } from "../harness/prefix-proxy.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium } from "./chromium.js";
import { followEntries } from "./data-forms.js";
import { holdReads } from "./held-reads.js";
import { type StudioPage, studioPage } from "./studio-page.js";

describe("Studio's pages while other people change the app", () => {
  let service: TestService;
  let proxy: PrefixProxy;
  let browser: Browser;
  let page: Page;
  let studio: StudioPage;

  before(async () => {
    proxy = await startPrefixProxy("/svc");
    [service, browser] = await Promise.all([
      startTestService({ PUBLIC_URL: `${proxy.url}/`, ROLES: "api" }),
      launchChromium(),
    ]);
    proxy.setTarget(service.url);
    page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    studio = studioPage(page);
    await page.goto(`${proxy.url}/studio#/${service.appId}/app/versions`);
    await studio.signIn(service.tokens.editor);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
    await proxy?.stop();
  });

  afterEach(() => proxy.restore());

  const write = async (method: "POST" | "PUT" | "DELETE", path: string, body?: object) => {
    const answer = await service.rest(method, `/v1/apps/${service.appId}/${path}`, body && { body });
    expect(answer.http, JSON.stringify(answer.body)).to.be.lessThan(300);
    return answer.body;
  };
  const shows = (text: string) => page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(text)})`);
  const textIn = (selector: string) =>
    page.$eval(selector, (field) => (field as unknown as { value: string }).value) as Promise<string>;
  const hasValue = (selector: string, value: string) =>
    page.waitForFunction(`document.querySelector(${JSON.stringify(selector)})?.value === ${JSON.stringify(value)}`);
  const cell = (text: string) => `::-p-xpath(//button[contains(@class, "cell") and normalize-space(.)="${text}"])`;
  /** Waits until this page of the app shows its list: rows, or a text that says that the list is empty. */
  const waitForList = (name: string) =>
    page.waitForFunction(`(() => {
      const part = document.querySelector(".app-page");
      if (part?.querySelector("h2").textContent.toLowerCase() !== "${name}") return false;
      return part.querySelector(".records li") || /No (version|tokens|one has a role here) yet/.test(part.innerText);
    })()`);
  const drawn = () => page.evaluate("new Promise((end) => requestAnimationFrame(() => requestAnimationFrame(end)))");
  const cut = async () => {
    proxy.cut();
    await page.waitForSelector(".connection:not(:empty)");
  };
  const restoreConnection = async () => {
    proxy.restore();
    await page.waitForSelector(".connection:empty");
  };

  for (const name of ["versions", "tokens", "people"])
    longTest(`the page of ${name} is read again when the connection is back, and its error disappears`, async () => {
      await studio.open(`${service.appId}/app/${name}`);
      await waitForList(name);
      await studio.open(`${service.appId}/settings`);
      await page.waitForSelector(".settings");
      await cut();
      await studio.open(`${service.appId}/app/${name}`);
      await shows("the service does not answer");
      await restoreConnection();
      await page.waitForFunction(`!document.body.innerText.includes("the service does not answer")`);
      await page.waitForSelector(".app-page .records");
    });

  longTest("a change that failed without a connection shows no error when the connection is back", async () => {
    await studio.open(`${service.appId}/app/versions`);
    await waitForList("versions");
    await cut();
    await studio.button("Take a version now");
    await shows("the service does not answer");
    await restoreConnection();
    await page.waitForFunction(`!document.body.innerText.includes("the service does not answer")`);
  });

  longTest("Data opens on the form of a new data source if the app has none, and otherwise on the list", async () => {
    await studio.open(`${service.appId}/data`);
    await page.waitForSelector(".data-source.new");
    await write("POST", "data-sources", { name: "rooms" });
    await page.waitForSelector(studio.withText("b", "rooms"));
    // The form stays, so that the person loses no typed text.
    expect(await page.$(".data-source.new")).not.to.equal(null);
    await studio.follow("Tokens");
    await waitForList("tokens");
    await studio.follow("Data");
    await page.waitForSelector(studio.withText("h2", "Choose a data source"));
    expect(await page.$(".data-source.new")).to.equal(null);
    await studio.button("New", '//*[@class="data-list"]');
    await page.waitForSelector(".data-source.new");
    expect(await page.evaluate("location.hash")).to.equal(`#/${service.appId}/data/new`);
  });

  longTest("Data shows entries that others add, change and delete, and keeps the cell that is edited", () =>
    followEntries({ page, studio }, service),
  );

  longTest(
    "Data reports that someone else deleted the entry whose cell is edited, and shows the text that it could not save",
    async () => {
      const { dataSource } = await write("POST", "data-sources", { name: "tickets" });
      const entries = `data-sources/${dataSource.id}/entries`;
      const entry = await write("POST", entries, { seat: "A1" });
      await write("POST", entries, { seat: "B1" });
      await studio.open(`${service.appId}/data/${dataSource.id}`);
      await (await page.waitForSelector(cell("A1")))!.click();
      await studio.replace("input.cell", "typed text");
      await write("DELETE", `${entries}/${entry.id}`);
      await shows(`Someone else deleted entry ${entry.id} while you edited it.`);
      expect(await textIn("input.cell")).to.equal("typed text");
      await page.keyboard.press("Enter");
      await shows(`seat of entry ${entry.id}: Not saved: someone else deleted this entry.`);
      await page.waitForSelector("::-p-xpath(//p[contains(., 'Your text:')]/code[.='typed text'])");
      expect(await page.$(cell("A1"))).to.equal(null);
      const found = await write("POST", `data-sources/${dataSource.id}/query`, {});
      expect(found.entries.map(({ data }: { data: object }) => data)).to.deep.equal([{ seat: "B1" }]);
    },
  );

  longTest("Data keeps the invalid rows of a rule that someone else deletes, and overwrites nothing", async () => {
    const require = [{ city: { equals: "Bern" } }];
    const accessRules = [
      { type: ["select"], allow: { user: { City: { equals: "Bern" }, Role: { equals: "guest" } } }, require },
    ];
    const { dataSource } = await write("POST", "data-sources", { name: "suites", columns: ["city"], accessRules });
    await studio.open(`${service.appId}/data/${dataSource.id}?tab=rules`);
    const user = '[data-field="accessRules"] .tests [aria-label="Column 2"]';
    await page.waitForSelector(user);
    await page.focus(user);
    await studio.press("a");
    // Sends the text as one input event. Further events would change the draft again.
    await page.keyboard.sendCharacter("City");
    await shows("Two rows are for");
    await write("PUT", `data-sources/${dataSource.id}`, { accessRules: [] });
    await shows("Access rules changed elsewhere while you edited it.");
    await shows("Two rows are for");
    expect(await textIn(user)).to.equal("City");
    await studio.button("Take theirs");
    await page.waitForFunction(`!document.body.innerText.includes("Two rows are for")`);
    await shows("No rules: pages can neither read nor write.");
  });

  longTest(
    "Data keeps unsaved rules of a data source that someone else deletes, and then asks no question",
    async () => {
      const typeRules = async (id: number) => {
        await studio.open(`${service.appId}/data/${id}?tab=rules`);
        await studio.showJson("accessRules");
        await studio.replace("#accessRules", "[my rules]");
      };
      const { dataSource: theirs } = await write("POST", "data-sources", { name: "annexes" });
      await typeRules(theirs.id);
      await write("DELETE", `data-sources/${theirs.id}`);
      await shows("This data source was deleted elsewhere.");
      expect(await textIn("#accessRules")).to.equal("[my rules]");
      await studio.button("Discard", '//*[@data-field="accessRules"]');
      await shows("This data source does not exist.");
      const { dataSource: mine } = await write("POST", "data-sources", { name: "attics" });
      await typeRules(mine.id);
      await studio.button("Delete", '//*[contains(@class, "workspace-head")]');
      await studio.button("Delete", "//dialog");
      await shows("Choose a data source");
      expect(await page.$("dialog[open]")).to.equal(null);
    },
  );

  longTest("Actions keeps the unsaved text of an action that was deleted while the connection was lost", async () => {
    const body = { name: "missed", code: "async function execute() {}" };
    const path = `/v3/apps/${service.appId}/actions`;
    const { id } = (await service.rest("POST", path, { body })).body.action;
    await studio.open(`${service.appId}/actions/${id}`);
    await studio.replace('[data-field="description"] textarea', "kept");
    await cut();
    await service.rest("DELETE", `${path}/${id}`);
    await restoreConnection();
    await studio.button("Create it as a new action");
    await studio.button("Create");
    await studio.saved();
    const { actions } = (await service.rest("GET", path)).body;
    expect(actions.map((action: { description: string }) => action.description)).to.deep.equal(["kept"]);
  });

  longTest(
    "Media keeps the dialog whose file a late search does not list, and reports that someone else deleted the file",
    async () => {
      const file = new FormData();
      file.append("file", new Blob(["text"], { type: "text/plain" }), "plan.txt");
      const headers = { "auth-token": service.tokens.editor };
      const sent = await fetch(`${service.url}/v1/apps/${service.appId}/media/files`, {
        method: "POST",
        headers,
        body: file,
      });
      const { files } = (await sent.json()) as { files: { id: number }[] };
      const { id } = files[0]!;
      await studio.open(`${service.appId}/media`);
      await page.waitForSelector(`::-p-text(plan.txt)`);
      const reads = await holdReads(page, "ListMedia");
      await page.type('input[aria-label="Search by name"]', "z");
      await reads.waitForCount(1);
      await studio.open(`${service.appId}/media?search=z&file=${id}`);
      await studio.replace("dialog.media-details input[aria-label=Name]", "typed name");
      await reads.endAll();
      await shows("Nothing has that name");
      expect(await textIn("dialog.media-details input[aria-label=Name]")).to.equal("typed name");
      // Holds the next read of the list, so only the request to rename can detect that the file is deleted.
      const laterReads = await holdReads(page, "ListMedia");
      await write("DELETE", `media/files/${id}`);
      await studio.button("Rename", "//dialog");
      await shows("Someone else deleted this file.");
      await laterReads.endAll();
      expect(await textIn("dialog.media-details input[aria-label=Name]")).to.equal("typed name");
      await page.keyboard.press("Escape");
    },
  );

  longTest(
    "Data does not show the earlier value of a saved cell while earlier reads occupy all connections",
    async () => {
      const { dataSource } = await write("POST", "data-sources", { name: "guests" });
      const entries = `data-sources/${dataSource.id}/entries`;
      await write("POST", entries, { name: "Ada" });
      await studio.open(`${service.appId}/data/${dataSource.id}`);
      const ada = await page.waitForSelector(cell("Ada"));
      const reads = await holdReads(page, "FindEntries");
      for (const count of [1, 2]) {
        await write("POST", entries, { name: `Guest ${count}` });
        await reads.waitForCount(count);
      }
      await ada!.click();
      await studio.replace("input.cell", "Eve");
      const saved = page.waitForResponse(
        (response) => !!response.request().postData()?.includes("mutation UpdateEntry"),
      );
      await page.keyboard.press("Enter");
      await saved;
      await drawn();
      expect(await page.$(cell("Eve"))).not.to.equal(null);
      await reads.endAll();
      await page.waitForSelector(cell("Guest 2"));
      await page.waitForSelector(cell("Eve"));
    },
  );

  longTest(
    "Data shows the list on a phone if the open data source does not exist, and errors of the list",
    async () => {
      await page.setViewport({ width: 390, height: 800 });
      await studio.open(`${service.appId}/data/999999`);
      await shows("This data source does not exist.");
      await page.waitForSelector(".data-list h2", { visible: true });
      await studio.button("orders", '//*[@class="data-list"]');
      await page.waitForFunction(
        "/^H2 orders$/.test(`${document.activeElement.tagName} ${document.activeElement.textContent}`)",
      );
      await page.waitForSelector(".data-list", { hidden: true });
      const failReadsScript = `{
      const send = window.fetch;
      window.fetch = async (address, init) => {
        if (/query ListDataSources/.test(init?.body ?? "")) throw new TypeError("no connection");
        return send(address, init);
      };
    }`;
      const { identifier } = await page.evaluateOnNewDocument(failReadsScript);
      await page.evaluate(failReadsScript);
      await page.evaluate('window.dispatchEvent(new Event("focus"))');
      const error = ".data-list > [role=alert]:not(:empty)";
      await page.waitForSelector(error, { visible: true });
      await page.waitForSelector(".data-source h2", { visible: true });
      await page.reload();
      await page.waitForSelector(error, { visible: true });
      expect(await page.$("::-p-text(Loading…)")).to.equal(null);
      await page.removeScriptToEvaluateOnNewDocument(identifier);
      await page.setViewport({ width: 1280, height: 800 });
      await page.reload();
      await shows("Basel");
    },
  );

  longTest("Data shows data sources and rules of others, and does not replace rules that are edited", async () => {
    const { dataSource } = await write("POST", "data-sources", { name: "invoices" });
    await page.waitForSelector(studio.withText("b", "invoices"));
    await studio.open(`${service.appId}/data/${dataSource.id}`);
    await studio.button("Rules");
    await studio.showJson("indexes");
    await studio.replace("#indexes", '["mine"]');
    await write("PUT", `data-sources/${dataSource.id}`, { indexes: ["theirs"], hooks: [] });
    await shows("Indexes changed elsewhere");
    expect(await textIn("#indexes")).to.equal('["mine"]');
    await page.waitForSelector(studio.withText("button[@disabled]", "Save indexes"));
    await studio.button("Take theirs");
    await hasValue("#indexes", JSON.stringify(["theirs"], null, 2));
  });

  longTest("Settings show values that others set, and do not replace a value that is edited", async () => {
    await write("POST", "settings", { greeting: "hello", colour: "red", __key: "one" });
    await studio.open(`${service.appId}/settings`);
    await hasValue('textarea[aria-label="greeting"]', "hello");
    await studio.replace('textarea[aria-label="colour"]', "mine");
    await studio.replace('input[aria-label="__key"]', "my key");
    await write("POST", "settings", { greeting: "good day", colour: "theirs", __key: "two", added: "new" });
    await hasValue('textarea[aria-label="greeting"]', "good day");
    await hasValue('textarea[aria-label="added"]', "new");
    await shows("colour changed elsewhere");
    await shows("__key changed elsewhere");
    await hasValue('textarea[aria-label="colour"]', "mine");
    await hasValue('input[aria-label="__key"]', "my key");
    await studio.button("Go on with mine", '//li[@data-key="colour"]');
    await studio.button("Save", '//li[@data-key="colour"]');
    await studio.button("Take theirs", '//li[@data-key="__key"]');
    await hasValue('input[aria-label="__key"]', "");
    await page.waitForSelector(studio.withText("button[@disabled]", "Save", '//li[@data-key="colour"]'));
    expect((await service.rest("GET", `/v1/apps/${service.appId}/settings`)).body).to.include({
      greeting: "good day",
      colour: "mine",
    });
  });

  longTest("Settings are read again only when they changed", async () => {
    await write("POST", "settings", { stored: "before the read" });
    await studio.open(`${service.appId}/settings`);
    await hasValue('textarea[aria-label="stored"]', "before the read");
    const answers: [string, number][] = [];
    page.on("response", (response) => {
      if (response.request().method() === "GET") answers.push([new URL(response.url()).pathname, response.status()]);
    });
    const readSettingsRequests: string[] = [];
    page.on("request", (request) => {
      if (request.postData()?.includes("ReadSettings(")) readSettingsRequests.push("ReadSettings");
    });
    const read = page.waitForResponse((response) => response.url().endsWith("/settings"));
    await page.evaluate(`window.dispatchEvent(new Event("focus"))`);
    await read;
    expect(answers).to.deep.include([`/svc/v1/apps/${service.appId}/settings`, 304]);
    expect(readSettingsRequests).to.deep.equal([]);
    page.removeAllListeners("response");
    page.removeAllListeners("request");
  });

  longTest("Notifications show those of others, and do not replace one that is edited", async () => {
    const field = (label: string) => `::-p-xpath(//label[.="${label}"]/following-sibling::*[1])`;
    await studio.open(`${service.appId}/notifications`);
    await shows("No notifications yet.");
    const notification = await write("POST", "notifications", { status: "draft", data: { title: "Theirs" } });
    await (await page.waitForSelector(".message-line"))!.click();
    await write("PUT", `notifications/${notification.id}`, { data: { title: "Theirs again" } });
    await page.waitForFunction(`document.querySelector(".notification-card b")?.textContent === "Theirs again"`);
    await studio.replace(field("Title"), "Mine");
    await write("PUT", `notifications/${notification.id}`, { data: { title: "Theirs at last" } });
    await shows("This notification changed elsewhere");
    expect(await studio.textOf(".notification-card b")).to.equal("Mine");
    await studio.button("Go on with mine");
    await studio.button("Save");
    await page.waitForSelector(studio.withText("b", "Mine", '//section[@aria-label="Notifications"]'));
    await write("DELETE", `notifications/${notification.id}`);
    await shows("This notification was deleted elsewhere");
  });

  longTest("only the first page of the audit log is read again, which shows the newest change", async () => {
    await service.db.query(
      `INSERT INTO audit_entry (app_id, type, data)
       SELECT $1, 'app.settings.update', '{"keys":["old"]}' FROM generate_series(1, 150)`,
      [service.appId],
    );
    await studio.open(`${service.appId}/app/audit`);
    const entryCount = (comparison: string) =>
      page.waitForFunction(`document.querySelectorAll(".records.audit li").length ${comparison}`);
    await studio.button("Older changes");
    await entryCount("> 150");
    await write("POST", "settings", { newest: "1" });
    let reads = 0;
    const onRequest = (request: HTTPRequest) => {
      if (request.postData()?.includes("query ReadAuditLog")) reads += 1;
    };
    page.on("request", onRequest);
    await studio.button("Refresh");
    await shows("keys newest");
    await entryCount("=== 100");
    page.off("request", onRequest);
    expect(reads).to.equal(1);
    await studio.button("Older changes");
    await entryCount("> 150");
  });
});
