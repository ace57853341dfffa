/** Puts an attacker's text into the names and texts that Studio shows. No page interprets it as markup, and it makes no page wider. */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { VIEW_NAMES } from "../../src/web/studio/shell/views.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium, type PageWatch, watchPage } from "../web/chromium.js";
import { COUNT_FETCHES, kindOfPlace, linksOn, settle } from "../web/studio-crawl.js";
import { studioPage } from "../web/studio-page.js";

/** Markup, the end of an attribute, template syntax, and a change of the writing direction. */
const HOSTILE_TEXT = `"><img class=hostile src=x onerror="hostile=1"><b class=hostile>\${hostile}{{hostile}}\u202Egpj.exe`;
const TEXT = JSON.stringify(HOSTILE_TEXT);

const CODE = `async function execute({ payload }) {
  console.log(${TEXT}, { [${TEXT}]: [${TEXT}] });
  if (payload.fails) throw Object.assign(new Error(${TEXT}), { name: ${TEXT} });
  return { [${TEXT}]: ${TEXT} };
}`;

async function fillApp({ rest, appId, url, tokens }: TestService): Promise<void> {
  const send = async (method: string, path: string, body: unknown, as = "editor") => {
    const answer = await rest(method, path, { body, as });
    expect(answer.http, `${path} ${JSON.stringify(answer.body)}`).to.be.lessThan(300);
    return answer.body;
  };
  const [v1, v3] = [`/v1/apps/${appId}`, `/v3/apps/${appId}/actions`];
  const texts = { [HOSTILE_TEXT]: HOSTILE_TEXT, name: HOSTILE_TEXT, title: HOSTILE_TEXT, body: HOSTILE_TEXT };
  await send("PUT", v1, { name: HOSTILE_TEXT });
  const triggers = [{ trigger: "manual" }, { trigger: "schedule" }];
  const action = {
    name: "plain",
    description: HOSTILE_TEXT,
    active: true,
    triggers,
    frequency: "0 9 * * 1-5",
    code: CODE,
  };
  const { id } = (await send("POST", v3, action)).action;
  await send("POST", `${v3}/${id}/runWithResult`, texts);
  expect((await rest("POST", `${v3}/${id}/runWithResult`, { body: { ...texts, fails: true } })).http).to.equal(500);
  await send("POST", `${v1}/settings`, texts);
  await send("POST", `${v1}/tokens`, { kind: "api", name: HOSTILE_TEXT });
  const sourceId = (await send("POST", `${v1}/data-sources`, { name: HOSTILE_TEXT })).dataSource.id;
  await send("POST", `${v1}/data-sources/${sourceId}/entries`, texts);
  await send("POST", `${v1}/notifications`, { data: texts });
  const to = [{ email: "ada@example.com", name: HOSTILE_TEXT }];
  await send("POST", `${v1}/communicate/email`, { to, subject: HOSTILE_TEXT, html: HOSTILE_TEXT });
  await send("POST", `${v1}/alerts`, {
    name: HOSTILE_TEXT,
    condition: "failed",
    channel: "email",
    to: ["ada@example.com"],
  });
  const person = { firstName: HOSTILE_TEXT, lastName: HOSTILE_TEXT, email: "hostile@example.com" };
  const { user } = await send("POST", "/v1/admin/users", person, "admin");
  await send("POST", `${v1}/editors`, { userId: user.id });
  const file = new FormData();
  file.append("file", new Blob(["a text"], { type: "text/plain" }), HOSTILE_TEXT);
  const headers = { "auth-token": tokens.editor };
  expect((await fetch(`${url}${v1}/media/files`, { method: "POST", headers, body: file })).ok).to.equal(true);
}

describe("Studio with hostile names", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;

  before(async () => {
    [service, browser] = await Promise.all([startTestService(), launchChromium()]);
    await fillApp(service);
    page = await browser.newPage();
    watch = watchPage(page, service.url);
    await page.evaluateOnNewDocument(COUNT_FETCHES);
    await page.goto(`${service.url}/studio`);
    await studioPage(page).signIn(service.tokens.editor);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  for (const width of [1280, 390]) {
    it(`shows them as text on every page, ${width} pixels wide`, async () => {
      await page.setViewport({ width, height: 800 });
      const visited = new Set<string>();
      const shown: string[] = [];
      const queue = VIEW_NAMES.map((view) => `#/${service.appId}/${view}`);
      for (let place = queue.shift(); place !== undefined; place = queue.shift()) {
        if (visited.has(kindOfPlace(place))) continue;
        visited.add(kindOfPlace(place));
        await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
        await settle(page);
        const faults =
          await page.evaluate(`[document.querySelectorAll(".hostile").length, globalThis.hostile === undefined,
          Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)]`);
        expect(faults, place).to.deep.equal([0, true, 0]);
        const isShown = await page.evaluate('document.querySelector("#content").innerText.includes("onerror=")');
        if (isShown) shown.push(place.split("/")[2]!);
        queue.push(...(await linksOn(page)));
      }
      expect(shown).to.include.members(["runs", "data", "media", "notifications", "alerts", "settings", "app"]);
      expect(watch.errors).to.deep.equal([]);
    });
  }
});
