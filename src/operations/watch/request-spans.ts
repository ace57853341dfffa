/** Spans of the HTTP requests that runs send. They contain no paths of URLs. */
import type { HttpRequestOfRun, PageRunRequest } from "../../engine/browser/run.js";
import type { RequestTracing, SpanAttributes, TraceSpan } from "./tracing.js";

/** Maximum number of spans for the requests of one run. */
const REQUEST_SPANS_MAX = 200;
/** HTTP methods that spans contain. Other methods, which code can invent, become `_OTHER`. */
const NAMED_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

export function createRequestSpanAttributes(url: URL, method: string): SpanAttributes {
  return {
    "http.request.method": NAMED_METHODS.includes(method) ? method : "_OTHER",
    "server.address": url.hostname,
    "server.port": Number(url.port) || (url.protocol === "https:" ? 443 : 80),
  };
}

export class PageRequestSpans {
  private readonly open = new Set<TraceSpan>();
  private count = 0;

  constructor(
    private readonly tracing: RequestTracing,
    private readonly browser: TraceSpan,
    private readonly serviceOrigin: string,
  ) {}

  start(request: HttpRequestOfRun): ReturnType<NonNullable<PageRunRequest["onRequest"]>> {
    this.count += 1;
    if (this.count > REQUEST_SPANS_MAX || !/^https?:/.test(request.url)) return null;
    const url = new URL(request.url);
    const values = createRequestSpanAttributes(url, request.method);
    const span = this.tracing.beginSpan("fetch", "client", this.browser.traceparent, values);
    this.open.add(span);
    // Sends the trace context only to this service, never to other servers.
    const isPropagated = url.origin === this.serviceOrigin && span.traceparent !== null;
    return {
      headers: isPropagated ? { traceparent: span.traceparent! } : {},
      endTrace: (status) => {
        if (status !== null) span.setAttributes({ "http.response.status_code": status });
        span.endSpan(status === null || status >= 400);
        this.open.delete(span);
      },
    };
  }

  /** Ends the spans of requests that were still in progress when the run ended. */
  endAll(): void {
    for (const span of this.open) span.endSpan(true);
  }
}
