/** REST routes of actions: entries for the route table in rest/routes.ts. */
import { hash } from "node:crypto";
import type { Action } from "../../operations/actions/action-rows.js";
import { type ActionWarning, listActionWarnings } from "../../rules/action-warnings.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const ACTIONS = "/v3/apps/:appId/actions";

/** Returns `warnings` about settings of the action that have no effect; an empty object if there are none. */
export function withWarnings(action: Action): { warnings?: ActionWarning[] } {
  const warnings = listActionWarnings(action);
  return warnings.length > 0 ? { warnings } : {};
}

/** Returns a response with an action and sets the action's ETag, which a run of the action does not change. */
const replyWithAction = (request: RestRequest, status: string, action: Action, beside: object = {}) =>
  request.setTag(action, { status, action, ...beside }, endpointsTag(action));

/**
 * Returns a digest of the URLs of the action's HTTP triggers. It is part of the ETag, because a new trigger secret changes the URLs but not
 * the action.
 */
const endpointsTag = ({ endpoints = [] }: Action): string | null =>
  endpoints.length === 0 ? null : hash("sha256", JSON.stringify(endpoints), "base64url").slice(0, 22);

const savedAction = (request: RestRequest, status: string, action: Action) =>
  replyWithAction(request, status, action, withWarnings(action));

export const actionRoutes: readonly Route[] = [
  {
    method: "GET",
    path: ACTIONS,
    handle: async ({ actions }, request) => ({
      status: "ACTIONS_LISTED",
      ...(await actions.actions(
        request.context,
        request.id("appId"),
        request.number("limit"),
        request.number("offset"),
        request.text("search"),
      )),
    }),
  },
  {
    method: "POST",
    path: ACTIONS,
    canReturnWarnings: true,
    successStatus: 201,
    handle: async ({ actions }, request) =>
      savedAction(
        request,
        "ACTION_CREATED",
        await actions.createAction(request.context, request.id("appId"), request.body),
      ),
  },
  {
    method: "POST",
    path: `${ACTIONS}/logs`,
    handle: async ({ logs }, request) => ({
      status: "LOGS_LISTED",
      ...(await logs.actionLogs(request.context, request.id("appId"), request.body)),
    }),
  },
  {
    method: "GET",
    path: `${ACTIONS}/export`,
    handle: ({ transfer }, request) => transfer.exportActions(request.context, request.id("appId")),
  },
  {
    method: "POST",
    path: `${ACTIONS}/import`,
    handle: async ({ transfer }, request) => ({
      status: "ACTIONS_IMPORTED",
      ...(await transfer.importActions(request.context, request.id("appId"), request.body, request.flag("dryRun"))),
    }),
  },
  {
    method: "GET",
    path: `${ACTIONS}/:id`,
    handle: async ({ actions }, request) =>
      replyWithAction(
        request,
        "ACTION_RETRIEVED",
        await actions.action(request.context, request.id("appId"), request.id("id")),
      ),
  },
  {
    method: "PUT",
    path: `${ACTIONS}/:id`,
    canReturnWarnings: true,
    handle: async ({ actions }, request) =>
      savedAction(
        request,
        "ACTION_UPDATED",
        await actions.updateAction(
          request.context,
          request.id("appId"),
          request.id("id"),
          request.body,
          request.ifMatch(),
        ),
      ),
  },
  {
    method: "DELETE",
    path: `${ACTIONS}/:id`,
    handle: async ({ actions }, request) => {
      await actions.removeAction(request.context, request.id("appId"), request.id("id"), request.ifMatch());
      return { status: "ACTION_DELETED" };
    },
  },
  {
    method: "GET",
    path: `${ACTIONS}/:id/refused-requests`,
    handle: async ({ httpTriggers }, request) => ({
      status: "REFUSED_REQUESTS_LISTED",
      refusedRequests: await httpTriggers.refusedRequests(request.context, request.id("appId"), request.id("id")),
    }),
  },
  {
    method: "POST",
    path: `${ACTIONS}/:id/rotate-secret`,
    handle: async ({ actions }, request) => {
      const action = await actions.rotateTriggerSecret(
        request.context,
        request.id("appId"),
        request.id("id"),
        request.ifMatch(),
      );
      return replyWithAction(request, "SECRET_ROTATED", action);
    },
  },
  {
    method: "POST",
    path: `${ACTIONS}/:id/publish`,
    handle: async ({ publishing }, request) => ({
      status: "ACTION_PUBLISHED",
      ...(await publishing.publishAction(
        request.context,
        request.id("appId"),
        request.id("id"),
        request.ifMatch(),
        request.flag("tested"),
      )),
    }),
  },
  {
    method: "POST",
    path: `${ACTIONS}/:id/unpublish`,
    handle: async ({ publishing }, request) => {
      await publishing.unpublishAction(request.context, request.id("appId"), request.id("id"), request.ifMatch());
      return { status: "ACTION_UNPUBLISHED" };
    },
  },
];
