/** Tests Studio's editor of an action: diagnostics, completions after a dot, and payload presets. */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { longTest } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { type StudioPage, studioPage } from "./studio-page.js";

const CODE = "async function execute(context) {\n  return Object.keys(context);\n}";

const COMPILER_FILE = /\/assets\/javascript-\w+\.js$/;

describe("Studio's editor", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let studio: StudioPage;
  let actionId: number;
  /** URLs of all files that the page has requested, including scripts of workers. */
  const requested: string[] = [];
  let beforeEditor: string[];

  before(async () => {
    [service, browser] = await Promise.all([useSharedService("api,runner"), launchChromium()]);
    const path = `/v3/apps/${service.appId}/actions`;
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, {
      body: { __apiKey: "k-123456789", _note: "n", open: 1 },
    });
    const fields = {
      name: "write",
      active: true,
      triggers: [{ trigger: "manual" }],
      dependencies: ["svc-csv"],
      code: CODE,
    };
    actionId = (await service.rest("POST", path, { body: fields })).body.action.id;
    await service.rest("POST", `${path}/write/runWithResult`, { body: { seat: { row: 12, place: "A" }, guests: 2 } });
    page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    watch = watchPage(page, service.url);
    page.on("request", (request) => requested.push(request.url()));
    studio = studioPage(page);
    await page.goto(`${service.url}/studio#/${service.appId}/actions`);
    await studio.signIn(service.tokens.editor);
    await page.waitForSelector(".action-list .action");
    beforeEditor = requested.filter((url) => COMPILER_FILE.test(url));
    await studio.open(`${service.appId}/actions/${actionId}`);
    await page.waitForSelector(".code-editor .view-line");
  });

  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  /** Writes this text into the body of an action, and types its last character. Returns the suggested completions. */
  async function readSuggestionsAfter(text: string): Promise<string[]> {
    await studio.write(`async function execute(context) {\n  const one = 1;\n  ${text.slice(0, -1)}`);
    await page.keyboard.down("Control");
    await page.keyboard.press("End");
    await page.keyboard.up("Control");
    await page.keyboard.type(text.slice(-1));
    await page.waitForSelector(".suggest-widget.visible .monaco-list-row");
    const names = await page.$$eval(".suggest-widget.visible .monaco-list-row .label-name", (rows) =>
      rows.map((row) => row.textContent),
    );
    await page.keyboard.press("Escape");
    await page.waitForFunction('!document.querySelector(".suggest-widget.visible")');
    return names;
  }

  longTest("loads the compiler from the service when code is shown, and not before", async () => {
    expect(beforeEditor).to.deep.equal([]);
    await readSuggestionsAfter("context.");
    const compiler = page.workers().map((worker) => worker.url());
    expect(compiler.some((url) => url.startsWith(service.url) && COMPILER_FILE.test(url))).to.equal(true);
    expect(watch.foreign).to.deep.equal([]);
  });

  longTest("suggests keys of settings that a run sees, keys of past payloads, and the listed packages", async () => {
    expect(await readSuggestionsAfter("context.")).to.deep.equal(["payload", "settings"]);
    expect(await readSuggestionsAfter("context.settings.")).to.deep.equal(["__apiKey", "_note"]);
    expect(await readSuggestionsAfter("context.payload.")).to.deep.equal(["guests", "seat"]);
    expect(await readSuggestionsAfter("context.payload.seat.")).to.deep.equal(["place", "row"]);
    expect(await readSuggestionsAfter("Svc.CSV.")).to.deep.equal(["parse", "stringify"]);
    expect(await readSuggestionsAfter("Svc."))
      .to.include("CSV")
      .and.not.include("Media");
  });

  const MARKED_FAULT = ".code-editor .squiggly-error";
  const marked = () => page.waitForSelector(MARKED_FAULT);
  const unmarked = () => page.waitForFunction(`!document.querySelector("${MARKED_FAULT}")`);
  /** Returns the message of the first diagnostic, which the key F8 shows. */
  async function readFirstDiagnostic(): Promise<string> {
    await page.focus(".code-editor textarea");
    await page.keyboard.press("F8");
    await page.waitForSelector(".marker-widget .message");
    const text = await page.$eval(".marker-widget", (widget) => widget.textContent);
    await page.keyboard.press("Escape");
    await page.waitForSelector(".marker-widget", { hidden: true });
    return text;
  }

  longTest(
    "marks an unknown method and an argument of a wrong type, with the compiler's message, and removes the marks",
    async () => {
      await studio.write("async function execute(context) {\n  return Svc.CSV.prase(context.payload.text);\n}");
      await marked();
      expect(await readFirstDiagnostic()).to.contain(
        "Property 'prase' does not exist on type 'CSV'. Did you mean 'parse'?",
      );
      await studio.write(`${CODE}\n// right`);
      await unmarked();
      await studio.write("async function execute(context) {\n  return Svc.CSV.parse(12);\n}");
      await marked();
      expect(await readFirstDiagnostic()).to.contain("'number' is not assignable to parameter of type 'string'");
      await studio.write("async function execute(context) {\n  return Svc.CSV.parse(context.payload.text);\n}");
      await unmarked();
    },
  );

  longTest("shows what a member is and does when the mouse points at it", async () => {
    const word = await page.waitForSelector("::-p-xpath(//*[@class='view-line']//span[contains(text(), 'parse')])");
    await word!.hover();
    await page.waitForFunction(
      `/parse\\(text: string.*Returns the rows of a CSV text: objects with the names of the first line/s.test(document.querySelector(".monaco-hover:not(.hidden)")?.textContent)`,
    );
    await page.mouse.move(0, 0);
  });

  longTest(
    "marks code that a save would reject while it is typed, with the service's message, and removes the mark",
    async () => {
      // The service rejects Svc.Media, because its package is not a dependency. The compiler reports the unknown function `prase`.
      const code = "async function execute(context) {\n  Svc.Media;\n  return Svc.CSV.prase();\n}";
      const answered = page.waitForResponse((answer) => {
        const sent = answer.request().postData() ?? "";
        return sent.includes("codeProblems") && sent.includes("prase");
      });
      await studio.write(code);
      await answered;
      await page.waitForFunction(`document.querySelectorAll("${MARKED_FAULT}").length === 2`);
      expect(await readFirstDiagnostic())
        .to.contain("svc-media")
        .and.not.to.contain("does not exist");
      await studio.write(`${CODE}\n// mended`);
      await unmarked();
      await studio.write("async function execute(context) {\n  return (1;\n}");
      await marked();
      await studio.write(`${CODE}\n// mended`);
      await unmarked();
    },
  );

  longTest("offers to add the package of a namespace that the code uses", async () => {
    await studio.write("async function execute() {\n  return Svc.Communicate.init() && Svc.Media.init();\n}");
    await studio.button("Add svc-media");
    await studio.button("Add svc-communicate");
    await page.waitForFunction(`!/Add svc-/.test(document.querySelector('[aria-label="Code"]').textContent)`);
    const listed = await page.$$eval('[data-field="dependencies"] code', (all) =>
      all.map((element) => element.textContent),
    );
    expect(listed).to.deep.equal(["svc-csv", "svc-media", "svc-communicate"]);
    await page.click('[aria-label="Remove svc-media"]');
    await page.click('[aria-label="Remove svc-communicate"]');
    await studio.write(`${CODE}\n// without packages`);
    await unmarked();
  });

  it("stores a payload with the action by name, and fills it from there or from a past run", async () => {
    await studio.replace("#payload", '{ "seat": "window" }');
    await studio.button("Save this payload");
    await studio.replace('input[aria-label="Name of this payload"]', "by the window");
    await studio.button("Save payload");
    await page.waitForSelector("::-p-xpath(//button[contains(., 'by the window')])");
    await studio.replace("#payload", "{}");
    await page.focus(".presets select");
    await page.waitForSelector('.presets option[value^="run "]');
    const run = await page.$eval('.presets option[value^="run "]', (option) => option.getAttribute("value"));
    await page.select(".presets select", run!);
    await page.waitForFunction('document.querySelector("#payload").value.includes("guests")');
    await page.select(".presets select", "preset by the window");
    await page.waitForFunction('document.querySelector("#payload").value.includes("window")');
    const { body } = await service.rest("GET", `/v3/apps/${service.appId}/actions/${actionId}/presets`);
    expect(body.presets.map(({ name }: { name: string }) => name)).to.deep.equal(["by the window"]);
    await page.click("::-p-xpath(//button[contains(., 'Delete “by the window”')])");
    await page.waitForFunction("!document.querySelector(\".presets optgroup[label='Sample payloads']\")");
    // Saves the code. Otherwise, the page would ask about unsaved changes before it opens another action.
    await studio.write(`${CODE}\n// with a payload`);
    await studio.save();
    await studio.saved();
    expect(watch.errors).to.deep.equal([]);
  });

  longTest("tests the draft with all sample payloads, and marks a payload whose result has changed", async () => {
    await (await page.waitForSelector('#dock [data-tab="Test"]'))!.click();
    await studio.button("Write a payload");
    for (const [name, payload] of [
      ["one guest", { guests: 1 }],
      ["no guest", { guests: 0 }],
    ] as const) {
      await studio.replace("#payload", JSON.stringify(payload));
      await studio.button("Save this payload");
      await studio.replace('input[aria-label="Name of this payload"]', name);
      await studio.button("Save payload");
      await page.waitForSelector(`::-p-xpath(//button[contains(., 'Delete “${name}”')])`);
    }
    await studio.write(
      'async function execute({ payload }) {\n  if (payload.guests === 0) throw new Error("no guest");\n  return payload;\n}',
    );
    await (await page.waitForSelector('#dock [data-tab="Test"]'))!.click();
    const summary = (text: string) =>
      page.waitForSelector(studio.withText("*[@role='status']", text, "//*[contains(@class,'test-panel')]"));
    await studio.button("Save and run all");
    await summary("2 sample payloads, 1 completed, 1 failed");
    const tests = () =>
      page.$$eval(".payload-tests > li", (all) =>
        all.map((element) => [
          element.querySelector("b")!.textContent,
          element.querySelector(".state")!.textContent,
          element.querySelector(".result")!.textContent!.replace(/\s+/g, ""),
          element.querySelector(".chip")?.textContent ?? "",
        ]),
      );
    expect(await tests()).to.deep.equal([
      ["no guest", "failed", "Error:noguest", ""],
      ["one guest", "completed", '{"guests":1}', ""],
    ]);
    await studio.write("async function execute({ payload }) {\n  return { guests: payload.guests || 1 };\n}");
    await page.waitForSelector(studio.withText("span", "before your last change"));
    // Simulates a rate limit that rejects one run, and a request for the state of a run that fails.
    await page.evaluate(`{
      const send = window.fetch;
      const limited = [{ message: "too many", extensions: { status: "RATE_LIMIT_EXCEEDED", retryAfter: 0 } }];
      const answers = new Map([
        ["RunAction", async () => new Response(JSON.stringify({ errors: limited }))],
        ["ReadRunOutcome", async () => { throw new TypeError("no connection"); }],
      ]);
      window.fetch = (address, init) => {
        const name = [...answers.keys()].find((one) => (init?.body ?? "").includes(one));
        const answer = answers.get(name);
        answers.delete(name);
        window.answersLeft = answers.size;
        return answer ? answer() : send(address, init);
      };
    }`);
    await studio.button("Save and run all");
    await summary("2 sample payloads, 2 completed");
    expect(await tests()).to.deep.equal([
      ["no guest", "completed", '{"guests":1}', "another outcome than before"],
      ["one guest", "completed", '{"guests":1}', ""],
    ]);
    expect(await page.evaluate("window.answersLeft")).to.equal(0);
    expect(await studio.textOf('[aria-label="Tests in files"] pre')).to.match(/^npx svc pull\nnpx svc test /);
    expect(watch.errors).to.deep.equal([]);
  });

  longTest("edits each file of an action that is written as modules, and shows the error of a save", async () => {
    const path = `/v3/apps/${service.appId}/actions`;
    const greeting = "export const greeting = (name: string): string => `Hello ${name}`;\n";
    const entry =
      'import { greeting } from "./lib/greeting";\n\nexport async function execute(): Promise<string> {\n  return greeting("Ada");\n}\n';
    const source = { language: "typescript", files: { "action.ts": entry, "lib/greeting.ts": greeting } };
    const body = { name: "modules", active: true, triggers: [{ trigger: "manual" }], source };
    const { id } = (await service.rest("POST", path, { body })).body.action;
    const stored = async () => (await service.rest("GET", `${path}/${id}`)).body.action.source;
    await studio.open(`${service.appId}/actions/${id}`);
    const text = '[aria-label="Source"] textarea';
    await page.waitForSelector(text);
    const shown = () => page.$eval(text, (element) => (element as unknown as { value: string }).value);
    expect(await shown()).to.equal(entry);
    await page.select('[aria-label="Source"] select', "lib/greeting.ts");
    expect(await shown()).to.equal(greeting);
    const write = async (from: string, to: string) => {
      await page.locator(text).fill((await shown()).replace(from, to));
      await studio.save();
    };
    await write("`Hello ${name}`", "`Hello ${name}");
    const fault = await studio.textOf('[aria-label="Source"] [role="alert"]');
    expect(fault).to.match(/^source: lib\/greeting\.ts, line \d, column \d+: .* CODE_VALIDATION_FAILED$/);
    expect(await stored()).to.deep.equal(source);
    await write("`Hello ${name}", "`Bye ${name}`");
    await studio.saved();
    const files = { ...source.files, "lib/greeting.ts": greeting.replace("Hello", "Bye") };
    expect(await stored()).to.deep.equal({ ...source, files });
    expect((await service.rest("POST", `${path}/modules/runWithResult`, { body: {} })).body.result).to.equal("Bye Ada");
    expect(watch.errors).to.deep.equal([]);
  });
});
