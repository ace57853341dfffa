/**
 * REST routes of manifests (documents with all definitions of an app): entries for the route table in rest/routes.ts.
 */
import { MANIFEST_MAX_BYTES } from "../../limits.js";
import type { Route } from "./route.js";

const MANIFEST_ROUTE = "/v1/apps/:appId/manifest";

export const manifestRoutes: readonly Route[] = [
  {
    method: "GET",
    path: MANIFEST_ROUTE,
    handle: async ({ manifests }, request) => {
      const { tag, manifest } = await manifests.manifest(request.context, request.pathId("appId"));
      return request.setTag({ updatedAt: tag }, manifest);
    },
  },
  {
    method: "PUT",
    path: MANIFEST_ROUTE,
    bodyLimit: MANIFEST_MAX_BYTES,
    handle: async ({ manifests }, request) => {
      const [appId, precondition] = [request.pathId("appId"), request.readExpectedVersions()];
      const [plan, prune] = [request.queryFlag("plan"), request.queryFlag("prune")];
      const result = await manifests.applyManifest(request.context, appId, request.body, precondition, plan, prune);
      return request.setTag({ updatedAt: result.tag }, { plan: result.plan });
    },
  },
];
