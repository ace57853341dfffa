/** Secret bindings over REST, as rows of the REST table. */
import type { TaggedBindings } from "../../operations/requests/secret-bindings.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const BINDINGS_PATH = "/v1/apps/:appId/secret-bindings";

const replyWithBindings = (q: RestRequest, at: TaggedBindings) => q.at(at, { bindings: at.bindings });

export const bindingRoutes: readonly Route[] = [
  {
    method: "GET",
    path: BINDINGS_PATH,
    answer: async ({ bindings }, q) => replyWithBindings(q, await bindings.secretBindings(q.context, q.id("appId"))),
  },
  {
    method: "GET",
    path: `${BINDINGS_PATH}/uses`,
    answer: async ({ bindings }, q) => ({ uses: await bindings.secretBindingUses(q.context, q.id("appId")) }),
  },
  {
    method: "POST",
    path: `${BINDINGS_PATH}/test`,
    answer: async ({ bindings }, q) => ({ trial: await bindings.testSecretBinding(q.context, q.id("appId"), q.body) }),
  },
  {
    method: "PUT",
    path: BINDINGS_PATH,
    bodyField: "bindings",
    answer: async ({ bindings }, q) =>
      replyWithBindings(q, await bindings.setSecretBindings(q.context, q.id("appId"), q.body, q.ifMatch())),
  },
];
