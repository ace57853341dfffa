/** Alerts over REST: rows of the facade's table. */
import type { Route } from "./route.js";

const ALERTS = "/v1/apps/:appId/alerts";

export const alertRoutes: readonly Route[] = [
  {
    method: "GET",
    path: ALERTS,
    answer: async ({ alerts }, q) => ({ alerts: await alerts.alertRules(q.context, q.id("appId")) }),
  },
  {
    method: "POST",
    path: ALERTS,
    http: 201,
    answer: async ({ alerts }, q) => ({ alert: await alerts.createAlertRule(q.context, q.id("appId"), q.body) }),
  },
  {
    method: "GET",
    path: `${ALERTS}/:alertId`,
    answer: async ({ alerts }, q) => ({ alert: await alerts.alertRule(q.context, q.id("appId"), q.id("alertId")) }),
  },
  {
    method: "PUT",
    path: `${ALERTS}/:alertId`,
    answer: async ({ alerts }, q) => ({
      alert: await alerts.updateAlertRule(q.context, q.id("appId"), q.id("alertId"), q.body),
    }),
  },
  {
    method: "DELETE",
    path: `${ALERTS}/:alertId`,
    answer: async ({ alerts }, q) => ({
      deleted: await alerts.deleteAlertRule(q.context, q.id("appId"), q.id("alertId")),
    }),
  },
  {
    method: "GET",
    path: `${ALERTS}/:alertId/deliveries`,
    answer: async ({ alerts }, q) => ({
      deliveries: await alerts.alertDeliveries(q.context, q.id("appId"), q.id("alertId")),
    }),
  },
  {
    method: "POST",
    path: `${ALERTS}/:alertId/test`,
    http: 202,
    answer: async ({ alerts }, q) => ({
      delivery: await alerts.testAlertRule(q.context, q.id("appId"), q.id("alertId")),
    }),
  },
];
