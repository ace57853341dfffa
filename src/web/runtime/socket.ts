/** The page's single WebSocket. It opens with the first subscription and reconnects automatically. */
import { createClient, type Client as SocketClient } from "graphql-ws";
import type { Connection } from "./connection.js";

const MAX_RECONNECT_DELAY_MS = 30_000;
/** Maximum delay between two attempts with a token that the service rejects. Such tokens may never be valid again. */
const MAX_REJECTED_TOKEN_DELAY_MS = 5 * 60_000;
const PING_INTERVAL_MS = 15_000;
const PONG_TIMEOUT_MS = 5_000;
/** WebSocket close codes after which an immediate reconnect is useless: the service would reject the same token or protocol again. */
const FINAL_CLOSE_CODES = [4400, 4401, 4403, 4406];
/** Error statuses with which the service would reject the same subscription again. */
const FINAL_STATUSES = [
  "UNAUTHORIZED",
  "FORBIDDEN",
  "APP_NOT_FOUND",
  "REQUEST_INVALID",
  "DATA_SOURCE_NOT_FOUND",
  "DATA_SOURCE_ACCESS_DENIED",
];

/** Close codes and error statuses for an invalid token. A live page's token becomes valid again when its app is published again. */
const INVALID_TOKEN_CAUSES: readonly (number | string)[] = [4401, 4403, "UNAUTHORIZED"];
/** Value of `retries` for the first attempt after the service has rejected a token: the attempt starts after 16 to 32 seconds. */
const RETRIES_AFTER_REJECTION = 6;

/** Returns the close code, or the statuses of the errors, that ended a subscription. */
function listCauses(cause: unknown): (number | string)[] {
  if (cause instanceof CloseEvent) return [cause.code];
  const errors = Array.isArray(cause) ? (cause as { extensions?: { status?: string } }[]) : [];
  return errors.map(({ extensions }) => extensions?.status ?? "");
}

/** True if the close code or an error status means that the service would reject the same subscription again. */
const isFinalError = (cause: unknown): boolean =>
  listCauses(cause).some((code) => FINAL_CLOSE_CODES.includes(code as number) || FINAL_STATUSES.includes(String(code)));

const isInvalidToken = (cause: unknown): boolean =>
  listCauses(cause).some((code) => INVALID_TOKEN_CAUSES.includes(code));

/**
 * Resolves when the next attempt to connect should start: after a delay, or as soon as the browser is online again. The delay grows with
 * `retries`. It is partly random, so that not all clients reconnect at the same moment.
 */
function waitBeforeReconnect(retries: number, maxMs: number): Promise<void> {
  const maxDelayMs = Math.min(maxMs, 500 * 2 ** retries);
  return new Promise((resolve) => {
    const endWait = () => {
      clearTimeout(timer);
      removeEventListener("online", endWait);
      resolve();
    };
    const timer = setTimeout(endWait, maxDelayMs * (0.5 + Math.random() / 2));
    addEventListener("online", endWait);
  });
}

/**
 * Creates the client that opens the WebSocket with the first subscription, and sends pings. If no pong arrives after a ping, closes the
 * WebSocket, because some networks fail without closing connections.
 */
function openSocket({ resolveUrl, getToken }: Connection): SocketClient {
  let pongTimer: ReturnType<typeof setTimeout> | undefined;
  const client = createClient({
    url() {
      const url = resolveUrl("/graphql");
      url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
      return url.href;
    },
    connectionParams: () => (getToken() === null ? {} : { authToken: getToken() }),
    keepAlive: PING_INTERVAL_MS,
    retryAttempts: Number.POSITIVE_INFINITY,
    retryWait: (retries) => waitBeforeReconnect(retries, MAX_RECONNECT_DELAY_MS),
    shouldRetry: (cause) => !isFinalError(cause),
    on: {
      ping(received) {
        if (!received) pongTimer = setTimeout(() => client.terminate(), PONG_TIMEOUT_MS);
      },
      pong: (received) => received && clearTimeout(pongTimer),
      closed: () => clearTimeout(pongTimer),
    },
  });
  return client;
}

export interface SubscriptionListener<Data> {
  next(data: Data): void;
  /**
   * Called if the service rejects the subscription, for example because the caller lacks a permission. If the reason was the token, the
   * socket retries at intervals of up to five minutes. For any other reason, no more data follows.
   */
  refused(cause: unknown): void;
}

export interface SubscriptionSocket {
  /**
   * Starts a subscription. After each lost connection, calls `variables` and subscribes again with the new values.
   * @returns function that ends the subscription
   */
  follow<Data>(
    query: string,
    variables: () => Record<string, unknown>,
    listener: SubscriptionListener<Data>,
  ): () => void;
  /** Reconnects with the connection's current token. */
  reconnect(): void;
}

export function createSubscriptionSocket(connection: Connection): SubscriptionSocket {
  let client: SocketClient | null = null;
  /** One function for each subscription, which starts the subscription again on a new WebSocket, without the delays of earlier attempts. */
  const resubscriptions = new Set<() => void>();

  return {
    follow<Data>(query: string, variables: () => Record<string, unknown>, listener: SubscriptionListener<Data>) {
      let attempt = 1;
      let rejections = 0;
      let unsubscribe: () => void = () => undefined;

      function subscribe(): void {
        client ??= openSocket(connection);
        const attemptClient = client;
        // After `reconnect`, this attempt is over, because the subscription has already started again on the new WebSocket.
        const isOver = () => attemptClient !== client || !resubscriptions.has(resubscribe);
        async function subscribeLater(retries = attempt++, maxMs = MAX_RECONNECT_DELAY_MS): Promise<void> {
          await waitBeforeReconnect(retries, maxMs);
          if (!isOver()) subscribe();
        }
        // The getter calls `variables` again at each reconnect, because graphql-ws then sends the subscription again.
        const request = {
          query,
          get variables() {
            return variables();
          },
        };
        unsubscribe = attemptClient.subscribe<Data>(request, {
          next({ data }) {
            attempt = 1;
            rejections = 0;
            if (data && !isOver()) listener.next(data);
          },
          error(cause) {
            if (isOver()) return;
            if (!isFinalError(cause)) return void subscribeLater();
            if (rejections === 0) listener.refused(cause);
            const retries = RETRIES_AFTER_REJECTION + rejections++;
            if (isInvalidToken(cause)) void subscribeLater(retries, MAX_REJECTED_TOKEN_DELAY_MS);
          },
          // The service ends all subscriptions when it shuts down. This subscription then starts again on the restarted service.
          complete: () => void (isOver() || subscribeLater()),
        });
      }

      function resubscribe(): void {
        attempt = 1;
        rejections = 0;
        subscribe();
      }

      resubscriptions.add(resubscribe);
      subscribe();
      return () => {
        resubscriptions.delete(resubscribe);
        unsubscribe();
      };
    },
    reconnect() {
      const previousClient = client;
      client = null;
      void previousClient?.dispose();
      for (const resubscribe of resubscriptions) resubscribe();
    },
  };
}
