/** Tests that Studio shows additions and failures, asks before edits are lost, and shows the object, time and time zone of a change. */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium, type PageWatch, watchPage } from "../web/chromium.js";
import { insertSkippedTick } from "../web/schedule-pauses.js";
import { type StudioPage, studioPage } from "../web/studio-page.js";

const ACTION = {
  name: "nightly",
  active: true,
  triggers: [{ trigger: "manual" }, { trigger: "schedule" }],
  frequency: "0 15 * * *",
  timezone: "America/New_York",
  code: "async function execute() { throw new Error('as asked'); }",
};

describe("edits and states in Studio", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let studio: StudioPage;

  before(async () => {
    [service, browser] = await Promise.all([startTestService(), launchChromium()]);
    page = await browser.newPage();
    watch = watchPage(page, service.url);
    await page.setViewport({ width: 1280, height: 600 });
    studio = studioPage(page);
    await page.goto(`${service.url}/studio`);
    await studio.signIn(service.tokens.editor);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  const open = (path: string) => studio.open(`${service.appId}/${path}`);
  const send = async (method: string, path: string, body?: unknown) => {
    const answer = await service.rest(method, path.replace("APP", `apps/${service.appId}`), { body });
    expect(answer.http, JSON.stringify(answer.body)).to.be.lessThan(300);
    return answer.body;
  };
  const shows = (text: string) =>
    page.waitForFunction(`document.querySelector("#content").textContent.includes(${JSON.stringify(text)})`);
  const shownText = () => studio.textOf("#content");

  it("an app without schedules does not say that its schedules ran", async () => {
    await open("schedule");
    await shows("No schedules yet");
    expect(await shownText()).to.not.match(/ran when/);
  });

  it("an added trigger shows its fields in a low window", async () => {
    await open("actions/new");
    await page.waitForSelector('[data-field="triggers"]');
    for (const [kind, added] of [
      ["http", ".trigger"],
      ["log", ".trigger"],
      ["schedule", ".schedule-builder"],
    ] as const) {
      await page.$eval(".fields", (fields) => fields.scrollTo(0, 0));
      await page.select(`[data-field="triggers"] select:has(option[value="${kind}"])`, kind);
      await page.waitForFunction(`(() => {
        const box = document.querySelector(".fields").getBoundingClientRect();
        const { top, bottom } = [...document.querySelectorAll("${added}")].at(-1).getBoundingClientRect();
        // Chromium scrolls by whole pixels, so an edge may be up to one pixel outside.
        return top > box.top - 1 && bottom < Math.min(box.bottom, innerHeight) + 1;
      })()`);
    }
    await open("schedule");
    await studio.button("Discard changes", "//dialog");
  });

  it("the times of a schedule are those of its zone, with the zone's name, on a clock of 24 hours", async () => {
    const { action } = await send("POST", "/v3/APP/actions", ACTION);
    await send("POST", "/v1/APP/publish");
    const published = await send("POST", `/v3/APP/actions/${action.id}/publish`);
    await insertSkippedTick(service, published.action.id);
    await page.reload();
    await page.waitForSelector('::-p-aria([name="Run now: nightly"])');
    const row = (await studio.rowsOf("Schedules")).find(([name]) => name?.name === "nightly")!;
    expect(row.map(({ name }) => name).join(" "))
      .to.match(/, 15:00/)
      .and.contain("New_York");
    const [{ tick }] = await service.db.query("SELECT tick FROM run WHERE state = 'skipped'");
    const timeOfDay = tick.toLocaleTimeString("en", {
      ...{ hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: ACTION.timezone },
    });
    expect(await studio.textOf(".missed-line time")).to.match(new RegExp(`, ${timeOfDay} ${ACTION.timezone}$`));
    expect(await shownText()).to.not.match(/\d [AP]M\b/);
  });

  it("an open alert shows that it fires together with its message", async () => {
    const alert = { name: "nightly fails", condition: "failed", channel: "email", to: ["ann@example.com"] };
    const { id } = (await send("POST", "/v1/APP/alerts", alert)).alert;
    await open(`alerts/${id}`);
    await page.waitForFunction(`/Not firing.*None yet/s.test(document.querySelector(".reader aside")?.textContent)`);
    expect(
      (await service.rest("POST", `/v3/apps/${service.appId}/actions/nightly/runWithResult?by=name`, { as: "live" }))
        .http,
    ).to.equal(500);
    await until(async () => (await send("GET", `/v1/APP/alerts/${id}/deliveries`)).deliveries.length > 0);
    await page.waitForFunction(
      `/nightly.*failed.*Sent messages.*nightly/s.test(document.querySelector(".reader aside")?.textContent)`,
    );
    expect(await studio.textOf(".reader aside")).to.not.contain("None yet");
  });

  it("Home shows that an alert fires, and that its e-mail is stored and not sent", async () => {
    await open("home");
    await page.waitForFunction(
      '/nightly fails is firing: /.test(document.querySelector(".home-notice.bad")?.textContent)',
    );
    await page.waitForSelector(
      studio.withText("a", "Set up e-mail", '//*[contains(., "Messages are stored, not sent")]'),
    );
  });

  it("the audit log names the part of a data source that was changed", async () => {
    const { dataSource } = await send("POST", "/v1/APP/data-sources", { name: "Orders" });
    const accessRules = [{ type: ["select"], allow: "all" }];
    await send("PUT", `/v1/APP/data-sources/${dataSource.id}`, { accessRules });
    await open("app/audit");
    await shows("Data source changed");
    expect(await shownText())
      .to.match(/Data source changed.*accessRules/s)
      .and.not.contain("indexes");
  });

  it("no page has an error", () => {
    expect(watch.errors).to.deep.equal([]);
  });
});
