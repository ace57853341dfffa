/** Keeps a current list of the app's client actions, and starts the actions whose trigger matches an event. */
import { matchesAnalytics } from "../../rules/trigger-match.js";
import type { Connection } from "./connection.js";
import type { AnalyticsEvent, Triggers } from "./public-types.js";
import type { Socket } from "./socket.js";
import { type Change, type ClientAction, followClientTriggers } from "./trigger-feed.js";

/** Maximum number of events that wait for the list of actions. The first page view happens before the socket is open. */
const EARLY_EVENTS = 100;

/** @param start runs an action with an event as its payload */
export function createTriggers(
  socket: Socket,
  connection: Connection,
  start: (action: ClientAction, event: AnalyticsEvent) => void,
) {
  let close: (() => void) | null = null;
  /** True after the service has rejected the credential. Events do not open the socket again until the credential changes. */
  let wasRefused = false;
  let early: AnalyticsEvent[] | null = [];
  const actions = new Map<number, ClientAction>();

  function dispatch(event: AnalyticsEvent): void {
    for (const action of actions.values()) {
      // An action starts once per event, even if several of its triggers match.
      if (
        action.triggers.some((one) => one.trigger === "analytics" && one.where && matchesAnalytics(one.where, event))
      ) {
        start(action, event);
      }
    }
  }

  function change({ reset, actions: changed, removed }: Change): void {
    if (reset) actions.clear();
    for (const id of removed) actions.delete(id);
    for (const action of changed) actions.set(action.id, action);
    const waiting = early ?? [];
    early = null;
    for (const event of waiting) dispatch(event);
  }

  function refused(cause: unknown): void {
    console.warn("svc: the service refuses to deliver client actions", cause);
    stop();
    wasRefused = true;
  }

  function begin(): void {
    wasRefused = false;
    close ??= followClientTriggers(socket, connection, { change, refused });
  }

  function stop(): void {
    close?.();
    close = null;
    early = [];
    actions.clear();
  }

  return {
    triggers: { start: begin, stop } satisfies Triggers,
    /** Reads the list again, because another credential may see other actions. Waiting events stay. */
    restart(): void {
      if (!close && !wasRefused) return;
      const waiting = early;
      stop();
      early = waiting ?? [];
      begin();
    },
    /** Starts the actions for an event. The first event opens the socket. */
    handle(event: AnalyticsEvent): void {
      if (wasRefused) return;
      begin();
      if (early === null) dispatch(event);
      else if (early.length < EARLY_EVENTS) early.push(event);
    },
  };
}
