/** REST routes of language models, which the npm package svc-ai calls in server actions: entries for the route table in rest/routes.ts. */
import { AI_BODY_MAX_BYTES } from "../../limits.js";
import { AI_CALL_KINDS } from "../../rules/ai/options.js";
import type { Route } from "./route.js";

export const aiRoutes: readonly Route[] = AI_CALL_KINDS.map((call) => ({
  method: "POST",
  path: `/v1/apps/:appId/ai/${call}`,
  bodyLimit: AI_BODY_MAX_BYTES,
  handle: ({ ai }, request) => ai.callModel(request.context, request.pathId("appId"), call, request.body),
}));
