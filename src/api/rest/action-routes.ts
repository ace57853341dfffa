/** Actions over REST, as rows of the REST table. */
import { hash } from "node:crypto";
import type { Action } from "../../operations/actions/action-rows.js";
import { type ActionWarning, actionWarnings } from "../../rules/action-warnings.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const ACTIONS = "/v3/apps/:appId/actions";

/** Returns `warnings` about the action's settings that have no effect; an empty object if there are none. */
export function withWarnings(action: Action): { warnings?: ActionWarning[] } {
  const warnings = actionWarnings(action);
  return warnings.length > 0 ? { warnings } : {};
}

/** Returns a response with an action. A run does not change its ETag, because it changes nothing that an author wrote. */
const replyWithAction = (q: RestRequest, status: string, action: Action, beside: object = {}) =>
  q.at(action, { status, action, ...beside }, endpointsTag(action));

/** Returns a digest of the HTTP trigger URLs for the ETag, because a new secret changes the URLs but not the action. */
const endpointsTag = ({ endpoints = [] }: Action): string | null =>
  endpoints.length === 0 ? null : hash("sha256", JSON.stringify(endpoints), "base64url").slice(0, 22);

const savedAction = (q: RestRequest, status: string, action: Action) =>
  replyWithAction(q, status, action, withWarnings(action));

export const actionRoutes: readonly Route[] = [
  {
    method: "GET",
    path: ACTIONS,
    answer: async ({ actions }, q) => ({
      status: "ACTIONS_LISTED",
      ...(await actions.actions(q.context, q.id("appId"), q.number("limit"), q.number("offset"), q.text("search"))),
    }),
  },
  {
    method: "POST",
    path: ACTIONS,
    warns: true,
    http: 201,
    answer: async ({ actions }, q) =>
      savedAction(q, "ACTION_CREATED", await actions.createAction(q.context, q.id("appId"), q.body)),
  },
  {
    method: "POST",
    path: `${ACTIONS}/logs`,
    answer: async ({ logs }, q) => ({
      status: "LOGS_LISTED",
      ...(await logs.actionLogs(q.context, q.id("appId"), q.body)),
    }),
  },
  {
    method: "GET",
    path: `${ACTIONS}/export`,
    answer: ({ transfer }, q) => transfer.exportActions(q.context, q.id("appId")),
  },
  {
    method: "POST",
    path: `${ACTIONS}/import`,
    answer: async ({ transfer }, q) => ({
      status: "ACTIONS_IMPORTED",
      ...(await transfer.importActions(q.context, q.id("appId"), q.body, q.flag("dryRun"))),
    }),
  },
  {
    method: "GET",
    path: `${ACTIONS}/:id`,
    answer: async ({ actions }, q) =>
      replyWithAction(q, "ACTION_RETRIEVED", await actions.action(q.context, q.id("appId"), q.id("id"))),
  },
  {
    method: "PUT",
    path: `${ACTIONS}/:id`,
    warns: true,
    answer: async ({ actions }, q) =>
      savedAction(
        q,
        "ACTION_UPDATED",
        await actions.updateAction(q.context, q.id("appId"), q.id("id"), q.body, q.ifMatch()),
      ),
  },
  {
    method: "DELETE",
    path: `${ACTIONS}/:id`,
    answer: async ({ actions }, q) => {
      await actions.removeAction(q.context, q.id("appId"), q.id("id"), q.ifMatch());
      return { status: "ACTION_DELETED" };
    },
  },
  {
    method: "GET",
    path: `${ACTIONS}/:id/refused-requests`,
    answer: async ({ httpTriggers }, q) => ({
      status: "REFUSED_REQUESTS_LISTED",
      refusedRequests: await httpTriggers.refusedRequests(q.context, q.id("appId"), q.id("id")),
    }),
  },
  {
    method: "POST",
    path: `${ACTIONS}/:id/rotate-secret`,
    answer: async ({ actions }, q) => {
      const action = await actions.rotateTriggerSecret(q.context, q.id("appId"), q.id("id"), q.ifMatch());
      return replyWithAction(q, "SECRET_ROTATED", action);
    },
  },
  {
    method: "POST",
    path: `${ACTIONS}/:id/publish`,
    answer: async ({ publishing }, q) => ({
      status: "ACTION_PUBLISHED",
      ...(await publishing.publishAction(q.context, q.id("appId"), q.id("id"), q.ifMatch(), q.flag("tested"))),
    }),
  },
  {
    method: "POST",
    path: `${ACTIONS}/:id/unpublish`,
    answer: async ({ publishing }, q) => {
      await publishing.unpublishAction(q.context, q.id("appId"), q.id("id"), q.ifMatch());
      return { status: "ACTION_UNPUBLISHED" };
    },
  },
];
