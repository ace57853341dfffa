/** Pages on other origins over REST, as rows of the REST table (contract, section 7). */
import { flatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const APP = "/v1/apps/:appId";

export const visitorRoutes: readonly Route[] = [
  {
    method: "GET",
    path: `${APP}/origins`,
    answer: async ({ visitors }, q) => ({ origins: await visitors.appOrigins(q.context, q.id("appId")) }),
  },
  {
    method: "PUT",
    path: `${APP}/origins`,
    answer: async ({ visitors }, q) => {
      const { origins } = q.object(flatShape(["origins"]));
      return { origins: await visitors.setAppOrigins(q.context, q.id("appId"), origins, q.ifMatch()) };
    },
  },
  {
    method: "POST",
    path: `${APP}/visitors`,
    http: 201,
    open: true,
    isForAnonymous: true,
    answer: ({ visitors }, q) => visitors.createVisitor(q.context, q.id("appId")),
  },
];
