/** Settings over REST: rows of the facade's table. */
import type { Route } from "./route.js";

const SETTINGS = "/v1/apps/:appId/settings";

export const settingRoutes: readonly Route[] = [
  { method: "GET", path: SETTINGS, answer: ({ settings }, q) => settings.settings(q.context, q.id("appId")) },
  {
    method: "POST",
    path: SETTINGS,
    answer: ({ settings }, q) => settings.setSettings(q.context, q.id("appId"), q.body),
  },
  {
    method: "DELETE",
    path: SETTINGS,
    answer: ({ settings }, q) => settings.deleteSettings(q.context, q.id("appId"), q.object()["keys"]),
  },
  {
    method: "POST",
    path: `${SETTINGS}/secure`,
    answer: async ({ settings }, q) => {
      const { settingKey, value } = q.object();
      return { key: await settings.setSecureField(q.context, q.id("appId"), settingKey, value) };
    },
  },
  {
    method: "GET",
    path: `${SETTINGS}/status`,
    answer: async ({ settings }, q) => {
      const withDetails = q.flag("details");
      const found = await settings.settingsStatus(q.context, q.id("appId"), q.strings("keys"));
      const configured = Object.fromEntries(found.map((one) => [one.key, one.configured]));
      const set = found.filter((one) => one.configured);
      const details = set.map(({ key, updatedAt, updatedBy }) => [key, { updatedAt, updatedBy }]);
      return withDetails ? { configured, details: Object.fromEntries(details) } : { configured };
    },
  },
];
