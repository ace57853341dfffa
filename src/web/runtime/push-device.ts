/**
 * Assigns the browser's subscription to push messages to the session of the page. A subscription outlives the session in
 * which the person subscribed, and the next session may be that of another user.
 */
import type { Connection } from "./connection.js";
import { globalScope } from "./scope.js";

/** Encodes bytes as base64url without padding, the form in which the service returns its public key. */
const encodeBase64Url = (bytes: ArrayBuffer): string =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

/** Creates the object that assigns this browser's push subscription of the app to the page's session. */
export function createPushDeviceAssigner({ appId, request }: Pick<Connection, "appId" | "request">) {
  let lastAssignment = Promise.resolve();

  async function assignDevice(): Promise<void> {
    const { navigator } = globalScope;
    if (!navigator?.serviceWorker) return;
    const registrations = await navigator.serviceWorker.getRegistrations();
    const subscriptions = await Promise.all(registrations.map(({ pushManager }) => pushManager?.getSubscription()));
    if (!subscriptions.some((subscription) => subscription)) return;
    const path = `/v1/apps/${appId()}/push/subscriptions`;
    const options = { skipsTokenRenewal: true };
    const { publicKey } = await request("GET", path, undefined, options);
    // The page's origin may also have subscriptions to other apps or push services, which have other keys.
    const subscription = subscriptions.find((subscription) => {
      const key = subscription?.options.applicationServerKey;
      return key && encodeBase64Url(key) === publicKey;
    });
    if (subscription) await request("POST", path, subscription.toJSON(), options);
  }

  return {
    /** Starts an assignment in the background, which waits until earlier assignments have ended. Ignores all failures. */
    assign(): void {
      lastAssignment = lastAssignment.then(assignDevice).catch(() => undefined);
    },
  };
}
