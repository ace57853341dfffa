/**
 * Type of the sources from which GraphQL subscriptions receive events. A source passes the same object to all its
 * listeners, so that an event is serialized only once. Read this file before you add a subscription.
 */
import type { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";

/** Function that removes a listener. A second call has no effect. */
export type StopListening = () => void;

/**
 * Result of a subscription's resolver. Call `listen` instead of iterating: an iterator would need a separate queue of
 * events for each listener. GraphQL requires an async iterable, but checks only that the iterator method exists.
 */
export interface LiveSource<Event extends object> extends AsyncIterable<Event> {
  /** ID of the app to which the events belong. */
  appId: number;
  /**
   * Calls `listener` with every future event. If the source ends, it calls `endSource` once with the reason, and sends
   * no more events. Listeners must not throw.
   */
  listen(listener: (event: Event) => void, endSource: (reason: ActionError) => void): StopListening;
}

/** Access check of a subscription. It is repeated while the subscription is open. */
export interface SourceGuard {
  appId: number;
  /** Checks the caller's right to this subscription. @throws ActionError if the caller has lost it */
  check(caller: Caller): void;
}

/**
 * Adds an access check to a source. The service calls `check` again whenever credentials change, and ends the
 * subscription if it throws.
 */
export function guardSource<Source extends AsyncIterable<unknown>>(
  source: Source,
  { appId, check }: SourceGuard,
): Source & SourceGuard {
  return Object.assign(source, { appId, check });
}

export function liveSource<Event extends object>(
  appId: number,
  listen: LiveSource<Event>["listen"],
): LiveSource<Event> {
  return {
    appId,
    listen,
    [Symbol.asyncIterator]() {
      throw new Error("a live source cannot be iterated; call listen");
    },
  };
}

export function isLiveSource(value: object): value is LiveSource<object> {
  return "listen" in value && Symbol.asyncIterator in value;
}
