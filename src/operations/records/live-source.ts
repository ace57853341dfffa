/** Event sources for GraphQL subscriptions. A source passes the same event object to all listeners, so that it is serialized only once. */
import type { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";

/** Removes a listener from its event source. A second call has no effect. */
export type StopListening = () => void;

/**
 * Event source of a subscription. The service calls `listen`, because an iterator would need a queue for each listener. GraphQL only checks
 * that the method of the async iterable exists.
 */
export interface LiveSource<Event extends object> extends AsyncIterable<Event> {
  /** ID of the app to which the events belong. */
  appId: number;
  /** Calls `listener` with every future event, and `endSource` once when the source ends. Neither may throw. */
  listen(listener: (event: Event) => void, endSource: (reason: ActionError) => void): StopListening;
}

/** Access check that the service repeats while the subscription is open. */
export interface SubscriptionGuard {
  appId: number;
  /** Checks that the caller may still use this subscription. @throws ActionError if the caller has lost the right */
  check(caller: Caller): void;
}

/** The service calls `check` again whenever credentials change. If `check` throws, the service ends the subscription. */
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
