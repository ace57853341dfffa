/**
 * Enums and scalars of the GraphQL schema, with the values of the specification. A value with a dot or a dash cannot be an enum value, so
 * its field is a String.
 */
import { GraphQLScalarType } from "graphql";
import { GraphQLDateTime, GraphQLJSON } from "graphql-scalars";
import { registerEnumType } from "type-graphql";
import type {
  ConcurrencyPolicy,
  DraftOrLive,
  Environment,
  RunWaitReason,
  SourceLanguage,
  TriggerType,
} from "../../data/action-types.js";
import type { RunState } from "../../data/run.js";
import type { APP_TOKEN_KINDS } from "../../operations/access/app-tokens.js";
import type { UNKNOWN_DELIVERY_DECISIONS } from "../../operations/communicate/messages.js";
import type { MessageKind, MessageStatus } from "../../operations/communicate/outbox.js";
import type { TokenScope } from "../../rules/access.js";
import type { ActionInput } from "../../rules/action-input.js";
import type { NotificationStatus } from "../../rules/notification-input.js";
import type { Role } from "../../rules/roles.js";

type EnumValues<T extends string> = { readonly [Value in T]: Value };

/** Registers a GraphQL enum. `values` contains the description of each value by its name. */
export function createGraphqlEnum<T extends string>(
  name: string,
  description: string,
  values: Readonly<Record<T, string>>,
): EnumValues<T> {
  const valueEntries = Object.entries<string>(values);
  const enumValues = Object.fromEntries(valueEntries.map(([value]) => [value, value])) as EnumValues<T>;
  const valuesConfig = Object.fromEntries(valueEntries.map(([value, text]) => [value, { description: text }]));
  registerEnumType(enumValues, { name, description, valuesConfig: valuesConfig as Record<T, { description: string }> });
  return enumValues;
}

export const RoleEnum = createGraphqlEnum<Role>("Role", "Role of a person in an organization or on an app.", {
  owner: "Full access; can give and remove every role.",
  admin: "Full access; can give and remove every role except owner.",
  editor: "Writes actions, data and settings.",
  operator:
    "Runs actions, cancels and replays runs, and pauses schedules. Reads runs and logs, but neither code nor settings.",
  reader: "Reads code, runs, logs, data, schedules and public settings; changes nothing.",
});

export const TokenScopeEnum = createGraphqlEnum<TokenScope>("TokenScope", "Part of an app that an API token can use.", {
  read: "Reads actions with code, runs, logs, data and public settings.",
  run: "Runs live versions of actions and cancels its own runs.",
  settings: "Reads and writes settings; protected ones are never returned.",
  data: "Reads and writes entries, media, messages, notifications and log events.",
  manage: "Changes actions and definitions, and runs drafts.",
  publish: "Publishes actions and the app.",
});

export const EnvironmentEnum = createGraphqlEnum<Environment>("Environment", "Environment in which an action runs.", {
  server: "The action runs on the server.",
  client: "The action runs in the browser of a page's user.",
  any: "The action runs on the server or in a browser, depending on the trigger.",
});

export const SourceLanguageEnum = createGraphqlEnum<SourceLanguage>(
  "SourceLanguage",
  "Language of an action's files.",
  {
    typescript: "The entry point is the file action.ts or action.tsx.",
    javascript: "The entry point is the file action.js or action.jsx.",
  },
);

export const TriggerTypeEnum = createGraphqlEnum<TriggerType>(
  "TriggerType",
  "Kind of trigger that starts an action. The specification of the API does not define `http`; this service adds it.",
  {
    manual: "A request starts the action on demand.",
    schedule: "The action's schedule starts the action.",
    log: "A log event of the app starts the action.",
    analytics: "An analytics event of a page starts the action.",
    http: "A request to one of the action's addresses starts the action.",
  },
);

export const DraftOrLiveEnum = createGraphqlEnum<DraftOrLive>("Copy", "Draft or live version of an action.", {
  master: "Draft, which editors change.",
  production: "Live version, which the last publication stored and live apps run.",
});

export const RunStateEnum = createGraphqlEnum<RunState>("RunState", "State of a run.", {
  queued: "The run waits to be executed.",
  running: "The run is being executed.",
  completed: "The run ended without an error.",
  failed: "The run ended with an error.",
  skipped: "The run was not executed; its `reason` says why.",
  cancelled: "The run was cancelled before it ended.",
});

export const RunOnEnum = createGraphqlEnum<Exclude<Environment, "any">>(
  "RunOn",
  "Environment in which a run was executed.",
  {
    server: "The server executed the run.",
    client: "The browser of a user executed the run.",
  },
);

export const TokenKindEnum = createGraphqlEnum<(typeof APP_TOKEN_KINDS)[number]>(
  "TokenKind",
  "Kind of access token of an app.",
  {
    api: "Token for a backend, which runs live versions.",
    viewer: "Token for the pages of the viewer, which run drafts.",
    live: "Token for the pages of the published app, which run live versions.",
  },
);

export const RuntimeEnvironmentEnum = createGraphqlEnum<"viewer" | "live">(
  "RuntimeEnvironment",
  "Environment in which a page runs.",
  { viewer: "Preview for editors, which runs drafts.", live: "Published app, which runs live versions." },
);

export const MessageKindEnum = createGraphqlEnum<MessageKind>("MessageKind", "Kind of message.", {
  email: "E-mail.",
  sms: "Text message.",
});

export const MessageStatusEnum = createGraphqlEnum<MessageStatus>("MessageStatus", "Delivery status of a message.", {
  kept: "Stored but not sent, because no server or provider is configured.",
  queued: "Waits to be sent.",
  sent: "Accepted by the server or provider.",
  delivered: "Delivered to the recipient, as the provider reported.",
  rejected: "Rejected by the server or provider.",
  bounced: "Returned as undeliverable, as the provider reported.",
  complained: "Marked as spam by the recipient, as the provider reported.",
  failed: "Not sent, because all attempts failed.",
  unknown: "Possibly sent; the service does not retry it until a person decides.",
});

export const MessageDecisionEnum = createGraphqlEnum<(typeof UNKNOWN_DELIVERY_DECISIONS)[number]>(
  "MessageDecision",
  "Resolution of a message with the status `unknown`.",
  { sent: "Mark the message as sent.", again: "Send the message again." },
);

export const NotificationStatusEnum = createGraphqlEnum<NotificationStatus>(
  "NotificationStatus",
  "Publication status of a notification.",
  {
    draft: "Not visible to users.",
    published: "Visible to the users in its scope.",
    scheduled: "Published at the time in `orderAt`.",
  },
);

export const RunWaitEnum = createGraphqlEnum<RunWaitReason>(
  "RunWait",
  "Limit for which a queued run waits. A run that waits only for a free slot has none.",
  {
    concurrency: "The run waits because the action's concurrency limit is reached.",
    debounce: "The run waits until no further start follows within the debounce delay.",
  },
);

export const ConcurrencyPolicyEnum = createGraphqlEnum<ConcurrencyPolicy>(
  "ConcurrencyPolicy",
  "Handling of a run that exceeds the concurrency limit.",
  {
    skip: "The new run is skipped.",
    queue: "The new run waits until another run ends.",
    cancel: "The oldest run is cancelled and the new run starts.",
  },
);

export const ActionFieldEnum = createGraphqlEnum<keyof ActionInput | "assets">(
  "ActionField",
  "Property of an action that its author sets.",
  {
    name: "Name of the action.",
    code: "JavaScript of the action.",
    description: "Description of the action.",
    active: "Permission to run.",
    environment: "Environment in which the action runs.",
    triggers: "Triggers that start the action.",
    dependencies: "Packages that the code uses.",
    frequency: "Schedule as a cron expression.",
    timezone: "Time zone of the schedule.",
    access: "Access to runs on demand from pages.",
    concurrency: "Limit on concurrent runs.",
    debounce: "Debounce settings.",
    timeoutMs: "Maximum duration of a run in milliseconds.",
    jitterSeconds: "Seconds over which scheduled runs are spread.",
    integrationOrigins: "Origins that the code may send requests to.",
    source: "Files from which the code is built.",
    assets: "Stored scripts of the packages.",
  },
);

export const DateTime = new GraphQLScalarType({
  ...GraphQLDateTime.toConfig(),
  description: "Time as ISO 8601 text in UTC, for example 2026-11-21T12:00:00.000Z.",
});

export const ActionAccessScalar = new GraphQLScalarType({
  ...GraphQLJSON.toConfig(),
  name: "ActionAccess",
  description:
    'One of "everyone", "signedIn", "editors" and {user: {Column: {equals, notequals or contains: value}}}, which stands for app users whose columns meet every test.',
  specifiedByURL: null,
});

export const AppDefinedJsonScalar = new GraphQLScalarType({
  ...GraphQLJSON.toConfig(),
  name: "AppStructure",
  description: "Object or array that the app defines; the service stores it unchanged and does not read it.",
  specifiedByURL: null,
});
