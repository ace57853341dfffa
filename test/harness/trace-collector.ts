/** OpenTelemetry collector in the test's process. Receives OTLP over HTTP as JSON, and stores the spans. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface CollectedSpan {
  name: string;
  traceId: string;
  spanId: string;
  /** ID of the parent span; "" for the first span of a trace. */
  parentSpanId: string;
  values: Record<string, unknown>;
}

interface SpanAttribute {
  key: string;
  value: Record<string, unknown>;
}

interface SpanBatch {
  resourceSpans: { scopeSpans: { spans: (Omit<CollectedSpan, "values"> & { attributes: SpanAttribute[] })[] }[] }[];
}

export interface TraceCollector {
  url: string;
  spans: CollectedSpan[];
  /** Raw bodies of all requests. */
  texts: string[];
  /** Requested paths. */
  paths: Set<string>;
  stop(): Promise<void>;
}

export async function startTraceCollector(): Promise<TraceCollector> {
  const spans: CollectedSpan[] = [];
  const texts: string[] = [];
  const paths = new Set<string>();
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    paths.add(request.url ?? "");
    texts.push(text);
    for (const { scopeSpans } of (JSON.parse(text) as SpanBatch).resourceSpans) {
      for (const { attributes, name, traceId, spanId, parentSpanId = "" } of scopeSpans.flatMap((span) => span.spans)) {
        const values = Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
        spans.push({ name, traceId, spanId, parentSpanId, values });
      }
    }
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    texts,
    paths,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
