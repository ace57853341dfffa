/** Converts a notification to the values of the form (the draft), and the draft to the service's input. */
import type { Notification, NotificationInput } from "../shared/model.js";

export type PublicationChoice = "draft" | "published" | "scheduled";

export interface NotificationDraft {
  title: string;
  message: string;
  navigate: string;
  /** Recipients as JSON text; "" for all users of the app and anonymous visitors. */
  scope: string;
  publication: PublicationChoice;
  /** Time of publication in the person's time zone, such as "2026-01-31T09:00". It is "" or only "T09:00" until a date is chosen. */
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
    publication: notification?.status ?? "draft",
    orderAt: toLocalTime(notification?.orderAt ?? null),
    sendsPush: notification?.pushNotification != null,
  };
}

/**
 * Converts the draft to the push message. Keeps the stored fields that the form does not show. Also keeps a stored title or text that
 * differed from that of the notification.
 */
function draftToPushMessage({ title, message }: NotificationDraft, storedNotification: Notification | null) {
  const storedPush = storedNotification?.pushNotification ?? null;
  const payload = (storedPush?.payload ?? {}) as Record<string, unknown>;
  const storedDraft = notificationToDraft(storedNotification);
  const chooseText = (pushText: unknown, earlierText: string, text: string) =>
    pushText === undefined || pushText === earlierText ? text : pushText;
  return {
    ...storedPush,
    payload: {
      ...payload,
      title: chooseText(payload["title"], storedDraft.title, title),
      body: chooseText(payload["body"], storedDraft.message, message),
    },
  };
}

/**
 * Converts the draft to the input of the service. Leaves out unchanged recipients. Also leaves out an unchanged time: the form has no
 * seconds, so sending the time would change it.
 * @param storedNotification notification as the service has stored it; null for a new one
 * @throws SyntaxError if `scope` is not valid JSON
 */
export function draftToNotification(
  draft: NotificationDraft,
  storedNotification: Notification | null,
): NotificationInput {
  const { title, message, navigate, scope, publication, orderAt, sendsPush } = draft;
  const storedDraft = storedNotification && notificationToDraft(storedNotification);
  const isTimeUnchanged = storedDraft?.publication === publication && storedDraft.orderAt === orderAt;
  const hasTime = publication === "scheduled" && !/^(T|$)/.test(orderAt);
  return {
    status: publication,
    extendData: { title, message, navigate: navigate || null },
    ...(storedDraft?.scope !== scope && { scope: scope.trim() === "" ? null : JSON.parse(scope) }),
    ...(!isTimeUnchanged && { orderAt: hasTime ? new Date(orderAt).toISOString() : null }),
    pushNotification: sendsPush ? draftToPushMessage(draft, storedNotification) : null,
  };
}
