/**
 * Creates a trace span for each request. The span continues the trace that the caller sends, except for anonymous callers and pages of
 * apps. A span contains routes and status codes, but no addresses, headers or bodies.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { RequestTracing, TraceSpan } from "../operations/watch/tracing.js";
import { isPageCaller } from "../rules/access.js";
import type { RequestContext } from "./context.js";
import { callWhenResponseEnds } from "./response-end.js";

/** Returns the trace that the request's `traceparent` header names; null if the service does not trust the sender. */
function readParentTrace({ headers, context }: FastifyRequest): string | null {
  const { caller } = context;
  const { traceparent } = headers;
  return typeof traceparent === "string" && caller && !isPageCaller(caller) ? traceparent : null;
}

/** Registers the hooks that create spans, if tracing is on. Call it after the hook that sets `request.context`. */
export function registerTracingHooks(app: FastifyInstance, tracing: RequestTracing): void {
  if (!tracing.isOn) return;
  app.addHook("onRequest", async (request, reply) => {
    const { method, routeOptions } = request;
    const route = routeOptions.url ?? "none";
    const spanAttributes = { "http.request.method": method, "http.route": route };
    const span = tracing.beginSpan(`${method} ${route}`, "server", readParentTrace(request), spanAttributes);
    request.context.span = span;
    callWhenResponseEnds(request.raw, reply.raw, () => {
      const { statusCode } = reply.raw;
      span.setAttributes({ "http.response.status_code": statusCode });
      span.endSpan(statusCode >= 500);
    });
  });
}

/** Runs `work`. Spans that `work` creates belong to the request's span. */
export function runInRequestSpan<T>(tracing: RequestTracing, { span }: Pick<RequestContext, "span">, work: () => T): T {
  return span ? tracing.runInSpan(span, work) : work();
}

export async function traceWebsocketOperation<T>(tracing: RequestTracing, work: () => Promise<T>): Promise<T> {
  if (!tracing.isOn) return work();
  const span: TraceSpan = tracing.beginSpan("websocket operation", "server", null);
  try {
    return await tracing.runInSpan(span, work);
  } finally {
    span.endSpan();
  }
}
