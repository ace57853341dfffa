/**
 * Calls rows of the REST table inside the process. A tool therefore gets the rights, limits and errors that the same HTTP request would
 * get.
 */
import type { FastifyRequest } from "fastify";
import { reportUnknownField } from "../../rules/unknown-fields.js";
import type { RequestContext } from "../context.js";
import type { Resolvers } from "../graphql/schema.js";
import { restRequest } from "../rest/request.js";
import type { Route } from "../rest/route.js";
import { ROUTES } from "../rest/routes.js";

export interface RestCall {
  params?: Record<string, string | number>;
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
}

// biome-ignore lint/suspicious/noExplicitAny: an answer has the shape of its route
type Body = any;

export type CallRest = (method: Route["method"], path: string, call?: RestCall) => Promise<Body>;

const convertValuesToTexts = (values: Record<string, string | number | boolean | undefined>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(values)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, String(value)]),
  );

/**
 * Returns the function by which the tools of one request call routes. Parameters are path values, never parts of a URL.
 * @param path path in the table, with the names of its parameters
 */
export function restCaller(resolvers: Resolvers, context: RequestContext): CallRest {
  const rows = new Map<string, Route>(ROUTES.map((route) => [`${route.method} ${route.path}`, route]));
  return async (method, path, { params = {}, query = {}, body, headers = {} } = {}) => {
    const row = rows.get(`${method} ${path}`);
    if (!row) throw new Error(`the REST table has no route ${method} ${path}`);
    const { quota: _quota, deferred: _deferred, unknownField: _unknown, updatedAt: _updatedAt, ...shared } = context;
    const innerContext: RequestContext = { ...shared, idempotencyKey: null };
    const values = convertValuesToTexts(params);
    // The request needs no real URL: routes read only lists of names from the URL, and no tool passes such a list.
    const request = {
      params: values,
      query: convertValuesToTexts(query),
      body,
      headers,
      url: path,
      routeOptions: { url: path },
    };
    const innerRequest = restRequest(request as unknown as FastifyRequest, innerContext);
    const answer = await context.answer!.part(() => row.handle(resolvers, innerRequest));
    if (innerContext.deferred) throw innerContext.deferred;
    reportUnknownField(innerContext);
    return answer;
  };
}
