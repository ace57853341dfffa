/** Tests two people who edit one action in separate browsers: each sees the saves of the other, and no change is lost. */
import { expect } from "chai";
import type { Browser, HTTPRequest, Page } from "puppeteer";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium, type PageWatch, watchPage } from "../web/chromium.js";
import { type StudioPage, studioPage } from "../web/studio-page.js";

const createCode = (words: string) => `async function execute() {\n  return ${JSON.stringify(words)};\n}\n`;

interface StudioWindow {
  page: Page;
  watch: PageWatch;
  studio: StudioPage;
}

describe("two people in Studio at one action", () => {
  let service: TestService;
  let browser: Browser;
  let mine: StudioWindow;
  let theirs: StudioWindow;
  let actionId: number;

  async function openWindow(token: string): Promise<StudioWindow> {
    const page = await (await browser.createBrowserContext()).newPage();
    await page.setViewport({ width: 1280, height: 800 });
    const watch = watchPage(page, service.url);
    await page.goto(`${service.url}/studio#/${service.appId}/actions/${actionId}`);
    const studio = studioPage(page);
    await studio.signIn(token);
    await page.waitForSelector(".code-editor .view-line");
    return { page, watch, studio };
  }

  before(async () => {
    [service, browser] = await Promise.all([startTestService(), launchChromium()]);
    const { rest, appId } = service;
    const action = { name: "shared", active: true, triggers: [{ trigger: "manual" }], code: createCode("first") };
    actionId = (await rest("POST", `/v3/apps/${appId}/actions`, { body: action })).body.action.id;
    const person = { firstName: "Grace", lastName: "Hopper", email: "grace@example.com" };
    const { user, token } = (await rest("POST", "/v1/admin/users", { as: "admin", body: person })).body;
    await rest("POST", `/v1/apps/${appId}/editors`, { body: { userId: user.id } });
    mine = await openWindow(service.tokens.editor);
    theirs = await openWindow(token);
  });

  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  const readStoredCode = async () =>
    (await service.rest("GET", `/v3/apps/${service.appId}/actions/${actionId}`)).body.action;
  const waitForText = ({ page }: StudioWindow, words: string) =>
    page.waitForFunction(
      `document.querySelector(".code-editor .view-lines").textContent.includes(${JSON.stringify(words)})`,
    );
  const changeCode = async ({ page, studio }: StudioWindow, words: string) => {
    await page.bringToFront();
    await studio.write(createCode(words));
    await page.waitForFunction('document.querySelector(".workspace-head .primary").disabled === false');
  };
  const changeAndSave = async (seat: StudioWindow, words: string) => {
    await changeCode(seat, words);
    await seat.studio.save();
  };
  const waitForSave = ({ studio }: StudioWindow) => studio.saved();

  it("shows the other person's save at once, with the name, if nothing is unsaved here", async () => {
    await changeAndSave(theirs, "second");
    await waitForSave(theirs);
    await mine.page.bringToFront();
    await waitForText(mine, "second");
    expect(await mine.studio.textOf(".news")).to.match(/^Grace Hopper changed code/);
    await waitForSave(mine);
  });

  it("reports the other person's save while something is unsaved here, and lets no save or run overwrite it", async () => {
    await changeCode(mine, "mine");
    await changeAndSave(theirs, "third");
    await waitForSave(theirs);
    await mine.page.bringToFront();
    expect(await mine.studio.textOf(".banner")).to.contain(
      "Grace Hopper has saved this action while you were changing it",
    );
    await mine.studio.press("s");
    await mine.studio.press("Enter");
    await mine.page.waitForSelector(".workspace-head .primary:disabled");
    expect((await readStoredCode()).code).to.equal(createCode("third"));
  });

  it("shows the lines that differ, and keeps the person's unsaved text if the person chooses so", async () => {
    await mine.studio.button("See both");
    const linesOf = async (kind: string) =>
      (await mine.page.$$eval(`dialog .diff .${kind}`, (lines) => lines.map((line) => line.textContent))).join("");
    await mine.page.waitForSelector("dialog[open] .diff .added");
    expect(await linesOf("removed")).to.match(/^-.*third/);
    expect(await linesOf("added")).to.match(/^\+.*mine/);
    await mine.studio.button("Go on with mine", "//dialog");
    await mine.studio.save();
    await waitForSave(mine);
    expect((await readStoredCode()).code).to.equal(createCode("mine"));
    await theirs.page.bringToFront();
    await waitForText(theirs, "mine");
  });

  it("rejects a save from before the other's change, and takes theirs if the person chooses so", async () => {
    await changeCode(mine, "late");
    // Holds the first person's save until the service has stored the second person's save.
    const heldRequest = new Promise<HTTPRequest>((resolve) => {
      mine.page.on("request", (request) => {
        if (request.postData()?.includes("UpdateAction")) resolve(request);
        else void request.continue();
      });
    });
    await mine.page.setRequestInterception(true);
    await mine.studio.press("s");
    const request = await heldRequest;
    const { rest, appId } = service;
    await rest("PUT", `/v3/apps/${appId}/actions/${actionId}`, { body: { code: createCode("fourth") } });
    await request.continue();
    await mine.studio.textOf(".banner");
    expect((await readStoredCode()).code).to.equal(createCode("fourth"));
    mine.page.removeAllListeners("request");
    await mine.page.setRequestInterception(false);
    await mine.studio.button("Take theirs");
    await waitForText(mine, "fourth");
    await waitForSave(mine);
  });

  it("shows that the action was paused elsewhere, and a form from before the pause does not resume it", async () => {
    const path = `/v3/apps/${service.appId}/actions/${actionId}`;
    const setActive = async (active: boolean) =>
      expect((await service.rest("PUT", path, { body: { active } })).http).to.equal(200);
    const waitForActive = (active: boolean) =>
      mine.page.waitForFunction(`document.querySelector('[data-field="active"] input').checked === ${active}`);
    await waitForActive(true);
    await setActive(false);
    await waitForActive(false);
    await setActive(true);
    await waitForActive(true);
    await changeCode(mine, "unsaved");
    await setActive(false);
    await mine.studio.textOf(".banner");
    await mine.studio.press("s");
    await mine.studio.button("Take theirs");
    await waitForActive(false);
    await waitForSave(mine);
    expect((await readStoredCode()).active).to.equal(false);
    await setActive(true);
    await waitForActive(true);
  });

  it("reports no conflict if only the response to the person's own save was lost", async () => {
    await changeCode(mine, "own");
    mine.page.on("request", async (request) => {
      if (!request.postData()?.includes("UpdateAction")) return void request.continue();
      const headers = { "content-type": "application/json", "auth-token": service.tokens.editor };
      await fetch(request.url(), { method: "POST", headers, body: request.postData()! });
      await request.abort();
    });
    await mine.page.setRequestInterception(true);
    await mine.studio.press("s");
    await waitForSave(mine);
    expect((await readStoredCode()).code).to.equal(createCode("own"));
    expect(await mine.page.$(".banner")).to.equal(null);
    mine.page.removeAllListeners("request");
    await mine.page.setRequestInterception(false);
    // The browser reports the lost response in the console.
    mine.watch.errors.length = 0;
  });

  it("reports that the action was deleted, and creates a new one from the unsaved text if the person chooses so", async () => {
    await changeCode(mine, "kept");
    await service.rest("DELETE", `/v3/apps/${service.appId}/actions/${actionId}`);
    expect(await mine.studio.textOf(".banner")).to.contain("has deleted this action");
    await mine.studio.button("Create it as a new action");
    await mine.studio.button("Create");
    await waitForSave(mine);
    const { actions } = (await service.rest("GET", `/v3/apps/${service.appId}/actions`)).body;
    expect(actions.map((action: { id: number; code: string }) => [action.id === actionId, action.code])).to.deep.equal([
      [false, createCode("kept")],
    ]);
  });

  it("does everything without an error in either page", () => {
    expect([...mine.watch.errors, ...theirs.watch.errors]).to.deep.equal([]);
  });
});
