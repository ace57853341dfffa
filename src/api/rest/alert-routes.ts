/**
 * REST routes of alerts (rules that send a message, for example when runs fail): entries for the route table in
 * rest/routes.ts.
 */
import { createHash } from "node:crypto";
import type { AlertRule } from "../../operations/alerts/alert-rows.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const ALERTS_ROUTE = "/v1/apps/:appId/alerts";

const computeShortHash = (text: string): string => createHash("sha256").update(text).digest("base64url").slice(0, 22);

/** Returns a response with an alert and sets its ETag, whose second part is the alert's firing state. `If-Match` ignores this part. */
const replyWithAlert = (request: RestRequest, alert: Pick<AlertRule, "updatedAt" | "firing">) =>
  request.setTag(alert, { alert }, alert.firing.length > 0 ? computeShortHash(JSON.stringify(alert.firing)) : null);

export const alertRoutes: readonly Route[] = [
  {
    method: "GET",
    path: ALERTS_ROUTE,
    handle: async ({ alerts }, request) => ({
      alerts: await alerts.alertRules(request.context, request.pathId("appId")),
    }),
  },
  {
    method: "POST",
    path: ALERTS_ROUTE,
    successStatus: 201,
    handle: async ({ alerts }, request) =>
      replyWithAlert(request, await alerts.createAlertRule(request.context, request.pathId("appId"), request.body)),
  },
  {
    method: "GET",
    path: `${ALERTS_ROUTE}/:alertId`,
    handle: async ({ alerts }, request) =>
      replyWithAlert(
        request,
        await alerts.alertRule(request.context, request.pathId("appId"), request.pathId("alertId")),
      ),
  },
  {
    method: "PUT",
    path: `${ALERTS_ROUTE}/:alertId`,
    handle: async ({ alerts }, request) =>
      replyWithAlert(
        request,
        await alerts.updateAlertRule(
          request.context,
          request.pathId("appId"),
          request.pathId("alertId"),
          request.body,
          request.readExpectedVersions(),
        ),
      ),
  },
  {
    method: "DELETE",
    path: `${ALERTS_ROUTE}/:alertId`,
    handle: async ({ alerts }, request) => ({
      deleted: await alerts.deleteAlertRule(
        request.context,
        request.pathId("appId"),
        request.pathId("alertId"),
        request.readExpectedVersions(),
      ),
    }),
  },
  {
    method: "GET",
    path: `${ALERTS_ROUTE}/:alertId/deliveries`,
    handle: async ({ alerts }, request) => ({
      deliveries: await alerts.alertDeliveries(request.context, request.pathId("appId"), request.pathId("alertId")),
    }),
  },
  {
    method: "POST",
    path: `${ALERTS_ROUTE}/:alertId/test`,
    successStatus: 202,
    handle: async ({ alerts }, request) => ({
      delivery: await alerts.testAlertRule(request.context, request.pathId("appId"), request.pathId("alertId")),
    }),
  },
];
