/** Handles the requests of a page's runs: opens the proxy port for a run, checks URLs, and removes caches and cookies afterwards. */
import type { CDPSession } from "puppeteer";
import type { PageRunRequest, RunHttpRequest } from "../run.js";
import type { ProxyPort } from "./proxy-port.js";
import { NO_BUFFERING_OPTIONS, RequestGuard } from "./request-guard.js";
import { BLOCKED_REQUEST_TEXT, getUrlHostAndPort, RequestRecorder } from "./request-recorder.js";

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
  readonly guard: RequestGuard;
  readonly recorder: RequestRecorder;
  private runNumber = 0;
  private onRequest: PageRunRequest["onRequest"];
  private reportHost: (host: string) => void = () => {};

  constructor(private readonly options: PageNetworkOptions) {
    this.recorder = new RequestRecorder(options.origin);
    this.guard = new RequestGuard(options.session, this.recorder, options.waitForSentEvents);
  }

  /** Returns true if this call enabled the request guard, so that requests of earlier runs were not checked. */
  beginRun({ mayRequest, onRequest, onHost, onConsole, network = true }: PageRunRequest): Promise<boolean> {
    this.runNumber += 1;
    const hosts = new Set<string>();
    this.reportHost = (host) => {
      if (!hosts.has(host)) onHost?.(host);
      hosts.add(host);
    };
    this.onRequest = mayRequest && onRequest;
    this.recorder.beginRun((text) =>
      onConsole?.({ level: "error", at: Date.now(), text: `A request failed: ${text}` }),
    );
    this.options.proxyPort?.startRun({
      onHost: this.reportHost,
      onRejected: (host, reason) => this.recorder.recordRejection(host, reason),
      onReached: (host) => this.recorder.recordConnection(host),
      mayConnect: async (host) => network && this.guard.mayConnect(host),
    });
    return this.guard.beginRun(mayRequest, onRequest);
  }

  readonly watch = (session: CDPSession): Promise<unknown> => {
    this.recorder.watchRequests(session);
    return session.send("Network.enable", NO_BUFFERING_OPTIONS);
  };

  /** Checks and reports a request that the service will send for the run. Returns null if the URL check rejects it or the run has ended. */
  readonly admitRequest = async ({ method, url }: RunHttpRequest): Promise<AdmittedRunRequest | null> => {
    const run = this.runNumber;
    const isAccepted = await this.guard.acceptsUrl(url).catch(() => false);
    if (run !== this.runNumber) return null;
    if (!isAccepted) {
      this.recorder.recordFailure(url, BLOCKED_REQUEST_TEXT);
      return null;
    }
    this.reportHost(getUrlHostAndPort(url)!);
    const trace = this.onRequest?.({ method, url });
    return {
      headers: trace?.headers ?? {},
      reportEnd: (status, failure) => {
        if (failure !== undefined && run === this.runNumber) this.recorder.recordFailure(url, failure);
        trace?.endTrace(status);
      },
    };
  };

  /** Removes caches, cookies and HSTS entries of a run whose code can send no more requests. Returns false if the run sent none. */
  async clearCachesAndCookies(): Promise<boolean> {
    const { session, proxyPort } = this.options;
    if (proxyPort?.wasUsed() !== true) return false;
    await Promise.all([session.send("Network.clearBrowserCache"), session.send("Network.clearBrowserCookies")]);
    return true;
  }

  hasLateRequest(): boolean {
    return this.options.proxyPort?.wasUsedLate() === true;
  }
}
