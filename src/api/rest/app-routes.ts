/** Apps over REST, as rows of the REST table. */
import { ignoredFieldWarnings } from "../../operations/apps/app-fields.js";
import type { App } from "../../operations/apps/apps.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const APP = "/v1/apps/:appId";

const replyWithApp = (q: RestRequest, app: App) => q.at(app, { app });

export const appRoutes: readonly Route[] = [
  { method: "GET", path: "/v1/apps", answer: async ({ apps }, q) => ({ apps: await apps.apps(q.context) }) },
  {
    method: "PUT",
    path: APP,
    warns: true,
    answer: async ({ apps }, q) => {
      const body = q.object();
      const app = await apps.updateApp(q.context, q.id("appId"), body, q.ifMatch());
      const warnings = ignoredFieldWarnings(body, app);
      return q.at(app, { app, ...(warnings.length > 0 && { warnings }) });
    },
  },
  {
    method: "PUT",
    path: "/v1/admin/apps/:appId",
    answer: async ({ apps }, q) =>
      replyWithApp(q, await apps.administrateApp(q.context, q.id("appId"), q.object(), q.ifMatch())),
  },
  {
    method: "POST",
    path: "/v1/admin/apps",
    http: 201,
    answer: async ({ apps }, q) => replyWithApp(q, await apps.createApp(q.context, q.object())),
  },
  {
    method: "POST",
    path: `${APP}/publish`,
    answer: async ({ apps }, q) => replyWithApp(q, await apps.publishApp(q.context, q.id("appId"), q.ifMatch())),
  },
  {
    method: "POST",
    path: `${APP}/unpublish`,
    answer: async ({ apps }, q) => replyWithApp(q, await apps.unpublishApp(q.context, q.id("appId"), q.ifMatch())),
  },
  {
    method: "GET",
    path: `${APP}/versions`,
    answer: ({ appVersions }, q) =>
      appVersions.appVersions(q.context, q.id("appId"), q.number("limit"), q.number("offset")),
  },
  {
    method: "POST",
    path: `${APP}/versions`,
    http: 201,
    answer: async ({ appVersions }, q) => ({
      version: await appVersions.createAppVersion(q.context, q.id("appId")),
    }),
  },
  {
    method: "GET",
    path: `${APP}/versions/:versionId`,
    answer: async ({ appVersions }, q) => ({
      version: await appVersions.appVersion(q.context, q.id("appId"), q.id("versionId")),
    }),
  },
  {
    method: "POST",
    path: `${APP}/versions/:versionId/restore`,
    answer: async ({ appVersions }, q) =>
      replyWithApp(q, await appVersions.restoreAppVersion(q.context, q.id("appId"), q.id("versionId"), q.ifMatch())),
  },
  {
    method: "GET",
    path: `${APP}/audit`,
    answer: ({ trail }, q) =>
      trail.audit(
        q.context,
        q.id("appId"),
        q.number("actionId"),
        q.number("limit"),
        q.number("offset"),
        q.text("cursor"),
      ),
  },
];
