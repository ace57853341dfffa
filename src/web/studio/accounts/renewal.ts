/**
 * Waits for the person to sign in again when the session has expired. Requests that were rejected with 401 wait here and are sent again; the
 * page stays as it is meanwhile.
 */
type Listener = (isExpired: boolean) => void;

let pending: PromiseWithResolvers<void> | null = null;
/** Number of times that the person has signed in again. */
let renewals = 0;
/** False while no person is signed in to Studio: its sign-in page has requests of its own. */
let isOn = false;
const listeners = new Set<Listener>();

const tell = (isExpired: boolean) => {
  for (const listener of listeners) listener(isExpired);
};

/** Switches the waiting on and off. */
export function watchSession(isSignedIn: boolean): void {
  isOn = isSignedIn;
  if (!isSignedIn) resume();
}

/** True if a request that was rejected with 401 should wait. */
export const isRenewable = (): boolean => isOn;

/** State of the session before a request; pass it to `renewed` if the request is rejected. */
export const renewalCount = (): number => renewals;

/**
 * Resolves once the person has signed in again: at once if that happened after the request was sent.
 * @param before `renewalCount` before the request
 */
export function renewed(before: number): Promise<void> {
  if (before !== renewals) return Promise.resolve();
  if (!pending) {
    pending = Promise.withResolvers<void>();
    tell(true);
  }
  return pending.promise;
}

/** Resumes all waiting requests after the person has signed in again. */
export function resume(): void {
  const before = pending;
  if (before) renewals += 1;
  pending = null;
  tell(false);
  before?.resolve();
}

/** @returns what ends it */
export function onExpiry(listener: Listener): () => void {
  listeners.add(listener);
  listener(pending !== null);
  return () => void listeners.delete(listener);
}

/** `fetch` that waits for a new sign-in when the session has expired, and then sends the same request again. */
export async function fetchSignedIn(input: URL, init?: RequestInit): Promise<Response> {
  for (;;) {
    const before = renewals;
    const response = await fetch(input, init);
    if (response.status !== 401 || !isOn) return response;
    await renewed(before);
  }
}
