/**
 * Holds every request of a page, its frames and its workers until the run's check has accepted its address. The protocol pauses all
 * requests except WebSockets, which it only reports. So the proxy port asks before it connects, and connects only to hosts of accepted
 * addresses.
 */
import type { CDPSession, Protocol } from "puppeteer";
import type { PageRun } from "../run.js";
import { FollowedRequests } from "./followed-requests.js";

type Judge = NonNullable<PageRun["mayRequest"]>;

const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "ws:": "80", "https:": "443", "wss:": "443" };
/** Maximum time in which the page and its children report what they sent. After this time, the connection is refused. */
const ANSWER_TIMEOUT_MS = 5_000;
/** Options of Network.enable that stop the browser from buffering bodies for the protocol. */
export const NO_BUFFERS = { maxTotalBufferSize: 0, maxResourceBufferSize: 0, maxPostDataSize: 0 };

/** `host:port` of an address; null for addresses without a host, such as `data:`. */
export function hostOf(address: string): string | null {
  const url = URL.parse(address);
  const port = url === null ? undefined : DEFAULT_PORTS[url.protocol];
  if (url === null || port === undefined) return null;
  return `${url.hostname.replace(/^\[(.*)\]$/, "$1")}:${url.port || port}`;
}

export class RequestGuard {
  private enabled: Promise<unknown> | null = null;
  private judge: Judge | undefined;
  /** Hosts of accepted addresses. */
  private accepted = new Set<string>();
  private refused = new Set<string>();
  private readonly followed = new FollowedRequests();
  /** Resolves when the pending decisions about WebSockets have been made. */
  private deciding: Promise<unknown> = Promise.resolve();

  /** @param catchUp resolves when all events that the page and its children had sent have arrived; rejects after this time */
  constructor(
    private readonly page: CDPSession,
    private readonly catchUp: (timeoutMs: number) => Promise<void>,
  ) {}

  /**
   * Sets the functions that check and report the requests of the next run. The first check costs one round trip.
   * @returns true if this was the first
   */
  async beginRun(mayRequest: Judge | undefined, onRequest?: PageRun["onRequest"]): Promise<boolean> {
    this.judge = mayRequest;
    this.followed.follow(onRequest);
    this.deciding = Promise.resolve();
    this.accepted = new Set();
    this.refused = new Set();
    if (mayRequest === undefined) return false;
    const isFirst = this.enabled === null;
    this.enabled ??= this.enable(this.page);
    await this.enabled;
    return isFirst;
  }

  /** Guards a worker or frame of the page, if a run has had a check. */
  async guardChild(child: CDPSession): Promise<void> {
    if (this.enabled === null) return;
    child.on("Fetch.requestPaused", (event) => this.answer(child, event));
    await this.enable(child);
  }

  /** Listens in the session of a worker or frame to the ends of its requests; they are paused in the session of the page. */
  listenToChild(child: CDPSession): void {
    this.followed.listen(child);
  }

  /** True if a request to this address may be sent. Rejects if the check fails. */
  async accepts(url: string, referrer?: string): Promise<boolean> {
    const host = hostOf(url);
    const { judge, accepted } = this;
    if (host === null || judge === undefined) return true;
    if (!(await judge(url)) || (referrer !== undefined && !(await judge(referrer)))) return false;
    accepted.add(host);
    return true;
  }

  /** Continues or blocks a paused request. */
  answer(session: CDPSession, event: Protocol.Fetch.RequestPausedEvent): void {
    const { requestId, request } = event;
    const referrer = request.headers["Referer"] ?? request.headers["referer"];
    this.accepts(request.url + (request.urlFragment ?? ""), referrer)
      .catch(() => false)
      .then((isAllowed) =>
        isAllowed
          ? session.send("Fetch.continueRequest", { requestId, ...this.followed.changesOf(event) })
          : session.send("Fetch.failRequest", { requestId, errorReason: "BlockedByClient" }),
      )
      // The page has closed.
      .catch(() => {});
  }

  /** True if a connection to `host:port` may be made. */
  async mayConnect(host: string): Promise<boolean> {
    if (this.judge === undefined) return true;
    try {
      await this.catchUp(ANSWER_TIMEOUT_MS);
    } catch {
      return false;
    }
    await this.deciding;
    if (this.accepted.has(host)) return !this.refused.has(host);
    // A preconnect names only a host. The check receives it too, so that it can report it.
    await Promise.resolve(this.judge?.(`https://${host}/`)).catch(() => false);
    return false;
  }

  /** Handles a WebSocket, which is not paused. If it is refused, this and every later connection to its host is refused. */
  private onWebSocket({ url }: Protocol.Network.WebSocketCreatedEvent): void {
    const host = hostOf(url);
    const { refused } = this;
    const passed = this.accepts(url).catch(() => false);
    const decided = passed.then((isAllowed) => !isAllowed && host !== null && refused.add(host));
    this.deciding = Promise.all([this.deciding, decided]);
  }

  /**
   * Enables the guard in a session. Ignores failures: a worker has no Fetch domain, and its requests are paused in the session of its page.
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
