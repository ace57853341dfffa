/** The REST facade as a table: each documented path, the resolver's method behind it, and the shape of its answer. */
import type { Resolvers } from "../graphql/schema.js";
import type { RestRequest } from "./request.js";

export interface Route {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  /** 200 unless said. */
  http?: number;
  /** Calls the resolver and shapes the body. */
  answer: (resolvers: Resolvers, request: RestRequest) => Promise<object>;
}

const ACTIONS = "/v3/apps/:appId/actions";

const actionRoutes: Route[] = [
  {
    method: "GET",
    path: ACTIONS,
    answer: async ({ actions }, q) => ({
      status: "ACTIONS_LISTED",
      ...(await actions.actions(q.context, q.id("appId"), q.number("limit"), q.number("offset"))),
    }),
  },
  {
    method: "POST",
    path: ACTIONS,
    http: 201,
    answer: async ({ actions }, q) => ({
      status: "ACTION_CREATED",
      action: await actions.createAction(q.context, q.id("appId"), q.body),
    }),
  },
  {
    method: "POST",
    path: `${ACTIONS}/logs`,
    answer: async ({ logs }, q) => ({
      status: "LOGS_LISTED",
      ...(await logs.actionLogs(q.context, q.id("appId"), q.body)),
    }),
  },
  {
    method: "GET",
    path: `${ACTIONS}/:id`,
    answer: async ({ actions }, q) => ({
      status: "ACTION_RETRIEVED",
      action: await actions.action(q.context, q.id("appId"), q.id("id")),
    }),
  },
  {
    method: "PUT",
    path: `${ACTIONS}/:id`,
    answer: async ({ actions }, q) => ({
      status: "ACTION_UPDATED",
      action: await actions.updateAction(q.context, q.id("appId"), q.id("id"), q.body),
    }),
  },
  {
    method: "DELETE",
    path: `${ACTIONS}/:id`,
    answer: async ({ actions }, q) => {
      await actions.removeAction(q.context, q.id("appId"), q.id("id"));
      return { status: "ACTION_DELETED" };
    },
  },
];

const runRoutes: Route[] = [
  {
    method: "POST",
    path: `${ACTIONS}/:nameOrId/run`,
    http: 202,
    answer: async ({ runs }, q) => ({
      status: "ACTION_QUEUED",
      ...(await runs.runAction(q.context, q.id("appId"), q.param("nameOrId"), q.body)),
    }),
  },
  {
    method: "POST",
    path: `${ACTIONS}/:nameOrId/runWithResult`,
    answer: async ({ runs }, q) => ({
      status: "ACTION_EXECUTED",
      ...(await runs.runActionWithResult(q.context, q.id("appId"), q.param("nameOrId"), q.body)),
    }),
  },
  {
    method: "POST",
    path: "/v3/apps/:appId/runs/:runId/cancel",
    answer: async ({ runs }, q) => {
      await runs.cancelRun(q.context, q.id("appId"), q.id("runId"));
      return { status: "RUN_CANCELLED" };
    },
  },
];

const SETTINGS = "/v1/apps/:appId/settings";

const settingRoutes: Route[] = [
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
    method: "GET",
    path: `${SETTINGS}/status`,
    answer: ({ settings }, q) => settings.settingsStatus(q.context, q.id("appId"), q.strings("keys")),
  },
];

const APP = "/v1/apps/:appId";

const appRoutes: Route[] = [
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

const peopleRoutes: Route[] = [
  {
    method: "POST",
    path: "/v1/admin/users",
    http: 201,
    answer: ({ apps }, q) => apps.createUser(q.context, q.object()),
  },
  {
    method: "POST",
    path: `${APP}/editors`,
    answer: async ({ apps }, q) => ({
      editors: await apps.addEditor(q.context, q.id("appId"), q.object()["userId"]),
    }),
  },
  {
    method: "DELETE",
    path: `${APP}/editors`,
    answer: async ({ apps }, q) => ({
      editors: await apps.removeEditor(q.context, q.id("appId"), q.object()["userId"]),
    }),
  },
  {
    method: "GET",
    path: `${APP}/tokens`,
    answer: async ({ tokens }, q) => ({ tokens: await tokens.tokens(q.context, q.id("appId")) }),
  },
  {
    method: "POST",
    path: `${APP}/tokens`,
    http: 201,
    answer: ({ tokens }, q) => tokens.createToken(q.context, q.id("appId"), q.object()),
  },
  {
    method: "DELETE",
    path: `${APP}/tokens/:tokenId`,
    answer: async ({ tokens }, q) => {
      await tokens.revokeToken(q.context, q.id("appId"), q.id("tokenId"));
      return { status: "TOKEN_REVOKED" };
    },
  },
];

export const ROUTES: readonly Route[] = [
  ...actionRoutes,
  ...runRoutes,
  ...settingRoutes,
  ...appRoutes,
  ...peopleRoutes,
];
