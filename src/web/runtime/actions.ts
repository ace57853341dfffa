/** Creates `Svc.App.V3.Actions`: the operations of actions by REST, and `response`. */
import type { Connection } from "./connection.js";
import { createSvcError } from "./failure.js";
import type { Action, Actions, LogEntry } from "./public-types.js";
import { createResponseFunction } from "./response.js";

/** Encodes an action's name or ID as one segment of a URL path. Rejects ".", ".." and "", because the URL would then have another path. */
function encodePathSegment(nameOrId: string | number): string {
  const text = String(nameOrId ?? "");
  if (/^\.{0,2}$/.test(text)) {
    const received = JSON.stringify(nameOrId) ?? "undefined";
    throw createSvcError("ACTION_NOT_FOUND", `an action's name or id is required (got ${received})`);
  }
  return encodeURIComponent(text.toWellFormed());
}

function toQueryString(options: { limit?: number; offset?: number } | null): string {
  const { limit, offset } = options ?? {};
  const parameters = Object.entries({ limit, offset }).filter(([, value]) => value !== undefined);
  return parameters.length === 0
    ? ""
    : `?${new URLSearchParams(parameters.map(([name, value]) => [name, String(value)]))}`;
}

export function createActionsApi({ appId, request }: Pick<Connection, "appId" | "request">): Omit<Actions, "request"> {
  const getActionsPath = () => `/v3/apps/${appId()}/actions`;
  const getActionPath = (id: number, verb = "") => `${getActionsPath()}/${encodePathSegment(id)}${verb}`;
  /** Returns the path of an action. A string is always a name, even if it consists of digits. */
  const getActionPathByName = (nameOrId: string | number, verb: string) =>
    `${getActionsPath()}/${encodePathSegment(nameOrId)}${verb}${typeof nameOrId === "string" ? "?by=name" : ""}`;

  return {
    async get(options = {}) {
      const { actions, pagination } = await request("GET", `${getActionsPath()}${toQueryString(options)}`);
      return { actions, pagination } as Awaited<ReturnType<Actions["get"]>>;
    },
    async getById(id) {
      return (await request("GET", getActionPath(id)))["action"] as Action;
    },
    async create(data) {
      return (await request("POST", getActionsPath(), data ?? {}))["action"] as Action;
    },
    async update(id, data) {
      return (await request("PUT", getActionPath(id), data ?? {}))["action"] as Action;
    },
    async remove(id) {
      await request("DELETE", getActionPath(id));
    },
    async run(nameOrId, payload = {}) {
      await request("POST", getActionPathByName(nameOrId, "/run"), payload);
    },
    async runWithResult<Result>(nameOrId: string | number, payload: object = {}) {
      return (await request("POST", getActionPathByName(nameOrId, "/runWithResult"), payload))["result"] as Result;
    },
    async publish(id) {
      return { action: (await request("POST", getActionPath(id, "/publish")))["action"] as Action };
    },
    async unpublish(id) {
      await request("POST", getActionPath(id, "/unpublish"));
    },
    async getLogs(options = {}) {
      const { count, logs } = await request("POST", `${getActionsPath()}/logs`, options);
      return { count: count as number, logs: logs as LogEntry[] };
    },
    response: createResponseFunction(null),
  };
}
