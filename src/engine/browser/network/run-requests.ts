/**
 * Handles the network requests of the runs of a page: opens the proxy port for each run, checks URLs, explains failures,
 * and removes caches and cookies afterwards.
 */
import type { CDPSession } from "puppeteer";
import type { PageRequest, PageRun } from "../run.js";
import type { ProxyPort } from "./proxy-port.js";
import { BLOCKED_REQUEST_TEXT, RequestFaults } from "./request-faults.js";
import { hostOf, NO_BUFFERS, RequestGuard } from "./request-guard.js";

/** Maximum time to wait for the end of requests after the proxy port is closed. */
const SETTLE_TIMEOUT_MS = 200;

/**
 * Request that the service is allowed to send for a run: additional headers, and a function to call when the request has
 * ended. `failure` is the reason if there is no response.
 */
export interface AdmittedRequest {
  headers: Readonly<Record<string, string>>;
  end(status: number | null, failure?: string): void;
}

interface RunRequestsOptions {
  session: CDPSession;
  origin: string;
  proxyPort: ProxyPort | null;
  /** Waits until all events that the page and its children have sent so far have arrived. Rejects at the timeout. */
  catchUp: (timeoutMs: number) => Promise<void>;
}

export class RunRequests {
  readonly guard: RequestGuard;
  readonly faults: RequestFaults;
  private runs = 0;
  private onRequest: PageRun["onRequest"];
  private reportHost: (host: string) => void = () => {};

  constructor(private readonly options: RunRequestsOptions) {
    this.guard = new RequestGuard(options.session, options.catchUp);
    this.faults = new RequestFaults(options.origin);
  }

  /**
   * Opens the proxy port for a run.
   * @returns true if this call enabled the guard, which was not enabled while earlier code ran in the page
   */
  beginRun({ mayRequest, onRequest, onHost, onConsole, network = true }: PageRun): Promise<boolean> {
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
      onRejected: (host, reason) => this.faults.recordRefusal(host, reason),
      onReached: (host) => this.faults.recordConnection(host),
      mayConnect: async (host) => network && this.guard.mayConnect(host),
    });
    return this.guard.beginRun(mayRequest, onRequest);
  }

  /** Listens to the events about requests in a DevTools session. */
  readonly watch = (session: CDPSession): Promise<unknown> => {
    this.faults.watch(session);
    if (session !== this.options.session) this.guard.listenToChild(session);
    return session.send("Network.enable", NO_BUFFERS);
  };

  /** Checks and reports a request that the service is about to send for the run. @returns null if the request is blocked */
  readonly admitRequest = async ({ method, url }: PageRequest): Promise<AdmittedRequest | null> => {
    const run = this.runs;
    const passes = await this.guard.accepts(url).catch(() => false);
    if (run !== this.runs) return null;
    if (!passes) {
      this.faults.recordFailure(url, BLOCKED_REQUEST_TEXT);
      return null;
    }
    this.reportHost(hostOf(url)!);
    const followed = this.onRequest?.({ method, url });
    return {
      headers: followed?.headers ?? {},
      end: (status, failure) => {
        if (failure !== undefined && run === this.runs) this.faults.recordFailure(url, failure);
        followed?.endTrace(status);
      },
    };
  };

  /** Resolves when all requests of the run have ended. Rejects after SETTLE_TIMEOUT_MS. */
  waitUntilSettled(): Promise<void> {
    return this.faults.waitForEnd(SETTLE_TIMEOUT_MS);
  }

  /**
   * Removes cached responses, preflights, cookies and HSTS entries of the run. Passwords of hosts cannot be removed;
   * see traces.ts. Call it when no code of the run can send another request.
   * @returns false if the run has sent no request, so that there was nothing to remove
   */
  async clear(): Promise<boolean> {
    const { session, proxyPort } = this.options;
    if (proxyPort?.wasUsed() !== true) return false;
    // clearBrowserCache also removes HSTS entries.
    await Promise.all([session.send("Network.clearBrowserCache"), session.send("Network.clearBrowserCookies")]);
    return true;
  }

  /** True if a request was sent after the end of the run. */
  hasLateRequest(): boolean {
    return this.options.proxyPort?.wasUsedLate() === true;
  }
}
