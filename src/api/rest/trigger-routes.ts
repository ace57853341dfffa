/** REST routes of triggers and schedules: entries for the route table in rest/routes.ts. */
import { createFlatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const APP_V3_ROUTE = "/v3/apps/:appId";

const SCHEDULES_ROUTE = "/v1/apps/:appId/schedules";

export const triggerRoutes: readonly Route[] = [
  {
    method: "GET",
    path: SCHEDULES_ROUTE,
    handle: ({ schedulePause }, request) => schedulePause.schedulePause(request.context, request.pathId("appId")),
  },
  {
    method: "POST",
    path: `${SCHEDULES_ROUTE}/pause`,
    handle: ({ schedulePause }, request) => schedulePause.pauseSchedules(request.context, request.pathId("appId")),
  },
  {
    method: "POST",
    path: `${SCHEDULES_ROUTE}/resume`,
    handle: ({ schedulePause }, request) => schedulePause.resumeSchedules(request.context, request.pathId("appId")),
  },
  {
    method: "POST",
    path: "/v1/apps/:appId/logs",
    successStatus: 201,
    handle: async ({ triggers }, request) => ({
      log: await triggers.addLogEvent(request.context, request.pathId("appId"), request.body),
    }),
  },
  {
    method: "POST",
    path: `${APP_V3_ROUTE}/triggers/backtest`,
    handle: async ({ triggers }, request) => ({
      status: "TRIGGER_TESTED",
      ...(await triggers.backtestTrigger(
        request.context,
        request.pathId("appId"),
        request.bodyFields(createFlatShape(["where"]))["where"],
      )),
    }),
  },
  {
    method: "GET",
    path: `${APP_V3_ROUTE}/schedule/preview`,
    handle: async ({ triggers }, request) => ({
      status: "SCHEDULE_PREVIEWED",
      ...(await triggers.nextRuns(
        request.context,
        request.pathId("appId"),
        request.queryText("frequency") ?? "",
        request.queryText("timezone"),
        request.queryNumber("count"),
      )),
    }),
  },
  {
    method: "GET",
    path: `${APP_V3_ROUTE}/schedule/week`,
    handle: async ({ triggers }, request) => ({
      status: "SCHEDULE_LISTED",
      ...(await triggers.scheduleWeek(request.context, request.pathId("appId"))),
    }),
  },
];
