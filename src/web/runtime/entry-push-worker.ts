/**
 * Script `/client/push-worker.js` for a service worker of the page's own origin. Shows Web Push messages, and opens the page that a
 * notification links to.
 */

interface PushEvent {
  data: { json(): unknown } | null;
  notification: { data?: { navigate?: unknown }; close(): void };
  waitUntil(work: Promise<unknown>): void;
}

interface PushServiceWorker {
  addEventListener(type: "push" | "notificationclick", listener: (event: PushEvent) => void): void;
  registration: { showNotification(title: string, options: object): Promise<void>; scope: string };
  clients: { openWindow(url: string): Promise<unknown> };
}

const serviceWorker = globalThis as unknown as PushServiceWorker;

function readMessage({ data }: PushEvent): Record<string, unknown> {
  try {
    const message: unknown = data?.json();
    return typeof message === "object" && message !== null ? (message as Record<string, unknown>) : {};
  } catch {
    // A message that is not JSON is not from the service, which sends only JSON. The notification then has no text.
    return {};
  }
}

serviceWorker.addEventListener("push", (event) => {
  const { title, body, badge, notificationId, ...otherFields } = readMessage(event);
  const { setAppBadge } = navigator as { setAppBadge?: (count: number) => Promise<void> };
  // Ignores an error of the badge, so that the notification is still shown.
  const badgeUpdate =
    typeof badge === "number" && setAppBadge ? setAppBadge.call(navigator, badge).catch(() => undefined) : null;
  const data = { ...otherFields, notificationId };
  const options = { body: String(body ?? ""), tag: `svc-${String(notificationId)}`, data };
  event.waitUntil(
    Promise.all([serviceWorker.registration.showNotification(String(title ?? ""), options), badgeUpdate]),
  );
});

serviceWorker.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const targetUrl = event.notification.data?.navigate;
  const url = URL.parse(typeof targetUrl === "string" ? targetUrl : "", serviceWorker.registration.scope);
  if (url && /^https?:$/.test(url.protocol)) event.waitUntil(serviceWorker.clients.openWindow(url.href));
});
