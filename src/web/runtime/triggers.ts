/** Keeps the app's client actions current over one websocket and starts those that an event matches. */
import { createClient, type Client as SocketClient } from "graphql-ws";
import { type AnalyticsWhere, matchesAnalytics } from "../../rules/trigger-match.js";
import type { Connection } from "./connection.js";
import type { AnalyticsEvent, Trigger, Triggers } from "./public-types.js";
import type { ActionScript } from "./scripts.js";

/** An active `client` or `any` action of this client's copy, less its code. */
interface ClientAction extends ActionScript {
  triggers: Trigger[];
}

/** The first of a subscription has `reset`: forget what you know. Later ones hold what changed. */
interface Change {
  reset: boolean;
  actions: ClientAction[];
  /** Ids that this client may no longer run. */
  removed: number[];
}

const SUBSCRIPTION = `subscription ClientTriggers($appId: Int!) {
  clientTriggers(appId: $appId) {
    reset
    actions { id integrity triggers assets { name url path } }
    removed
  }
}`;

/** Events before the first answer wait for it: the first page view comes before any socket is open. */
const EARLY_EVENTS = 100;
const RECONNECT_MAX_MS = 30_000;
const KEEP_ALIVE_MS = 15_000;
/** Unauthorized and forbidden: trying again with the same credential changes nothing. */
const FATAL_CLOSE_CODES = [4401, 4403];

/** Longer each time, spread so that a restarted service is not met by all clients at once; at once when online again. */
function reconnectDelay(retries: number): Promise<void> {
  const longest = Math.min(RECONNECT_MAX_MS, 500 * 2 ** retries);
  return new Promise((resolve) => {
    setTimeout(resolve, longest * (0.5 + Math.random() / 2));
    addEventListener("online", () => resolve(), { once: true });
  });
}

function openSocket({ address, token }: Connection): SocketClient {
  const url = address("/graphql");
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return createClient({
    url: url.href,
    connectionParams: () => (token() === null ? {} : { authToken: token() }),
    keepAlive: KEEP_ALIVE_MS,
    retryAttempts: Number.POSITIVE_INFINITY,
    retryWait: reconnectDelay,
    shouldRetry: (cause) => !(cause instanceof CloseEvent && FATAL_CLOSE_CODES.includes(cause.code)),
  });
}

/** @param start runs an action with an event as its payload */
export function createTriggers(connection: Connection, start: (action: ClientAction, event: AnalyticsEvent) => void) {
  let socket: SocketClient | null = null;
  let early: AnalyticsEvent[] | null = [];
  const actions = new Map<number, ClientAction>();

  function dispatch(event: AnalyticsEvent): void {
    for (const action of actions.values()) {
      const wheres = action.triggers.filter(({ trigger }) => trigger === "analytics").map(({ where }) => where);
      // Started once, however many of its triggers match.
      if (wheres.some((where) => where && matchesAnalytics(where as AnalyticsWhere, event))) start(action, event);
    }
  }

  function apply(change: Change): void {
    if (change.reset) actions.clear();
    for (const id of change.removed) actions.delete(id);
    for (const action of change.actions) actions.set(action.id, action);
    const waiting = early ?? [];
    early = null;
    for (const event of waiting) dispatch(event);
  }

  function subscribe(client: SocketClient): void {
    const again = () => {
      if (socket === client) void reconnectDelay(1).then(() => socket === client && subscribe(client));
    };
    const sink = {
      next: ({ data }: { data?: { clientTriggers: Change } | null }) => data && apply(data.clientTriggers),
      error: (error: unknown) => {
        console.warn("svc: client actions are not followed", error);
        stop();
      },
      // The service ends a subscription when it shuts down; its successor takes the next one.
      complete: again,
    };
    client.subscribe<{ clientTriggers: Change }>(
      { query: SUBSCRIPTION, variables: { appId: connection.appId() } },
      sink,
    );
  }

  function stop(): void {
    const closing = socket;
    socket = null;
    early = [];
    actions.clear();
    void closing?.dispose();
  }

  const triggers: Triggers = {
    start() {
      if (socket) return;
      socket = openSocket(connection);
      subscribe(socket);
    },
    stop,
  };

  return {
    triggers,
    /** Takes an event as it happens; the first one opens the socket. */
    handle(event: AnalyticsEvent): void {
      triggers.start();
      if (early === null) dispatch(event);
      else if (early.length < EARLY_EVENTS) early.push(event);
    },
  };
}
