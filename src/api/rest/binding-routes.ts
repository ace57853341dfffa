/** Secret bindings over REST: routes of the REST table. */
import type { TaggedBindings } from "../../operations/requests/secret-bindings.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const BINDINGS = "/v1/apps/:appId/secret-bindings";

const shown = (q: RestRequest, at: TaggedBindings) => q.at(at, { bindings: at.bindings });

export const bindingRoutes: readonly Route[] = [
  {
    method: "GET",
    path: BINDINGS,
    answer: async ({ bindings }, q) => shown(q, await bindings.secretBindings(q.context, q.id("appId"))),
  },
  {
    method: "GET",
    path: `${BINDINGS}/uses`,
    answer: async ({ bindings }, q) => ({ uses: await bindings.secretBindingUses(q.context, q.id("appId")) }),
  },
  {
    method: "POST",
    path: `${BINDINGS}/test`,
    answer: async ({ bindings }, q) => ({ trial: await bindings.testSecretBinding(q.context, q.id("appId"), q.body) }),
  },
  {
    method: "PUT",
    path: BINDINGS,
    bodyField: "bindings",
    answer: async ({ bindings }, q) =>
      shown(q, await bindings.setSecretBindings(q.context, q.id("appId"), q.body, q.ifMatch())),
  },
];
