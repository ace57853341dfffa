import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { longTest } from "../harness/samples.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { type GraphqlService, startGraphqlService } from "./graphql-service.js";

interface MonacoGlobal {
  __MONACO: { editor: { getModels(): { uri: { path: string }; setValue(text: string): void }[] } };
}

/** Returns code that reads the shown result if it contains this name, otherwise null. Monaco shows spaces as no-break spaces. */
const waitForAnswerCode = (name: string) => `(() => {
  const text = document.querySelector(".result-window")?.textContent?.replaceAll("\\u00a0", " ") ?? "";
  return text.includes("${name}") ? text : null;
})()`;

async function fillEditor(page: Page, file: string, text: string): Promise<void> {
  await page.evaluate(
    (name, value) => {
      const models = (globalThis as unknown as MonacoGlobal).__MONACO.editor.getModels();
      models.find((model) => model.uri.path.endsWith(name))?.setValue(value);
    },
    file,
    text,
  );
}

/** Code that returns the suggested word of each visible suggestion. */
const READ_SUGGESTIONS = `[...document.querySelectorAll(".graphiql-query-editor .suggest-widget.visible .monaco-list-row")]
  .map((row) => row.getAttribute("aria-label").split(",")[0])`;

/** Types a text and requests suggestions. Resolves when GraphiQL suggests all of the wanted words. */
async function expectSuggestions(page: Page, text: string, suggestions: readonly string[]): Promise<void> {
  await fillEditor(page, "operation.graphql", "");
  await page.click(".graphiql-query-editor .view-lines");
  await page.keyboard.type(text);
  await page.keyboard.down("Control");
  await page.keyboard.press("Space");
  await page.keyboard.up("Control");
  const all = `((shown) => ${JSON.stringify(suggestions)}.every((word) => shown.includes(word)))(${READ_SUGGESTIONS})`;
  await page.waitForFunction(all).catch(async () => {
    expect(await page.evaluate(READ_SUGGESTIONS), text).to.include.members([...suggestions]);
  });
  await page.keyboard.press("Escape");
}

let operationCount = 0;

/** Runs an operation with a new name, and returns its result. When the tab shows this name, GraphiQL has parsed the operation. */
async function runOperation(page: Page, kind: "query" | "subscription", headers: object): Promise<string> {
  const name = `Operation${++operationCount}`;
  await fillEditor(page, "request-headers.json", JSON.stringify(headers));
  await fillEditor(page, "operation.graphql", `${kind} ${name} { ${name}: token }`);
  await page.waitForFunction(`document.querySelector(".graphiql-tab").textContent.includes("${name}")`);
  await page.click(".graphiql-execute-button");
  const shown = await page.waitForFunction(waitForAnswerCode(name));
  return String(await shown.jsonValue());
}

describe("GraphiQL at GET /graphql", () => {
  let service: GraphqlService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;

  before(async () => {
    [service, browser] = await Promise.all([startGraphqlService(), launchChromium()]);
    page = await browser.newPage();
    watch = watchPage(page, service.origin);
    await page.goto(`${service.origin}/graphql`, { waitUntil: "networkidle0" });
    await page.waitForSelector(".graphiql-query-editor .view-line");
  });

  after(async () => {
    await browser?.close();
    await service?.close();
  });

  it("opens with the main task as its first query and asks for the token in Headers", async () => {
    const query = await page.$eval(".graphiql-query-editor", (editor) => editor.textContent);
    expect(query).to.contain("createAction");
    const headers = await page.$eval('[aria-label="Headers"]', (editor) => editor.textContent);
    expect(headers).to.contain("Auth-token");
  });

  it("runs its three Monaco workers from the service itself", async () => {
    while (page.workers().length < 3) await new Promise((resolve) => void page.once("workercreated", resolve));
    const addresses = page.workers().map((worker) => worker.url());
    expect(addresses.filter((url) => url.startsWith(`${service.origin}/assets/`))).to.have.length(3);
  });

  it("sends the Auth-token of the Headers editor over HTTP", async () => {
    expect(await runOperation(page, "query", { "Auth-token": "by-http" })).to.contain(': "by-http"');
  });

  it("sends the Auth-token of the Headers editor on the websocket", async () => {
    const answer = await runOperation(page, "subscription", { "Auth-token": "by-socket" });
    expect(answer).to.contain(': "by-socket"');
  });

  it("sends a Bearer token of the Headers editor on the websocket", async () => {
    const answer = await runOperation(page, "subscription", { authorization: "Bearer by-bearer" });
    expect(answer).to.contain(': "by-bearer"');
  });

  it("sends no credential if the Headers editor has an empty one", async () => {
    expect(await runOperation(page, "query", { "Auth-token": "" })).to.contain(": null");
  });

  longTest("completes a createAction: its fields, and the values of its enums", async () => {
    const start = "mutation { createAction(appId: 1, data: { ";
    // The list shows only about twelve suggestions at once, so the test expects only some of them.
    await expectSuggestions(page, start, ["name", "code", "environment"]);
    await expectSuggestions(page, `${start}tri`, ["triggers"]);
    await expectSuggestions(page, `${start}environment: `, ["server", "client", "any"]);
    await expectSuggestions(page, `${start}triggers: { trigger: `, ["manual", "schedule", "log", "analytics"]);
  });

  it("keeps no token in the browser's storage", async () => {
    await runOperation(page, "query", { "Auth-token": "not-to-be-kept" });
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.to.contain("not-to-be-kept");
  });

  it("loads nothing from other hosts and does not violate its content security policy", () => {
    expect(watch).to.deep.equal({ foreign: [], errors: [] });
  });
});
