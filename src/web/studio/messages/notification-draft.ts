/** Draft of a notification, whose values are the texts in the form, and its conversion to the service's input. */
import type { Notification, NotificationInput } from "../shared/model.js";

export type PublicationChoice = "draft" | "published" | "scheduled";

export interface NotificationDraft {
  title: string;
  message: string;
  navigate: string;
  /** Recipients as JSON text; "" for all users of the app and anonymous visitors. */
  scope: string;
  publicationTime: PublicationChoice;
  /** Time of publication in the person's time zone, such as "2026-01-31T09:00". Until the person has chosen a date: "", or only "T09:00". */
  orderAt: string;
  sendsPush: boolean;
}

const toTextOrEmpty = (value: unknown): string => (typeof value === "string" ? value : "");

/** Returns a time in the person's time zone, such as "2026-01-31T09:00". Returns "" for null. */
function toLocalTime(iso: string | null): string {
  if (iso === null) return "";
  const date = new Date(iso);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function notificationToDraft(notification: Notification | null): NotificationDraft {
  const data = (notification?.data ?? {}) as Record<string, unknown>;
  return {
    title: toTextOrEmpty(data["title"]),
    message: toTextOrEmpty(data["message"]),
    navigate: toTextOrEmpty(data["navigate"]),
    scope: notification?.scope ? JSON.stringify(notification.scope, null, 2) : "",
    publicationTime: notification?.status ?? "draft",
    orderAt: toLocalTime(notification?.orderAt ?? null),
    sendsPush: notification?.pushNotification != null,
  };
}

/** Converts the draft to the input of the service. @throws SyntaxError if `scope` is not valid JSON */
export function draftToNotification(draft: NotificationDraft): NotificationInput {
  const { title, message, navigate, scope, publicationTime, orderAt, sendsPush } = draft;
  return {
    status: publicationTime,
    extendData: { title, message, navigate: navigate || null },
    scope: scope.trim() === "" ? null : JSON.parse(scope),
    orderAt: publicationTime === "scheduled" && !/^(T|$)/.test(orderAt) ? new Date(orderAt).toISOString() : null,
    pushNotification: sendsPush ? { payload: { title, body: message } } : null,
  };
}
