/** Language models over REST, for the package svc-ai in server actions, as rows of the REST table. */
import { AI_BODY_MAX_BYTES } from "../../limits.js";
import { AI_CALLS } from "../../rules/ai/options.js";
import type { Route } from "./route.js";

export const aiRoutes: readonly Route[] = AI_CALLS.map((call) => ({
  method: "POST",
  path: `/v1/apps/:appId/ai/${call}`,
  bodyLimit: AI_BODY_MAX_BYTES,
  handle: ({ ai }, request) => ai.callModel(request.context, request.id("appId"), call, request.body),
}));
