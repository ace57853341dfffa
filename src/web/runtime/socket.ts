/** The page's one websocket, opened by the first subscription, which comes back by itself. */
import { createClient, type Client as SocketClient } from "graphql-ws";
import type { Connection } from "./connection.js";

const RECONNECT_MAX_MS = 30_000;
const PING_EVERY_MS = 15_000;
const PONG_WITHIN_MS = 5_000;
/** Trying again with the same credential and the same library would change nothing. */
const REFUSING_CLOSE_CODES = [4400, 4401, 4403, 4406];
const REFUSING_STATUSES = [
  "UNAUTHORIZED",
  "FORBIDDEN",
  "APP_NOT_FOUND",
  "REQUEST_INVALID",
  "DATA_SOURCE_NOT_FOUND",
  "DATA_SOURCE_ACCESS_DENIED",
];

/** What ends a subscription: a close that graphql-ws takes for final, or the errors of the operation. */
function isRefusal(cause: unknown): boolean {
  if (cause instanceof CloseEvent) return REFUSING_CLOSE_CODES.includes(cause.code);
  const errors = Array.isArray(cause) ? (cause as { extensions?: { status?: string } }[]) : [];
  return errors.some(({ extensions }) => REFUSING_STATUSES.includes(extensions?.status ?? ""));
}

/** Longer each time, spread so that a restarted service is not met by all clients at once; at once when online again. */
function reconnectDelay(retries: number): Promise<void> {
  const longest = Math.min(RECONNECT_MAX_MS, 500 * 2 ** retries);
  return new Promise((resolve) => {
    setTimeout(resolve, longest * (0.5 + Math.random() / 2));
    addEventListener("online", () => resolve(), { once: true });
  });
}

/** A network that fails in silence closes nothing: a ping without an answer does. */
function openSocket({ address, token }: Connection): SocketClient {
  let silence: ReturnType<typeof setTimeout> | undefined;
  const client = createClient({
    url() {
      const url = address("/graphql");
      url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
      return url.href;
    },
    connectionParams: () => (token() === null ? {} : { authToken: token() }),
    keepAlive: PING_EVERY_MS,
    retryAttempts: Number.POSITIVE_INFINITY,
    retryWait: reconnectDelay,
    shouldRetry: (cause) => !isRefusal(cause),
    on: {
      ping(received) {
        if (!received) silence = setTimeout(() => client.terminate(), PONG_WITHIN_MS);
      },
      pong: (received) => received && clearTimeout(silence),
      closed: () => clearTimeout(silence),
    },
  });
  return client;
}

export interface Follower<Data> {
  next(data: Data): void;
  /** The service does not deliver to this caller; nothing more will come. */
  refused(cause: unknown): void;
}

export interface Socket {
  /**
   * Subscribes, and again after each loss of the connection, with the variables as they are then.
   * @returns what ends it, for good
   */
  follow<Data>(query: string, variables: () => Record<string, unknown>, follower: Follower<Data>): () => void;
  /** Comes back as whoever the connection's token stands for now. */
  restart(): void;
}

export function createSocket(connection: Connection): Socket {
  let client: SocketClient | null = null;
  /** What each subscription does on another client. */
  const moves = new Set<() => void>();

  return {
    follow<Data>(query: string, variables: () => Record<string, unknown>, follower: Follower<Data>) {
      let attempt = 1;
      let unsubscribe: () => void = () => undefined;

      async function again(): Promise<void> {
        await reconnectDelay(attempt++);
        if (moves.has(subscribe)) subscribe();
      }

      function subscribe(): void {
        client ??= openSocket(connection);
        const own = client;
        const isOver = () => own !== client || !moves.has(subscribe);
        // Read by graphql-ws each time that it sends the subscription anew.
        const request = {
          query,
          get variables() {
            return variables();
          },
        };
        unsubscribe = own.subscribe<Data>(request, {
          next({ data }) {
            attempt = 1;
            if (data && !isOver()) follower.next(data);
          },
          error(cause) {
            if (isOver()) return;
            if (isRefusal(cause)) follower.refused(cause);
            else void again();
          },
          // The service ends a subscription when it shuts down; its successor takes the next one.
          complete: () => void (isOver() || again()),
        });
      }

      moves.add(subscribe);
      subscribe();
      return () => {
        moves.delete(subscribe);
        unsubscribe();
      };
    },
    restart() {
      const before = client;
      client = null;
      void before?.dispose();
      for (const subscribe of moves) subscribe();
    },
  };
}
