/** REST routes for reports of runs in browsers and for analytics events: entries for the route table in rest/routes.ts. */

import { CLIENT_RUN_MAX_BYTES } from "../../limits.js";
import { flatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

export const clientRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v3/apps/:appId/actions/:id/clientRuns/started",
    successStatus: 201,
    handle: async ({ clients }, request) => ({
      status: "RUN_STARTED",
      ...(await clients.startClientRun(
        request.context,
        request.id("appId"),
        request.id("id"),
        request.object(flatShape(["payload"]))["payload"],
      )),
    }),
  },
  {
    method: "POST",
    path: "/v3/apps/:appId/actions/:id/clientRuns",
    successStatus: 201,
    bodyLimit: CLIENT_RUN_MAX_BYTES,
    isReport: true,
    handle: async ({ clients }, request) => ({
      status: "RUN_RECORDED",
      ...(await clients.reportClientRun(request.context, request.id("appId"), request.id("id"), request.body)),
    }),
  },
  {
    method: "POST",
    path: "/v1/apps/:appId/analytics",
    successStatus: 201,
    handle: async ({ clients }, request) => ({
      status: "EVENTS_RECORDED",
      ...(await clients.recordAnalytics(
        request.context,
        request.id("appId"),
        request.object(flatShape(["events"]))["events"],
      )),
    }),
  },
];
