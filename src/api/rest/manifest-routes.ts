/** Manifests over REST, as rows of the REST table. */
import { MANIFEST_MAX_BYTES } from "../../limits.js";
import type { Route } from "./route.js";

const MANIFEST_ROUTE = "/v1/apps/:appId/manifest";

export const manifestRoutes: readonly Route[] = [
  {
    method: "GET",
    path: MANIFEST_ROUTE,
    answer: async ({ manifests }, q) => {
      const { tag, manifest } = await manifests.manifest(q.context, q.id("appId"));
      return q.at({ updatedAt: tag }, manifest);
    },
  },
  {
    method: "PUT",
    path: MANIFEST_ROUTE,
    bodyLimit: MANIFEST_MAX_BYTES,
    answer: async ({ manifests }, q) => {
      const [appId, precondition] = [q.id("appId"), q.ifMatch()];
      const [plan, prune] = [q.flag("plan"), q.flag("prune")];
      const result = await manifests.applyManifest(q.context, appId, q.body, precondition, plan, prune);
      return q.at({ updatedAt: result.tag }, { plan: result.plan });
    },
  },
];
