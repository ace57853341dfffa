/** REST routes of notifications and push devices: entries for the route table in rest/routes.ts. */
import type { Notification } from "../../operations/notifications/notification-rows.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const APP = "/v1/apps/:appId";
const NOTIFICATIONS_PATH = `${APP}/notifications`;

const replyWithNotification = (request: RestRequest, notification: Notification) =>
  request.setTag(notification, notification);

export const notificationRoutes: readonly Route[] = [
  {
    method: "GET",
    path: NOTIFICATIONS_PATH,
    handle: async ({ notifications }, request) => {
      const page = [request.text("status"), request.number("limit"), request.number("offset")] as const;
      const { entries } = await notifications.notifications(request.context, request.id("appId"), ...page);
      return { entries };
    },
  },
  {
    method: "POST",
    path: NOTIFICATIONS_PATH,
    successStatus: 201,
    handle: async ({ notifications }, request) =>
      replyWithNotification(
        request,
        await notifications.createNotification(request.context, request.id("appId"), request.body),
      ),
  },
  {
    method: "POST",
    path: `${NOTIFICATIONS_PATH}/batch`,
    successStatus: 201,
    handle: async ({ notifications }, request) => ({
      entries: await notifications.createNotifications(request.context, request.id("appId"), request.body),
    }),
  },
  {
    method: "POST",
    path: `${NOTIFICATIONS_PATH}/read`,
    bodyField: "ids",
    handle: ({ notifications }, request) =>
      notifications.markNotificationsRead(request.context, request.id("appId"), request.body),
  },
  {
    method: "GET",
    path: `${NOTIFICATIONS_PATH}/unread`,
    handle: ({ notifications }, request) => notifications.unreadNotifications(request.context, request.id("appId")),
  },
  {
    method: "PUT",
    path: `${NOTIFICATIONS_PATH}/:notificationId`,
    handle: async ({ notifications }, request) => {
      const ids = [request.id("appId"), request.id("notificationId")] as const;
      return replyWithNotification(
        request,
        await notifications.updateNotification(request.context, ...ids, request.body, request.ifMatch()),
      );
    },
  },
  {
    method: "DELETE",
    path: `${NOTIFICATIONS_PATH}/:notificationId`,
    handle: async ({ notifications }, request) => {
      await notifications.deleteNotification(
        request.context,
        request.id("appId"),
        request.id("notificationId"),
        request.ifMatch(),
      );
      return { status: "NOTIFICATION_DELETED" };
    },
  },
  {
    method: "GET",
    path: `${APP}/push/subscriptions`,
    handle: ({ notifications }, request) => notifications.pushSubscriptions(request.context, request.id("appId")),
  },
  {
    method: "POST",
    path: `${APP}/push/subscriptions`,
    successStatus: 201,
    handle: ({ notifications }, request) =>
      notifications.addPushSubscription(request.context, request.id("appId"), request.body),
  },
  {
    method: "DELETE",
    path: `${APP}/push/subscriptions`,
    hasNoVersion: true,
    handle: ({ notifications }, request) =>
      notifications.removePushSubscription(request.context, request.id("appId"), request.body),
  },
];
