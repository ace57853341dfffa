/** A notification as a person writes it, and as the service takes it. Draws nothing. */
import type { Notification, NotificationInput } from "../shared/model.js";

export type When = "draft" | "published" | "scheduled";

export interface NotificationDraft {
  title: string;
  message: string;
  navigate: string;
  /** JSON; "" for all users. */
  scope: string;
  when: When;
  /** As the browser's own field for it has it, in the person's zone. */
  orderAt: string;
  push: boolean;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** In the person's zone, without seconds. */
function localMoment(iso: string | null): string {
  if (iso === null) return "";
  const date = new Date(iso);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function draftOf(one: Notification | null): NotificationDraft {
  const data = (one?.data ?? {}) as Record<string, unknown>;
  return {
    title: text(data["title"]),
    message: text(data["message"]),
    navigate: text(data["navigate"]),
    scope: one?.scope ? JSON.stringify(one.scope, null, 2) : "",
    when: one?.status ?? "draft",
    orderAt: localMoment(one?.orderAt ?? null),
    push: one?.pushNotification != null,
  };
}

/** @throws SyntaxError for a scope that is no JSON */
export function inputOf(draft: NotificationDraft): NotificationInput {
  const { title, message, navigate, scope, when, orderAt, push } = draft;
  return {
    status: when,
    extendData: { title, message, navigate: navigate || null },
    scope: scope.trim() === "" ? null : JSON.parse(scope),
    orderAt: when === "scheduled" && orderAt !== "" ? new Date(orderAt).toISOString() : null,
    pushNotification: push ? { payload: { title, body: message } } : null,
  };
}
