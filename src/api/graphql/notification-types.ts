/** GraphQL types of notifications: only declarations. */
import { GraphQLJSON } from "graphql-scalars";
import { Field, Float, InputType, Int, ObjectType } from "type-graphql";
import { PaginationType } from "./action-types.js";
import { DateTime, NotificationStatusEnum } from "./leaf-types.js";
import { DEPRECATED_IN_FAVOR_OF_PAGE, ListPageType, PageItemsField } from "./page-types.js";

@ObjectType("PushWish", { description: "Web Push message of a notification." })
class PushContentType {
  @Field(() => GraphQLJSON, {
    description:
      "Content of the push message: an object with title, body, badge and any other properties. The app's service worker receives it.",
  })
  payload: unknown;
  @Field(() => Float, {
    nullable: true,
    description: "Earliest time of sending in Unix milliseconds; null to send at once.",
  })
  delayUntilTimestamp: number | null;
}

@ObjectType("Notification", { description: "Message to the users of an app." })
export class NotificationType {
  @Field(() => Int, { description: "ID of the notification." }) id: number;
  @Field(() => Int, { description: "ID of the app." }) appId: number;
  @Field(() => NotificationStatusEnum, { description: "Status of the notification." }) status: string;
  @Field(() => GraphQLJSON, { description: "Object with title, message, navigate and properties that the app adds." })
  data: unknown;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description:
      "Filter, or list of filters, that selects users of the app; null for all users and anonymous visitors.",
  })
  scope: unknown;
  @Field(() => DateTime, {
    nullable: true,
    description: "Time when a scheduled notification is published; null for other statuses.",
  })
  orderAt: string | null;
  @Field(() => PushContentType, { nullable: true, description: "Web Push message; null if there is none." })
  pushNotification: PushContentType | null;
  @Field(() => DateTime, { nullable: true, description: "Time of publication; null if it is not published." })
  publishedAt: string | null;
  @Field(() => Int, {
    nullable: true,
    description: "Position among the published notifications; null if it is not published.",
  })
  cursor: number | null;
  @Field(() => Boolean, { description: "True if the caller has read the notification." }) readStatus: boolean;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => DateTime, { description: "Time of the last change." }) updatedAt: string;
}

@ObjectType("NotificationList", { implements: ListPageType, description: "Page of notifications." })
export class NotificationListType {
  @PageItemsField(() => [NotificationType], "Notifications on this page.") entries: NotificationType[];
  @Field(() => PaginationType, { ...DEPRECATED_IN_FAVOR_OF_PAGE, description: "Position of this page in the list." })
  pagination: PaginationType;
}

@ObjectType("MarkedNotifications", { description: "Number of notifications or devices." })
export class AffectedItemCountType {
  @Field(() => Int, { description: "Number of items." }) count: number;
}

@ObjectType("PushDevice", { description: "Device that receives Web Push messages." })
class PushDeviceType {
  @Field(() => Int, { description: "ID of the device." }) id: number;
  @Field(() => String, { description: "Host of the push service." }) host: string;
  @Field(() => DateTime, { description: "Time of registration." }) createdAt: string;
}

@ObjectType("PushSubscriptions", { description: "Devices of the caller, and the key to register another one." })
export class PushSubscriptionsType {
  @Field(() => String, { description: "Public key for a browser's subscription, in base64url." }) publicKey: string;
  @Field(() => [PushDeviceType], { description: "Devices of the caller." }) subscriptions: PushDeviceType[];
}

@ObjectType("PushSubscriptionReceipt", { description: "Registered device." })
export class PushReceiptType {
  @Field(() => Int, { description: "ID of the device." }) id: number;
}

@InputType("PushWishInput", { description: "Web Push message of a notification." })
class PushContentInput {
  @Field(() => GraphQLJSON, {
    nullable: true,
    description:
      "Content of the push message: an object with title, body, badge and any other properties. The app's service worker receives it.",
  })
  payload?: unknown;
  @Field(() => Float, {
    nullable: true,
    description: "Earliest time of sending in Unix milliseconds; null to send at once.",
  })
  delayUntilTimestamp?: unknown;
}

@InputType("NotificationInput", {
  description: "Properties of a notification. An update keeps the values of omitted properties.",
})
export class NotificationInput {
  @Field(() => NotificationStatusEnum, {
    nullable: true,
    description: "Status of the notification; `draft` by default.",
  })
  status?: unknown;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description: "Object with title, message, navigate and properties that the app adds.",
  })
  data?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "Object whose properties are merged into `data`." })
  extendData?: unknown;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description:
      "Filter, or list of filters, that selects users of the app; null for all users and anonymous visitors.",
  })
  scope?: unknown;
  @Field(() => DateTime, { nullable: true, description: "Time when a scheduled notification is published." })
  publishAt?: unknown;
  @Field(() => String, {
    nullable: true,
    description: "Time when a scheduled notification is published, as ISO 8601 text.",
    deprecationReason: "Use `publishAt`, which is a DateTime.",
  })
  orderAt?: unknown;
  @Field(() => PushContentInput, { nullable: true, description: "Web Push message; null for none." })
  pushNotification?: unknown;
}

@InputType("PushKeysInput", { description: "Keys of a PushSubscription." })
class PushKeysInput {
  @Field(() => String, { nullable: true, description: "Public key of the browser, in base64url." }) p256dh?: unknown;
  @Field(() => String, { nullable: true, description: "Authentication secret of the browser, in base64url." })
  auth?: unknown;
}

@InputType("PushSubscriptionInput", { description: "PushSubscription of a browser, as its JSON." })
export class PushSubscriptionInput {
  @Field(() => String, { nullable: true, description: "URL of the push service for this device." }) endpoint?: unknown;
  @Field(() => PushKeysInput, { nullable: true, description: "Keys that encrypt messages for this device." })
  keys?: unknown;
}
