/** Knows the app's client actions as they are now and starts those that an event matches. */
import { matchesAnalytics } from "../../rules/trigger-match.js";
import type { Connection } from "./connection.js";
import type { AnalyticsEvent, Triggers } from "./public-types.js";
import type { Socket } from "./socket.js";
import { type Change, type ClientAction, followClientTriggers } from "./trigger-feed.js";

/** Events before the first answer wait for it: the first page view comes before any socket is open. */
const EARLY_EVENTS = 100;

/** @param start runs an action with an event as its payload */
export function createTriggers(
  socket: Socket,
  connection: Connection,
  start: (action: ClientAction, event: AnalyticsEvent) => void,
) {
  let close: (() => void) | null = null;
  /** Another credential may be heard where this one was not; the next event with this one would not. */
  let wasRefused = false;
  let early: AnalyticsEvent[] | null = [];
  const actions = new Map<number, ClientAction>();

  function dispatch(event: AnalyticsEvent): void {
    for (const action of actions.values()) {
      // Started once, however many of its triggers match.
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
    /** With another credential it may be told of other actions. Events that wait go on waiting. */
    restart(): void {
      if (!close && !wasRefused) return;
      const waiting = early;
      stop();
      early = waiting ?? [];
      begin();
    },
    /** Takes an event as it happens; the first one opens the socket. */
    handle(event: AnalyticsEvent): void {
      if (wasRefused) return;
      begin();
      if (early === null) dispatch(event);
      else if (early.length < EARLY_EVENTS) early.push(event);
    },
  };
}
