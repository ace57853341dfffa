/** OpenTelemetry spans of runs. They contain no paths of URLs, payloads or messages. */
import { type Db, rows, type SqlClient } from "../../data/database.js";
import type { PageRunOutcome, PageRunRequest } from "../../engine/browser/run.js";
import type { OutgoingHopSummary } from "../../engine/outgoing.js";
import { createRequestSpanAttributes, PageRequestSpans } from "../watch/request-spans.js";
import { NO_TRACING, type RequestTracing, type TraceSpan } from "../watch/tracing.js";
import type { RunRecord } from "./run-types.js";

const INSERT_TRACE = "INSERT INTO run_trace (run_id, traceparent) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const DELETE_TRACE = "DELETE FROM run_trace WHERE run_id = $1 RETURNING traceparent";

/** Without tracing, the methods create no spans. */
export class RunTrace {
  constructor(
    private readonly tracing: RequestTracing,
    private readonly span: TraceSpan,
    private readonly serviceOrigin: string,
  ) {}

  async tracePage(
    runPage: (request: PageRunRequest) => Promise<PageRunOutcome>,
    request: PageRunRequest,
  ): Promise<PageRunOutcome> {
    if (!this.tracing.isOn) return runPage(request);
    const browser = this.tracing.beginSpan("browser", "internal", this.span.traceparent);
    const spans = new PageRequestSpans(this.tracing, browser, this.serviceOrigin);
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

const NO_TRACE = new RunTrace(NO_TRACING, NO_TRACING.beginSpan("run", "internal", null), "");

export class RunTraces {
  private readonly serviceOrigin: string;

  constructor(
    private readonly db: Db,
    private readonly tracing: RequestTracing,
    apiUrl: string,
  ) {
    this.serviceOrigin = new URL(apiUrl).origin;
  }

  currentTraceparent(): string | null {
    return this.tracing.currentTraceparent();
  }

  async queueWithTrace<T extends { id: number }>(insert: (executor: SqlClient) => Promise<T>): Promise<T> {
    const traceparent = this.currentTraceparent();
    if (traceparent === null) return insert(this.db);
    return this.db.transaction(async (manager) => {
      const inserted = await insert(manager);
      await manager.query(INSERT_TRACE, [inserted.id, traceparent]);
      return inserted;
    });
  }

  /** Never rejects, so that a failure of tracing does not end the run. */
  async beginTrace(run: RunRecord): Promise<RunTrace> {
    if (!this.tracing.isOn) return NO_TRACE;
    try {
      const { id, appId, actionId, trigger } = run;
      const [stored] = run.traceparent ? [run] : await rows<{ traceparent: string }>(this.db, DELETE_TRACE, [id]);
      const values = { "svc.run_id": id, "svc.app_id": appId, "svc.action_id": actionId, "svc.trigger": trigger };
      const span = this.tracing.beginSpan("run", "internal", stored?.traceparent ?? null, values);
      return new RunTrace(this.tracing, span, this.serviceOrigin);
    } catch {
      return NO_TRACE;
    }
  }
}
