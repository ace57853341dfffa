/** Runs over REST, as rows of the REST table. */
import type { Copy } from "../../data/action-types.js";
import { ActionError } from "../../errors.js";
import { describeValue } from "../../rules/described.js";
import { flatShape } from "../../rules/unknown-fields.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const ACTIONS = "/v3/apps/:appId/actions";

const COPY_BY_NAME: Readonly<Record<string, Copy>> = { draft: "master", live: "production" };

/** Returns the last arguments of `run`: no own idempotency key, because the header has it, no `by`, and the version in `?copy=`. */
function copyToRun(q: RestRequest): [undefined, undefined, Copy | undefined] {
  const text = q.text("copy");
  const copy = text === undefined ? undefined : COPY_BY_NAME[text];
  if (text !== undefined && !copy) {
    q.context.deferred ??= new ActionError(
      "REQUEST_INVALID",
      `copy must be draft or live (got ${describeValue(text)})`,
    );
  }
  return [undefined, undefined, copy];
}

export const runRoutes: readonly Route[] = [
  {
    method: "POST",
    path: `${ACTIONS}/:nameOrId/run`,
    http: 202,
    answer: async ({ runs }, q) => ({
      status: "ACTION_QUEUED",
      ...(await runs.runAction(q.context, q.id("appId"), q.reference("nameOrId"), q.body, ...copyToRun(q))),
    }),
  },
  {
    method: "POST",
    path: `${ACTIONS}/:nameOrId/runWithResult`,
    answer: async ({ runs }, q) => ({
      status: "ACTION_EXECUTED",
      ...(await runs.runActionWithResult(q.context, q.id("appId"), q.reference("nameOrId"), q.body, ...copyToRun(q))),
    }),
  },
  {
    method: "GET",
    path: "/v3/apps/:appId/runs/:runId/console",
    answer: async ({ runs }, q) => ({
      status: "CONSOLE_LISTED",
      lines: await runs.runConsole(q.context, q.id("appId"), q.id("runId")),
    }),
  },
  {
    method: "POST",
    path: "/v3/apps/:appId/runs/:runId/cancel",
    answer: async ({ runs }, q) => {
      await runs.cancelRun(q.context, q.id("appId"), q.id("runId"));
      return { status: "RUN_CANCELLED" };
    },
  },
  {
    method: "GET",
    path: "/v3/apps/:appId/backlog",
    answer: async ({ queue }, q) => ({
      status: "BACKLOG_RETRIEVED",
      backlog: await queue.backlog(q.context, q.id("appId")),
    }),
  },
  {
    method: "POST",
    path: "/v3/apps/:appId/backlog/cancel",
    answer: async ({ queue }, q) => ({
      status: "BACKLOG_CANCELLED",
      ...(await queue.cancelBacklog(q.context, q.id("appId"), q.object(flatShape(["actionId"]))["actionId"] as number)),
    }),
  },
];
