/** What starts actions by itself, and the ledger of what it started, over REST: rows of the facade's table. */
import type { Route } from "./route.js";

const APP = "/v3/apps/:appId";

export const triggerRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/apps/:appId/logs",
    http: 201,
    answer: async ({ triggers }, q) => ({ log: await triggers.addLogEvent(q.context, q.id("appId"), q.body) }),
  },
  {
    method: "POST",
    path: `${APP}/triggers/backtest`,
    answer: async ({ triggers }, q) => ({
      status: "TRIGGER_TESTED",
      ...(await triggers.backtestTrigger(q.context, q.id("appId"), q.object()["where"])),
    }),
  },
  {
    method: "GET",
    path: `${APP}/schedule/preview`,
    answer: async ({ triggers }, q) => ({
      status: "SCHEDULE_PREVIEWED",
      ...(await triggers.nextRuns(
        q.context,
        q.id("appId"),
        q.text("frequency") ?? "",
        q.text("timezone"),
        q.number("count"),
      )),
    }),
  },
  {
    method: "GET",
    path: `${APP}/schedule/week`,
    answer: async ({ triggers }, q) => ({
      status: "SCHEDULE_LISTED",
      ...(await triggers.scheduleWeek(q.context, q.id("appId"))),
    }),
  },
];
