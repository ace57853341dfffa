/** REST routes of notifications and push devices: entries for the route table in rest/routes.ts. */
import type { Notification } from "../../operations/notifications/notification-rows.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const APP_ROUTE = "/v1/apps/:appId";
const NOTIFICATIONS_PATH = `${APP_ROUTE}/notifications`;

const replyWithNotification = (request: RestRequest, notification: Notification) =>
  request.setTag(notification, notification);

export const notificationRoutes: readonly Route[] = [
  {
    method: "GET",
    path: NOTIFICATIONS_PATH,
    handle: async ({ notifications }, request) => {
      const page = [request.queryText("status"), request.queryNumber("limit"), request.queryNumber("offset")] as const;
      const { entries } = await notifications.notifications(request.context, request.pathId("appId"), ...page);
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
        await notifications.createNotification(request.context, request.pathId("appId"), request.body),
      ),
  },
  {
    method: "POST",
    path: `${NOTIFICATIONS_PATH}/batch`,
    successStatus: 201,
    handle: async ({ notifications }, request) => ({
      entries: await notifications.createNotifications(request.context, request.pathId("appId"), request.body),
    }),
  },
  {
    method: "POST",
    path: `${NOTIFICATIONS_PATH}/read`,
    bodyField: "ids",
    handle: ({ notifications }, request) =>
      notifications.markNotificationsRead(request.context, request.pathId("appId"), request.body),
  },
  {
    method: "GET",
    path: `${NOTIFICATIONS_PATH}/unread`,
    handle: ({ notifications }, request) => notifications.unreadNotifications(request.context, request.pathId("appId")),
  },
  {
    method: "PUT",
    path: `${NOTIFICATIONS_PATH}/:notificationId`,
    handle: async ({ notifications }, request) => {
      const ids = [request.pathId("appId"), request.pathId("notificationId")] as const;
      return replyWithNotification(
        request,
        await notifications.updateNotification(request.context, ...ids, request.body, request.readExpectedVersions()),
      );
    },
  },
  {
    method: "DELETE",
    path: `${NOTIFICATIONS_PATH}/:notificationId`,
    handle: async ({ notifications }, request) => {
      await notifications.deleteNotification(
        request.context,
        request.pathId("appId"),
        request.pathId("notificationId"),
        request.readExpectedVersions(),
      );
      return { status: "NOTIFICATION_DELETED" };
    },
  },
  {
    method: "GET",
    path: `${APP_ROUTE}/push/subscriptions`,
    handle: ({ notifications }, request) => notifications.pushSubscriptions(request.context, request.pathId("appId")),
  },
  {
    method: "POST",
    path: `${APP_ROUTE}/push/subscriptions`,
    successStatus: 201,
    handle: ({ notifications }, request) =>
      notifications.addPushSubscription(request.context, request.pathId("appId"), request.body),
  },
  {
    method: "DELETE",
    path: `${APP_ROUTE}/push/subscriptions`,
    hasNoVersion: true,
    handle: ({ notifications }, request) =>
      notifications.removePushSubscription(request.context, request.pathId("appId"), request.body),
  },
];
