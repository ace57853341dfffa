/**
 * Finds this browser's subscription to push messages of the app, and assigns it to the session of the page. A subscription outlives the
 * session in which the person subscribed, and the next session may be that of another user.
 */
import type { Connection, ConnectionRequestOptions } from "./connection.js";
import { globalScope } from "./scope.js";

/** Encodes bytes as base64url without padding, the form in which the service returns its public key. */
const encodeBase64Url = (bytes: ArrayBuffer): string =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

/** Returns the path of the routes for the app's push subscriptions. */
export const getPushPath = ({ appId }: Pick<Connection, "appId">): string => `/v1/apps/${appId()}/push/subscriptions`;

/**
 * Returns this browser's subscription to push messages of the app; null if there is none. Also returns null on a page without HTTPS,
 * because browsers offer no service workers there.
 * @throws SvcError
 */
export async function findPushSubscription(
  connection: Pick<Connection, "appId" | "request">,
  options?: ConnectionRequestOptions,
): Promise<PushSubscription | null> {
  const { navigator } = globalScope;
  if (!navigator?.serviceWorker) return null;
  const registrations = await navigator.serviceWorker.getRegistrations();
  const subscriptions = await Promise.all(registrations.map(({ pushManager }) => pushManager?.getSubscription()));
  if (!subscriptions.some((subscription) => subscription)) return null;
  const { publicKey } = await connection.request("GET", getPushPath(connection), undefined, options);
  // The page's origin may also have subscriptions to other apps or push services, which have other keys.
  const appSubscription = subscriptions.find((subscription) => {
    const key = subscription?.options.applicationServerKey;
    return key && encodeBase64Url(key) === publicKey;
  });
  return appSubscription ?? null;
}

/** Creates the object that assigns this browser's push subscription of the app to the page's session. */
export function createPushDeviceAssigner(connection: Pick<Connection, "appId" | "request">) {
  let lastAssignment = Promise.resolve();

  async function assignDevice(): Promise<void> {
    const options = { skipsTokenRenewal: true };
    const subscription = await findPushSubscription(connection, options);
    if (subscription) await connection.request("POST", getPushPath(connection), subscription.toJSON(), options);
  }

  return {
    /** Starts an assignment in the background, which waits until earlier assignments have ended. Ignores all failures. */
    assign(): void {
      lastAssignment = lastAssignment.then(assignDevice).catch(() => undefined);
    },
  };
}
