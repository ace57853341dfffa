/**
 * Event sources for GraphQL subscriptions. A source passes the same event object to all listeners, so that the event is serialized only
 * once.
 */
import type { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";

/** Removes a listener from its event source. A second call has no effect. */
export type StopListening = () => void;

/**
 * Event source of a subscription. GraphQL requires an AsyncIterable, but the service calls `listen` instead, because an iterator would need
 * a queue for each listener.
 */
export interface SubscriptionSource<Event extends object> extends AsyncIterable<Event> {
  appId: number;
  /** Calls `listener` with every future event, and `endSource` once when the source ends. These functions must not throw. */
  listen(listener: (event: Event) => void, endSource: (reason: ActionError) => void): StopListening;
}

export interface SubscriptionGuard {
  appId: number;
  /** Checks the caller's right to use this subscription. @throws ActionError if the caller has lost the right */
  check(caller: Caller): void;
}

/** Adds an access check to a source. The service calls `check` whenever credentials change, and ends the subscription if `check` throws. */
export function guardSubscriptionSource<Source extends AsyncIterable<unknown>>(
  source: Source,
  { appId, check }: SubscriptionGuard,
): Source & SubscriptionGuard {
  return Object.assign(source, { appId, check });
}

export function createSubscriptionSource<Event extends object>(
  appId: number,
  listen: SubscriptionSource<Event>["listen"],
): SubscriptionSource<Event> {
  return {
    appId,
    listen,
    [Symbol.asyncIterator]() {
      throw new Error("a SubscriptionSource is not an async iterable of its events; call its method listen");
    },
  };
}

export function isSubscriptionSource(value: object): value is SubscriptionSource<object> {
  return "listen" in value && Symbol.asyncIterator in value;
}
