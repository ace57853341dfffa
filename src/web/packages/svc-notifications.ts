/**
 * Package `Svc.Notifications`: an app's backend publishes notifications; its users read them, receive them live, or get them by Web Push.
 */
import { MISSED_NOTIFICATIONS_MAX_SECONDS } from "../../limits.js";
import { NotificationAdded, type NotificationAddedSubscription } from "../runtime/documents.js";
import type { Notification, NotificationOptions, Notifications } from "../runtime/message-types.js";
import { findPushSubscription, getPushPath } from "../runtime/push-device.js";
import { encodeIdPathSegment, wrapWithSvcErrors } from "./calls.js";
import { getConnection } from "./connection.js";
import { defineSvcNamespace } from "./define.js";
import { insertNotification, getNotificationsPath as path } from "./notification-calls.js";

function toQueryString(options: object): string {
  const parameters = Object.entries(options).filter(([, value]) => value !== undefined);
  return parameters.length === 0
    ? ""
    : `?${new URLSearchParams(parameters.map(([name, value]) => [name, String(value)]))}`;
}

/** Decodes a base64url key into bytes. */
function decodeBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** Waits until the registration has an active worker. `navigator.serviceWorker.ready` never resolves for a page outside of the scope. */
function waitForActiveWorker({ active, installing, waiting }: ServiceWorkerRegistration): Promise<void> {
  const worker = installing ?? waiting;
  if (active || !worker) return Promise.resolve();
  return new Promise((resolve, reject) => {
    worker.addEventListener("statechange", () => {
      if (worker.state === "activated") resolve();
      if (worker.state === "redundant") reject(new Error("the service worker could not be started; check its script"));
    });
  });
}

/** Registers the service worker that receives push messages. Returns its registration. @throws Error if Web Push is not available */
async function registerServiceWorker(scriptUrl: string): Promise<ServiceWorkerRegistration> {
  if (location.origin === "null" || !("serviceWorker" in navigator) || !("PushManager" in globalThis)) {
    throw new Error(
      "Web Push is not available here; open the page over https, outside of a sandboxed frame, in a browser that supports Web Push",
    );
  }
  const registration = await navigator.serviceWorker.register(scriptUrl);
  await waitForActiveWorker(registration);
  return registration;
}

/** Subscribes the browser to Web Push. `worker` is a script on the page's own origin that imports the service's push-worker.js. */
async function subscribeToPush({ worker = "/svc-push-worker.js" }: { worker?: string } = {}): Promise<{ id: number }> {
  const registration = await registerServiceWorker(worker);
  if ((await globalThis.Notification.requestPermission()) !== "granted")
    throw new Error("the user did not allow notifications in this browser");
  const connection = getConnection();
  const { publicKey } = (await connection.request("GET", getPushPath(connection))) as { publicKey: string };
  const options = { userVisibleOnly: true, applicationServerKey: decodeBase64Url(publicKey) };
  const subscription = await registration.pushManager.subscribe(options);
  return (await connection.request("POST", getPushPath(connection), subscription.toJSON())) as { id: number };
}

async function unsubscribeFromPush(): Promise<boolean> {
  const connection = getConnection();
  const subscription = await findPushSubscription(connection);
  if (!subscription) return false;
  await connection.request("DELETE", getPushPath(connection), { endpoint: subscription.endpoint });
  return subscription.unsubscribe();
}

/** Calls the function once for each new notification. After a lost connection, the service first sends the missed notifications. */
function streamNotifications(callback: (notification: Notification) => void): () => void {
  const { appId, follow } = getConnection();
  const startedAtMs = Date.now();
  let lastCursor: number | null = null;
  // Before the first notification, there is no cursor. Then the service finds missed notifications by the seconds since this call.
  const getSecondsSinceStart = () =>
    Math.min(Math.max(0, (Date.now() - startedAtMs) / 1_000), MISSED_NOTIFICATIONS_MAX_SECONDS);
  const variables = () => ({ appId: appId(), after: lastCursor, lastSeconds: getSecondsSinceStart() });
  return follow<NotificationAddedSubscription>(NotificationAdded, variables, {
    next({ notificationAdded: notification }) {
      if (lastCursor !== null && notification.cursor! <= lastCursor) return;
      lastCursor = notification.cursor;
      callback(notification as Notification);
    },
    refused: (cause) => console.error("svc: the service rejected this page's subscription to notifications", cause),
  });
}

const requestFunctions: Omit<Notifications, "init" | "stream" | "unread"> = {
  insert: insertNotification,
  async batchInsert(notifications: readonly NotificationOptions[]) {
    return ((await getConnection().request("POST", path("/batch"), notifications)) as { entries: Notification[] })
      .entries;
  },
  update: async (id: number, fields: NotificationOptions & { extendData?: object | boolean }) =>
    (await getConnection().request(
      "PUT",
      path(`/${encodeIdPathSegment(id, "NOTIFICATION_NOT_FOUND", "a notification's id")}`),
      fields,
    )) as unknown as Notification,
  async remove(id: number) {
    await getConnection().request(
      "DELETE",
      path(`/${encodeIdPathSegment(id, "NOTIFICATION_NOT_FOUND", "a notification's id")}`),
    );
  },
  get: async (options = {}) =>
    (await getConnection().request("GET", path(toQueryString(options)))) as unknown as { entries: Notification[] },
  async markNotificationsAsRead(ids: "all" | readonly number[]) {
    return (await getConnection().request("POST", path("/read"), { ids })) as unknown as { count: number };
  },
  subscribe: subscribeToPush,
  unsubscribe: unsubscribeFromPush,
};

const notificationFunctions: Omit<Notifications, "init"> = {
  ...wrapWithSvcErrors(requestFunctions),
  unread: {
    count: async () => ((await getConnection().request("GET", path("/unread"))) as { count: number }).count,
  },
  stream: streamNotifications,
};

defineSvcNamespace("Notifications", { ...notificationFunctions, init: () => notificationFunctions });
