/** REST routes of apps: entries for the route table in rest/routes.ts. */
import { createIgnoredFieldWarnings } from "../../operations/apps/app-fields.js";
import type { App } from "../../operations/apps/apps.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const APP = "/v1/apps/:appId";

const replyWithApp = (request: RestRequest, app: App) => request.setTag(app, { app });

export const appRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/apps",
    handle: async ({ apps }, request) => ({ apps: await apps.apps(request.context) }),
  },
  {
    method: "PUT",
    path: APP,
    canReturnWarnings: true,
    handle: async ({ apps }, request) => {
      const body = request.object();
      const app = await apps.updateApp(request.context, request.id("appId"), body, request.ifMatch());
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
        await apps.administrateApp(request.context, request.id("appId"), request.object(), request.ifMatch()),
      ),
  },
  {
    method: "POST",
    path: "/v1/admin/apps",
    successStatus: 201,
    handle: async ({ apps }, request) => replyWithApp(request, await apps.createApp(request.context, request.object())),
  },
  {
    method: "POST",
    path: `${APP}/publish`,
    handle: async ({ apps }, request) =>
      replyWithApp(request, await apps.publishApp(request.context, request.id("appId"), request.ifMatch())),
  },
  {
    method: "POST",
    path: `${APP}/unpublish`,
    handle: async ({ apps }, request) =>
      replyWithApp(request, await apps.unpublishApp(request.context, request.id("appId"), request.ifMatch())),
  },
  {
    method: "GET",
    path: `${APP}/versions`,
    handle: ({ appVersions }, request) =>
      appVersions.appVersions(request.context, request.id("appId"), request.number("limit"), request.number("offset")),
  },
  {
    method: "POST",
    path: `${APP}/versions`,
    successStatus: 201,
    handle: async ({ appVersions }, request) => ({
      version: await appVersions.createAppVersion(request.context, request.id("appId")),
    }),
  },
  {
    method: "GET",
    path: `${APP}/versions/:versionId`,
    handle: async ({ appVersions }, request) => ({
      version: await appVersions.appVersion(request.context, request.id("appId"), request.id("versionId")),
    }),
  },
  {
    method: "POST",
    path: `${APP}/versions/:versionId/restore`,
    handle: async ({ appVersions }, request) =>
      replyWithApp(
        request,
        await appVersions.restoreAppVersion(
          request.context,
          request.id("appId"),
          request.id("versionId"),
          request.ifMatch(),
        ),
      ),
  },
  {
    method: "GET",
    path: `${APP}/audit`,
    handle: ({ trail }, request) =>
      trail.audit(
        request.context,
        request.id("appId"),
        request.number("actionId"),
        request.number("limit"),
        request.number("offset"),
        request.text("cursor"),
      ),
  },
];
