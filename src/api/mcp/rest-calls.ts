/**
 * Calls REST routes inside the process, without HTTP, so that an MCP tool has the same rights, limits and errors as an
 * HTTP request.
 */
import type { FastifyRequest } from "fastify";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import type { RequestContext } from "../context.js";
import type { Resolvers } from "../graphql/schema.js";
import { createRestRequest } from "../rest/request.js";
import type { Route } from "../rest/route.js";
import { ROUTES } from "../rest/routes.js";

export interface RestCallOptions {
  params?: Record<string, string | number>;
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
}

// biome-ignore lint/suspicious/noExplicitAny: the type of a response body depends on the route
type ResponseBody = any;

export type CallRestRoute = (method: Route["method"], path: string, call?: RestCallOptions) => Promise<ResponseBody>;

const convertValuesToTexts = (values: Record<string, string | number | boolean | undefined>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(values)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, String(value)]),
  );

/**
 * Returns the function with which the tools of one request call REST routes. The argument `path` is the path of a route, such as
 * "/v1/apps/:appId".
 */
export function createRestCaller(resolvers: Resolvers, context: RequestContext): CallRestRoute {
  const routesByKey = new Map<string, Route>(ROUTES.map((route) => [`${route.method} ${route.path}`, route]));
  return async (method, path, { params = {}, query = {}, body, headers = {} } = {}) => {
    const route = routesByKey.get(`${method} ${path}`);
    if (!route) throw new Error(`the REST API has no route ${method} ${path}`);
    const { quota, deferredError, unknownField, updatedAt, ...sharedContext } = context;
    const innerContext: RequestContext = { ...sharedContext, idempotencyKey: null };
    const pathValues = convertValuesToTexts(params);
    // The URL is only the route's pattern. Routes read only lists of names from the URL, and no tool passes lists of names.
    const request = {
      params: pathValues,
      query: convertValuesToTexts(query),
      body,
      headers,
      url: path,
      routeOptions: { url: path },
    };
    const innerRequest = createRestRequest(request as unknown as FastifyRequest, innerContext);
    const result = await context.responseBudget!.runPart(() => route.handle(resolvers, innerRequest));
    if (innerContext.deferredError) throw innerContext.deferredError;
    throwIfUnknownField(innerContext);
    return result;
  };
}
