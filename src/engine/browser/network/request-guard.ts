/** Pauses every request of a page, its frames and its workers until the run's URL check (`mayRequest`) has accepted the URL. */
import type { CDPSession, Protocol } from "puppeteer";
import type { PageRunRequest } from "../run.js";
import { getUrlHostAndPort, type RequestRecorder } from "./request-recorder.js";

type UrlCheck = NonNullable<PageRunRequest["mayRequest"]>;

/** If the browser has not reported all requests of the run after this time, the proxy rejects a new connection. */
const ANSWER_TIMEOUT_MS = 5_000;
/** Options of Network.enable with which the browser stores no bodies for DevTools. This saves memory. */
export const NO_BUFFERING_OPTIONS = { maxTotalBufferSize: 0, maxResourceBufferSize: 0, maxPostDataSize: 0 };

export class RequestGuard {
  private enablePromise: Promise<unknown> | null = null;
  private checkUrl: UrlCheck | undefined;
  private acceptedHosts = new Set<string>();
  private rejectedHosts = new Set<string>();
  private onRequest: PageRunRequest["onRequest"];
  private pendingWebSocketChecks: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly pageSession: CDPSession,
    private readonly recorder: RequestRecorder,
    private readonly waitForSentEvents: (timeoutMs: number) => Promise<void>,
  ) {}

  /** The first call with `mayRequest` enables this guard. Returns true for this call. */
  async beginRun(mayRequest: UrlCheck | undefined, onRequest?: PageRunRequest["onRequest"]): Promise<boolean> {
    this.checkUrl = mayRequest;
    this.onRequest = onRequest;
    this.pendingWebSocketChecks = Promise.resolve();
    this.acceptedHosts = new Set();
    this.rejectedHosts = new Set();
    if (mayRequest === undefined) return false;
    const isFirst = this.enablePromise === null;
    this.enablePromise ??= this.enableInSession(this.pageSession);
    await this.enablePromise;
    return isFirst;
  }

  async guardChild(child: CDPSession): Promise<void> {
    if (this.enablePromise === null) return;
    child.on("Fetch.requestPaused", (event) => this.continueOrBlock(child, event));
    await this.enableInSession(child);
  }

  /** Returns false if the run's URL check rejects the URL or the referrer. URLs without a host, such as `data:`, need no check. */
  async acceptsUrl(url: string, referrer?: string): Promise<boolean> {
    const host = getUrlHostAndPort(url);
    const { checkUrl, acceptedHosts } = this;
    if (host === null || checkUrl === undefined) return true;
    if (!(await checkUrl(url)) || (referrer !== undefined && !(await checkUrl(referrer)))) return false;
    acceptedHosts.add(host);
    return true;
  }

  continueOrBlock(session: CDPSession, event: Protocol.Fetch.RequestPausedEvent): void {
    const { requestId, request } = event;
    const referrer = request.headers["Referer"] ?? request.headers["referer"];
    this.acceptsUrl(request.url + (request.urlFragment ?? ""), referrer)
      // A check that fails blocks the request.
      .catch(() => false)
      .then((isAllowed) =>
        isAllowed
          ? session.send("Fetch.continueRequest", { requestId, ...this.recorder.startTrace(event, this.onRequest) })
          : session.send("Fetch.failRequest", { requestId, errorReason: "BlockedByClient" }),
      )
      // The command fails only if the page has closed.
      .catch(() => {});
  }

  async mayConnect(host: string): Promise<boolean> {
    if (this.checkUrl === undefined) return true;
    try {
      await this.waitForSentEvents(ANSWER_TIMEOUT_MS);
    } catch {
      return false;
    }
    await this.pendingWebSocketChecks;
    if (this.acceptedHosts.has(host)) return !this.rejectedHosts.has(host);
    // A preconnect has no URL, and is always rejected. The check gets the host as a URL, because it logs hosts that contain a secret.
    await Promise.resolve(this.checkUrl?.(`https://${host}/`)).catch(() => false);
    return false;
  }

  /** DevTools cannot pause a WebSocket. So if the check rejects its URL, the proxy port rejects all connections to its host. */
  private onWebSocket({ url }: Protocol.Network.WebSocketCreatedEvent): void {
    const host = getUrlHostAndPort(url);
    const { rejectedHosts } = this;
    const passed = this.acceptsUrl(url).catch(() => false);
    const decided = passed.then((isAllowed) => !isAllowed && host !== null && rejectedHosts.add(host));
    this.pendingWebSocketChecks = Promise.all([this.pendingWebSocketChecks, decided]);
  }

  /** Ignores failures: a worker's session has no Fetch domain, because its page's session pauses the worker's requests. */
  private enableInSession(session: CDPSession): Promise<unknown> {
    session.on("Network.webSocketCreated", (event) => this.onWebSocket(event));
    if (session !== this.pageSession) this.recorder.watchRequestEnds(session);
    return Promise.allSettled([
      session.send("Fetch.enable", { patterns: [{ urlPattern: "*" }] }),
      session.send("Network.enable", NO_BUFFERING_OPTIONS),
    ]);
  }
}
