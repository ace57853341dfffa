/** Settings over REST, as rows of the REST table. */
import type { SettingStatus } from "../../operations/settings/settings.js";
import { flatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const SETTINGS_ROUTE = "/v1/apps/:appId/settings";

/** Returns the details of the settings that have a value, by key. */
const detailsOf = (statusList: readonly SettingStatus[]) =>
  Object.fromEntries(
    statusList.filter((status) => status.configured).map(({ key, configured: _, ...details }) => [key, details]),
  );

export const settingRoutes: readonly Route[] = [
  { method: "GET", path: SETTINGS_ROUTE, answer: ({ settings }, q) => settings.settings(q.context, q.id("appId")) },
  {
    method: "POST",
    path: SETTINGS_ROUTE,
    answer: ({ settings }, q) => settings.setSettings(q.context, q.id("appId"), q.body, q.ifMatch()),
  },
  {
    method: "DELETE",
    path: SETTINGS_ROUTE,
    answer: ({ settings }, q) =>
      settings.deleteSettings(q.context, q.id("appId"), q.object(flatShape(["keys"]))["keys"], q.ifMatch()),
  },
  {
    method: "POST",
    path: `${SETTINGS_ROUTE}/secure`,
    answer: async ({ settings }, q) => {
      const { settingKey, value } = q.object(flatShape(["settingKey", "value"]));
      return { key: await settings.setSecureField(q.context, q.id("appId"), settingKey, value, q.ifMatch()) };
    },
  },
  {
    method: "PUT",
    path: `${SETTINGS_ROUTE}/secrecy`,
    answer: async ({ settings }, q) => {
      const { keys, secret } = q.object(flatShape(["keys", "secret"]));
      return { details: detailsOf(await settings.markSettings(q.context, q.id("appId"), keys, secret, q.ifMatch())) };
    },
  },
  {
    method: "GET",
    path: `${SETTINGS_ROUTE}/use`,
    answer: ({ settings }, q) => settings.settingsUse(q.context, q.id("appId"), q.text("key")),
  },
  {
    method: "GET",
    path: `${SETTINGS_ROUTE}/status`,
    answer: async ({ settings }, q) => {
      const withDetails = q.flag("details");
      const statusList = await settings.settingsStatus(q.context, q.id("appId"), q.strings("keys"));
      const configured = Object.fromEntries(statusList.map((status) => [status.key, status.configured]));
      return withDetails ? { configured, details: detailsOf(statusList) } : { configured };
    },
  },
];
