/** Actions, rows and helpers for the tests of runs in Studio. */
import type { Page } from "puppeteer";
import type { TestService } from "../harness/service.js";

export const BOOKING_CODE = `async function execute(context) {
  console.log("seen", context.payload.seat);
  if (context.payload.fail) {
    throw new RangeError("seat " + context.payload.seat + " is taken");
  }
  return { booked: context.payload.seat };
}`;
export const ENDLESS_CODE = "async function execute() { console.log('begun'); await new Promise(() => {}) }";

/** Request body of an action with a schedule. */
export const SCHEDULED_ACTION = {
  name: "nightly",
  active: true,
  triggers: [{ trigger: "manual" }, { trigger: "schedule" }],
  frequency: "0 3 * * *",
  // A run that does not end would delay the end of the service by its grace period.
  code: "async function execute() {}",
};

/** Stores a skipped scheduled run of the live version, which was due an hour ago. */
export const insertSkippedTick = ({ db, appId }: TestService, actionId: number) =>
  db.query(
    `INSERT INTO run (app_id, action_id, copy, trigger, payload, tick, reason, state, finished_at)
     VALUES ($1, $2, 'production', 'schedule', '{}', now() - interval '1 hour', 'still running', 'skipped', now())`,
    [appId, actionId],
  );

/** Waits until the list has exactly these links in this order. Cancelled runs are ignored. */
export function waitForLinks(page: Page, links: readonly string[]) {
  const shown =
    '[...document.querySelectorAll(".runs-box .run-row:not(.cancelled) .run-link")].map((one) => one.getAttribute("href").split("?")[0])';
  return page.waitForFunction(`JSON.stringify(${shown}) === ${JSON.stringify(JSON.stringify(links))}`);
}
