/** REST routes of runs: entries for the route table in rest/routes.ts. */
import type { DraftOrLive } from "../../data/action-types.js";
import { ActionError } from "../../errors.js";
import { describeValue } from "../../rules/describe-value.js";
import { createFlatShape } from "../../rules/unknown-fields.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const ACTIONS_ROUTE = "/v3/apps/:appId/actions";

const DRAFT_OR_LIVE_BY_NAME: Readonly<Record<string, DraftOrLive>> = { draft: "master", live: "production" };

/**
 * Returns the last three arguments of `runAction`: `key`, `by` and `copy`. `key` and `by` are undefined, because other code reads them.
 * `copy` is the draft or live version that the query parameter `copy` names.
 */
function readTrailingRunArguments(request: RestRequest): [undefined, undefined, DraftOrLive | undefined] {
  const text = request.queryText("copy");
  const copy = text === undefined ? undefined : DRAFT_OR_LIVE_BY_NAME[text];
  if (text !== undefined && !copy) {
    request.context.deferredError ??= new ActionError(
      "REQUEST_INVALID",
      `copy must be draft or live (got ${describeValue(text)})`,
    );
  }
  return [undefined, undefined, copy];
}

export const runRoutes: readonly Route[] = [
  {
    method: "POST",
    path: `${ACTIONS_ROUTE}/:nameOrId/run`,
    successStatus: 202,
    handle: async ({ runs }, request) => ({
      status: "ACTION_QUEUED",
      ...(await runs.runAction(
        request.context,
        request.pathId("appId"),
        request.pathReference("nameOrId"),
        request.body,
        ...readTrailingRunArguments(request),
      )),
    }),
  },
  {
    method: "POST",
    path: `${ACTIONS_ROUTE}/:nameOrId/runWithResult`,
    handle: async ({ runs }, request) => ({
      status: "ACTION_EXECUTED",
      ...(await runs.runActionWithResult(
        request.context,
        request.pathId("appId"),
        request.pathReference("nameOrId"),
        request.body,
        ...readTrailingRunArguments(request),
      )),
    }),
  },
  {
    method: "GET",
    path: "/v3/apps/:appId/runs/:runId/console",
    handle: async ({ runs }, request) => ({
      status: "CONSOLE_LISTED",
      lines: await runs.runConsole(request.context, request.pathId("appId"), request.pathId("runId")),
    }),
  },
  {
    method: "POST",
    path: "/v3/apps/:appId/runs/:runId/cancel",
    handle: async ({ runs }, request) => {
      await runs.cancelRun(request.context, request.pathId("appId"), request.pathId("runId"));
      return { status: "RUN_CANCELLED" };
    },
  },
  {
    method: "GET",
    path: "/v3/apps/:appId/backlog",
    handle: async ({ queue }, request) => ({
      status: "BACKLOG_RETRIEVED",
      backlog: await queue.backlog(request.context, request.pathId("appId")),
    }),
  },
  {
    method: "POST",
    path: "/v3/apps/:appId/backlog/cancel",
    handle: async ({ queue }, request) => ({
      status: "BACKLOG_CANCELLED",
      ...(await queue.cancelBacklog(
        request.context,
        request.pathId("appId"),
        request.bodyFields(createFlatShape(["actionId"]))["actionId"] as number,
      )),
    }),
  },
];
