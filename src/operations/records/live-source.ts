/**
 * Type of event sources for GraphQL subscriptions. An event source passes the same event object to all its listeners,
 * so that each event is serialized only once. Read this file before you add a subscription.
 */
import type { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";

/** Removes a listener from its event source. A second call has no effect. */
export type StopListening = () => void;

/**
 * Event source that the resolver of a subscription returns. The service calls `listen` instead of iterating, because an iterator would need
 * a queue of events for each listener. GraphQL requires an async iterable, but checks only that the iterator method exists.
 */
export interface LiveSource<Event extends object> extends AsyncIterable<Event> {
  /** ID of the app to which the events belong. */
  appId: number;
  /**
   * Calls `listener` with every future event. When the source ends, calls `endSource` once with the reason, and sends
   * no more events. `listener` and `endSource` must not throw.
   */
  listen(listener: (event: Event) => void, endSource: (reason: ActionError) => void): StopListening;
}

/** Access check of a subscription, which the service repeats while the subscription is open. */
export interface SubscriptionGuard {
  appId: number;
  /** Checks that the caller may still use this subscription. @throws ActionError if the caller has lost the right */
  check(caller: Caller): void;
}

/**
 * Adds an access check to an event source. The service calls `check` again whenever credentials change. If `check`
 * throws, the service ends the subscription.
 */
export function guardLiveSource<Source extends AsyncIterable<unknown>>(
  source: Source,
  { appId, check }: SubscriptionGuard,
): Source & SubscriptionGuard {
  return Object.assign(source, { appId, check });
}

export function createLiveSource<Event extends object>(
  appId: number,
  listen: LiveSource<Event>["listen"],
): LiveSource<Event> {
  return {
    appId,
    listen,
    [Symbol.asyncIterator]() {
      throw new Error("a LiveSource is not an async iterable of its events; call its method listen");
    },
  };
}

export function isLiveSource(value: object): value is LiveSource<object> {
  return "listen" in value && Symbol.asyncIterator in value;
}
