/** Shapes of alerts in the GraphQL schema. No behaviour. */
import { Field, InputType, Int, ObjectType } from "type-graphql";
import { ALERT_CHANNELS, ALERT_CONDITIONS } from "../../rules/alert-input.js";
import { DateTime, enumOf } from "./leaf-types.js";

const AlertConditionEnum = enumOf(
  "AlertCondition",
  "When an alert fires: runs failed; no success for so long; a tick was skipped or is overdue; runs have waited for so long.",
  ALERT_CONDITIONS,
);

const AlertChannelEnum = enumOf("AlertChannel", "How people are told.", ALERT_CHANNELS);

const AlertDeliveryStatusEnum = enumOf(
  "AlertDeliveryStatus",
  "What became of a message. `outbox`: an e-mail, whose status is the outbox's.",
  ["queued", "sent", "failed", "outbox"],
);

@ObjectType("AlertFiring", { description: "What an alert fires for now." })
export class AlertFiringType {
  @Field(() => Int, { nullable: true, description: "A master's id; null: the app as a whole." })
  actionId: number | null;
  @Field(() => String, { nullable: true }) actionName: string | null;
  @Field(() => DateTime) firedAt: string;
  @Field(() => String) reason: string;
  @Field(() => Int, { nullable: true }) runId: number | null;
}

@ObjectType("AlertDelivery", { description: "One message of an alert." })
export class AlertDeliveryType {
  @Field(() => Int) id: number;
  @Field(() => AlertDeliveryStatusEnum) status: string;
  @Field(() => String) text: string;
  @Field(() => String, { nullable: true }) detail: string | null;
  @Field(() => Int) attempts: number;
  @Field(() => DateTime) createdAt: string;
}

@ObjectType("AlertRule", { description: "Whom an app has told when something is wrong." })
export class AlertRuleType {
  @Field(() => Int) id: number;
  @Field(() => Int) appId: number;
  @Field(() => String) name: string;
  @Field(() => AlertConditionEnum) condition: string;
  @Field(() => Int, { nullable: true, description: "A master's id; null: the whole app." }) actionId: number | null;
  @Field(() => Int, { description: "Of `failed`: so many of the last `of` runs." }) failures: number;
  @Field(() => Int) of: number;
  @Field(() => Int, { description: "Of `silent` and `queued`." }) minutes: number;
  @Field(() => AlertChannelEnum) channel: string;
  @Field(() => [String], { description: "E-mail addresses." }) to: string[];
  @Field(() => String, { nullable: true, description: "The protected setting that says where a webhook or Slack is." })
  setting: string | null;
  @Field(() => Boolean) enabled: boolean;
  @Field(() => [AlertFiringType]) firing: AlertFiringType[];
  @Field(() => DateTime) createdAt: string;
  @Field(() => DateTime) updatedAt: string;
}

@InputType("AlertRuleInput", { description: "What is absent has its default, or stays as it is in a change." })
export class AlertRuleInput {
  @Field(() => String, { nullable: true, description: "1 to 100 characters, unique in the app." }) name?: unknown;
  @Field(() => AlertConditionEnum, { nullable: true }) condition?: unknown;
  @Field(() => Int, { nullable: true, description: "A master's id; absent or null: the whole app." })
  actionId?: unknown;
  @Field(() => Int, { nullable: true, description: "1 to 100; 1 unless given." }) failures?: unknown;
  @Field(() => Int, { nullable: true, description: "From `failures` to 100." }) of?: unknown;
  @Field(() => Int, { nullable: true, description: "1 to 44640; 60 unless given." }) minutes?: unknown;
  @Field(() => AlertChannelEnum, { nullable: true }) channel?: unknown;
  @Field(() => [String], { nullable: true, description: "1 to 10 e-mail addresses." }) to?: unknown;
  @Field(() => String, { nullable: true, description: "Such as __alerts, which holds {url, secret}." })
  setting?: unknown;
  @Field(() => Boolean, { nullable: true }) enabled?: unknown;
}
