/** Draft of a notification as the form's texts, and its conversion to the service's input. */
import type { Notification, NotificationInput } from "../shared/model.js";

export type PublicationTime = "draft" | "published" | "scheduled";

export interface NotificationDraft {
  title: string;
  message: string;
  navigate: string;
  /** Recipients as JSON; "" for all users. */
  scope: string;
  when: PublicationTime;
  /** Date and time as the browser's input has it, in the person's time zone. */
  orderAt: string;
  push: boolean;
}

const textOrEmpty = (value: unknown): string => (typeof value === "string" ? value : "");

/** Returns the time in the person's time zone, without seconds. */
function toLocalTime(iso: string | null): string {
  if (iso === null) return "";
  const date = new Date(iso);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function notificationToDraft(notification: Notification | null): NotificationDraft {
  const data = (notification?.data ?? {}) as Record<string, unknown>;
  return {
    title: textOrEmpty(data["title"]),
    message: textOrEmpty(data["message"]),
    navigate: textOrEmpty(data["navigate"]),
    scope: notification?.scope ? JSON.stringify(notification.scope, null, 2) : "",
    when: notification?.status ?? "draft",
    orderAt: toLocalTime(notification?.orderAt ?? null),
    push: notification?.pushNotification != null,
  };
}

/** Returns the input for the service. @throws SyntaxError if the scope is not JSON */
export function notificationInput(draft: NotificationDraft): NotificationInput {
  const { title, message, navigate, scope, when, orderAt, push } = draft;
  return {
    status: when,
    extendData: { title, message, navigate: navigate || null },
    scope: scope.trim() === "" ? null : JSON.parse(scope),
    orderAt: when === "scheduled" && orderAt !== "" ? new Date(orderAt).toISOString() : null,
    pushNotification: push ? { payload: { title, body: message } } : null,
  };
}
