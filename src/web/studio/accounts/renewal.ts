/**
 * Pauses requests while the session has expired. Requests that were rejected with 401 are sent again after the person has signed in. The
 * page stays unchanged meanwhile.
 */
type ExpiryListener = (isExpired: boolean) => void;

let pendingRenewal: PromiseWithResolvers<void> | null = null;
/** Number of new sign-ins since the page was loaded. */
let renewalTotal = 0;
/** True while a person is signed in to Studio. False on the sign-in page, where a 401 is an error message and must not pause requests. */
let isWatching = false;
const expiryListeners = new Set<ExpiryListener>();

const notifyListeners = (isExpired: boolean) => {
  for (const listener of expiryListeners) listener(isExpired);
};

/** Turns the pausing of requests on or off. */
export function watchSession(isSignedIn: boolean): void {
  isWatching = isSignedIn;
  if (!isSignedIn) resumeRequests();
}

/** True if a request that was rejected with 401 should wait for a new sign-in. */
export const isRenewable = (): boolean => isWatching;

/** Returns the number of new sign-ins so far. Pass the number to `waitForRenewal` if a request that is sent now gets a 401. */
export const renewalCount = (): number => renewalTotal;

/**
 * Resolves after the person has signed in again. Resolves immediately if the person has done so since the request was sent.
 * @param earlierCount value of `renewalCount` before the request
 */
export function waitForRenewal(earlierCount: number): Promise<void> {
  if (earlierCount !== renewalTotal) return Promise.resolve();
  if (!pendingRenewal) {
    pendingRenewal = Promise.withResolvers<void>();
    notifyListeners(true);
  }
  return pendingRenewal.promise;
}

/** Resumes all waiting requests. Call this after the person has signed in again. */
export function resumeRequests(): void {
  const before = pendingRenewal;
  if (before) renewalTotal += 1;
  pendingRenewal = null;
  notifyListeners(false);
  before?.resolve();
}

/** @returns function that removes the listener */
export function onExpiry(listener: ExpiryListener): () => void {
  expiryListeners.add(listener);
  listener(pendingRenewal !== null);
  return () => void expiryListeners.delete(listener);
}

/** Calls `fetch`. If the session has expired, waits for a new sign-in and sends the request again. */
export async function fetchSignedIn(input: URL, init?: RequestInit): Promise<Response> {
  for (;;) {
    const before = renewalTotal;
    const response = await fetch(input, init);
    if (response.status !== 401 || !isWatching) return response;
    await waitForRenewal(before);
  }
}
