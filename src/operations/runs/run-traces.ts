/**
 * The spans of runs: each under the request that asked for it, also where another process performs it, with its browser and what its page
 * requests. Keeps a queued run's trace context until it starts. Tells hosts and numbers, never an address, a payload or a message.
 */
import type { DataSource } from "typeorm";
import { type Executor, rows } from "../../data/database.js";
import type { PageOutcome, PageRequest, PageRun } from "../../engine/browser/run.js";
import type { ExchangeFacts } from "../../engine/outgoing.js";
import type { Span, Tracing } from "../watch/tracing.js";
import type { HeldRun } from "./run-facts.js";

const KEEP = "INSERT INTO run_trace (run_id, traceparent) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const TAKE = "DELETE FROM run_trace WHERE run_id = $1 RETURNING traceparent";

/** Requests of one run that have a span. */
const REQUESTS_MAX = 200;
/** A page may make up any other. */
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

export interface RunTrace {
  /** Performs the run's page under its span. */
  page(perform: (request: PageRun) => Promise<PageOutcome>, request: PageRun): Promise<PageOutcome>;
  /** Begins the span of a request to another service; the function that it returns ends it. */
  request(origin: string, method: string): (facts: ExchangeFacts) => void;
  end(values: { outcome: string; mode: string }): void;
}

export type RunTraces = ReturnType<typeof createRunTraces>;

/** `apiUrl`: this service as runs reach it. Of all hosts it alone is told the trace that a request belongs to. */
export function createRunTraces(options: { db: DataSource; tracing: Tracing; apiUrl: string }) {
  const { db, tracing } = options;
  const { origin: ownOrigin } = new URL(options.apiUrl);

  function requestSpan({ url, method }: PageRequest, browser: Span): { span: Span; isOwn: boolean } {
    const { origin, hostname, port, protocol } = new URL(url);
    const span = tracing.begin("fetch", "client", browser.traceparent, {
      "http.request.method": METHODS.includes(method) ? method : "_OTHER",
      "server.address": hostname,
      "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
    });
    return { span, isOwn: origin === ownOrigin };
  }

  function createFollower(browser: Span) {
    const open = new Set<Span>();
    let count = 0;
    return {
      follow(request: PageRequest): ReturnType<NonNullable<PageRun["onRequest"]>> {
        count += 1;
        if (count > REQUESTS_MAX || !/^https?:/.test(request.url)) return null;
        const { span, isOwn } = requestSpan(request, browser);
        open.add(span);
        return {
          headers: isOwn && span.traceparent !== null ? { traceparent: span.traceparent } : {},
          end(status) {
            if (status !== null) span.set({ "http.response.status_code": status });
            span.end(status === null || status >= 400);
            open.delete(span);
          },
        };
      },
      /** What the run did not wait for. */
      endAll(): void {
        for (const span of open) span.end(true);
      },
    };
  }

  async function begin(run: HeldRun): Promise<RunTrace> {
    const { id, appId, actionId, trigger } = run;
    const kept = run.traceparent ?? (await rows<{ traceparent: string }>(db, TAKE, [id]))[0]?.traceparent ?? null;
    const values = { "svc.run_id": id, "svc.app_id": appId, "svc.action_id": actionId, "svc.trigger": trigger };
    const span = tracing.begin("run", "internal", kept, values);
    return {
      async page(perform, request) {
        const browser = tracing.begin("browser", "internal", span.traceparent);
        const { follow, endAll } = createFollower(browser);
        const outcome = await perform({ mayRequest: () => true, ...request, onRequest: follow });
        endAll();
        browser.end(!outcome.ok);
        return outcome;
      },
      request(origin, method) {
        const { hostname, port, protocol } = new URL(origin);
        const request = tracing.begin("request", "client", span.traceparent, {
          "http.request.method": method,
          "server.address": hostname,
          "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
        });
        return ({ status, sentBytes, receivedBytes, code }) => {
          request.set({ "http.request.body.size": sentBytes, "http.response.body.size": receivedBytes });
          if (status !== null) request.set({ "http.response.status_code": status });
          if (code !== null) request.set({ "error.type": code });
          request.end(code !== null || status === null || status >= 400);
        };
      },
      end({ outcome, mode }) {
        span.set({ "svc.outcome": outcome, "svc.mode": mode });
        span.end(outcome !== "completed");
      },
    };
  }

  const nothing: RunTrace = {
    page: (perform, request) => perform(request),
    request: () => () => undefined,
    end: () => undefined,
  };

  return {
    /** The current trace, for a run that starts at once; null where none is. */
    current: tracing.current,

    /** Queues a run, and keeps with it the trace of who asked for it. */
    async queue<T extends { id: number }>(accept: (executor: Executor) => Promise<T>): Promise<T> {
      const traceparent = tracing.current();
      if (traceparent === null) return accept(db);
      return db.transaction(async (manager) => {
        const accepted = await accept(manager);
        await manager.query(KEEP, [accepted.id, traceparent]);
        return accepted;
      });
    },

    /** The span of a run that starts now. Never rejects: a run does not fail by its trace. */
    begin: async (run: HeldRun): Promise<RunTrace> => (tracing.isOn ? begin(run).catch(() => nothing) : nothing),
  };
}
