/** The `clientTriggers` subscription over one websocket that comes back. Knows no event and runs nothing. */
import { createClient, type Client as SocketClient } from "graphql-ws";
import type { Connection } from "./connection.js";
import { ClientTriggers, type ClientTriggersSubscription } from "./documents.js";

/** The first of a subscription has `reset`: forget what you know. Later ones hold what changed. */
export type Change = ClientTriggersSubscription["clientTriggers"];

/** An active `client` or `any` action of this client's copy, less its code. */
export type ClientAction = Change["actions"][number];

const RECONNECT_MAX_MS = 30_000;
const PING_EVERY_MS = 15_000;
const PONG_WITHIN_MS = 5_000;
/** Trying again with the same credential and the same library would change nothing. */
const REFUSING_CLOSE_CODES = [4400, 4401, 4403, 4406];
const REFUSING_STATUSES = ["UNAUTHORIZED", "FORBIDDEN", "APP_NOT_FOUND", "REQUEST_INVALID"];

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
  const url = address("/graphql");
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  let silence: ReturnType<typeof setTimeout> | undefined;
  const client = createClient({
    url: url.href,
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

export interface FeedListener {
  change(change: Change): void;
  /** The service does not deliver to this caller; nothing more will come. */
  refused(cause: unknown): void;
}

/** @returns what closes the socket, for good */
export function followClientTriggers(connection: Connection, listener: FeedListener): () => void {
  const client = openSocket(connection);
  let closed = false;
  let attempt = 1;

  async function again(): Promise<void> {
    if (!closed) await reconnectDelay(attempt++);
    if (!closed) subscribe();
  }

  function subscribe(): void {
    const request = { query: ClientTriggers, variables: { appId: connection.appId() } };
    client.subscribe<ClientTriggersSubscription>(request, {
      next({ data }) {
        attempt = 1;
        if (data && !closed) listener.change(data.clientTriggers);
      },
      error(cause) {
        if (closed) return;
        if (isRefusal(cause)) listener.refused(cause);
        else void again();
      },
      // The service ends a subscription when it shuts down; its successor takes the next one.
      complete: again,
    });
  }

  subscribe();
  return () => {
    closed = true;
    void client.dispose();
  };
}
