/** REST routes of actions: entries for the route table in rest/routes.ts. */
import { hash } from "node:crypto";
import type { Action } from "../../operations/actions/action-rows.js";
import { type ActionWarning, listActionWarnings } from "../../rules/action-warnings.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const ACTIONS_ROUTE = "/v3/apps/:appId/actions";

/** Returns `warnings` about settings of the action that have no effect; an empty object if there are none. */
export function createWarningsField(action: Action): { warnings?: ActionWarning[] } {
  const warnings = listActionWarnings(action);
  return warnings.length > 0 ? { warnings } : {};
}

const replyWithAction = (request: RestRequest, status: string, action: Action, additionalFields: object = {}) =>
  request.setTag(action, { status, action, ...additionalFields }, computeEndpointsTag(action));

/** Returns a digest of the URLs of the action's HTTP triggers, for the ETag. A new trigger secret changes only these URLs. */
const computeEndpointsTag = ({ endpoints = [] }: Action): string | null =>
  endpoints.length === 0 ? null : hash("sha256", JSON.stringify(endpoints), "base64url").slice(0, 22);

const replyWithSavedAction = (request: RestRequest, status: string, action: Action) =>
  replyWithAction(request, status, action, createWarningsField(action));

export const actionRoutes: readonly Route[] = [
  {
    method: "GET",
    path: ACTIONS_ROUTE,
    handle: async ({ actions }, request) => ({
      status: "ACTIONS_LISTED",
      ...(await actions.actions(
        request.context,
        request.pathId("appId"),
        request.queryNumber("limit"),
        request.queryNumber("offset"),
        request.queryText("search"),
      )),
    }),
  },
  {
    method: "POST",
    path: ACTIONS_ROUTE,
    canReturnWarnings: true,
    successStatus: 201,
    handle: async ({ actions }, request) =>
      replyWithSavedAction(
        request,
        "ACTION_CREATED",
        await actions.createAction(request.context, request.pathId("appId"), request.body),
      ),
  },
  {
    method: "POST",
    path: `${ACTIONS_ROUTE}/logs`,
    handle: async ({ logs }, request) => ({
      status: "LOGS_LISTED",
      ...(await logs.actionLogs(request.context, request.pathId("appId"), request.body)),
    }),
  },
  {
    method: "GET",
    path: `${ACTIONS_ROUTE}/export`,
    handle: ({ actionTransfer }, request) => actionTransfer.exportActions(request.context, request.pathId("appId")),
  },
  {
    method: "POST",
    path: `${ACTIONS_ROUTE}/import`,
    handle: async ({ actionTransfer }, request) => ({
      status: "ACTIONS_IMPORTED",
      ...(await actionTransfer.importActions(
        request.context,
        request.pathId("appId"),
        request.body,
        request.queryFlag("dryRun"),
      )),
    }),
  },
  {
    method: "GET",
    path: `${ACTIONS_ROUTE}/:id`,
    handle: async ({ actions }, request) =>
      replyWithAction(
        request,
        "ACTION_RETRIEVED",
        await actions.action(request.context, request.pathId("appId"), request.pathId("id")),
      ),
  },
  {
    method: "PUT",
    path: `${ACTIONS_ROUTE}/:id`,
    canReturnWarnings: true,
    handle: async ({ actions }, request) =>
      replyWithSavedAction(
        request,
        "ACTION_UPDATED",
        await actions.updateAction(
          request.context,
          request.pathId("appId"),
          request.pathId("id"),
          request.body,
          request.readExpectedVersions(),
        ),
      ),
  },
  {
    method: "DELETE",
    path: `${ACTIONS_ROUTE}/:id`,
    handle: async ({ actions }, request) => {
      await actions.removeAction(
        request.context,
        request.pathId("appId"),
        request.pathId("id"),
        request.readExpectedVersions(),
      );
      return { status: "ACTION_DELETED" };
    },
  },
  {
    method: "GET",
    path: `${ACTIONS_ROUTE}/:id/refused-requests`,
    handle: async ({ httpTriggers }, request) => ({
      status: "REFUSED_REQUESTS_LISTED",
      refusedRequests: await httpTriggers.refusedRequests(
        request.context,
        request.pathId("appId"),
        request.pathId("id"),
      ),
    }),
  },
  {
    method: "POST",
    path: `${ACTIONS_ROUTE}/:id/rotate-secret`,
    handle: async ({ actions }, request) => {
      const action = await actions.rotateTriggerSecret(
        request.context,
        request.pathId("appId"),
        request.pathId("id"),
        request.readExpectedVersions(),
      );
      return replyWithAction(request, "SECRET_ROTATED", action);
    },
  },
  {
    method: "POST",
    path: `${ACTIONS_ROUTE}/:id/publish`,
    handle: async ({ publishing }, request) => ({
      status: "ACTION_PUBLISHED",
      ...(await publishing.publishAction(
        request.context,
        request.pathId("appId"),
        request.pathId("id"),
        request.readExpectedVersions(),
        request.queryFlag("tested"),
      )),
    }),
  },
  {
    method: "POST",
    path: `${ACTIONS_ROUTE}/:id/unpublish`,
    handle: async ({ publishing }, request) => {
      await publishing.unpublishAction(
        request.context,
        request.pathId("appId"),
        request.pathId("id"),
        request.readExpectedVersions(),
      );
      return { status: "ACTION_UNPUBLISHED" };
    },
  },
];
