/** REST routes of settings: entries for the route table in rest/routes.ts. */
import type { SettingStatus } from "../../operations/settings/settings.js";
import { createFlatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const SETTINGS_ROUTE = "/v1/apps/:appId/settings";

const toSettingDetails = (statusList: readonly SettingStatus[]) =>
  Object.fromEntries(
    statusList.filter((status) => status.configured).map(({ key, configured: _, ...details }) => [key, details]),
  );

export const settingRoutes: readonly Route[] = [
  {
    method: "GET",
    path: SETTINGS_ROUTE,
    handle: ({ settings }, request) => settings.settings(request.context, request.pathId("appId")),
  },
  {
    method: "POST",
    path: SETTINGS_ROUTE,
    handle: ({ settings }, request) =>
      settings.setSettings(request.context, request.pathId("appId"), request.body, request.readExpectedVersions()),
  },
  {
    method: "DELETE",
    path: SETTINGS_ROUTE,
    handle: ({ settings }, request) =>
      settings.deleteSettings(
        request.context,
        request.pathId("appId"),
        request.bodyFields(createFlatShape(["keys"]))["keys"],
        request.readExpectedVersions(),
      ),
  },
  {
    method: "POST",
    path: `${SETTINGS_ROUTE}/secure`,
    handle: async ({ settings }, request) => {
      const { settingKey, value } = request.bodyFields(createFlatShape(["settingKey", "value"]));
      return {
        key: await settings.setSecureField(
          request.context,
          request.pathId("appId"),
          settingKey,
          value,
          request.readExpectedVersions(),
        ),
      };
    },
  },
  {
    method: "PUT",
    path: `${SETTINGS_ROUTE}/secrecy`,
    handle: async ({ settings }, request) => {
      const { keys, secret } = request.bodyFields(createFlatShape(["keys", "secret"]));
      return {
        details: toSettingDetails(
          await settings.markSettings(
            request.context,
            request.pathId("appId"),
            keys,
            secret,
            request.readExpectedVersions(),
          ),
        ),
      };
    },
  },
  {
    method: "GET",
    path: `${SETTINGS_ROUTE}/use`,
    handle: ({ settings }, request) =>
      settings.settingsUse(request.context, request.pathId("appId"), request.queryText("key")),
  },
  {
    method: "GET",
    path: `${SETTINGS_ROUTE}/status`,
    handle: async ({ settings }, request) => {
      const withDetails = request.queryFlag("details");
      const statusList = await settings.settingsStatus(
        request.context,
        request.pathId("appId"),
        request.queryStrings("keys"),
      );
      const configured = Object.fromEntries(statusList.map((status) => [status.key, status.configured]));
      return withDetails ? { configured, details: toSettingDetails(statusList) } : { configured };
    },
  },
];
