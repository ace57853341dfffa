/** REST routes of the session of an app's page: entries for the route table in rest/routes.ts. */
import { createFlatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const SESSION_ROUTE = "/v1/apps/:appId/session";
const LOCALE_SHAPE = createFlatShape(["locale"], ["appId", "user", "entries", "awaits", "environment"]);

export const sessionRoutes: readonly Route[] = [
  {
    method: "GET",
    path: SESSION_ROUTE,
    handle: async ({ appSessions }, request) => ({
      session: await appSessions.appSession(request.context, request.pathId("appId")),
    }),
  },
  {
    method: "POST",
    path: SESSION_ROUTE,
    handle: async ({ appSessions }, request) => ({
      session: await appSessions.authorize(request.context, request.pathId("appId"), request.bodyFields()),
    }),
  },
  {
    method: "POST",
    path: `${SESSION_ROUTE}/verify`,
    handle: ({ appSessions }, request) =>
      appSessions.verify(request.context, request.pathId("appId"), request.bodyFields()),
  },
  {
    method: "PUT",
    path: SESSION_ROUTE,
    hasNoVersion: true,
    handle: async ({ appSessions }, request) => ({
      session: await appSessions.setSessionLocale(
        request.context,
        request.pathId("appId"),
        request.bodyFields(LOCALE_SHAPE)["locale"],
      ),
    }),
  },
  {
    method: "DELETE",
    path: SESSION_ROUTE,
    hasNoVersion: true,
    handle: async ({ appSessions }, request) => ({
      session: await appSessions.logoutAppUser(request.context, request.pathId("appId")),
    }),
  },
];
