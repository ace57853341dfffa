/**
 * Handles the network requests of the runs of one page. The proxy port is open only while a run is active, each address
 * is checked, failures are explained, and nothing of a request remains for the next run.
 */
import type { CDPSession } from "puppeteer";
import type { PageRequest, PageRun } from "../run.js";
import type { ProxyPort } from "./proxy-port.js";
import { BLOCKED_REQUEST_TEXT, RequestFaults } from "./request-faults.js";
import { hostOf, NO_BUFFERS, RequestGuard } from "./request-guard.js";

/** Maximum time in which requests end after the proxy port is closed. */
const SETTLED_WITHIN_MS = 200;

/**
 * A request that the service may send for a run: additional headers, and a callback for its end. `failure` is the
 * reason if there was no response.
 */
export interface AdmittedRequest {
  headers: Readonly<Record<string, string>>;
  end(status: number | null, failure?: string): void;
}

interface RunRequestsOptions {
  session: CDPSession;
  origin: string;
  proxyPort: ProxyPort | null;
  /** As in RequestGuard. */
  catchUp: (timeoutMs: number) => Promise<void>;
}

export class RunRequests {
  readonly guard: RequestGuard;
  readonly faults: RequestFaults;
  private runs = 0;
  private follow: PageRun["onRequest"];
  private contact: (host: string) => void = () => {};

  constructor(private readonly options: RunRequestsOptions) {
    this.guard = new RequestGuard(options.session, options.catchUp);
    this.faults = new RequestFaults(options.origin);
  }

  /** Opens the proxy port for a run. @returns true if the guard was enabled only now, after something in the page had started */
  beginRun({ mayRequest, onRequest, onHost, onConsole, network = true }: PageRun): Promise<boolean> {
    this.runs += 1;
    const hosts = new Set<string>();
    this.contact = (host) => {
      if (!hosts.has(host)) onHost?.(host);
      hosts.add(host);
    };
    this.follow = mayRequest && onRequest;
    this.faults.beginRun((text) => onConsole?.({ level: "error", at: Date.now(), text: `A request failed: ${text}` }));
    this.options.proxyPort?.startRun({
      onHost: this.contact,
      onRefused: (host, reason) => this.faults.refused(host, reason),
      onReached: (host) => this.faults.reached(host),
      mayConnect: async (host) => network && this.guard.mayConnect(host),
    });
    return this.guard.beginRun(mayRequest, onRequest);
  }

  /** Listens to the requests of a session. */
  readonly watch = (session: CDPSession): Promise<unknown> => {
    this.faults.watch(session);
    if (session !== this.options.session) this.guard.listenToChild(session);
    return session.send("Network.enable", NO_BUFFERS);
  };

  /** Checks a request that the service will send for the run, and reports its host. @returns null if the request is blocked */
  readonly admitRequest = async ({ method, url }: PageRequest): Promise<AdmittedRequest | null> => {
    const run = this.runs;
    const passes = await this.guard.accepts(url).catch(() => false);
    if (run !== this.runs) return null;
    if (!passes) {
      this.faults.failed(url, BLOCKED_REQUEST_TEXT);
      return null;
    }
    this.contact(hostOf(url)!);
    const followed = this.follow?.({ method, url });
    return {
      headers: followed?.headers ?? {},
      end: (status, failure) => {
        if (failure !== undefined && run === this.runs) this.faults.failed(url, failure);
        followed?.endTrace(status);
      },
    };
  };

  /** Resolves when no request of the run is active. Rejects if one stays active. */
  settled(): Promise<void> {
    return this.faults.settled(SETTLED_WITHIN_MS);
  }

  /**
   * Removes what requests have left in the browser: cached responses and preflights, cookies, HSTS. Names and passwords
   * for hosts cannot be removed (traces.ts). Call it when no code of the run can send another request.
   * @returns true if there may have been something to remove
   */
  async clear(): Promise<boolean> {
    const { session, proxyPort } = this.options;
    if (proxyPort?.wasUsed() !== true) return false;
    // Clearing the cache also removes the hosts that require https.
    await Promise.all([session.send("Network.clearBrowserCache"), session.send("Network.clearBrowserCookies")]);
    return true;
  }

  /** True if a request was sent after the end of the run. */
  hasLateRequest(): boolean {
    return this.options.proxyPort?.wasUsedLate() === true;
  }
}
