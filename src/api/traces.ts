/**
 * A span for each request, and whose trace it goes on with: that of callers who are the app's own, never that of a visitor. Names routes
 * and codes; addresses, headers and bodies stay out.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Span, Tracing } from "../operations/watch/tracing.js";
import { isVisitor } from "../rules/access.js";
import { whenOver } from "./answer-end.js";
import type { RequestContext } from "./context.js";

/** The trace that the sender of a request says it belongs to; null where it is not to be believed. */
function parentOf({ headers, context }: FastifyRequest): string | null {
  const { caller } = context;
  const { traceparent } = headers;
  return typeof traceparent === "string" && caller && !isVisitor(caller) ? traceparent : null;
}

/** To be called after the hook that makes the context. Does nothing where nothing is traced. */
export function registerTraces(app: FastifyInstance, tracing: Tracing): void {
  if (!tracing.isOn) return;
  app.addHook("onRequest", async (request, reply) => {
    const { method, routeOptions } = request;
    const route = routeOptions.url ?? "none";
    const values = { "http.request.method": method, "http.route": route };
    const span = tracing.begin(`${method} ${route}`, "server", parentOf(request), values);
    request.context.span = span;
    whenOver(request.raw, reply.raw, () => {
      const { statusCode } = reply.raw;
      span.set({ "http.response.status_code": statusCode });
      span.end(statusCode >= 500);
    });
  });
}

/** Does the work of a request under its span. */
export function traced<T>(tracing: Tracing, { span }: Pick<RequestContext, "span">, work: () => T): T {
  return span ? tracing.within(span, work) : work();
}

/** Does the work of one operation of a websocket under a span of its own. */
export async function tracedOperation<T>(tracing: Tracing, work: () => Promise<T>): Promise<T> {
  if (!tracing.isOn) return work();
  const span: Span = tracing.begin("websocket operation", "server", null);
  try {
    return await tracing.within(span, work);
  } finally {
    span.end();
  }
}
