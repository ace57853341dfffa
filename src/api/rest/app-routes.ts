/** Apps over REST: rows of the facade's table. */
import type { Route } from "./route.js";

const APP = "/v1/apps/:appId";

export const appRoutes: readonly Route[] = [
  { method: "GET", path: "/v1/apps", answer: async ({ apps }, q) => ({ apps: await apps.apps(q.context) }) },
  {
    method: "PUT",
    path: APP,
    answer: async ({ apps }, q) => ({ app: await apps.updateApp(q.context, q.id("appId"), q.object()) }),
  },
  {
    method: "PUT",
    path: "/v1/admin/apps/:appId",
    answer: async ({ apps }, q) => ({ app: await apps.administrateApp(q.context, q.id("appId"), q.object()) }),
  },
  {
    method: "POST",
    path: "/v1/admin/apps",
    http: 201,
    answer: async ({ apps }, q) => ({ app: await apps.createApp(q.context, q.object()) }),
  },
  {
    method: "POST",
    path: `${APP}/publish`,
    answer: async ({ apps }, q) => ({ app: await apps.publishApp(q.context, q.id("appId")) }),
  },
  {
    method: "POST",
    path: `${APP}/unpublish`,
    answer: async ({ apps }, q) => ({ app: await apps.unpublishApp(q.context, q.id("appId")) }),
  },
];
