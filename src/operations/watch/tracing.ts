/**
 * Sends trace spans of this process to an OpenTelemetry collector, if one is configured. Values of spans are numbers, fixed words and host
 * names of requests; callers must not pass other text from users or their code.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Context, Span as OtelSpan, Tracer } from "@opentelemetry/api";
import type { Logger } from "pino";

export type SpanKind = "server" | "client" | "internal";
export type SpanAttributes = Record<string, string | number | boolean>;

export interface TraceSpan {
  /** W3C trace context for requests that are sent within this span; null if tracing is off. */
  readonly traceparent: string | null;
  setAttributes(values: SpanAttributes): void;
  /** Ends the span. A second call has no effect. @param failed true if the work in the span has failed */
  endSpan(failed?: boolean): void;
}

export interface RequestTracing {
  readonly isOn: boolean;
  /** Starts a span. @param parent W3C trace context of the parent span; null or an invalid value starts a new trace */
  beginSpan(name: string, kind: SpanKind, parent: string | null, values?: SpanAttributes): TraceSpan;
  /** Runs `work` with `span` as the current span. The span also stays current in asynchronous code that `work` awaits. */
  runInSpan<T>(span: TraceSpan, work: () => T): T;
  /** Returns the W3C trace context of the current span; null if there is no span. */
  getCurrentTraceparent(): string | null;
  /** Sends the remaining spans, and waits for this at most STOP_TIMEOUT_MS. */
  stop(): Promise<void>;
}

const NO_SPAN: TraceSpan = { traceparent: null, setAttributes: () => undefined, endSpan: () => undefined };

/** Tracing without a collector. Starting a span costs only one function call. */
export const NO_TRACING: RequestTracing = {
  isOn: false,
  beginSpan: () => NO_SPAN,
  runInSpan: (_span, work) => work(),
  getCurrentTraceparent: () => null,
  stop: async () => undefined,
};

const STOP_TIMEOUT_MS = 3_000;
/** Version, trace ID, span ID and flags (W3C Trace Context, level 1). IDs of only zeros are invalid. */
const TRACEPARENT_PATTERN = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

function formatTraceparent(span: OtelSpan): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

/** Minimum time in milliseconds between two log messages about lost spans. */
const LOG_INTERVAL_MS = 60_000;

/** Result of sending a batch of spans. Code 0 means success. */
interface ExportResult {
  code: number;
  error?: Error;
}

/**
 * Returns a function that logs lost batches of spans. It logs the first lost batch at once, and then at most one message a minute with the
 * number of lost spans. It also logs the first success after a loss.
 * @param now returns the time of a monotonic clock in milliseconds
 */
export function createSpanExportLog(
  collector: string,
  log: Logger,
  now: () => number = () => performance.now(),
): (result: ExportResult, spans: number) => void {
  let lastLoggedAt: number | null = null;
  let lostSpans = 0;
  return ({ code, error }, spans) => {
    if (code === 0) {
      if (lastLoggedAt !== null)
        log.info({ collector, lostSpans: lostSpans }, "the trace collector accepts spans again");
      lastLoggedAt = null;
      lostSpans = 0;
      return;
    }
    lostSpans += spans;
    if (lastLoggedAt !== null && now() - lastLoggedAt < LOG_INTERVAL_MS) return;
    lastLoggedAt = now();
    log.warn(
      { collector, reason: error?.message ?? "unknown", lostSpans: lostSpans },
      "the trace collector does not accept spans",
    );
  };
}

/**
 * Creates the tracing of this process. `endpoint` is the collector's URL without `/v1/traces`; null turns tracing off, and OpenTelemetry is
 * not loaded. `instance` is the ID of this process.
 */
export async function createTracing(endpoint: string | null, instance: string, log: Logger): Promise<RequestTracing> {
  if (endpoint === null) return NO_TRACING;
  const [api, { BasicTracerProvider, BatchSpanProcessor }, { OTLPTraceExporter }, { resourceFromAttributes }] =
    await Promise.all([
      import("@opentelemetry/api"),
      import("@opentelemetry/sdk-trace-base"),
      import("@opentelemetry/exporter-trace-otlp-http"),
      import("@opentelemetry/resources"),
    ]);
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces` });
  const logExport = createSpanExportLog(endpoint, log);
  const exportSpans = exporter.export.bind(exporter);
  exporter.export = (spans, done) =>
    exportSpans(spans, (result) => {
      logExport(result, spans.length);
      done(result);
    });
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ "service.name": "svc-app-actions", "service.instance.id": instance }),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  const tracer: Tracer = provider.getTracer("svc-app-actions");
  const kinds = { server: api.SpanKind.SERVER, client: api.SpanKind.CLIENT, internal: api.SpanKind.INTERNAL };
  const spans = new AsyncLocalStorage<TraceSpan>();

  function createParentContext(parent: string | null): Context {
    const [, traceId, spanId, flags] = TRACEPARENT_PATTERN.exec(parent ?? "") ?? [];
    if (!traceId || !spanId) return api.ROOT_CONTEXT;
    const traceFlags = Number.parseInt(flags!, 16) & api.TraceFlags.SAMPLED;
    return api.trace.setSpanContext(api.ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
  }

  return {
    isOn: true,
    beginSpan(name, kind, parent, values = {}) {
      const span = tracer.startSpan(name, { kind: kinds[kind], attributes: values }, createParentContext(parent));
      return {
        traceparent: formatTraceparent(span),
        setAttributes(more) {
          span.setAttributes(more);
        },
        endSpan(failed = false) {
          if (!span.isRecording()) return;
          if (failed) span.setStatus({ code: api.SpanStatusCode.ERROR });
          span.end();
        },
      };
    },
    runInSpan: (span, work) => spans.run(span, work),
    getCurrentTraceparent: () => spans.getStore()?.traceparent ?? null,
    async stop() {
      const stopTimeout = new Promise<void>((resolve) => setTimeout(resolve, STOP_TIMEOUT_MS).unref());
      // The last spans are lost if the collector does not respond in time.
      await Promise.race([provider.shutdown().catch(() => undefined), stopTimeout]);
    },
  };
}
