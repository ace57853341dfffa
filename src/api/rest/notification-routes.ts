/** Notifications and push devices over REST, as rows of the REST table. */
import type { Notification } from "../../operations/notifications/notification-rows.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const APP = "/v1/apps/:appId";
const NOTIFICATIONS_PATH = `${APP}/notifications`;

const replyWithNotification = (q: RestRequest, notification: Notification) => q.at(notification, notification);

export const notificationRoutes: readonly Route[] = [
  {
    method: "GET",
    path: NOTIFICATIONS_PATH,
    answer: async ({ notifications }, q) => {
      const page = [q.text("status"), q.number("limit"), q.number("offset")] as const;
      const { entries } = await notifications.notifications(q.context, q.id("appId"), ...page);
      return { entries };
    },
  },
  {
    method: "POST",
    path: NOTIFICATIONS_PATH,
    http: 201,
    answer: async ({ notifications }, q) =>
      replyWithNotification(q, await notifications.createNotification(q.context, q.id("appId"), q.body)),
  },
  {
    method: "POST",
    path: `${NOTIFICATIONS_PATH}/batch`,
    http: 201,
    answer: async ({ notifications }, q) => ({
      entries: await notifications.createNotifications(q.context, q.id("appId"), q.body),
    }),
  },
  {
    method: "POST",
    path: `${NOTIFICATIONS_PATH}/read`,
    bodyField: "ids",
    answer: ({ notifications }, q) => notifications.markNotificationsRead(q.context, q.id("appId"), q.body),
  },
  {
    method: "GET",
    path: `${NOTIFICATIONS_PATH}/unread`,
    answer: ({ notifications }, q) => notifications.unreadNotifications(q.context, q.id("appId")),
  },
  {
    method: "PUT",
    path: `${NOTIFICATIONS_PATH}/:notificationId`,
    answer: async ({ notifications }, q) => {
      const ids = [q.id("appId"), q.id("notificationId")] as const;
      return replyWithNotification(q, await notifications.updateNotification(q.context, ...ids, q.body, q.ifMatch()));
    },
  },
  {
    method: "DELETE",
    path: `${NOTIFICATIONS_PATH}/:notificationId`,
    answer: async ({ notifications }, q) => {
      await notifications.deleteNotification(q.context, q.id("appId"), q.id("notificationId"), q.ifMatch());
      return { status: "NOTIFICATION_DELETED" };
    },
  },
  {
    method: "GET",
    path: `${APP}/push/subscriptions`,
    answer: ({ notifications }, q) => notifications.pushSubscriptions(q.context, q.id("appId")),
  },
  {
    method: "POST",
    path: `${APP}/push/subscriptions`,
    http: 201,
    answer: ({ notifications }, q) => notifications.addPushSubscription(q.context, q.id("appId"), q.body),
  },
  {
    method: "DELETE",
    path: `${APP}/push/subscriptions`,
    stateless: true,
    answer: ({ notifications }, q) => notifications.removePushSubscription(q.context, q.id("appId"), q.body),
  },
];
