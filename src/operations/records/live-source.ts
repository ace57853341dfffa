/**
 * Sources of subscriptions. A live source emits one object per event to all of its listeners, so that what is made of it can be shared.
 * Read it before you add a subscription.
 */
import type { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";

/** Ends a listening. May be called twice. */
export type StopListening = () => void;

/**
 * What a subscription's resolver gives. Listened to, not iterated: an iterator would hold back every listener's events apart.
 * GraphQL asks for an async iterable, and looks no further than for its method.
 */
export interface LiveSource<Event extends object> extends AsyncIterable<Event> {
  /** The app whose events these are. */
  appId: number;
  /**
   * Calls `listener` with every event from now on, or `end` once, after which nothing follows: the source has ended for that reason.
   * Listeners must not throw.
   */
  listen(listener: (event: Event) => void, end: (reason: ActionError) => void): StopListening;
}

/** What a source needs to stay open only while its caller passes a check. */
export interface Guard {
  appId: number;
  /** @throws ActionError if the caller has lost the right to this subscription */
  check(caller: Caller): void;
}

/** Adds to a source the right that its caller must keep: `check` runs again whenever credentials change. */
export function guarded<Source extends AsyncIterable<unknown>>(
  source: Source,
  { appId, check }: Guard,
): Source & Guard {
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
      throw new Error("a live source is listened to");
    },
  };
}

export function isLiveSource(value: object): value is LiveSource<object> {
  return "listen" in value && Symbol.asyncIterator in value;
}
