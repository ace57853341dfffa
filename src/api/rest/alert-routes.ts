/** Alerts over REST, as rows of the REST table. */
import { createHash } from "node:crypto";
import type { AlertRule } from "../../operations/alerts/alert-rows.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const ALERTS_ROUTE = "/v1/apps/:appId/alerts";

const digestOf = (text: string): string => createHash("sha256").update(text).digest("base64url").slice(0, 22);

/** Returns a response with an alert. Its ETag does not change when the alert fires. */
const replyWithAlert = (q: RestRequest, alert: Pick<AlertRule, "updatedAt" | "firing">) =>
  q.at(alert, { alert }, alert.firing.length > 0 ? digestOf(JSON.stringify(alert.firing)) : null);

export const alertRoutes: readonly Route[] = [
  {
    method: "GET",
    path: ALERTS_ROUTE,
    answer: async ({ alerts }, q) => ({ alerts: await alerts.alertRules(q.context, q.id("appId")) }),
  },
  {
    method: "POST",
    path: ALERTS_ROUTE,
    http: 201,
    answer: async ({ alerts }, q) => replyWithAlert(q, await alerts.createAlertRule(q.context, q.id("appId"), q.body)),
  },
  {
    method: "GET",
    path: `${ALERTS_ROUTE}/:alertId`,
    answer: async ({ alerts }, q) =>
      replyWithAlert(q, await alerts.alertRule(q.context, q.id("appId"), q.id("alertId"))),
  },
  {
    method: "PUT",
    path: `${ALERTS_ROUTE}/:alertId`,
    answer: async ({ alerts }, q) =>
      replyWithAlert(q, await alerts.updateAlertRule(q.context, q.id("appId"), q.id("alertId"), q.body, q.ifMatch())),
  },
  {
    method: "DELETE",
    path: `${ALERTS_ROUTE}/:alertId`,
    answer: async ({ alerts }, q) => ({
      deleted: await alerts.deleteAlertRule(q.context, q.id("appId"), q.id("alertId"), q.ifMatch()),
    }),
  },
  {
    method: "GET",
    path: `${ALERTS_ROUTE}/:alertId/deliveries`,
    answer: async ({ alerts }, q) => ({
      deliveries: await alerts.alertDeliveries(q.context, q.id("appId"), q.id("alertId")),
    }),
  },
  {
    method: "POST",
    path: `${ALERTS_ROUTE}/:alertId/test`,
    http: 202,
    answer: async ({ alerts }, q) => ({
      delivery: await alerts.testAlertRule(q.context, q.id("appId"), q.id("alertId")),
    }),
  },
];
