/**
 * Sources of subscriptions. A live source emits one object per event to all of its listeners, so that work on it can be shared. Read this
 * file before you add a subscription.
 */
import type { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";

/** Function that unsubscribes. It may be called twice. */
export type StopListening = () => void;

/**
 * Result of a subscription's resolver. Callers subscribe to it instead of iterating, because an iterator would queue every listener's
 * events separately. GraphQL requires an async iterable, but only checks for the method.
 */
export interface LiveSource<Event extends object> extends AsyncIterable<Event> {
  /** ID of the app to which the events belong. */
  appId: number;
  /**
   * Calls `listener` with every future event. Calls `end` once with the reason if the source ends; nothing follows it.
   * Listeners must not throw.
   */
  listen(listener: (event: Event) => void, endSource: (reason: ActionError) => void): StopListening;
}

/** Access check that the caller of a subscription must keep passing. */
export interface SourceGuard {
  appId: number;
  /** @throws ActionError if the caller has lost the right to this subscription */
  check(caller: Caller): void;
}

/** Adds the right to a source that its caller must keep: `check` runs again whenever credentials change. */
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
      throw new Error("a live source only supports subscriptions");
    },
  };
}

export function isLiveSource(value: object): value is LiveSource<object> {
  return "listen" in value && Symbol.asyncIterator in value;
}
