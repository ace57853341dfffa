/** Tests an HTTP trigger in Studio: creates it in the form, requests its URL, uses the request as a payload, and replaces its secret. */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { longTest } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { publishApp } from "../http/support.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { leaveOutCompiler, type StudioPage, studioPage } from "./studio-page.js";

describe("the panel Call in Studio", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let studio: StudioPage;
  let id: number;

  before(async () => {
    [service, browser] = await Promise.all([useSharedService("api,runner"), launchChromium()]);
    await publishApp(service);
    const code = "async function execute({ payload }) { return payload; }";
    const data = { name: "called", code, active: true, triggers: [{ trigger: "manual" }] };
    const made = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: data });
    id = made.body.action.id;
    page = await browser.newPage();
    await leaveOutCompiler(page);
    await page.setViewport({ width: 1280, height: 900 });
    watch = watchPage(page, service.url);
    studio = studioPage(page);
    await page.goto(`${service.url}/studio#/${service.appId}/actions/${id}`);
    await studio.signIn(service.tokens.editor);
    await page.waitForSelector(".code-editor .view-line");
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  const address = async (): Promise<string> => {
    await page.waitForSelector(".call-address code");
    return page.$eval(".call-address code", (code) => code.textContent!);
  };

  const waitForOtherAddress = (before: string) =>
    page.waitForFunction(
      `![undefined, ${JSON.stringify(before)}].includes(document.querySelector(".call-address code")?.textContent)`,
    );

  it("has requests to copy for an action that runs on demand, with a token", async () => {
    await studio.button("Call", '//*[@role="tablist"]');
    await page.waitForSelector(".call-example");
    const text = await page.$eval(".call-panel", (panel) => panel.textContent!);
    expect(text).to.include(`${service.url}/v3/apps/${service.appId}/actions/called/runWithResult?by=name`);
    expect(text).to.include("Auth-token: $TOKEN");
  });

  it("lists the last calls with a token, and uses one as the payload of a run", async () => {
    const path = `/v3/apps/${service.appId}/actions/${id}/runWithResult`;
    expect((await service.rest("POST", path, { body: { order: 4711 } })).http).to.equal(200);
    await page.waitForSelector(`::-p-xpath(//code[contains(., "4711")])`);
    await studio.button("Use as test payload");
    const payload = await page.$eval("#payload", (area) => (area as unknown as { value: string }).value);
    expect(JSON.parse(payload)).to.deep.equal({ order: 4711 });
    await studio.button("Call", '//*[@role="tablist"]');
  });

  it("shows the URL of a trigger that was made in the form", async () => {
    await page.select('[data-field="triggers"] .rows > select', "http");
    await studio.replace('[aria-label="Path"]', "called/:id");
    await page.select('[aria-label="Method"]', "POST");
    await studio.save();
    await studio.saved();
    const { body } = await service.rest("GET", `/v3/apps/${service.appId}/actions/${id}`);
    expect(body.action.triggers[1]).to.deep.equal({
      trigger: "http",
      where: { method: "POST", path: "called/:id", auth: { type: "secret" } },
    });
    expect(await address()).to.equal(body.action.endpoints[0].url);
  });

  it("lists the received requests, and uses one as the payload of a run", async () => {
    await service.rest("POST", `/v3/apps/${service.appId}/actions/${id}/publish`);
    const url = (await address()).replace(":id", "7");
    const answer = await fetch(url, {
      method: "POST",
      body: '{"n":1}',
      headers: { "content-type": "application/json" },
    });
    expect(answer.status).to.equal(200);
    const request = '//li[code[normalize-space(.)="POST called/7"]]';
    await page.waitForSelector(`::-p-xpath(${request})`);
    await studio.button("Use as test payload", request);
    const payload = JSON.parse(await page.$eval("#payload", (area) => (area as unknown as { value: string }).value));
    expect(payload.request).to.deep.include({ method: "POST", path: "called/7", body: { n: 1 } });
  });

  it("replaces the secret after confirmation", async () => {
    await studio.button("Call", '//*[@role="tablist"]');
    const before = await address();
    await studio.button("Replace the secret");
    await studio.button("Replace", "//dialog");
    await waitForOtherAddress(before);
    expect((await fetch(before.replace(":id", "7"), { method: "POST" })).status).to.equal(404);
    expect((await fetch((await address()).replace(":id", "7"), { method: "POST" })).status).to.equal(200);
  });

  longTest("shows the replaced secret although a request arrived while it asked for confirmation", async () => {
    const before = await address();
    await studio.button("Replace the secret");
    await page.waitForSelector("dialog[open]");
    const url = before.replace(":id", "during-the-question");
    expect((await fetch(url, { method: "POST" })).status).to.equal(200);
    await page.waitForSelector(studio.withText("code", "POST called/during-the-question"));
    await studio.button("Replace", "//dialog");
    await waitForOtherAddress(before);
    const { body } = await service.rest("GET", `/v3/apps/${service.appId}/actions/${id}`);
    expect(await address()).to.equal(body.action.endpoints[0].url);
  });

  it("counts the requests with a wrong signature, without their bodies", async () => {
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { __hook: "a signing secret" } });
    const auth = { type: "signature", scheme: "github", setting: "__hook" };
    const data = {
      name: "signed",
      code: "async function execute() {}",
      active: true,
      triggers: [{ trigger: "http", where: { method: "POST", path: "signed", auth } }],
    };
    const { action } = (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: data })).body;
    await service.rest("POST", `/v3/apps/${service.appId}/actions/${action.id}/publish`);
    for (const signature of ["sha256=00", "none"]) {
      const headers = { "x-hub-signature-256": signature };
      const answer = await fetch(action.endpoints[0].url, { method: "POST", body: "text of the body", headers });
      expect(answer.status).to.equal(401);
    }
    await page.goto(`${service.url}/studio#/${service.appId}/actions/${action.id}`);
    await page.waitForSelector(studio.withText("h2", "signed"));
    await studio.button("Call", '//*[@role="tablist"]');
    await page.waitForSelector('[aria-label="Refused requests"] li');
    const text = await page.$eval('[aria-label="Refused requests"]', (list) => list.textContent!);
    expect(text).to.match(
      /^2 refused: the github signature is missing, not valid or too old\. The last one .* SIGNATURE_INVALID$/,
    );
    expect(text).to.not.include("text of the body");
  });

  longTest("offers to allow an origin, beside the code and beside a run that failed without it", async () => {
    const [named, computed] = ["https://named.example", "https://computed.example"];
    const code = `async function execute() {
      if (!(await Svc.App.V3.Actions.request({ url: "${named}/a" }).catch(() => null))) {
        await Svc.App.V3.Actions.request({ url: ["https:", "", "computed.example"].join("/") });
      }
    }`;
    const data = { name: "caller", code, active: true, triggers: [{ trigger: "manual" }] };
    const { action } = (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: data })).body;
    await service.rest("POST", `/v3/apps/${service.appId}/actions/${action.id}/publish`);
    await page.goto(`${service.url}/studio#/${service.appId}/actions/${action.id}`);
    await page.waitForFunction('document.querySelector(".code-editor")?.textContent.includes("computed")');
    await studio.button(`Allow ${named} for this action`, '//*[@data-field="integrationOrigins"]');
    await page.waitForSelector(studio.withText("code", named));
    await studio.button("Save and run");
    await studio.button(`Allow ${computed} for this action`, '//*[@class="outcome"]');
    await page.waitForSelector(studio.withText("p", `The draft allows ${computed} now. Run it again.`));
    await studio.save();
    await studio.saved();
    const { body } = await service.rest("GET", `/v3/apps/${service.appId}/actions/${action.id}`);
    expect(body.action.integrationOrigins).to.deep.equal([named, computed]);
    await studio.button("Publish", '//*[@role="tablist"]');
    const row = studio.withText("th", "integrationOrigins", '//*[@class="diff"]');
    await page.waitForSelector(row);
    const added = await page.$$eval(".diff td.added", (cells) => cells.map((cell) => cell.textContent!).join(" "));
    expect(added).to.include(named).and.include(computed);
  });

  longTest("shows the bindings of each allowed origin in the action's settings", async () => {
    const binding = {
      key: "__key",
      origin: "https://named.example",
      in: "header",
      sealed: true,
      value: "a value of it",
    };
    await service.rest("PUT", `/v1/apps/${service.appId}/secret-bindings`, { body: { bindings: [binding] } });
    await page.reload();
    await page.waitForSelector(studio.withText("a", "__key, sealed", '//*[@data-field="integrationOrigins"]'));
  });

  it("does everything without an error in the page", () => {
    expect(watch.errors).to.deep.equal([]);
  });
});
