/**
 * Pauses requests while the session has expired. The service has rejected them with 401; Studio sends them again after
 * the person has signed in again. The open page does not change during the pause.
 */
import { throwOffline } from "../shared/api-error.js";

type ExpiryListener = (isExpired: boolean) => void;

let pendingRenewal: PromiseWithResolvers<void> | null = null;
/** Number of times that paused requests were sent again since the page was loaded: after a sign-in or a sign-out. */
let renewalCount = 0;
/** True while a person is signed in to Studio, so that a 401 means an expired session. On the sign-in page, a 401 is an error to show. */
let isPausingEnabled = false;
const expiryListeners = new Set<ExpiryListener>();

const notifyListeners = (isExpired: boolean) => {
  for (const listener of expiryListeners) listener(isExpired);
};

/** Call this with true after a sign-in, and with false for the sign-in page. False ends the pausing and sends the paused requests again. */
export function setRequestPausing(isSignedIn: boolean): void {
  isPausingEnabled = isSignedIn;
  if (!isSignedIn) resumePausedRequests();
}

/** True if a request that the service rejected with 401 should wait until the person has signed in again. */
export const shouldWaitForSessionRenewal = (): boolean => isPausingEnabled;

/**
 * Returns how often paused requests were sent again so far. Read the number before a request. If the request gets a 401, pass the
 * number to `waitForSessionRenewal`.
 */
export const getSessionRenewalCount = (): number => renewalCount;

/**
 * Resolves when the paused requests are sent again, after a sign-in or a sign-out. Resolves immediately if this has happened since
 * `renewalCountBefore` was read.
 * @param renewalCountBefore value of `getSessionRenewalCount` before the request
 */
export function waitForSessionRenewal(renewalCountBefore: number): Promise<void> {
  if (renewalCountBefore !== renewalCount) return Promise.resolve();
  if (!pendingRenewal) {
    pendingRenewal = Promise.withResolvers<void>();
    notifyListeners(true);
  }
  return pendingRenewal.promise;
}

/** Sends all paused requests again. Call this after the same person has signed in again, and after a sign-out. */
export function resumePausedRequests(): void {
  const endedRenewal = pendingRenewal;
  if (endedRenewal) renewalCount += 1;
  pendingRenewal = null;
  notifyListeners(false);
  endedRenewal?.resolve();
}

/**
 * Calls the listener immediately and at each change: with true if the session has expired, otherwise with false. Returns a function that
 * removes the listener.
 */
export function onSessionExpiry(listener: ExpiryListener): () => void {
  expiryListeners.add(listener);
  listener(pendingRenewal !== null);
  return () => void expiryListeners.delete(listener);
}

/**
 * Calls `fetch`. If the service responds with 401 because the session has expired, waits until the person has signed in again. Then repeats
 * the request. If the person signs out instead, returns the response with 401.
 * @throws ApiError with the status OFFLINE if there is no response
 */
export async function fetchWithSignInRetry(input: URL, init?: RequestInit): Promise<Response> {
  for (;;) {
    const renewalCountBefore = renewalCount;
    const response = await fetch(input, init).catch(throwOffline);
    if (response.status !== 401 || !isPausingEnabled) return response;
    await waitForSessionRenewal(renewalCountBefore);
  }
}
