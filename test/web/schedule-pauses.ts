/** A sample of an action with a schedule, and test steps that pause and resume schedules in Studio. */
import { expect } from "chai";
import type { Page } from "puppeteer";
import type { TestService } from "../harness/service.js";
import { holdReads } from "./held-reads.js";
import type { StudioPage } from "./studio-page.js";

export const SCHEDULED_ACTION = {
  name: "nightly",
  active: true,
  triggers: [{ trigger: "manual" }, { trigger: "schedule" }],
  frequency: "0 3 * * *",
  // The code ends at once. A run without an end would delay the stop of the service.
  code: "async function execute() {}",
};

/** Stores a skipped run of the live version, which was due an hour ago. */
export const insertSkippedTick = ({ db, appId }: TestService, actionId: number) =>
  db.query(
    `INSERT INTO run (app_id, action_id, copy, trigger, payload, tick, reason, state, finished_at)
     VALUES ($1, $2, 'production', 'schedule', '{}', now() - interval '1 hour', 'still running', 'skipped', now())`,
    [appId, actionId],
  );

/** Stores 200 published actions whose next run is due before the next run of this action. The page lists at most 200 actions. */
const insertEarlierSchedules = ({ db }: TestService, actionId: number) =>
  db.query(
    `WITH draft AS (
       INSERT INTO action (app_id, name, code, active, environment, triggers)
       SELECT app_id, 'early-' || n, code, true, environment, triggers FROM action, generate_series(1, 200) n
        WHERE id = $1 RETURNING *),
     live AS (
       INSERT INTO action (app_id, master_id, name, code, active, environment, triggers)
       SELECT app_id, id, name, code, true, environment, triggers FROM draft RETURNING id, app_id)
     INSERT INTO schedule (action_id, app_id, frequency, next_tick)
     SELECT live.id, live.app_id, schedule.frequency, schedule.next_tick - interval '1 millisecond'
       FROM live, schedule WHERE schedule.action_id = $1`,
    [actionId],
  );

/** Pauses all schedules of the app in Studio, checks that the service has stored the pause, and resumes the schedules. */
async function pauseAllSchedules({ service, page, studio }: StudioSession): Promise<void> {
  await studio.button("Pause all schedules");
  await studio.button("Pause", "//dialog");
  await page.waitForSelector(studio.withText("span", "paused"));
  const sql = "SELECT schedules_paused_at AS at FROM app WHERE id = $1";
  expect((await service.db.query(sql, [service.appId]))[0].at).to.be.a("date");
  await studio.button("Resume all schedules");
  await page.waitForSelector(studio.withText("span", "on"));
}

/** The page must say that it does not list all schedules. It must not claim that the action "nightly" has no live schedule. */
export async function checkUnlistedSchedule({ service, page, studio }: StudioSession, actionId: number): Promise<void> {
  await insertEarlierSchedules(service, actionId);
  await page.reload();
  await page.waitForSelector(studio.withText("span", "next run not listed", "//tr[contains(., 'nightly')]"));
  expect(await studio.textOf(".schedule-page .page-head .hint")).to.contain("200+ actions have a schedule.");
  expect(await page.$(studio.withText("span", "no live schedule"))).to.equal(null);
}

interface StudioSession {
  service: TestService;
  page: Page;
  studio: StudioPage;
}

/** Pauses and resumes the schedule of the action "nightly". The page must already show this schedule in its list. */
async function pauseOneSchedule(
  { service, page, studio }: StudioSession,
  { id, copy }: { id: number; copy: number },
): Promise<void> {
  const waitForState = (word: string) =>
    page.waitForSelector(studio.withText("span", word, "//tr[contains(., 'nightly')]"));
  const isLive = async () =>
    (await service.db.query("SELECT active FROM action WHERE id IN ($1, $2) ORDER BY id", [id, copy])).map(
      ({ active }: { active: boolean }) => active,
    );
  const clickPause = async () => {
    await (await page.waitForSelector('button[aria-label="Pause: nightly"]:not(:disabled)'))!.click();
    await studio.button("Pause", "//dialog");
  };
  // The draft is saved, but its publication fails. The page then reads the list twice: after the error, and because the draft changed.
  const reads = await holdReads(page, "ListActions", "PublishAction");
  await clickPause();
  await page.waitForSelector(
    "::-p-xpath(//*[@role='alert'][starts-with(., 'The draft is inactive, the live version still runs: ')])",
  );
  expect(await isLive()).to.deep.equal([false, true]);
  await reads.waitForCount(2);
  // The page still shows the list from before the change. The button is disabled, because the service would reject a change of the old draft.
  expect(await page.$('button[aria-label="Pause: nightly"]:disabled')).to.not.equal(null);
  await reads.endAll();
  await clickPause();
  await waitForState("inactive");
  expect(await isLive()).to.deep.equal([false, false]);
  await page.waitForSelector(".week .due", { hidden: true });
  // Changes the draft. Resuming must not publish this change.
  const update = (timezone: string) =>
    service.rest("PUT", `/v3/apps/${service.appId}/actions/${id}`, { body: { timezone } }).then(({ http }) => http);
  expect(await update("Asia/Tokyo")).to.equal(200);
  await page.click('button[aria-label="Resume: nightly"]');
  await page.waitForSelector("::-p-xpath(//*[@role='alert'][starts-with(., 'The draft has other changes')])");
  expect(await isLive()).to.deep.equal([false, false]);
  expect(await update("")).to.equal(200);
  // Reloads the page, because it may have read the action before this change.
  await page.reload();
  await (await page.waitForSelector('button[aria-label="Resume: nightly"]'))!.click();
  await waitForState("on");
  expect(await isLive()).to.deep.equal([true, true]);
  await page.waitForSelector(".week .due");
}

export async function pauseSchedules(...walk: Parameters<typeof pauseOneSchedule>): Promise<void> {
  await pauseAllSchedules(walk[0]);
  await pauseOneSchedule(...walk);
}
