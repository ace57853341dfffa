/** Calls for notifications that svc-communicate and svc-notifications share. */
import type { Notification, NotificationOptions } from "../runtime/message-types.js";
import { connection } from "./connection.js";

export const notificationsPath = (rest = "") => `/v1/apps/${connection().appId()}/notifications${rest}`;

export async function insert(options: NotificationOptions): Promise<Notification> {
  return (await connection().request("POST", notificationsPath(), options)) as unknown as Notification;
}
