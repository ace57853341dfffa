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

interface RunRequestsOptions {
  session: CDPSession;
  origin: string;
  proxyPort: ProxyPort | null;
  /** Waits for all events that the page, its workers and frames have sent. Rejects after `timeoutMs`. */
  waitForSentEvents: (timeoutMs: number) => Promise<void>;
}

export class PageNetwork {
  readonly guard: RequestGuard;
  readonly faults: RequestRecorder;
  private runs = 0;
  private onRequest: PageRunRequest["onRequest"];
  private reportHost: (host: string) => void = () => {};

  constructor(private readonly options: RunRequestsOptions) {
    this.faults = new RequestRecorder(options.origin);
    this.guard = new RequestGuard(options.session, this.faults, options.waitForSentEvents);
  }

  /** Returns true if this call enabled the request guard, so that requests of earlier runs were not checked. */
  beginRun({ mayRequest, onRequest, onHost, onConsole, network = true }: PageRunRequest): Promise<boolean> {
    this.runs += 1;
    const hosts = new Set<string>();
    this.reportHost = (host) => {
      if (!hosts.has(host)) onHost?.(host);
      hosts.add(host);
    };
    this.onRequest = mayRequest && onRequest;
    this.faults.beginRun((text) => onConsole?.({ level: "error", at: Date.now(), text: `A request failed: ${text}` }));
    this.options.proxyPort?.startRun({
      onHost: this.reportHost,
      onRejected: (host, reason) => this.faults.recordRejection(host, reason),
      onReached: (host) => this.faults.recordConnection(host),
      mayConnect: async (host) => network && this.guard.mayConnect(host),
    });
    return this.guard.beginRun(mayRequest, onRequest);
  }

  readonly watch = (session: CDPSession): Promise<unknown> => {
    this.faults.watch(session);
    return session.send("Network.enable", NO_BUFFERING_OPTIONS);
  };

  /** Checks and reports a request that the service will send for the run. Returns null if the URL check rejects it. */
  readonly admitRequest = async ({ method, url }: RunHttpRequest): Promise<AdmittedRunRequest | null> => {
    const run = this.runs;
    const passes = await this.guard.acceptsUrl(url).catch(() => false);
    if (run !== this.runs) return null;
    if (!passes) {
      this.faults.recordFailure(url, BLOCKED_REQUEST_TEXT);
      return null;
    }
    this.reportHost(getUrlHostAndPort(url)!);
    const followed = this.onRequest?.({ method, url });
    return {
      headers: followed?.headers ?? {},
      reportEnd: (status, failure) => {
        if (failure !== undefined && run === this.runs) this.faults.recordFailure(url, failure);
        followed?.endTrace(status);
      },
    };
  };

  /** Removes caches, cookies and HSTS entries of a run whose code can send no more requests. Returns false if the run sent none. */
  async clear(): Promise<boolean> {
    const { session, proxyPort } = this.options;
    if (proxyPort?.wasUsed() !== true) return false;
    await Promise.all([session.send("Network.clearBrowserCache"), session.send("Network.clearBrowserCookies")]);
    return true;
  }

  hasLateRequest(): boolean {
    return this.options.proxyPort?.wasUsedLate() === true;
  }
}
