/** REST routes for an app's own pages on other origins (contract, section 7): entries for the route table in rest/routes.ts. */
import { createFlatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const APP_ROUTE = "/v1/apps/:appId";

export const visitorRoutes: readonly Route[] = [
  {
    method: "GET",
    path: `${APP_ROUTE}/origins`,
    handle: async ({ visitors }, request) => ({
      origins: await visitors.appOrigins(request.context, request.pathId("appId")),
    }),
  },
  {
    method: "PUT",
    path: `${APP_ROUTE}/origins`,
    handle: async ({ visitors }, request) => {
      const { origins } = request.bodyFields(createFlatShape(["origins"]));
      return {
        origins: await visitors.setAppOrigins(
          request.context,
          request.pathId("appId"),
          origins,
          request.readExpectedVersions(),
        ),
      };
    },
  },
  {
    method: "POST",
    path: `${APP_ROUTE}/visitors`,
    successStatus: 201,
    allowsAnonymous: true,
    isForAnonymous: true,
    handle: ({ visitors }, request) => visitors.createVisitor(request.context, request.pathId("appId")),
  },
];
