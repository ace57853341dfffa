/** OpenTelemetry spans of runs. They contain no paths of URLs, payloads or messages. */
import type { PageRunOutcome, PageRunRequest } from "../../engine/browser/run.js";
import type { OutgoingHopSummary } from "../../engine/outgoing.js";
import { createRequestSpanAttributes, PageRequestSpans } from "../watch/request-spans.js";
import type { RequestTracing, TraceSpan } from "../watch/tracing.js";
import type { RunRecord } from "./run-types.js";

/** Without tracing, the methods create no spans. */
export class RunTrace {
  private readonly span: TraceSpan;

  constructor(
    private readonly tracing: RequestTracing,
    private readonly apiUrl: string,
    { id, appId, actionId, trigger, traceparent = null }: RunRecord,
  ) {
    const values = { "svc.run_id": id, "svc.app_id": appId, "svc.action_id": actionId, "svc.trigger": trigger };
    this.span = tracing.beginSpan("run", "internal", traceparent, values);
  }

  async tracePage(
    runPage: (request: PageRunRequest) => Promise<PageRunOutcome>,
    request: PageRunRequest,
  ): Promise<PageRunOutcome> {
    if (!this.tracing.isOn) return runPage(request);
    const browser = this.tracing.beginSpan("browser", "internal", this.span.traceparent);
    const spans = new PageRequestSpans(this.tracing, browser, new URL(this.apiUrl).origin);
    const outcome = await runPage({ mayRequest: () => true, ...request, onRequest: (sent) => spans.start(sent) });
    spans.endAll();
    browser.endSpan(!outcome.ok);
    return outcome;
  }

  /** Starts the span of a request to another service. The returned function ends it. */
  startRequestSpan(origin: string, method: string): (facts: OutgoingHopSummary) => void {
    const values = createRequestSpanAttributes(new URL(origin), method);
    const span = this.tracing.beginSpan("request", "client", this.span.traceparent, values);
    return ({ status, sentBytes, receivedBytes, code }) => {
      span.setAttributes({ "http.request.body.size": sentBytes, "http.response.body.size": receivedBytes });
      if (status !== null) span.setAttributes({ "http.response.status_code": status });
      if (code !== null) span.setAttributes({ "error.type": code });
      span.endSpan(code !== null || status === null || status >= 400);
    };
  }

  endTrace({ outcome, mode }: { outcome: string; mode: string }): void {
    this.span.setAttributes({ "svc.outcome": outcome, "svc.mode": mode });
    this.span.endSpan(outcome !== "completed");
  }
}
