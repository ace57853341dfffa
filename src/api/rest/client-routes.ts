/** What clients report over REST, as rows of the REST table. */

import { CLIENT_RUN_MAX_BYTES } from "../../limits.js";
import { flatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

export const clientRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v3/apps/:appId/actions/:id/clientRuns/started",
    http: 201,
    answer: async ({ clients }, q) => ({
      status: "RUN_STARTED",
      ...(await clients.startClientRun(
        q.context,
        q.id("appId"),
        q.id("id"),
        q.object(flatShape(["payload"]))["payload"],
      )),
    }),
  },
  {
    method: "POST",
    path: "/v3/apps/:appId/actions/:id/clientRuns",
    http: 201,
    bodyLimit: CLIENT_RUN_MAX_BYTES,
    isReport: true,
    answer: async ({ clients }, q) => ({
      status: "RUN_RECORDED",
      ...(await clients.reportClientRun(q.context, q.id("appId"), q.id("id"), q.body)),
    }),
  },
  {
    method: "POST",
    path: "/v1/apps/:appId/analytics",
    http: 201,
    answer: async ({ clients }, q) => ({
      status: "EVENTS_RECORDED",
      ...(await clients.recordAnalytics(q.context, q.id("appId"), q.object(flatShape(["events"]))["events"])),
    }),
  },
];
