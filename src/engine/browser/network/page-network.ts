/** Network of a page, its frames and workers: opens the proxy port for each run, and pauses requests until their URLs are checked. */
import type { CDPSession, Protocol } from "puppeteer";
import type { HttpRequestOfRun, PageRunRequest } from "../run.js";
import type { ProxyPort } from "./proxy-port.js";
import { BLOCKED_REQUEST_TEXT, getUrlHostAndPort, RunRequests } from "./run-requests.js";

/** Options of Network.enable with which the browser stores no bodies for DevTools. This saves memory. */
const NO_BUFFERING_OPTIONS = { maxTotalBufferSize: 0, maxResourceBufferSize: 0, maxPostDataSize: 0 };

/** The caller adds `headers`, and calls `reportEnd` at the end of the request; `failure` is the reason if there is no response. */
export interface AdmittedRunRequest {
  headers: Readonly<Record<string, string>>;
  reportEnd(status: number | null, failure?: string): void;
}

interface PageNetworkOptions {
  session: CDPSession;
  origin: string;
  proxyPort: ProxyPort | null;
  /** Waits for all events that the page, its workers and frames have sent. Rejects after `timeoutMs`. */
  waitForSentEvents: (timeoutMs: number) => Promise<void>;
}

export class PageNetwork {
  /** Requests of the active or last run. */
  requests: RunRequests;
  private urlCheckPromise: Promise<unknown> | null = null;

  constructor(private readonly options: PageNetworkOptions) {
    this.requests = new RunRequests({}, options.origin, options.waitForSentEvents);
  }

  /** Starts a run. The first run with `mayRequest` enables the URL check, and gets true. Requests of earlier runs were not checked. */
  async startRun(run: PageRunRequest): Promise<boolean> {
    const { session, origin, proxyPort, waitForSentEvents } = this.options;
    this.requests = new RunRequests(run, origin, waitForSentEvents);
    proxyPort?.startRun(this.requests);
    if (run.mayRequest === undefined) return false;
    const isFirst = this.urlCheckPromise === null;
    this.urlCheckPromise ??= this.enableUrlCheck(session);
    await this.urlCheckPromise;
    return isFirst;
  }

  watch(session: CDPSession): Promise<unknown> {
    session.on("Network.requestWillBeSent", (event) => this.requests.onSent(event));
    session.on("Network.responseReceived", (event) => this.requests.onResponse(event));
    session.on("Network.loadingFinished", ({ requestId }) => this.requests.onEnded(requestId));
    session.on("Network.loadingFailed", (event) => this.requests.onFailed(event));
    session.on("Network.webSocketCreated", (event) => this.requests.onWebSocket(event));
    return session.send("Network.enable", NO_BUFFERING_OPTIONS);
  }

  async enableUrlCheckInChild(child: CDPSession): Promise<void> {
    if (this.urlCheckPromise === null) return;
    child.on("Fetch.requestPaused", (event) => this.continueOrBlockRequest(child, event));
    await Promise.all([this.watch(child), this.enableUrlCheck(child)]);
  }

  continueOrBlockRequest(session: CDPSession, event: Protocol.Fetch.RequestPausedEvent): void {
    const { requestId, request } = event;
    const { requests } = this;
    const referrer = request.headers["Referer"] ?? request.headers["referer"];
    requests
      .acceptsUrl(request.url + (request.urlFragment ?? ""), referrer)
      .then((isAccepted) =>
        isAccepted
          ? session.send("Fetch.continueRequest", { requestId, ...requests.startTrace(event) })
          : session.send("Fetch.failRequest", { requestId, errorReason: "BlockedByClient" }),
      )
      // The command fails only if the page has closed.
      .catch(() => {});
  }

  /** Checks and reports a request that the service will send for the run. Returns null if the URL check rejects it or the run has ended. */
  readonly admitRequest = async (request: HttpRequestOfRun): Promise<AdmittedRunRequest | null> => {
    const { requests } = this;
    const url = new URL(request.url);
    const isAccepted = await requests.acceptsUrl(url.href);
    if (requests !== this.requests) return null;
    if (!isAccepted) {
      requests.recordFailure(url, BLOCKED_REQUEST_TEXT);
      return null;
    }
    requests.onHost(getUrlHostAndPort(url.href)!);
    const trace = requests.reportRequest(request);
    return {
      headers: trace?.headers ?? {},
      reportEnd: (status, failure) => {
        if (failure !== undefined && requests === this.requests) requests.recordFailure(url, failure);
        trace?.endTrace(status);
      },
    };
  };

  /**
   * Removes caches, cookies and HSTS entries. Call it when the run can send no more requests. If the run has sent no request through the
   * proxy port, removes nothing and returns false.
   */
  async clearCachesAndCookies(): Promise<boolean> {
    const { session, proxyPort } = this.options;
    if (proxyPort?.wasUsed() !== true) return false;
    await Promise.all([session.send("Network.clearBrowserCache"), session.send("Network.clearBrowserCookies")]);
    return true;
  }

  hasLateRequest(): boolean {
    return this.options.proxyPort?.wasUsedLate() === true;
  }

  /** Pauses requests for the URL check. The command fails for a worker, but then the session of its page pauses the worker's requests. */
  private enableUrlCheck(session: CDPSession): Promise<unknown> {
    return session.send("Fetch.enable", { patterns: [{ urlPattern: "*" }] }).catch(() => {});
  }
}
