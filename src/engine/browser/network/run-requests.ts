/** Requests of one run: checks URLs, records traces and failures. Messages name hosts, but no paths or queries (possible secrets). */
import type { Protocol } from "puppeteer";
import type { PageRunOutcome, PageRunRequest } from "../run.js";
import type { ProxyCallbacks } from "./proxy-port.js";

const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "ws:": "80", "https:": "443", "wss:": "443" };
/** Error message that Chromium gives a page for every failed `fetch`. */
const FAILED_FETCH_MESSAGE = "Failed to fetch";
export const BLOCKED_REQUEST_TEXT = "the request was blocked, because its URL contains a secret of the app";
const FAULTS_MAX = 20;
const FAULTS_PER_MESSAGE_MAX = 3;
const PENDING_REQUESTS_MAX = 1_000;
const SETTLE_TIMEOUT_MS = 200;
/** Maximum time for which a new connection waits until the browser has reported all earlier requests. Then the proxy rejects it. */
const REQUEST_REPORTS_TIMEOUT_MS = 5_000;
/** Limits the memory, because a page may have thousands of requests that never end. */
const TRACED_REQUESTS_MAX = 500;

interface TracedRequest {
  endTrace(status: number | null): void;
  status: number | null;
}

type ObservedRun = Pick<PageRunRequest, "mayRequest" | "onRequest" | "onHost" | "onConsole" | "network">;

/** Returns `host:port` of a URL; null for a URL without a host, such as `data:`. */
export function getUrlHostAndPort(address: string): string | null {
  const url = URL.parse(address);
  const port = url === null ? undefined : DEFAULT_PORTS[url.protocol];
  if (url === null || port === undefined) return null;
  return `${url.hostname.replace(/^\[(.*)\]$/, "$1")}:${url.port || port}`;
}

function describeFailureReason(
  { corsErrorStatus, errorText, blockedReason }: Protocol.Network.LoadingFailedEvent,
  origin: string,
): string {
  if (blockedReason === "inspector") return BLOCKED_REQUEST_TEXT;
  if (corsErrorStatus) {
    return `blocked by CORS, because the host does not allow this request from ${origin} (${corsErrorStatus.corsError})`;
  }
  if (blockedReason === "mixed-content") return "blocked, because code can send requests only to https URLs";
  const code = errorText.replace(/^net::/, "");
  if (/^ERR_CERT_/.test(code)) return `the certificate of the host is not trusted (${code})`;
  if (/^ERR_(SSL|TLS|BAD_SSL|ECH)_/.test(code)) return `TLS with the host failed (${code})`;
  return errorText || blockedReason || "unknown reason";
}

export class RunRequests implements ProxyCallbacks {
  private readonly urlByRequestId = new Map<string, string>();
  private hasTooManyRequests = false;
  private onAllEnded: () => void = () => {};
  private readonly hosts = new Set<string>();
  private readonly acceptedHosts = new Set<string>();
  private readonly rejectedHosts = new Set<string>();
  private pendingWebSocketChecks: Promise<unknown> = Promise.resolve();
  private readonly rejectionByHost = new Map<string, string>();
  private readonly faults = new Set<string>();
  private readonly tracedRequests = new Map<string, TracedRequest>();

  /** @param waitForSentEvents waits for all events that the page, its workers and frames have sent; rejects after `timeoutMs` */
  constructor(
    private readonly run: ObservedRun,
    private readonly origin: string,
    private readonly waitForSentEvents: (timeoutMs: number) => Promise<void>,
  ) {}

  onHost(host: string): void {
    if (!this.hosts.has(host)) this.run.onHost?.(host);
    this.hosts.add(host);
  }

  onRejected(host: string, reason: string): void {
    if (this.rejectionByHost.size < FAULTS_MAX) this.rejectionByHost.set(host, reason);
  }

  /** Called when the proxy has connected to a host. An earlier rejection by the proxy is then not the reason of later failures. */
  onConnected(host: string): void {
    this.rejectionByHost.delete(host);
  }

  /** Returns false if the run's URL check rejects the URL or the referrer, or fails. URLs without a host need no check. */
  async acceptsUrl(url: string, referrer?: string): Promise<boolean> {
    const host = getUrlHostAndPort(url);
    const { mayRequest } = this.run;
    if (host === null || mayRequest === undefined) return true;
    try {
      if (!(await mayRequest(url)) || (referrer !== undefined && !(await mayRequest(referrer)))) return false;
    } catch {
      return false;
    }
    this.acceptedHosts.add(host);
    return true;
  }

  async mayConnect(host: string): Promise<boolean> {
    if (this.run.network === false) return false;
    if (this.run.mayRequest === undefined) return true;
    try {
      await this.waitForSentEvents(REQUEST_REPORTS_TIMEOUT_MS);
    } catch {
      return false;
    }
    await this.pendingWebSocketChecks;
    if (this.acceptedHosts.has(host)) return !this.rejectedHosts.has(host);
    // Rejects the connection: it belongs to no accepted request (preconnect). This call of `mayRequest` only logs a secret in the host.
    await Promise.resolve(this.run.mayRequest(`https://${host}/`)).catch(() => false);
    return false;
  }

  /** DevTools cannot pause a WebSocket. So if the check rejects its URL, the proxy port rejects all connections to its host. */
  onWebSocket({ url }: Protocol.Network.WebSocketCreatedEvent): void {
    const host = getUrlHostAndPort(url);
    const urlCheck = this.acceptsUrl(url).then((isAccepted) => !isAccepted && host && this.rejectedHosts.add(host));
    this.pendingWebSocketChecks = Promise.all([this.pendingWebSocketChecks, urlCheck]);
  }

  onSent({ requestId, request }: Protocol.Network.RequestWillBeSentEvent): void {
    if (this.urlByRequestId.size < PENDING_REQUESTS_MAX) this.urlByRequestId.set(requestId, request.url);
    else this.hasTooManyRequests = true;
  }

  onResponse({ requestId, response }: Protocol.Network.ResponseReceivedEvent): void {
    const request = this.tracedRequests.get(requestId);
    if (request) request.status = response.status;
  }

  onEnded(requestId: string): void {
    const request = this.tracedRequests.get(requestId);
    this.tracedRequests.delete(requestId);
    request?.endTrace(request.status);
    this.urlByRequestId.delete(requestId);
    if (this.urlByRequestId.size === 0) this.onAllEnded();
  }

  onFailed(event: Protocol.Network.LoadingFailedEvent): void {
    const url = URL.parse(this.urlByRequestId.get(event.requestId) ?? "");
    this.onEnded(event.requestId);
    if (url === null || url.origin === "null" || event.canceled) return;
    const rejection = this.rejectionByHost.get(getUrlHostAndPort(url.href) ?? "");
    this.recordFailure(url, rejection ?? describeFailureReason(event, this.origin));
  }

  /** Starts the trace of a request. If the trace adds headers, returns all headers of the request; otherwise {}, which changes nothing. */
  startTrace({ networkId: id, request }: Protocol.Fetch.RequestPausedEvent): {
    headers?: Protocol.Fetch.HeaderEntry[];
  } {
    // Skips a redirected request: its start has already been reported, and it gets no additional headers.
    if (id === undefined || this.tracedRequests.has(id) || this.tracedRequests.size >= TRACED_REQUESTS_MAX) return {};
    const trace = this.reportRequest(request);
    if (!trace) return {};
    this.tracedRequests.set(id, { endTrace: trace.endTrace, status: null });
    if (Object.keys(trace.headers).length === 0) return {};
    const headers = Object.entries({ ...request.headers, ...trace.headers });
    return { headers: headers.map(([name, value]) => ({ name, value })) };
  }

  reportRequest({ method, url }: { method: string; url: string }) {
    const { mayRequest, onRequest } = this.run;
    return mayRequest && onRequest?.({ method, url });
  }

  /** Leaves out the origin of a blocked request, because the host name may contain a secret. */
  recordFailure({ origin }: URL, reason: string): void {
    const fault = `${reason === BLOCKED_REQUEST_TEXT ? "an address" : origin}: ${reason}`;
    if (this.faults.has(fault) || this.faults.size >= FAULTS_MAX) return;
    this.faults.add(fault);
    this.run.onConsole?.({ level: "error", at: Date.now(), text: `A request failed: ${fault}` });
  }

  /** @throws Error if a request is still active after SETTLE_TIMEOUT_MS, or if too many requests were active at once */
  async waitUntilAllEnded(): Promise<void> {
    if (this.hasTooManyRequests)
      throw new Error("the run has too many requests in progress, so the service cannot detect when all have ended");
    if (this.urlByRequestId.size === 0) return;
    await new Promise<void>((resolve, reject) => {
      const fail = () => reject(new Error(`some requests of the run did not end within ${SETTLE_TIMEOUT_MS} ms`));
      const timer = setTimeout(fail, SETTLE_TIMEOUT_MS);
      this.onAllEnded = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** True if failure reasons may still be missing: a request is active, or a failed `fetch` ended the run. False after a timeout. */
  mayLackFailureReasons(outcome: PageRunOutcome): boolean {
    const hasPendingRequest = this.urlByRequestId.size > 0;
    if (outcome.ok) return hasPendingRequest;
    return outcome.cause === "script" && (hasPendingRequest || outcome.error.message === FAILED_FETCH_MESSAGE);
  }

  /** If the run failed because of a request, adds the reasons of the run's first failed requests to its error message. */
  explainFailure(outcome: PageRunOutcome): PageRunOutcome {
    if (outcome.ok || outcome.error.message !== FAILED_FETCH_MESSAGE || this.faults.size === 0) return outcome;
    const message = `${FAILED_FETCH_MESSAGE} ${[...this.faults].slice(0, FAULTS_PER_MESSAGE_MAX).join("; ")}`;
    const stack = outcome.error.stack.replace(FAILED_FETCH_MESSAGE, () => message);
    return { ...outcome, error: { ...outcome.error, message, stack } };
  }
}
