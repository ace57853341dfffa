/** Calls for notifications that svc-communicate and svc-notifications share. */
import type { Notification, NotificationOptions } from "../runtime/message-types.js";
import { refuseUndefined } from "./calls.js";
import { getConnection } from "./connection.js";

export const notificationsPath = (rest = "") => `/v1/apps/${getConnection().appId()}/notifications${rest}`;

export async function insertNotification(options: NotificationOptions): Promise<Notification> {
  refuseUndefined(options?.scope ?? {}, "scope");
  return (await getConnection().request("POST", notificationsPath(), options)) as unknown as Notification;
}
