/**
 * Pauses every request of a page, its frames and its workers until the run's URL check (`mayRequest`) has accepted the
 * URL. The protocol cannot pause WebSockets, but only reports them. So the proxy port also connects only to hosts of
 * accepted URLs.
 */
import type { CDPSession, Protocol } from "puppeteer";
import type { PageRun } from "../run.js";
import { FollowedRequests } from "./followed-requests.js";

type UrlCheck = NonNullable<PageRun["mayRequest"]>;

const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "ws:": "80", "https:": "443", "wss:": "443" };
/**
 * Maximum time that a connection waits until all events about requests have arrived. After this time, the connection is
 * rejected.
 */
const ANSWER_TIMEOUT_MS = 5_000;
/** Options of Network.enable with which the browser does not buffer bodies for the protocol, to save memory. */
export const NO_BUFFERS = { maxTotalBufferSize: 0, maxResourceBufferSize: 0, maxPostDataSize: 0 };

/** Returns `host:port` of a URL; null for a URL without a host, such as `data:`. */
export function hostOf(address: string): string | null {
  const url = URL.parse(address);
  const port = url === null ? undefined : DEFAULT_PORTS[url.protocol];
  if (url === null || port === undefined) return null;
  return `${url.hostname.replace(/^\[(.*)\]$/, "$1")}:${url.port || port}`;
}

export class RequestGuard {
  private whenEnabled: Promise<unknown> | null = null;
  private checkUrl: UrlCheck | undefined;
  /** Hosts of URLs that the URL check has accepted. */
  private acceptedHosts = new Set<string>();
  private refused = new Set<string>();
  private readonly followed = new FollowedRequests();
  /** Resolves when the URL checks of all WebSockets so far have ended. */
  private pendingWebSocketChecks: Promise<unknown> = Promise.resolve();

  /** @param catchUp waits until all events that the page and its children have sent so far have arrived; rejects at the timeout */
  constructor(
    private readonly page: CDPSession,
    private readonly catchUp: (timeoutMs: number) => Promise<void>,
  ) {}

  /**
   * Sets the functions that check and report the requests of the next run. The first call with a check function enables
   * the guard.
   * @returns true if this call enabled the guard
   */
  async beginRun(mayRequest: UrlCheck | undefined, onRequest?: PageRun["onRequest"]): Promise<boolean> {
    this.checkUrl = mayRequest;
    this.followed.follow(onRequest);
    this.pendingWebSocketChecks = Promise.resolve();
    this.acceptedHosts = new Set();
    this.refused = new Set();
    if (mayRequest === undefined) return false;
    const isFirst = this.whenEnabled === null;
    this.whenEnabled ??= this.enable(this.page);
    await this.whenEnabled;
    return isFirst;
  }

  /** Guards a worker or frame of the page, unless the guard has never been enabled. */
  async guardChild(child: CDPSession): Promise<void> {
    if (this.whenEnabled === null) return;
    child.on("Fetch.requestPaused", (event) => this.continueOrBlock(child, event));
    await this.enable(child);
  }

  /** Listens to the ends of requests in the session of a worker or frame. The session of the page pauses the requests. */
  listenToChild(child: CDPSession): void {
    this.followed.listen(child);
  }

  /** True if a request to this URL may be sent. Rejects if the check throws. */
  async accepts(url: string, referrer?: string): Promise<boolean> {
    const host = hostOf(url);
    const { checkUrl, acceptedHosts } = this;
    if (host === null || checkUrl === undefined) return true;
    if (!(await checkUrl(url)) || (referrer !== undefined && !(await checkUrl(referrer)))) return false;
    acceptedHosts.add(host);
    return true;
  }

  /** Continues or blocks a paused request. */
  continueOrBlock(session: CDPSession, event: Protocol.Fetch.RequestPausedEvent): void {
    const { requestId, request } = event;
    const referrer = request.headers["Referer"] ?? request.headers["referer"];
    this.accepts(request.url + (request.urlFragment ?? ""), referrer)
      .catch(() => false)
      .then((isAllowed) =>
        isAllowed
          ? session.send("Fetch.continueRequest", { requestId, ...this.followed.reportRequest(event) })
          : session.send("Fetch.failRequest", { requestId, errorReason: "BlockedByClient" }),
      )
      // The command fails only if the page has closed.
      .catch(() => {});
  }

  /** True if a connection to `host:port` may be made. */
  async mayConnect(host: string): Promise<boolean> {
    if (this.checkUrl === undefined) return true;
    try {
      await this.catchUp(ANSWER_TIMEOUT_MS);
    } catch {
      return false;
    }
    await this.pendingWebSocketChecks;
    if (this.acceptedHosts.has(host)) return !this.refused.has(host);
    // A preconnect has only a host and no URL. Calls the check with a URL of this host, so that the check can report
    // the host.
    await Promise.resolve(this.checkUrl?.(`https://${host}/`)).catch(() => false);
    return false;
  }

  /** Checks a WebSocket, which the protocol does not pause. If the check fails, all connections to its host are rejected. */
  private onWebSocket({ url }: Protocol.Network.WebSocketCreatedEvent): void {
    const host = hostOf(url);
    const { refused } = this;
    const passed = this.accepts(url).catch(() => false);
    const decided = passed.then((isAllowed) => !isAllowed && host !== null && refused.add(host));
    this.pendingWebSocketChecks = Promise.all([this.pendingWebSocketChecks, decided]);
  }

  /**
   * Enables the guard in a session. Ignores failures: a worker has no Fetch domain, because the session of its page
   * pauses its requests.
   */
  private enable(session: CDPSession): Promise<unknown> {
    session.on("Network.webSocketCreated", (event) => this.onWebSocket(event));
    this.followed.listen(session);
    return Promise.allSettled([
      session.send("Fetch.enable", { patterns: [{ urlPattern: "*" }] }),
      session.send("Network.enable", NO_BUFFERS),
    ]);
  }
}
