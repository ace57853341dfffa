/**
 * GraphQL types of alerts, which are rules that send a message, for example when runs fail. Contains only declarations.
 */
import { Field, InputType, Int, ObjectType } from "type-graphql";
import type { AlertChannel, AlertCondition } from "../../rules/alert-input.js";
import { createGraphqlEnum, DateTime } from "./leaf-types.js";

export const AlertConditionEnum = createGraphqlEnum<AlertCondition>(
  "AlertCondition",
  "Condition that makes an alert fire.",
  {
    failed: "At least `failures` of the last `of` runs failed.",
    silent: "No run has completed for `minutes`, or a tick is overdue.",
    skipped: "A tick was skipped or is overdue.",
    queued: "The oldest queued run has waited for `minutes`.",
  },
);

export const AlertChannelEnum = createGraphqlEnum<AlertChannel>("AlertChannel", "Channel that an alert notifies.", {
  email: "E-mail to the addresses in `to`.",
  webhook: "HTTP request to the URL in `setting`.",
  slack: "Message to the Slack webhook in `setting`.",
});

const AlertDeliveryStatusEnum = createGraphqlEnum<"queued" | "sent" | "failed" | "outbox">(
  "AlertDeliveryStatus",
  "Delivery status of an alert's message.",
  {
    queued: "Waits to be sent.",
    sent: "Sent to the webhook or Slack.",
    failed: "Not sent, because all attempts failed.",
    outbox: "E-mail in the outbox, where its status is shown.",
  },
);

@ObjectType("AlertFiring", { description: "Problem for which an alert currently fires." })
export class AlertFiringType {
  @Field(() => Int, {
    nullable: true,
    description: "ID of the affected action's draft; null if the whole app is affected.",
  })
  actionId: number | null;
  @Field(() => String, {
    nullable: true,
    description: "Name of the affected action; null if the whole app is affected or the action is deleted.",
  })
  actionName: string | null;
  @Field(() => DateTime, { description: "Time when the alert started to fire." }) firedAt: string;
  @Field(() => String, { description: "Reason why the alert fires." }) reason: string;
  @Field(() => Int, { nullable: true, description: "ID of the run that triggered the alert; null if no run did." })
  runId: number | null;
}

@ObjectType("AlertDelivery", { description: "One message that an alert sent." })
export class AlertDeliveryType {
  @Field(() => Int, { description: "ID of the message." }) id: number;
  @Field(() => AlertDeliveryStatusEnum, { description: "Delivery status of the message." }) status: string;
  @Field(() => String, { description: "Text of the message." }) text: string;
  @Field(() => String, { nullable: true, description: "Last error or reply of the receiver; null if there is none." })
  detail: string | null;
  @Field(() => Int, { description: "Number of delivery attempts." }) attempts: number;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
}

@ObjectType("AlertRule", { description: "Alert of an app: its condition and the channel that it notifies." })
export class AlertRuleType {
  @Field(() => Int, { description: "ID of the alert." }) id: number;
  @Field(() => Int, { description: "ID of the app." }) appId: number;
  @Field(() => String, { description: "Name of the alert, unique in the app." }) name: string;
  @Field(() => AlertConditionEnum, { description: "Condition that makes the alert fire." }) condition: string;
  @Field(() => Int, { nullable: true, description: "ID of the draft of the watched action; null for the whole app." })
  actionId: number | null;
  @Field(() => Int, {
    description: "Number of failed runs, among the last `of` runs, that make a `failed` alert fire.",
  })
  failures: number;
  @Field(() => Int, { description: "Number of last runs that a `failed` alert checks." }) of: number;
  @Field(() => Int, { description: "Minutes after which a `silent` or `queued` alert fires." }) minutes: number;
  @Field(() => AlertChannelEnum, { description: "Channel that the alert notifies." }) channel: string;
  @Field(() => [String], { description: "E-mail addresses that the alert notifies; empty for other channels." })
  to: string[];
  @Field(() => String, {
    nullable: true,
    description: "Key of the protected setting with the URL of the webhook or Slack; null for e-mail.",
  })
  setting: string | null;
  @Field(() => Boolean, { description: "True if the alert can fire." }) enabled: boolean;
  @Field(() => [AlertFiringType], {
    description: "Problems for which the alert currently fires; empty if there are none.",
  })
  firing: AlertFiringType[];
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => DateTime, { description: "Time of the last change." }) updatedAt: string;
}

@InputType("AlertRuleInput", {
  description:
    "Properties of an alert. A new alert gets defaults for omitted properties; an update keeps their values.",
})
export class AlertRuleInput {
  @Field(() => String, {
    nullable: true,
    description: "Name of 1 to 100 characters, unique in the app; required to create an alert.",
  })
  name?: unknown;
  @Field(() => AlertConditionEnum, {
    nullable: true,
    description: "Condition that makes the alert fire; required to create an alert.",
  })
  condition?: unknown;
  @Field(() => Int, {
    nullable: true,
    description: "ID of the draft of the action to watch; null for the whole app. Not allowed for `queued`.",
  })
  actionId?: unknown;
  @Field(() => Int, {
    nullable: true,
    description: "Number of failed runs that make a `failed` alert fire, 1 to 100; 1 by default.",
  })
  failures?: unknown;
  @Field(() => Int, {
    nullable: true,
    description: "Number of last runs that a `failed` alert checks, from `failures` to 100; `failures` by default.",
  })
  of?: unknown;
  @Field(() => Int, {
    nullable: true,
    description: "Minutes after which a `silent` or `queued` alert fires, 1 to 44640; 60 by default.",
  })
  minutes?: unknown;
  @Field(() => AlertChannelEnum, { nullable: true, description: "Channel to notify; required to create an alert." })
  channel?: unknown;
  @Field(() => [String], {
    nullable: true,
    description: "E-mail addresses to notify, 1 to 10; required for the channel `email`.",
  })
  to?: unknown;
  @Field(() => String, {
    nullable: true,
    description:
      "Key of a protected setting, for example __alerts. Its value is {url, secret} for the channel `webhook`, and the URL for `slack`. Required for these channels.",
  })
  setting?: unknown;
  @Field(() => Boolean, { nullable: true, description: "True if the alert can fire; true by default." })
  enabled?: unknown;
}
