/** Tests Studio's history of runs: search, counts, the page of a run, cancelling and replaying. Also tests the week of schedules. */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { checkEndlessSearch } from "./endless-runs.js";
import { chooseColumns, chooseColumnsInMediumWindow } from "./runs-columns.js";
import { BOOKING_CODE, checkCharts, ENDLESS_CODE, listedLinks, waitForChart, waitForLinks } from "./runs-samples.js";
import { checkUnlistedSchedule, insertSkippedTick, pauseSchedules, SCHEDULED_ACTION } from "./schedule-pauses.js";
import { leaveOutCompiler, type StudioPage, studioPage } from "./studio-page.js";

describe("runs in Studio", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let studio: StudioPage;
  const ids: Record<string, number> = {};
  const runIds: Record<string, number> = {};

  const path = () => `/v3/apps/${service.appId}`;
  const startRun = async (action: string, payload: object = {}): Promise<number> =>
    (await service.rest("POST", `${path()}/actions/${action}/run`, { body: payload })).body.runId;
  const waitForEnd = (runId: number) =>
    until(async () => (await service.rest("GET", `${path()}/runs/${runId}`)).body.run.finishedAt);
  const endedRun = (payload: object) => startRun("book", payload).then((id) => waitForEnd(id).then(() => id));
  const open = (fragment: string) => studio.open(`${service.appId}/${fragment}`);
  const hrefOf = (runId: number) => `#/${service.appId}/runs/${runId}`;
  /** Waits until the list has exactly these runs in this order. Ignores cancelled runs. */
  const waitForRuns = (...runs: number[]) => waitForLinks(page, runs.map(hrefOf));

  before(async () => {
    [service, browser] = await Promise.all([startTestService({ ROLES: "api,runner" }), launchChromium()]);
    for (const [name, code] of Object.entries({ book: BOOKING_CODE, busy: ENDLESS_CODE })) {
      const body = { name, code, active: true, triggers: [{ trigger: "manual" }] };
      ids[name] = (await service.rest("POST", `${path()}/actions`, { body })).body.action.id;
    }
    runIds["good"] = await endedRun({ seat: "12A" });
    runIds["bad"] = await endedRun({ seat: "13B", fail: true });
    page = await browser.newPage();
    await leaveOutCompiler(page);
    await page.setViewport({ width: 1280, height: 800 });
    watch = watchPage(page, service.url);
    studio = studioPage(page);
    await page.goto(`${service.url}/studio#/${service.appId}/runs`);
    await studio.signIn(service.tokens.editor);
    await page.waitForSelector(".runs-box .run-link");
  });

  after(async () => {
    try {
      expect(watch.errors).to.deep.equal([]);
    } finally {
      await browser?.close();
      await service?.stop();
    }
  });

  it("are listed newest first with results and errors, with their number and the chart in words", async () => {
    await waitForRuns(runIds["bad"]!, runIds["good"]!);
    expect(await studio.textOf(".run-row.failed .gist")).to.equal("RangeError: seat 13B is taken");
    expect(await studio.textOf(".run-row.completed .gist")).to.equal('{"booked":"12A"}');
    await waitForChart(page, 2, 1);
  });

  longTest("have a head for each column, and a chart of the listed runs under every filter", async () => {
    const columnHeads = await page.$$eval(".run-heads > span", (all) => all.map((element) => element.textContent));
    expect(columnHeads).to.deep.equal([
      ...["Run", "State", "Started", "Action", "Version", "Trigger", "Duration", "Result or error"],
    ]);
    expect(await studio.textOf(".runs-box .run-number")).to.equal(`#${runIds["bad"]}`);
    await studio.replace('.runs-filters input[type="search"]', "12A");
    await waitForRuns(runIds["good"]!);
    await waitForChart(page, 1, 0);
    await checkCharts(service, page, open);
    await studio.button("Clear filters");
    await waitForChart(page, 2, 1);
  });

  it("are a table for assistive technology: heads, and in each row a cell for each head", async () => {
    const [columnHeads, first, ...others] = await studio.rowsOf("Runs, newest first");
    expect(columnHeads!.map(({ role }) => role)).to.deep.equal(Array(8).fill("columnheader"));
    expect(first!.map(({ role }) => role)).to.deep.equal(Array(8).fill("cell"));
    const [id, state, , action, version, trigger, , error] = first!.map(({ name }) => name);
    expect([id, version, trigger]).to.deep.equal([`#${runIds["bad"]}`, "draft", "on demand"]);
    expect([state, error]).to.deep.equal(["failed", "RangeError: seat 13B is taken"]);
    expect(action).to.equal(`book, run ${runIds["bad"]}`);
    expect(others).to.have.lengthOf(1);
  });

  longTest("have the columns that the person chooses, also after a reload", () => chooseColumns(page, studio));

  longTest("have the other columns of a wide window after a choice in a medium one", () =>
    chooseColumnsInMediumWindow(page, studio),
  );

  longTest("are cancelled, those in the list that have not ended, after a question", async () => {
    const runId = await startRun("busy");
    await open("runs?state=running").then(() => waitForRuns(runId));
    await studio.button("Cancel this run");
    await studio.button("Cancel them", "//dialog");
    await page.waitForFunction('/1 run cancelled/.test(document.querySelector(".runs-count").textContent)');
    await waitForEnd(runId).then(() => open("runs"));
    await page.waitForSelector(`.run-row.cancelled a[href="${hrefOf(runId)}"]`);
  });

  longTest("appear while the list is open, and the chart scrolls away with the list", async () => {
    const runId = await startRun("busy");
    await page.waitForSelector(`.run-row.running a[href="${hrefOf(runId)}"]`);
    const above = await page.evaluate(`(() => {
      const box = document.querySelector(".runs-box");
      const last = [...box.querySelectorAll(".run-row")].at(-1).getBoundingClientRect();
      const head = document.querySelector(".run-heads").getBoundingClientRect();
      return box.contains(document.querySelector(".runs-chart")) && last.top >= head.bottom;
    })()`);
    expect(above).to.equal(true);
    await page.click(`[aria-label="Cancel run ${runId}"]`);
    await page.waitForSelector(`.run-row.cancelled a[href="${hrefOf(runId)}"]`);
  });

  it("are summarized on Home: what failed, what runs and how many ran; completed steps are ticked", async () => {
    await open("home");
    // The checklist appears only when the list of actions is loaded, which can be later than the figures.
    await page.waitForSelector(".checklist .done");
    const figures = await page.$$eval(".figure-value", (all) => all.map((element) => element.textContent));
    expect(Number(figures[0])).to.be.at.least(2);
    expect(figures[1]).to.equal("1");
    expect(await studio.textOf('[aria-labelledby="home-failed"] .gist')).to.equal("RangeError: seat 13B is taken");
    const readDoneSteps = () => page.$$eval(".checklist .done a", (all) => all.map((element) => element.textContent));
    expect(await readDoneSteps()).to.deep.equal(["Write an action", "Run it"]);
    const rule = { name: "any", condition: "failed", failures: 1, of: 1, channel: "email", to: ["ann@example.com"] };
    const { body } = await service.rest("POST", `/v1/apps/${service.appId}/alerts`, { body: rule });
    expect(body.error).to.equal(undefined);
    await page.evaluate('dispatchEvent(new Event("focus"))');
    await page.waitForFunction('document.querySelectorAll(".checklist .done").length === 3');
    await open("runs");
    await page.waitForSelector(".runs-chart canvas");
  });

  it("are searched and filtered by the service, kept in the address, and Back undoes it", async () => {
    await page.select('.choice select[name="state"]', "failed");
    await waitForRuns(runIds["bad"]!);
    await waitForChart(page, 1, 1);
    expect(await page.evaluate("location.hash")).to.contain("state=failed");
    await studio.replace('.runs-filters input[type="search"]', "12A");
    await page.waitForSelector("::-p-text(No run matches these filters.)");
    await waitForChart(page, 0, 0);
    expect(await page.evaluate("location.hash")).to.contain("search=12A");
    await page.goBack();
    await waitForRuns(runIds["bad"]!);
    await studio.button("Clear filters");
    await waitForRuns(runIds["bad"]!, runIds["good"]!);
    await studio.replace('.runs-filters input[type="search"]', "12A");
    await waitForRuns(runIds["good"]!);
    await waitForChart(page, 1, 0);
    await studio.button("Clear filters");
    await waitForRuns(runIds["bad"]!, runIds["good"]!);
  });

  it("are searched in ten older pages without a match, then only if the person asks", async () => {
    await checkEndlessSearch(page, studio, () => open("runs?search=12A"));
  });

  it("lead back to the list with its filters", async () => {
    await open("runs?state=failed");
    await waitForRuns(runIds["bad"]!);
    await page.click(".runs-box .run-link");
    await page.waitForSelector(".run-page .timeline");
    await page.click(".breadcrumbs a:last-of-type");
    await waitForRuns(runIds["bad"]!);
    expect(await page.evaluate("location.hash")).to.contain("state=failed");
  });

  it("have a page each: times, sandbox, payload, error, console, and the position in the code", async () => {
    await open(`runs/${runIds["bad"]}`);
    await page.waitForSelector(".run-page .timeline");
    expect(await studio.textOf(".run-head")).to.contain("book");
    expect(await studio.textOf(".run-facts")).to.contain("Evaluated inan isolate");
    expect(await studio.textOf(".timeline")).to.match(/accepted.*started.*failed/s);
    expect(await studio.textOf('[aria-label="Payload"] .result')).to.contain('"seat": "13B"');
    await page.waitForSelector('.console[aria-label="Console, 1 lines"]');
    const place = await page.waitForSelector(".stack a");
    expect(await place!.evaluate((link) => link.textContent)).to.equal("book.js:4:11");
    await place!.click();
    await page.waitForSelector(".code-editor .view-line");
    await page.waitForFunction('document.querySelector(".line-numbers.active-line-number")?.textContent === "4"');
  });

  longTest("are repeated, those in the list that failed, after a question", async () => {
    await open("runs?state=failed");
    await waitForRuns(runIds["bad"]!);
    await studio.button("Replay this run");
    await studio.button("Replay", "//dialog");
    await page.waitForFunction('/1 run queued\\./.test(document.querySelector(".runs-count").textContent)');
    await page.waitForFunction('document.querySelectorAll(".runs-box .run-row.failed").length === 2');
    const { body } = await service.rest("GET", `${path()}/runs?state=failed`);
    expect(body.runs.map(({ replayOf }: { replayOf: number | null }) => replayOf)).to.deep.equal([runIds["bad"], null]);
    await open(`runs/${runIds["bad"]}`);
    await (await page.waitForSelector(".stack a"))!.click();
    await page.waitForSelector(".code-editor .view-line");
  });

  longTest("lead from an error of the log to its position in the code", async () => {
    await page.keyboard.down("Control");
    await page.keyboard.press("Home");
    await page.keyboard.up("Control");
    await page.waitForFunction('document.querySelector(".line-numbers.active-line-number")?.textContent === "1"');
    await studio.button("Log", '//*[@role="tablist"]');
    await (await page.waitForSelector(".entry.failed > button"))!.click();
    await (await page.waitForSelector(".entry-details .stack a"))!.click();
    await page.waitForFunction('document.querySelector(".line-numbers.active-line-number")?.textContent === "4"');
  });

  it("are repeated with a changed payload, and the new run shows which run it repeats", async () => {
    await open(`runs/${runIds["bad"]}`);
    await page.waitForSelector("#again-payload");
    await studio.replace("#again-payload", '{ "seat": "14C" }');
    await studio.button("Run again");
    await page.waitForFunction(`location.hash !== ${JSON.stringify(hrefOf(runIds["bad"]!))}`);
    await page.waitForSelector(".run-head .run-state.completed");
    expect(await studio.textOf('[aria-label="Result"] .result')).to.contain('"booked": "14C"');
    expect(await studio.textOf(".run-facts")).to.contain(`run ${runIds["bad"]}`);
    await studio.replace("#again-payload", "{ seat }");
    await studio.button("Run again");
    await page.waitForSelector(".run-again .fault:not(:empty)");
  });

  longTest("are shown on every page while they execute, and can be cancelled there", async () => {
    await open("settings");
    await page.waitForSelector(".setting, .new-setting");
    runIds["busy"] = await startRun("busy");
    await (await page.waitForSelector(".running > button"))!.click();
    await page.waitForSelector(".running-list .run-line");
    expect(await studio.textOf(".running-list .run-line")).to.contain("busy");
    await page.click(`[aria-label="Cancel run ${runIds["busy"]}"]`);
    await waitForEnd(runIds["busy"]!);
    await page.waitForFunction('!document.querySelector(".running-list .run-line")');
    await page.keyboard.press("Escape");
    await page.waitForFunction('!document.querySelector(".running-list")');
  });

  it("are followed while they execute, and cancelled there", async () => {
    const runId = await startRun("busy");
    await open(`runs/${runId}`);
    await page.waitForSelector(".run-head .run-state.running");
    await page.waitForSelector('.console[aria-label="Console, 1 lines"]');
    await studio.button("Cancel the run");
    await page.waitForSelector(".run-head .run-state.cancelled");
  });

  longTest(
    "show what they wait for after limits are set, and all waiting ones are cancelled after a question",
    async () => {
      await open(`actions/${ids["busy"]}`);
      await page.waitForSelector('[data-field="concurrency"] select');
      await page.select('[data-field="concurrency"] select', "queue");
      await studio.replace('[data-field="timeoutMs"] input', "1");
      await studio.save();
      await page.waitForSelector('[data-field="timeoutMs"] input[aria-invalid="true"]');
      expect(await studio.textOf('[data-field="timeoutMs"] .fault')).to.contain("timeoutMs must be a whole number");
      await studio.replace('[data-field="timeoutMs"] input', "60000");
      await studio.save();
      const action = async () => (await service.rest("GET", `${path()}/actions/${ids["busy"]}`)).body.action;
      await until(async () => (await action()).timeoutMs === 60_000);
      expect((await action()).concurrency).to.deep.equal({ policy: "queue", limit: 1, key: null });
      const running = await startRun("busy");
      const waiting = await startRun("busy");
      await open(`runs/${waiting}`);
      await page.waitForSelector("::-p-text(for other runs of the action to end)");
      await open("runs");
      await page.waitForSelector('[aria-label="Backlog"] ::-p-text(1 run queued)');
      await page.waitForSelector(".run-row.queued");
      // Reads the upper and lower edges of these elements. They do not overlap if the edges are in ascending order.
      const edges = (await page.evaluate(`[".backlog", ".runs-count", ".run-heads", ".run-row"].flatMap((selector) => {
        const { top, bottom } = document.querySelector(selector).getBoundingClientRect();
        return [Math.round(top), Math.round(bottom)];
      })`)) as number[];
      expect(edges).to.deep.equal(edges.toSorted((a, b) => a - b));
      await studio.button("Cancel all queued runs");
      await page.waitForSelector("dialog[open]");
      await studio.button("Cancel them");
      await waitForEnd(waiting);
      await page.waitForSelector('[aria-label="Backlog"] ::-p-text(1 run cancelled.)');
      expect((await service.rest("GET", `${path()}/runs/${running}`)).body.run.finishedAt).to.equal(null);
      await service.rest("POST", `${path()}/runs/${running}/cancel`);
      await service.rest("PUT", `${path()}/actions/${ids["busy"]}`, { body: { concurrency: null, timeoutMs: null } });
    },
  );

  longTest("show who may start them from a page, at the trigger and before the publication", async () => {
    await open(`actions/${ids["busy"]}`);
    await page.waitForSelector('[data-field="access"] select');
    await page.select('[data-field="access"] select', "user");
    await studio.replace('[data-field="access"] textarea', '{"Role": {"like": "x"}}');
    await studio.save();
    await page.waitForSelector('[data-field="access"] select[aria-invalid="true"]');
    expect(await studio.textOf('[data-field="access"] .fault')).to.contain("ACCESS_INVALID");
    const rule = { Role: { equals: "admin" } };
    await studio.replace('[data-field="access"] textarea', JSON.stringify(rule));
    await studio.save();
    const access = async () => (await service.rest("GET", `${path()}/actions/${ids["busy"]}`)).body.action.access;
    await until(async () => JSON.stringify(await access()) === JSON.stringify({ user: rule }));
    const sentence = "Signed-in app users who meet its rule can run it by its name.";
    expect(await studio.textOf('[data-field="triggers"] .trigger .hint')).to.equal(sentence);
    await page.select('[data-field="access"] select', "everyone");
    await studio.save();
    await until(async () => (await access()) === "everyone");
    // Waits for the save. Otherwise, the page would ask about unsaved changes.
    await studio.saved();
  });

  it("appear in the list as they end, without a reload", async () => {
    await open("runs?search=99Z");
    await page.waitForSelector("::-p-text(No run matches these filters.)");
    const runId = await startRun("book", { seat: "99Z" });
    await waitForRuns(runId);
  });

  it("have rows of the right height and a wide result when the screen is turned, and back", async () => {
    for (const width of [1280, 768, 390, 1280]) {
      const [rowPixels, resultPixels] = width > 700 ? [34, 240] : [58, 100];
      await page.setViewport({ width, height: 800 });
      await page.waitForFunction(
        `[...document.querySelectorAll(".run-row")].every((row) => row.getBoundingClientRect().height === ${rowPixels} &&
          row.querySelector(".end").clientWidth > ${resultPixels})`,
      );
    }
  });

  longTest("are loaded page by page while scrolling, and only visible ones are drawn", async () => {
    await service.db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, started_at, finished_at)
       SELECT $1, $2, 'master', 'manual', '{}', 'completed', now(), now() FROM generate_series(1, 450)`,
      [service.appId, ids["book"]],
    );
    await open(`runs?action=${ids["book"]}`);
    await page.waitForFunction('document.querySelectorAll(".runs-box .run-link").length > 10');
    const bottom = '(() => { const box = document.querySelector(".runs-box"); box.scrollTop = box.scrollHeight; })()';
    await page.waitForFunction(
      `(() => { ${bottom}; return [...document.querySelectorAll(".runs-box .run-link")].some((one) => one.getAttribute("href").split("?")[0] === ${JSON.stringify(hrefOf(runIds["good"]!))}); })()`,
    );
    expect((await listedLinks(page)).length).to.be.lessThan(80);
    await service.db.query("DELETE FROM run WHERE started_at = finished_at");
  });

  it("are reached from their earlier address, and an unknown one is reported", async () => {
    await open("log");
    await page.waitForSelector(".runs-page");
    await open("runs/999999");
    await page.waitForSelector("::-p-text(Run 999999 cannot be shown)");
  });

  longTest("mark an action while the last run of its live version failed", async () => {
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    const body = { name: "fragile", active: true, triggers: [{ trigger: "manual" }], code: BOOKING_CODE };
    const { id } = (await service.rest("POST", `${path()}/actions`, { body })).body.action;
    await service.rest("POST", `${path()}/actions/${id}/publish`);
    const runLive = (payload: object) =>
      service.rest("POST", `${path()}/actions/fragile/runWithResult`, { as: "live", body: payload });
    const row = (isFailed: boolean) => {
      const words = 'contains(., "the last live run failed")';
      const mark = isFailed ? words : `not(${words})`;
      return page.waitForSelector(`::-p-xpath(//button[@class="action"][.//b="fragile"][${mark}])`);
    };
    await open("actions");
    await row(false);
    expect((await runLive({ seat: "14C", fail: true })).http).to.equal(500);
    await row(true);
    await page.reload();
    await row(true);
    expect(await page.$$eval(".action .dot.failed", (all) => all.length)).to.equal(1);
    expect((await runLive({ seat: "14C" })).http).to.equal(200);
    await row(false);
  });

  longTest("show the week of schedules, and what was skipped in the past one", async () => {
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    const { id } = (await service.rest("POST", `${path()}/actions`, { body: SCHEDULED_ACTION })).body.action;
    const copy = (await service.rest("POST", `${path()}/actions/${id}/publish`)).body.action.id;
    await insertSkippedTick(service, copy);
    await open("schedule");
    // Reloads the page, because the page has read the app before the test published the app.
    await page.reload();
    await page.waitForSelector(".week .due");
    expect(await page.$$eval(".week .due", (all) => all.length)).to.equal(7);
    const nightly = (await studio.rowsOf("Schedules")).find(([name]) => name?.name === "nightly")!;
    const cells = nightly.map(({ name }) => name).slice(1, 5);
    expect(cells).to.match(/^At 03:00.*0 3 \* \* \*,[A-Z][a-z]{2}, .*03:00.*,.*,on$/);
    await page.click('button[aria-label="Run now: nightly"]');
    await page.waitForSelector(".schedule-table a[href*='/runs/']");
    await pauseSchedules({ service, page, studio }, { id, copy });
    await checkUnlistedSchedule({ service, page, studio }, copy);
    expect(await studio.textOf(".missed .missed-line")).to.match(/skipped.*nightly.*still running/s);
    await page.click(".missed .missed-line");
    await page.waitForSelector(".run-head .run-state.skipped");
  });
});
