/** Calls for notifications that svc-communicate and svc-notifications share. */
import type { Notification, NotificationOptions } from "../runtime/message-types.js";
import { rejectUndefinedValues } from "./calls.js";
import { getConnection } from "./connection.js";

export const getNotificationsPath = (suffix = "") => `/v1/apps/${getConnection().appId()}/notifications${suffix}`;

export async function insertNotification(options: NotificationOptions): Promise<Notification> {
  rejectUndefinedValues(options?.scope ?? {}, "scope");
  return (await getConnection().request("POST", getNotificationsPath(), options)) as unknown as Notification;
}
