/** Stores the current list of the app's client actions, and starts the actions whose trigger matches an event. */
import { matchesAnalyticsTrigger } from "../../rules/trigger-match.js";
import type { Connection } from "./connection.js";
import type { AnalyticsEvent, Triggers } from "./public-types.js";
import type { SubscriptionSocket } from "./socket.js";
import { type ClientAction, type ClientTriggersUpdate, subscribeToClientTriggers } from "./trigger-feed.js";

/** Maximum number of events that wait until the list of client actions is loaded. Further events start no actions. */
const MAX_EARLY_EVENTS = 100;
/**
 * Minimum time between a rejection of the subscription and an event that starts it again. A later attempt can succeed, for example when the
 * app is published again.
 */
const RETRY_AFTER_REJECTION_MS = 30_000;

/** Creates the object that starts the client actions whose trigger matches an event. @param startAction runs an action with the event */
export function createClientActionStarter(
  socket: SubscriptionSocket,
  connection: Connection,
  startAction: (action: ClientAction, event: AnalyticsEvent) => void,
) {
  let endSubscription: (() => void) | null = null;
  /**
   * Time at which the service rejected the subscription; null if it has not. After a rejection, events start nothing until the token
   * changes, the page calls `start`, or RETRY_AFTER_REJECTION_MS have passed.
   */
  let rejectedAtMs: number | null = null;
  /** Events that wait for the list of client actions; null after the page has received this list. */
  let earlyEvents: AnalyticsEvent[] | null = [];
  const actions = new Map<number, ClientAction>();

  function startMatchingActions(event: AnalyticsEvent): void {
    for (const action of actions.values()) {
      // Tests all triggers of an action together, so that one event starts the action only once.
      if (
        action.triggers.some(
          (trigger) =>
            trigger.trigger === "analytics" && trigger.where && matchesAnalyticsTrigger(trigger.where, event),
        )
      ) {
        startAction(action, event);
      }
    }
  }

  function applyUpdate({ reset, actions: changed, removed }: ClientTriggersUpdate): void {
    if (reset) actions.clear();
    for (const id of removed) actions.delete(id);
    for (const action of changed) actions.set(action.id, action);
    const waitingEvents = earlyEvents ?? [];
    earlyEvents = null;
    for (const event of waitingEvents) startMatchingActions(event);
  }

  function onRejected(cause: unknown): void {
    console.warn("svc: the service rejected this page's subscription to client actions", cause);
    stopDelivery();
    rejectedAtMs = Date.now();
  }

  function startSubscription(): void {
    rejectedAtMs = null;
    endSubscription ??= subscribeToClientTriggers(socket, connection, { onUpdate: applyUpdate, onRejected });
  }

  function stopDelivery(): void {
    endSubscription?.();
    endSubscription = null;
    earlyEvents = [];
    actions.clear();
  }

  return {
    triggers: { start: startSubscription, stop: stopDelivery } satisfies Triggers,
    /** Loads the list of actions again after a change of the token, because another user may run other actions. Keeps waiting events. */
    restart(): void {
      if (!endSubscription && rejectedAtMs === null) return;
      const waitingEvents = earlyEvents;
      stopDelivery();
      earlyEvents = waitingEvents ?? [];
      startSubscription();
    },
    /** Starts the actions whose triggers match the event. The first event opens the WebSocket. Drops events just after a rejection. */
    handleEvent(event: AnalyticsEvent): void {
      if (rejectedAtMs !== null && Date.now() - rejectedAtMs < RETRY_AFTER_REJECTION_MS) return;
      startSubscription();
      if (earlyEvents === null) startMatchingActions(event);
      else if (earlyEvents.length < MAX_EARLY_EVENTS) earlyEvents.push(event);
    },
  };
}
