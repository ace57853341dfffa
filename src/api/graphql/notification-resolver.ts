/** Notifications over GraphQL: written, read, followed. Each method: the gate, then one call. */
import { Arg, Ctx, Int, Mutation, Query, Resolver, Root, Subscription } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { Notification } from "../../operations/notifications/notification-rows.js";
import type { Notify } from "../../operations/notifications/notify.js";
import { guarded } from "../../operations/records/live-source.js";
import { EVERY_ONE } from "../../rules/notification-input.js";
import type { RequestContext } from "../context.js";
import { AppId, Limit, Offset } from "./arguments.js";
import { IfUpdatedAt, preconditionOf, type StateGiven } from "./if-updated-at.js";
import { NotificationStatusEnum } from "./leaf-types.js";
import {
  MarkedNotificationsType,
  NotificationInput,
  NotificationListType,
  NotificationType,
  PushReceiptType,
  PushSubscriptionInput,
  PushSubscriptionsType,
} from "./notification-types.js";

/** What the subscription needs of its context: decorators know no instance. */
export interface NotificationContext extends RequestContext {
  gate: Gate;
  notify: Pick<Notify, "feed">;
}

@Resolver()
export class NotificationResolver {
  constructor(
    private readonly gate: Gate,
    private readonly notify: Notify,
  ) {}

  @Query(() => NotificationListType, {
    description: "Newest first: all for the app's backend, for an app user those that are for it.",
  })
  async notifications(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("status", () => NotificationStatusEnum, { nullable: true }) status?: string,
    @Limit() limit?: number,
    @Offset() offset?: number,
  ): Promise<NotificationListType> {
    const caller = await this.gate.enter(context, "readNotifications", appId);
    return this.notify.service.list(caller, appId, { status, limit, offset }, context.answer?.reserve);
  }

  @Query(() => MarkedNotificationsType, { description: "How many the caller has not read." })
  async unreadNotifications(@Ctx() context: RequestContext, @AppId() appId: number): Promise<MarkedNotificationsType> {
    const caller = await this.gate.enter(context, "readNotifications", appId);
    return this.notify.service.unread(caller, appId);
  }

  @Mutation(() => NotificationType)
  async createNotification(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("notification", () => NotificationInput, { nullable: true }) body: unknown,
  ): Promise<Notification> {
    const caller = await this.gate.enter(context, "manageNotifications", appId);
    return this.notify.service.insert(caller, appId, body);
  }

  @Mutation(() => [NotificationType], { description: "All of them, or none." })
  async createNotifications(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("notifications", () => [NotificationInput], { nullable: true }) bodies: unknown,
  ): Promise<Notification[]> {
    const caller = await this.gate.enter(context, "manageNotifications", appId);
    return this.notify.service.insertAll(caller, appId, bodies);
  }

  @Mutation(() => NotificationType)
  async updateNotification(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("id", () => Int) id: number,
    @Arg("notification", () => NotificationInput, { nullable: true }) body: unknown,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<Notification> {
    const caller = await this.gate.enter(context, "manageNotifications", appId);
    return this.notify.service.update(caller, { appId, id, precondition: preconditionOf(ifUpdatedAt) }, body);
  }

  @Mutation(() => Boolean)
  async deleteNotification(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("id", () => Int) id: number,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<boolean> {
    const caller = await this.gate.enter(context, "manageNotifications", appId);
    await this.notify.service.remove(caller, { appId, id, precondition: preconditionOf(ifUpdatedAt) });
    return true;
  }

  @Mutation(() => MarkedNotificationsType, {
    description: "Those, or all where no ids are given, are read by the caller.",
  })
  async markNotificationsRead(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("ids", () => [Int], { nullable: true }) ids?: unknown,
  ): Promise<MarkedNotificationsType> {
    const caller = await this.gate.enter(context, "markNotifications", appId);
    return this.notify.service.mark(caller, appId, ids ?? EVERY_ONE);
  }

  @Query(() => PushSubscriptionsType, { description: "The caller's own devices." })
  async pushSubscriptions(@Ctx() context: RequestContext, @AppId() appId: number): Promise<PushSubscriptionsType> {
    const caller = await this.gate.enter(context, "pushDevices", appId);
    return this.notify.devices.list(caller, appId);
  }

  @Mutation(() => PushReceiptType)
  async addPushSubscription(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("subscription", () => PushSubscriptionInput, { nullable: true }) body: unknown,
  ): Promise<PushReceiptType> {
    const caller = await this.gate.enter(context, "addPushDevice", appId);
    return this.notify.devices.add(caller, appId, body);
  }

  @Mutation(() => MarkedNotificationsType, { description: "By its endpoint; how many there were." })
  async removePushSubscription(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("subscription", () => PushSubscriptionInput, { nullable: true }) body: unknown,
  ): Promise<MarkedNotificationsType> {
    const caller = await this.gate.enter(context, "pushDevices", appId);
    return this.notify.devices.remove(caller, appId, body);
  }

  @Subscription(() => NotificationType, {
    description: "Those for the caller as they are published; `after` is the cursor of the last that it has seen.",
    subscribe: async ({ args, context }) => {
      const { appId, after } = args as { appId: number; after?: number | null };
      const { gate, notify, ...visitor } = context as NotificationContext;
      const caller = await gate.enter(visitor, "readNotifications", appId);
      return guarded(await notify.feed.follow(appId, caller, after ?? null), {
        appId,
        check: (now) => gate.recheck(now, "readNotifications", appId),
      });
    },
  })
  notificationAdded(
    @Root() one: Notification,
    @AppId() _appId: number,
    @Arg("after", () => Int, { nullable: true }) _after?: number,
  ): Notification {
    return one;
  }
}
