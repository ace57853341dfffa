/** REST routes of settings: entries for the route table in rest/routes.ts. */
import type { SettingStatus } from "../../operations/settings/settings.js";
import { flatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const SETTINGS_ROUTE = "/v1/apps/:appId/settings";

/** Returns the status of each setting that has a value, by the setting's key. */
const detailsOf = (statusList: readonly SettingStatus[]) =>
  Object.fromEntries(
    statusList.filter((status) => status.configured).map(({ key, configured: _, ...details }) => [key, details]),
  );

export const settingRoutes: readonly Route[] = [
  {
    method: "GET",
    path: SETTINGS_ROUTE,
    handle: ({ settings }, request) => settings.settings(request.context, request.id("appId")),
  },
  {
    method: "POST",
    path: SETTINGS_ROUTE,
    handle: ({ settings }, request) =>
      settings.setSettings(request.context, request.id("appId"), request.body, request.ifMatch()),
  },
  {
    method: "DELETE",
    path: SETTINGS_ROUTE,
    handle: ({ settings }, request) =>
      settings.deleteSettings(
        request.context,
        request.id("appId"),
        request.object(flatShape(["keys"]))["keys"],
        request.ifMatch(),
      ),
  },
  {
    method: "POST",
    path: `${SETTINGS_ROUTE}/secure`,
    handle: async ({ settings }, request) => {
      const { settingKey, value } = request.object(flatShape(["settingKey", "value"]));
      return {
        key: await settings.setSecureField(request.context, request.id("appId"), settingKey, value, request.ifMatch()),
      };
    },
  },
  {
    method: "PUT",
    path: `${SETTINGS_ROUTE}/secrecy`,
    handle: async ({ settings }, request) => {
      const { keys, secret } = request.object(flatShape(["keys", "secret"]));
      return {
        details: detailsOf(
          await settings.markSettings(request.context, request.id("appId"), keys, secret, request.ifMatch()),
        ),
      };
    },
  },
  {
    method: "GET",
    path: `${SETTINGS_ROUTE}/use`,
    handle: ({ settings }, request) => settings.settingsUse(request.context, request.id("appId"), request.text("key")),
  },
  {
    method: "GET",
    path: `${SETTINGS_ROUTE}/status`,
    handle: async ({ settings }, request) => {
      const withDetails = request.flag("details");
      const statusList = await settings.settingsStatus(request.context, request.id("appId"), request.strings("keys"));
      const configured = Object.fromEntries(statusList.map((status) => [status.key, status.configured]));
      return withDetails ? { configured, details: detailsOf(statusList) } : { configured };
    },
  },
];
