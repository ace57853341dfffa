/**
 * Pauses requests while the session has expired. Requests that were rejected with 401 are sent again after the person has signed in. The
 * page stays unchanged meanwhile.
 */
type Listener = (isExpired: boolean) => void;

let pending: PromiseWithResolvers<void> | null = null;
/** Number of new sign-ins since the page was loaded. */
let renewals = 0;
/** True while a person is signed in to Studio. The sign-in page handles its own errors. */
let isOn = false;
const listeners = new Set<Listener>();

const tell = (isExpired: boolean) => {
  for (const listener of listeners) listener(isExpired);
};

/** Turns the pausing of requests on or off. */
export function watchSession(isSignedIn: boolean): void {
  isOn = isSignedIn;
  if (!isSignedIn) resume();
}

/** True if a request that was rejected with 401 should wait for a new sign-in. */
export const isRenewable = (): boolean => isOn;

/** Returns the number of sign-ins before a request. Pass it to `renewed` if the request is rejected. */
export const renewalCount = (): number => renewals;

/**
 * Resolves after the person has signed in again; immediately if that happened after the request was sent.
 * @param before value of `renewalCount` before the request
 */
export function renewed(before: number): Promise<void> {
  if (before !== renewals) return Promise.resolve();
  if (!pending) {
    pending = Promise.withResolvers<void>();
    tell(true);
  }
  return pending.promise;
}

/** Resumes all waiting requests. Call this after the person has signed in again. */
export function resume(): void {
  const before = pending;
  if (before) renewals += 1;
  pending = null;
  tell(false);
  before?.resolve();
}

/** @returns function that removes the listener */
export function onExpiry(listener: Listener): () => void {
  listeners.add(listener);
  listener(pending !== null);
  return () => void listeners.delete(listener);
}

/** Calls `fetch`. If the session has expired, waits for a new sign-in and sends the request again. */
export async function fetchSignedIn(input: URL, init?: RequestInit): Promise<Response> {
  for (;;) {
    const before = renewals;
    const response = await fetch(input, init);
    if (response.status !== 401 || !isOn) return response;
    await renewed(before);
  }
}
