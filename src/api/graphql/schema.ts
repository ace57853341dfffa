/** Builds the GraphQL schema from the resolver classes. */
import { createPubSub } from "@graphql-yoga/subscription";
import {
  defaultFieldResolver,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLSchema,
  getNullableType,
} from "graphql";
import { buildSchema, type NonEmptyArray, type ResolverData } from "type-graphql";
import type { RequestContext } from "../context.js";
import { ActionResolver } from "./action-resolver.js";
import { ActionWarningResolver } from "./action-warning-resolver.js";
import { AdministratorResolver } from "./administrator-resolver.js";
import { AiResolver } from "./ai-resolver.js";
import { AlertResolver } from "./alert-resolver.js";
import { AppResolver } from "./app-resolver.js";
import { AppVersionResolver } from "./app-version-resolver.js";
import { AccessLogEntryDetailsResolver, AuditDetailsResolver } from "./audit-details.js";
import { AuditLogResolver } from "./audit-resolver.js";
import { AuthResolver } from "./auth-resolver.js";
import { SecretBindingResolver } from "./binding-resolver.js";
import { ClientActionResolver } from "./client-resolver.js";
import { CodeEditorResolver } from "./code-editor-resolver.js";
import { DataSourceResolver } from "./data-source-resolver.js";
import { EntryResolver } from "./entry-resolver.js";
import { GitResolver } from "./git-resolver.js";
import { RunHistoryResolver } from "./history-resolver.js";
import { HttpTriggerResolver } from "./http-trigger-resolver.js";
import { LogResolver } from "./log-resolver.js";
import { ManifestResolver } from "./manifest-resolver.js";
import { MediaResolver } from "./media-resolver.js";
import { MemberResolver } from "./member-resolver.js";
import { MessageResolver } from "./message-resolver.js";
import { NotificationResolver } from "./notification-resolver.js";
import { ListPageResolver } from "./page-types.js";
import { PublishResolver } from "./publish-resolver.js";
import { QueueResolver } from "./queue-resolver.js";
import { RunResolver } from "./run-resolver.js";
import { SchedulePauseResolver } from "./schedule-pause-resolver.js";
import { AppSessionResolver } from "./session-resolver.js";
import { SettingResolver } from "./setting-resolver.js";
import { ActionSourceResolver } from "./source-types.js";
import { StageResolver } from "./stage-resolver.js";
import { TokenResolver } from "./token-resolver.js";
import { ActionTransferResolver } from "./transfer-resolver.js";
import { TriggerResolver } from "./trigger-resolver.js";
import { ActionVersionResolver } from "./version-resolver.js";
import { VisitorResolver } from "./visitor-resolver.js";

const RESOLVER_CLASSES = {
  accessDetails: AccessLogEntryDetailsResolver,
  actions: ActionResolver,
  actionWarnings: ActionWarningResolver,
  ai: AiResolver,
  alerts: AlertResolver,
  secretBindings: SecretBindingResolver,
  apps: AppResolver,
  auditDetails: AuditDetailsResolver,
  auth: AuthResolver,
  clientActions: ClientActionResolver,
  appVersions: AppVersionResolver,
  dataSources: DataSourceResolver,
  drafts: CodeEditorResolver,
  entries: EntryResolver,
  git: GitResolver,
  runHistory: RunHistoryResolver,
  logs: LogResolver,
  manifests: ManifestResolver,
  media: MediaResolver,
  administrators: AdministratorResolver,
  members: MemberResolver,
  messages: MessageResolver,
  notifications: NotificationResolver,
  listPages: ListPageResolver,
  publishing: PublishResolver,
  queue: QueueResolver,
  runs: RunResolver,
  schedulePause: SchedulePauseResolver,
  appSessions: AppSessionResolver,
  actionSources: ActionSourceResolver,
  settings: SettingResolver,
  stages: StageResolver,
  auditLog: AuditLogResolver,
  tokens: TokenResolver,
  actionTransfer: ActionTransferResolver,
  visitors: VisitorResolver,
  actionVersions: ActionVersionResolver,
  triggers: TriggerResolver,
  httpTriggers: HttpTriggerResolver,
} as const;

/** One instance of each resolver class. The REST routes call their methods too. */
export type Resolvers = { [Name in keyof typeof RESOLVER_CLASSES]: InstanceType<(typeof RESOLVER_CLASSES)[Name]> };

/**
 * Context of a GraphQL operation. All services in a process share one schema, so the context contains the resolver
 * instances of the service that executes the operation.
 */
export interface ResolverContext {
  resolvers: Resolvers;
}

const RESOLVER_NAMES = new Map<unknown, keyof Resolvers>(
  Object.entries(RESOLVER_CLASSES).map(([name, resolver]) => [resolver, name as keyof Resolvers]),
);

export function listRootFields(schema: GraphQLSchema): GraphQLField<unknown, unknown>[] {
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  return roots.flatMap((root) => Object.values(root?.getFields() ?? {}));
}

/** Puts arguments into the order of the source code. TypeGraphQL reverses them, because decorators of parameters run from last to first. */
function sortLikeSourceCode(schema: GraphQLSchema): GraphQLSchema {
  for (const { args } of listRootFields(schema)) (args as GraphQLArgument[]).reverse();
  return schema;
}

/** Makes root fields nullable, so that a failed root field does not remove the results of other root fields (contract, section 5). */
function makeRootsNullable(schema: GraphQLSchema): GraphQLSchema {
  for (const field of listRootFields(schema)) field.type = getNullableType(field.type);
  return schema;
}

const ROOT_DESCRIPTIONS = {
  Query: "Operations that read.",
  Mutation: "Operations that change data or start runs.",
  Subscription: "Streams of events over WebSocket.",
} as const;

/** Adds the descriptions of Query, Mutation and Subscription, for which TypeGraphQL has no decorator. */
function describeRoots(schema: GraphQLSchema): GraphQLSchema {
  for (const [name, description] of Object.entries(ROOT_DESCRIPTIONS)) {
    const type = schema.getType(name);
    if (type) type.description = description;
  }
  return schema;
}

/** Runs the root fields of an operation one after the other, and counts the bytes of each root field's result. */
function resolveRootsInTurn(schema: GraphQLSchema): GraphQLSchema {
  for (const root of [schema.getQueryType(), schema.getMutationType()]) {
    for (const field of Object.values(root?.getFields() ?? {})) {
      const { resolve = defaultFieldResolver } = field;
      field.resolve = (source, values, context: RequestContext, info) => {
        const work = async () => resolve(source, values, context, info) as unknown;
        return context.responseBudget ? context.responseBudget.runPart(work) : work();
      };
    }
  }
  return schema;
}

async function createSchema(): Promise<GraphQLSchema> {
  const schema = await buildSchema({
    resolvers: Object.values(RESOLVER_CLASSES) as unknown as NonEmptyArray<() => void>,
    container: {
      get: (resolver, { context }: ResolverData<ResolverContext>) => context.resolvers[RESOLVER_NAMES.get(resolver)!],
    },
    // The functions in src/rules validate inputs. The errors of class-validator would repeat the whole input.
    validate: false,
    // TypeGraphQL's check takes two thirds of the time to build the schema. test/schema.test.ts checks the schema instead.
    skipCheck: true,
    // TypeGraphQL requires this object but never uses it, because every subscription has its own event source.
    pubSub: createPubSub(),
  });
  return resolveRootsInTurn(describeRoots(makeRootsNullable(sortLikeSourceCode(schema))));
}

let schemaPromise: Promise<GraphQLSchema> | null = null;

/** Returns the schema, which is built once in each process. Operations need a `ResolverContext`. */
export function loadSchema(): Promise<GraphQLSchema> {
  schemaPromise ??= createSchema();
  return schemaPromise;
}
