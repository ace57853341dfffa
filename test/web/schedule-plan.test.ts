/** Tests the schedule builder: it converts plans to cron expressions and back, and leaves other expressions unchanged. */
import { expect } from "chai";
import {
  cronToPlan,
  DEFAULT_SCHEDULE_PLAN,
  planToCron,
  type SchedulePlan,
} from "../../src/web/studio/actions/schedule-plan.js";

const PLANS_BY_CRON: [cron: string, plan: Partial<SchedulePlan>][] = [
  ["*/2 * * * *", { repeat: "minutes", intervalMinutes: 2 }],
  ["*/15 * * * *", { repeat: "minutes", intervalMinutes: 15 }],
  ["5 * * * *", { repeat: "hourly", minute: 5 }],
  ["30 7 * * *", { repeat: "daily", hour: 7, minute: 30 }],
  ["0 9 * * 1-5", { repeat: "weekdays", hour: 9, minute: 0 }],
  ["0 18 * * 0,3,6", { repeat: "weekly", hour: 18, minute: 0, weekdays: [0, 3, 6] }],
  ["0 0 31 * *", { repeat: "monthly", hour: 0, minute: 0, dayOfMonth: 31 }],
];

const UNSUPPORTED_CRONS = [
  "",
  "* * * * *",
  "*/1 * * * *",
  "0 9",
  "0 9 L * *",
  "*/7 * * * *",
  "0 9-17 * * *",
  "0 9 1 1 *",
  "0 9 1 * 1",
  "60 9 * * *",
  "0 9 * * 7",
  "0 9 * * 1-5 *",
];

describe("the builder of schedules", () => {
  for (const [cron, plan] of PLANS_BY_CRON) {
    it(`reads and writes ${cron}`, () => {
      expect(cronToPlan(cron)).to.deep.include(plan);
      expect(planToCron({ ...DEFAULT_SCHEDULE_PLAN, ...plan })).to.equal(cron);
    });
  }

  for (const cron of UNSUPPORTED_CRONS) {
    it(`leaves "${cron}" as an expression`, () => expect(cronToPlan(cron)).to.equal(null));
  }
});
