/** Enums and scalars of the GraphQL schema: each value as the specification writes it. What has a dot or a dash in it is a String. */
import { GraphQLScalarType } from "graphql";
import { GraphQLDateTime, GraphQLJSON } from "graphql-scalars";
import { registerEnumType } from "type-graphql";
import type { Copy, RunWait } from "../../data/action-types.js";
import { RUN_STATES } from "../../data/run.js";
import { APP_TOKEN_KINDS } from "../../operations/access/credentials.js";
import { DECISIONS } from "../../operations/communicate/messages.js";
import { MESSAGE_STATUSES } from "../../operations/communicate/outbox.js";
import type { ActionInput } from "../../rules/action-input.js";
import { NOTIFICATION_STATUSES } from "../../rules/notification-input.js";
import { CONCURRENCY_POLICIES } from "../../rules/run-limits.js";
import { ENVIRONMENTS, TRIGGER_TYPES } from "../../rules/trigger-input.js";

type Values<T extends string> = { readonly [Value in T]: Value };

/** Registers the values under their own names. */
export function enumOf<T extends string>(name: string, description: string, values: readonly T[]): Values<T> {
  const named = Object.fromEntries(values.map((value) => [value, value])) as Values<T>;
  registerEnumType(named, { name, description });
  return named;
}

export const EnvironmentEnum = enumOf("Environment", "Where an action runs.", ENVIRONMENTS);

export const TriggerTypeEnum = enumOf("TriggerType", "What starts an action.", TRIGGER_TYPES);

const COPIES: readonly Copy[] = ["master", "production"];
export const CopyEnum = enumOf("Copy", "The draft, and what live apps run.", COPIES);

export const RunStateEnum = enumOf("RunState", "Where a run is in its life; the last four are for good.", RUN_STATES);

const RUN_SIDES: readonly Exclude<ActionInput["environment"], "any">[] = ["server", "client"];
export const RunOnEnum = enumOf("RunOn", "Where a run was performed.", RUN_SIDES);

export const TokenKindEnum = enumOf("TokenKind", "What a token stands for.", APP_TOKEN_KINDS);

export const RuntimeEnvironmentEnum = enumOf("RuntimeEnvironment", "Where an app user is.", ["viewer", "live"]);

export const MessageKindEnum = enumOf("MessageKind", "What a message is.", ["email", "sms"]);

export const MessageStatusEnum = enumOf(
  "MessageStatus",
  "What is known of a message. `unknown`: it may have been sent, and is not sent again unless a person says so.",
  MESSAGE_STATUSES,
);

export const MessageDecisionEnum = enumOf("MessageDecision", "A person's word on an unknown message.", DECISIONS);

export const NotificationStatusEnum = enumOf(
  "NotificationStatus",
  "Where a notification is in its life.",
  NOTIFICATION_STATUSES,
);

const RUN_WAITS: readonly RunWait[] = ["concurrency", "debounce"];
export const RunWaitEnum = enumOf("RunWait", "What a run waits for before it waits for a place.", RUN_WAITS);

export const ConcurrencyPolicyEnum = enumOf(
  "ConcurrencyPolicy",
  "What becomes of a run for which there is no place: it is skipped, it waits, or the oldest one is cancelled for it.",
  CONCURRENCY_POLICIES,
);

const ACTION_FIELDS: Record<keyof ActionInput, true> = {
  name: true,
  code: true,
  description: true,
  active: true,
  environment: true,
  triggers: true,
  dependencies: true,
  frequency: true,
  timezone: true,
  concurrency: true,
  debounce: true,
  timeoutMs: true,
};
export const ActionFieldEnum = enumOf(
  "ActionField",
  "A field that an author gives.",
  Object.keys(ACTION_FIELDS) as (keyof ActionInput)[],
);

/** Answers keep the text of the services: ISO 8601, UTC, with milliseconds. */
export const DateTime = new GraphQLScalarType({
  ...GraphQLDateTime.toConfig(),
  description: "A moment as ISO 8601 text in UTC, such as 2026-11-21T12:00:00.000Z.",
});

/** What an app keeps for others than this service. */
export const AppStructure = new GraphQLScalarType({
  ...GraphQLJSON.toConfig(),
  name: "AppStructure",
  description: "An object or an array of the app's own: kept as it came, and never read by this service.",
  specifiedByURL: null,
});
