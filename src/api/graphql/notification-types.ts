/** Shapes of notifications in the GraphQL schema. No behaviour. */
import { GraphQLJSON } from "graphql-scalars";
import { Field, Float, InputType, Int, ObjectType } from "type-graphql";
import { DateTime, NotificationStatusEnum } from "./leaf-types.js";

@ObjectType("PushWish", { description: "What goes to devices by Web Push." })
class PushWishType {
  @Field(() => GraphQLJSON, { description: "title, body, badge and what the page's worker knows." }) payload: unknown;
  @Field(() => Float, { nullable: true, description: "Unix milliseconds." }) delayUntilTimestamp: number | null;
}

@ObjectType("Notification", { description: "Packages, Notifications." })
export class NotificationType {
  @Field(() => Int) id: number;
  @Field(() => Int) appId: number;
  @Field(() => NotificationStatusEnum) status: string;
  @Field(() => GraphQLJSON, { description: "title, message, navigate and what the app adds." }) data: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "A where on the app's user, or a list; null: everybody." })
  scope: unknown;
  @Field(() => DateTime, { nullable: true, description: "When a scheduled one is published." }) orderAt: string | null;
  @Field(() => PushWishType, { nullable: true }) pushNotification: PushWishType | null;
  @Field(() => DateTime, { nullable: true }) publishedAt: string | null;
  @Field(() => Int, { nullable: true, description: "Its place among the published ones." }) cursor: number | null;
  @Field(() => Boolean, { description: "Whether the caller has read it." }) readStatus: boolean;
  @Field(() => DateTime) createdAt: string;
  @Field(() => DateTime) updatedAt: string;
}

@ObjectType("NotificationList")
export class NotificationListType {
  @Field(() => [NotificationType]) entries: NotificationType[];
}

@ObjectType("MarkedNotifications")
export class MarkedNotificationsType {
  @Field(() => Int) count: number;
}

@ObjectType("PushDevice")
class PushDeviceType {
  @Field(() => Int) id: number;
  @Field(() => String, { description: "The push service's." }) host: string;
  @Field(() => DateTime) createdAt: string;
}

@ObjectType("PushSubscriptions")
export class PushSubscriptionsType {
  @Field(() => String, { description: "What a browser subscribes with, base64url." }) publicKey: string;
  @Field(() => [PushDeviceType]) subscriptions: PushDeviceType[];
}

@ObjectType("PushSubscriptionReceipt")
export class PushReceiptType {
  @Field(() => Int) id: number;
}

@InputType("PushWishInput")
class PushWishInput {
  @Field(() => GraphQLJSON, { nullable: true, description: "An object." }) payload?: unknown;
  @Field(() => Float, { nullable: true, description: "Unix milliseconds." }) delayUntilTimestamp?: unknown;
}

@InputType("NotificationInput", { description: "Packages, Notifications." })
export class NotificationInput {
  @Field(() => NotificationStatusEnum, { nullable: true, description: "draft unless given." }) status?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "An object." }) data?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "Merged into data." }) extendData?: unknown;
  @Field(() => GraphQLJSON, { nullable: true }) scope?: unknown;
  @Field(() => String, { nullable: true, description: "ISO 8601." }) orderAt?: unknown;
  @Field(() => PushWishInput, { nullable: true }) pushNotification?: unknown;
}

@InputType("PushKeysInput")
class PushKeysInput {
  @Field(() => String, { nullable: true }) p256dh?: unknown;
  @Field(() => String, { nullable: true }) auth?: unknown;
}

@InputType("PushSubscriptionInput", { description: "A browser's PushSubscription as JSON." })
export class PushSubscriptionInput {
  @Field(() => String, { nullable: true }) endpoint?: unknown;
  @Field(() => PushKeysInput, { nullable: true }) keys?: unknown;
}
