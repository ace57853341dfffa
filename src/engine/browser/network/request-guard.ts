/**
 * Holds every request of a page, its frames and its workers until its address has been judged. Knows no secret: what an
 * address may hold is asked. The protocol pauses all requests but those of WebSockets, which it only tells of; so the lane
 * asks before it connects, and connects to no host but those of addresses that were judged.
 */
import type { CDPSession, Protocol } from "puppeteer";
import type { PageRun } from "../run.js";
import { createFollowed } from "./followed-requests.js";

type Judge = NonNullable<PageRun["mayRequest"]>;

export interface RequestGuard {
  /**
   * Puts the run's judge in place, and who follows what it lets through. Costs a round trip when it is the page's first, and nothing
   * afterwards. @returns whether it is the first
   */
  begin(mayRequest: Judge | undefined, onRequest?: PageRun["onRequest"]): Promise<boolean>;
  /** Guards what the page has started as well, when there is a judge. */
  guardChild(child: CDPSession): Promise<unknown>;
  /** Hears of the ends of a child's requests, which are paused at the page. */
  listen(child: CDPSession): void;
  /** Whether a request to that address may be sent. Rejects where that could not be found out. */
  passes(url: string): Promise<boolean>;
  /** Answers a request that the protocol has paused. */
  answer(session: CDPSession, event: Protocol.Fetch.RequestPausedEvent): void;
  /** Whether a connection to `host:port` may be made. */
  mayConnect(host: string): Promise<boolean>;
}

const PORTS: Readonly<Record<string, string>> = { "http:": "80", "ws:": "80", "https:": "443", "wss:": "443" };
/** A thread that does not answer for so long gets no connection. */
const ANSWER_TIMEOUT_MS = 5_000;
/** Network.enable without the copies of bodies that it would keep. */
export const NO_BUFFERS = { maxTotalBufferSize: 0, maxResourceBufferSize: 0, maxPostDataSize: 0 };

/** `host:port` of an address that leads out of the browser; null for the others, such as `data:`. */
export function hostOf(address: string): string | null {
  const url = URL.parse(address);
  const port = url === null ? undefined : PORTS[url.protocol];
  if (url === null || port === undefined) return null;
  return `${url.hostname.replace(/^\[(.*)\]$/, "$1")}:${url.port || port}`;
}

/** `caughtUp`: resolves when all that the page and its children had said before has arrived; rejects after so long. */
export function createRequestGuard(page: CDPSession, caughtUp: (timeoutMs: number) => Promise<void>): RequestGuard {
  let enabled: Promise<unknown> | null = null;
  let judge: Judge | undefined;
  let clean = new Set<string>();
  let blocked = new Set<string>();
  const followed = createFollowed();

  /** The judgements of WebSockets that are under way. */
  let judging: Promise<unknown> = Promise.resolve();

  async function passes(url: string, referrer?: string): Promise<boolean> {
    const host = hostOf(url);
    const judged = judge;
    const hosts = clean;
    if (host === null || judged === undefined) return true;
    if (!(await judged(url)) || (referrer !== undefined && !(await judged(referrer)))) return false;
    hosts.add(host);
    return true;
  }

  /** A WebSocket is not paused: its connection is refused, and with it every later one to that host. */
  function onWebSocket({ url }: Protocol.Network.WebSocketCreatedEvent): void {
    const host = hostOf(url);
    const refused = blocked;
    const passed = passes(url).catch(() => false);
    const decided = passed.then((may) => !may && host !== null && refused.add(host));
    judging = Promise.all([judging, decided]);
  }

  function answer(session: CDPSession, event: Protocol.Fetch.RequestPausedEvent): void {
    const { requestId, request } = event;
    const referrer = request.headers["Referer"] ?? request.headers["referer"];
    passes(request.url + (request.urlFragment ?? ""), referrer)
      .catch(() => false)
      .then((may) =>
        may
          ? session.send("Fetch.continueRequest", { requestId, ...followed.begin(event) })
          : session.send("Fetch.failRequest", { requestId, errorReason: "BlockedByClient" }),
      )
      .catch(() => {});
  }

  /** Not every kind of target knows every domain: a worker's requests are paused at its page. */
  function enable(session: CDPSession): Promise<unknown> {
    session.on("Network.webSocketCreated", onWebSocket);
    followed.listen(session);
    return Promise.allSettled([
      session.send("Fetch.enable", { patterns: [{ urlPattern: "*" }] }),
      session.send("Network.enable", NO_BUFFERS),
    ]);
  }

  return {
    async begin(mayRequest, onRequest) {
      judge = mayRequest;
      followed.follow(onRequest);
      judging = Promise.resolve();
      clean = new Set();
      blocked = new Set();
      if (judge === undefined) return false;
      const isFirst = enabled === null;
      enabled ??= enable(page);
      await enabled;
      return isFirst;
    },

    async guardChild(child) {
      if (enabled === null) return;
      child.on("Fetch.requestPaused", (event) => answer(child, event));
      await enable(child);
    },

    passes: (url) => passes(url),
    answer,
    listen: followed.listen,

    async mayConnect(host) {
      if (judge === undefined) return true;
      try {
        await caughtUp(ANSWER_TIMEOUT_MS);
      } catch {
        return false;
      }
      await judging;
      if (clean.has(host)) return !blocked.has(host);
      // Only a host was told, by a preconnect: it is judged for the sake of the word on it.
      await Promise.resolve(judge?.(`https://${host}/`)).catch(() => false);
      return false;
    },
  };
}
