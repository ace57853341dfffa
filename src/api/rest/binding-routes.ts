/**
 * REST routes of secret bindings (credentials that the service adds to an action's requests): entries for the route
 * table in rest/routes.ts.
 */
import type { BindingsWithUpdateTime } from "../../operations/requests/secret-bindings.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const BINDINGS_PATH = "/v1/apps/:appId/secret-bindings";

const replyWithBindings = (request: RestRequest, state: BindingsWithUpdateTime) =>
  request.setTag(state, { bindings: state.bindings });

export const bindingRoutes: readonly Route[] = [
  {
    method: "GET",
    path: BINDINGS_PATH,
    handle: async ({ secretBindings }, request) =>
      replyWithBindings(request, await secretBindings.secretBindings(request.context, request.pathId("appId"))),
  },
  {
    method: "GET",
    path: `${BINDINGS_PATH}/uses`,
    handle: async ({ secretBindings }, request) => ({
      uses: await secretBindings.secretBindingUses(request.context, request.pathId("appId")),
    }),
  },
  {
    method: "POST",
    path: `${BINDINGS_PATH}/test`,
    handle: async ({ secretBindings }, request) => ({
      trial: await secretBindings.testSecretBinding(request.context, request.pathId("appId"), request.body),
    }),
  },
  {
    method: "PUT",
    path: BINDINGS_PATH,
    bodyField: "bindings",
    handle: async ({ secretBindings }, request) =>
      replyWithBindings(
        request,
        await secretBindings.setSecretBindings(
          request.context,
          request.pathId("appId"),
          request.body,
          request.readExpectedVersions(),
        ),
      ),
  },
];
