/** Triggers and their runs over REST, as rows of the REST table. */
import { flatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const APP = "/v3/apps/:appId";

const SCHEDULES_ROUTE = "/v1/apps/:appId/schedules";

export const triggerRoutes: readonly Route[] = [
  {
    method: "GET",
    path: SCHEDULES_ROUTE,
    answer: ({ schedulePause }, q) => schedulePause.schedulePause(q.context, q.id("appId")),
  },
  {
    method: "POST",
    path: `${SCHEDULES_ROUTE}/pause`,
    answer: ({ schedulePause }, q) => schedulePause.pauseSchedules(q.context, q.id("appId")),
  },
  {
    method: "POST",
    path: `${SCHEDULES_ROUTE}/resume`,
    answer: ({ schedulePause }, q) => schedulePause.resumeSchedules(q.context, q.id("appId")),
  },
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
      ...(await triggers.backtestTrigger(q.context, q.id("appId"), q.object(flatShape(["where"]))["where"])),
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
