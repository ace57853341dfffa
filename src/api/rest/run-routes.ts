/** Runs over REST: rows of the facade's table. */
import { flat } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const ACTIONS = "/v3/apps/:appId/actions";

export const runRoutes: readonly Route[] = [
  {
    method: "POST",
    path: `${ACTIONS}/:nameOrId/run`,
    http: 202,
    answer: async ({ runs }, q) => ({
      status: "ACTION_QUEUED",
      ...(await runs.runAction(q.context, q.id("appId"), q.reference("nameOrId"), q.body)),
    }),
  },
  {
    method: "POST",
    path: `${ACTIONS}/:nameOrId/runWithResult`,
    answer: async ({ runs }, q) => ({
      status: "ACTION_EXECUTED",
      ...(await runs.runActionWithResult(q.context, q.id("appId"), q.reference("nameOrId"), q.body)),
    }),
  },
  {
    method: "GET",
    path: "/v3/apps/:appId/runs/:runId/console",
    answer: async ({ runs }, q) => ({
      status: "CONSOLE_LISTED",
      lines: await runs.runConsole(q.context, q.id("appId"), q.id("runId")),
    }),
  },
  {
    method: "POST",
    path: "/v3/apps/:appId/runs/:runId/cancel",
    answer: async ({ runs }, q) => {
      await runs.cancelRun(q.context, q.id("appId"), q.id("runId"));
      return { status: "RUN_CANCELLED" };
    },
  },
  {
    method: "GET",
    path: "/v3/apps/:appId/backlog",
    answer: async ({ queue }, q) => ({
      status: "BACKLOG_RETRIEVED",
      backlog: await queue.backlog(q.context, q.id("appId")),
    }),
  },
  {
    method: "POST",
    path: "/v3/apps/:appId/backlog/cancel",
    answer: async ({ queue }, q) => ({
      status: "BACKLOG_CANCELLED",
      ...(await queue.cancelBacklog(q.context, q.id("appId"), q.object(flat(["actionId"]))["actionId"] as number)),
    }),
  },
];
