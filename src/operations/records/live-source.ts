/** Events that go to many listeners at once: one object each for all of them, so that what is made of it can be shared. Knows no event. */

/** Ends a listening. May be called twice. */
export type StopListening = () => void;

/**
 * What a subscription's resolver gives. Listened to, not iterated: an iterator would hold back every listener's events apart.
 * GraphQL asks for an async iterable, and looks no further than for its method.
 */
export interface LiveSource<Event extends object> extends AsyncIterable<Event> {
  /** The app whose events these are. */
  appId: number;
  /** Calls `listener` with every event from now on. Listeners must not throw. */
  listen(listener: (event: Event) => void): StopListening;
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
