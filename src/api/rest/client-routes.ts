/** REST routes for reports of runs in browsers and for analytics events: entries for the route table in rest/routes.ts. */

import { CLIENT_RUN_REPORT_MAX_BYTES } from "../../limits.js";
import { createFlatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

export const clientRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v3/apps/:appId/actions/:id/clientRuns/started",
    successStatus: 201,
    handle: async ({ clientActions }, request) => ({
      status: "RUN_STARTED",
      ...(await clientActions.startClientRun(
        request.context,
        request.pathId("appId"),
        request.pathId("id"),
        request.bodyFields(createFlatShape(["payload"]))["payload"],
      )),
    }),
  },
  {
    method: "POST",
    path: "/v3/apps/:appId/actions/:id/clientRuns",
    successStatus: 201,
    bodyLimit: CLIENT_RUN_REPORT_MAX_BYTES,
    isReport: true,
    handle: async ({ clientActions }, request) => ({
      status: "RUN_RECORDED",
      ...(await clientActions.reportClientRun(
        request.context,
        request.pathId("appId"),
        request.pathId("id"),
        request.body,
      )),
    }),
  },
  {
    method: "POST",
    path: "/v1/apps/:appId/analytics",
    successStatus: 201,
    handle: async ({ clientActions }, request) => ({
      status: "EVENTS_RECORDED",
      ...(await clientActions.recordAnalytics(
        request.context,
        request.pathId("appId"),
        request.bodyFields(createFlatShape(["events"]))["events"],
      )),
    }),
  },
];
