/** REST routes of apps: entries for the route table in rest/routes.ts. */
import { createIgnoredFieldWarnings } from "../../operations/apps/app-fields.js";
import type { App } from "../../operations/apps/apps.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const APP_ROUTE = "/v1/apps/:appId";

const replyWithApp = (request: RestRequest, app: App) => request.setTag(app, { app });

export const appRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/apps",
    handle: async ({ apps }, request) => ({ apps: await apps.apps(request.context) }),
  },
  {
    method: "PUT",
    path: APP_ROUTE,
    canReturnWarnings: true,
    handle: async ({ apps }, request) => {
      const body = request.bodyFields();
      const app = await apps.updateApp(request.context, request.pathId("appId"), body, request.readExpectedVersions());
      const warnings = createIgnoredFieldWarnings(body, app);
      return request.setTag(app, { app, ...(warnings.length > 0 && { warnings }) });
    },
  },
  {
    method: "PUT",
    path: "/v1/admin/apps/:appId",
    handle: async ({ apps }, request) =>
      replyWithApp(
        request,
        await apps.administrateApp(
          request.context,
          request.pathId("appId"),
          request.bodyFields(),
          request.readExpectedVersions(),
        ),
      ),
  },
  {
    method: "POST",
    path: "/v1/admin/apps",
    successStatus: 201,
    handle: async ({ apps }, request) =>
      replyWithApp(request, await apps.createApp(request.context, request.bodyFields())),
  },
  {
    method: "POST",
    path: `${APP_ROUTE}/publish`,
    handle: async ({ apps }, request) =>
      replyWithApp(
        request,
        await apps.publishApp(request.context, request.pathId("appId"), request.readExpectedVersions()),
      ),
  },
  {
    method: "POST",
    path: `${APP_ROUTE}/unpublish`,
    handle: async ({ apps }, request) =>
      replyWithApp(
        request,
        await apps.unpublishApp(request.context, request.pathId("appId"), request.readExpectedVersions()),
      ),
  },
  {
    method: "GET",
    path: `${APP_ROUTE}/versions`,
    handle: ({ appVersions }, request) =>
      appVersions.appVersions(
        request.context,
        request.pathId("appId"),
        request.queryNumber("limit"),
        request.queryNumber("offset"),
      ),
  },
  {
    method: "POST",
    path: `${APP_ROUTE}/versions`,
    successStatus: 201,
    handle: async ({ appVersions }, request) => ({
      version: await appVersions.createAppVersion(request.context, request.pathId("appId")),
    }),
  },
  {
    method: "GET",
    path: `${APP_ROUTE}/versions/:versionId`,
    handle: async ({ appVersions }, request) => ({
      version: await appVersions.appVersion(request.context, request.pathId("appId"), request.pathId("versionId")),
    }),
  },
  {
    method: "POST",
    path: `${APP_ROUTE}/versions/:versionId/restore`,
    handle: async ({ appVersions }, request) =>
      replyWithApp(
        request,
        await appVersions.restoreAppVersion(
          request.context,
          request.pathId("appId"),
          request.pathId("versionId"),
          request.readExpectedVersions(),
        ),
      ),
  },
  {
    method: "GET",
    path: `${APP_ROUTE}/audit`,
    handle: ({ auditLog }, request) =>
      auditLog.audit(
        request.context,
        request.pathId("appId"),
        request.queryNumber("actionId"),
        request.queryNumber("limit"),
        request.queryNumber("offset"),
        request.queryText("cursor"),
      ),
  },
];
