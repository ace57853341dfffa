/** Notifications over GraphQL: create, read, subscribe. Each method checks the caller's access and then calls one operation. */
import { Arg, Ctx, Float, Int, Mutation, Query, Resolver, Root, Subscription } from "type-graphql";
import { ActionError } from "../../errors.js";
import { MISSED_NOTIFICATIONS_MAX_SECONDS } from "../../limits.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { Notification } from "../../operations/notifications/notification-rows.js";
import type { NotificationModules } from "../../operations/notifications/notify.js";
import { guardSubscriptionSource } from "../../operations/records/subscription-source.js";
import { refuseField } from "../../rules/fields.js";
import { ALL_NOTIFICATIONS } from "../../rules/notification-input.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument, Limit, Offset } from "./arguments.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";
import { NotificationStatusEnum } from "./leaf-types.js";
import {
  AffectedItemCountType,
  NotificationInput,
  NotificationListType,
  NotificationType,
  PushReceiptType,
  PushSubscriptionInput,
  PushSubscriptionsType,
} from "./notification-types.js";

/**
 * Context of the subscription. It contains the access check and the source of notifications, because the decorator of a
 * subscription cannot access the resolver instance.
 */
export interface NotificationSubscriptionContext extends RequestContext {
  accessChecks: AccessChecks;
  notificationModules: Pick<NotificationModules, "feed">;
}

/**
 * Renames GraphQL's field `publishAt` to `orderAt`, the name that the operations read. A REST body stays unchanged.
 * @throws ActionError REQUEST_INVALID if the body contains `publishAt` and `orderAt`
 */
function readNotificationFields(body: unknown): unknown {
  if (!(body instanceof NotificationInput) || body.publishAt === undefined) return body;
  const { publishAt, ...fields } = body;
  if (fields.orderAt !== undefined)
    throw new ActionError("REQUEST_INVALID", 'the notification must have either "publishAt" or "orderAt" (got both)');
  return { ...fields, orderAt: publishAt instanceof Date ? publishAt.getTime() : publishAt };
}

@Resolver()
export class NotificationResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly notificationModules: NotificationModules,
  ) {}

  @Query(() => NotificationListType, {
    description:
      "Lists notifications, newest first. Editors, API tokens and server actions get all notifications of the app. A page gets only the newest 1,000 notifications for the user who is signed in to the page. The search for them ends early if the app has very many notifications for other users; in GraphQL, `totalIsExact` is then false.",
  })
  async notifications(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("status", () => NotificationStatusEnum, {
      nullable: true,
      description: "Status of the notifications; all statuses by default.",
    })
    status?: string,
    @Limit() limit?: number,
    @Offset() offset?: number,
  ): Promise<NotificationListType> {
    const caller = await this.accessChecks.requireAppAccess(context, "readNotifications", appId);
    return this.notificationModules.service.list(
      caller,
      appId,
      { status, limit, offset },
      context.responseBudget?.reserveBytes,
    );
  }

  @Query(() => AffectedItemCountType, {
    description:
      "Returns the number of notifications that the caller has not read. For a page, counts only those that `notifications` can list.",
  })
  async unreadNotifications(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
  ): Promise<AffectedItemCountType> {
    const caller = await this.accessChecks.requireAppAccess(context, "readNotifications", appId);
    return this.notificationModules.service.countUnread(caller, appId);
  }

  @Mutation(() => NotificationType, {
    description: "Creates a notification: a draft, unless `status` is `published` or `scheduled`.",
  })
  async createNotification(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("notification", () => NotificationInput, {
      nullable: true,
      description: "Properties of the new notification.",
    })
    body: unknown,
  ): Promise<Notification> {
    const caller = await this.accessChecks.requireAppAccess(context, "manageNotifications", appId);
    return this.notificationModules.service.insert(caller, appId, readNotificationFields(body));
  }

  @Mutation(() => [NotificationType], { description: "Creates several notifications in one transaction." })
  async createNotifications(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("notifications", () => [NotificationInput], {
      nullable: true,
      description: "Properties of the new notifications.",
    })
    bodies: unknown,
  ): Promise<Notification[]> {
    const caller = await this.accessChecks.requireAppAccess(context, "manageNotifications", appId);
    return this.notificationModules.service.insertAll(
      caller,
      appId,
      Array.isArray(bodies) ? bodies.map(readNotificationFields) : bodies,
    );
  }

  @Mutation(() => NotificationType, { description: "Updates a notification; omitted properties keep their values." })
  async updateNotification(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the notification." }) id: number,
    @Arg("notification", () => NotificationInput, { nullable: true, description: "Properties to change." })
    body: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<Notification> {
    const caller = await this.accessChecks.requireAppAccess(context, "manageNotifications", appId);
    return this.notificationModules.service.update(
      caller,
      { appId, id, precondition: toExpectedVersions(ifUpdatedAt) },
      readNotificationFields(body),
    );
  }

  @Mutation(() => Boolean, { description: "Deletes a notification." })
  async deleteNotification(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the notification." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<boolean> {
    const caller = await this.accessChecks.requireAppAccess(context, "manageNotifications", appId);
    await this.notificationModules.service.remove(caller, { appId, id, precondition: toExpectedVersions(ifUpdatedAt) });
    return true;
  }

  @Mutation(() => AffectedItemCountType, { description: "Marks notifications as read by the caller." })
  async markNotificationsRead(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("ids", () => [Int], { nullable: true, description: "IDs of the notifications; all by default." })
    ids?: unknown,
  ): Promise<AffectedItemCountType> {
    const caller = await this.accessChecks.requireAppAccess(context, "markNotifications", appId);
    return this.notificationModules.service.markRead(caller, appId, ids ?? ALL_NOTIFICATIONS);
  }

  @Query(() => PushSubscriptionsType, {
    description: "Lists the devices on which the caller receives Web Push messages.",
  })
  async pushSubscriptions(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
  ): Promise<PushSubscriptionsType> {
    const caller = await this.accessChecks.requireAppAccess(context, "pushDevices", appId);
    return this.notificationModules.devices.list(caller, appId);
  }

  @Mutation(() => PushReceiptType, { description: "Registers a device of the caller for Web Push messages." })
  async addPushSubscription(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("subscription", () => PushSubscriptionInput, {
      nullable: true,
      description: "PushSubscription of the browser.",
    })
    body: unknown,
  ): Promise<PushReceiptType> {
    const caller = await this.accessChecks.requireAppAccess(context, "addPushDevice", appId);
    return this.notificationModules.devices.add(caller, appId, body);
  }

  @Mutation(() => AffectedItemCountType, {
    description:
      "Removes the push subscription with this endpoint (a URL) from the caller's subscriptions. Returns the number of removed subscriptions.",
  })
  async removePushSubscription(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("subscription", () => PushSubscriptionInput, {
      nullable: true,
      description: "PushSubscription of the browser.",
    })
    body: unknown,
  ): Promise<AffectedItemCountType> {
    const caller = await this.accessChecks.requireAppAccess(context, "pushDevices", appId);
    return this.notificationModules.devices.remove(caller, appId, body);
  }

  @Subscription(() => NotificationType, {
    description: "Emits each notification for the caller when it is published.",
    subscribe: async ({ args, context }) => {
      const { appId, after, lastSeconds } = args as {
        appId: number;
        after?: number | null;
        lastSeconds?: number | null;
      };
      const isInRange = (lastSeconds ?? 0) >= 0 && (lastSeconds ?? 0) <= MISSED_NOTIFICATIONS_MAX_SECONDS;
      if (!isInRange) refuseField("lastSeconds", `a number from 0 to ${MISSED_NOTIFICATIONS_MAX_SECONDS}`, lastSeconds);
      const { accessChecks, notificationModules, ...requestContext } = context as NotificationSubscriptionContext;
      const caller = await accessChecks.requireAppAccess(requestContext, "readNotifications", appId);
      return guardSubscriptionSource(notificationModules.feed.follow(appId, caller, after ?? null, lastSeconds ?? 0), {
        appId,
        check: (now) => accessChecks.recheck(now, "readNotifications", appId),
      });
    },
  })
  notificationAdded(
    @Root() notification: Notification,
    @AppIdArgument() _appId: number,
    @Arg("after", () => Int, {
      nullable: true,
      description:
        "`cursor` of the last received notification, after which the subscription resumes; from now on by default.",
    })
    _after?: number,
    @Arg("lastSeconds", () => Float, {
      nullable: true,
      description:
        "Without `after`, the subscription also emits the notifications that were published in this many last seconds, 30 days at most; 0 by default.",
    })
    _lastSeconds?: number,
  ): Notification {
    return notification;
  }
}
