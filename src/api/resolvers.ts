/** Creates one instance of each GraphQL resolver, and passes it the operations that it calls. */

import { createAppDeclarationsGenerator } from "../operations/manifest/app-declarations.js";
import type { Operations } from "../operations/operations.js";
import { readClientDeclarations } from "./client-declarations.js";
import { ActionResolver } from "./graphql/action-resolver.js";
import { ActionWarningResolver } from "./graphql/action-warning-resolver.js";
import { AdministratorResolver } from "./graphql/administrator-resolver.js";
import { AiResolver } from "./graphql/ai-resolver.js";
import { AlertResolver } from "./graphql/alert-resolver.js";
import { AppResolver } from "./graphql/app-resolver.js";
import { AppVersionResolver } from "./graphql/app-version-resolver.js";
import { AccessLogEntryDetailsResolver, AuditDetailsResolver } from "./graphql/audit-details.js";
import { AuditLogResolver } from "./graphql/audit-resolver.js";
import { AuthResolver } from "./graphql/auth-resolver.js";
import { SecretBindingResolver } from "./graphql/binding-resolver.js";
import { ClientActionResolver } from "./graphql/client-resolver.js";
import { CodeEditorResolver } from "./graphql/code-editor-resolver.js";
import { DataSourceResolver } from "./graphql/data-source-resolver.js";
import { EntryResolver } from "./graphql/entry-resolver.js";
import { GitResolver } from "./graphql/git-resolver.js";
import { RunHistoryResolver } from "./graphql/history-resolver.js";
import { HttpTriggerResolver } from "./graphql/http-trigger-resolver.js";
import { LogResolver } from "./graphql/log-resolver.js";
import { ManifestResolver } from "./graphql/manifest-resolver.js";
import { MediaResolver } from "./graphql/media-resolver.js";
import { MemberResolver } from "./graphql/member-resolver.js";
import { MessageResolver } from "./graphql/message-resolver.js";
import { NotificationResolver } from "./graphql/notification-resolver.js";
import { ListPageResolver } from "./graphql/page-types.js";
import { PublishResolver } from "./graphql/publish-resolver.js";
import { QueueResolver } from "./graphql/queue-resolver.js";
import { RunResolver } from "./graphql/run-resolver.js";
import { SchedulePauseResolver } from "./graphql/schedule-pause-resolver.js";
import type { Resolvers } from "./graphql/schema.js";
import { AppSessionResolver } from "./graphql/session-resolver.js";
import { SettingResolver } from "./graphql/setting-resolver.js";
import { ActionSourceResolver } from "./graphql/source-types.js";
import { StageResolver } from "./graphql/stage-resolver.js";
import { TokenResolver } from "./graphql/token-resolver.js";
import { ActionTransferResolver } from "./graphql/transfer-resolver.js";
import { TriggerResolver } from "./graphql/trigger-resolver.js";
import { ActionVersionResolver } from "./graphql/version-resolver.js";
import { VisitorResolver } from "./graphql/visitor-resolver.js";

export function createResolvers(operations: Operations): Resolvers {
  const { runBacktest, runQueries, replayer, logEvents, scheduler, readStatistics, readWeek } = operations.triggers;
  const { accessChecks, apps, appVersions, listAuditEntries, console, logs, editors, runs, settings } = operations;
  const { actions, comparer, presets, problems, publishing, restorer, transfer, versions } = operations.authoring;
  const { analytics, clientActions, clientRuns } = operations.clients;
  return {
    accessDetails: new AccessLogEntryDetailsResolver(),
    actionWarnings: new ActionWarningResolver(),
    actions: new ActionResolver(accessChecks, actions, operations.endpoints, operations.authoring.rotateSecret),
    ai: new AiResolver(accessChecks, operations.ai),
    alerts: new AlertResolver(accessChecks, operations.alerts.rules),
    secretBindings: new SecretBindingResolver(accessChecks, operations.bindings, operations.bindingTester),
    clientActions: new ClientActionResolver(accessChecks, clientActions, clientRuns, analytics),
    apps: new AppResolver(accessChecks, apps, editors),
    auditDetails: new AuditDetailsResolver(),
    auth: new AuthResolver(accessChecks, operations.accounts),
    appVersions: new AppVersionResolver(accessChecks, appVersions, apps),
    dataSources: new DataSourceResolver(
      accessChecks,
      operations.store.dataSources,
      operations.store.entries,
      operations.store.accessRuleTester,
    ),
    drafts: new CodeEditorResolver(accessChecks, presets, problems, operations.packages.scripts),
    entries: new EntryResolver(accessChecks, operations.store.entries),
    git: new GitResolver(accessChecks, operations.git),
    runHistory: new RunHistoryResolver(accessChecks, { runQueries, replayer, readStatistics, logs }),
    logs: new LogResolver(accessChecks, logs),
    manifests: new ManifestResolver(
      accessChecks,
      operations.manifests,
      createAppDeclarationsGenerator({
        manifests: operations.manifests,
        scripts: operations.packages.scripts,
        readClientDeclarations: readClientDeclarations,
      }),
    ),
    media: new MediaResolver(accessChecks, operations.media),
    administrators: new AdministratorResolver(accessChecks, operations.administrators),
    members: new MemberResolver(accessChecks, {
      members: operations.members,
      invitations: operations.invitations,
      people: operations.accounts,
    }),
    messages: new MessageResolver(accessChecks, operations.messagingModules.messages),
    notifications: new NotificationResolver(accessChecks, operations.notificationModules),
    listPages: new ListPageResolver(),
    publishing: new PublishResolver(accessChecks, publishing, operations.endpoints),
    queue: new QueueResolver(accessChecks, operations.backlogs),
    runs: new RunResolver(accessChecks, runs, console),
    schedulePause: new SchedulePauseResolver(accessChecks, operations.triggers.pause),
    appSessions: new AppSessionResolver(accessChecks, operations.store.sessions, operations.verification),
    actionSources: new ActionSourceResolver(),
    settings: new SettingResolver(accessChecks, settings),
    stages: new StageResolver(accessChecks, operations.stages, operations.promotions, operations.manifests),
    auditLog: new AuditLogResolver(accessChecks, listAuditEntries),
    tokens: new TokenResolver(accessChecks, operations.tokens),
    actionTransfer: new ActionTransferResolver(accessChecks, transfer),
    visitors: new VisitorResolver(accessChecks, operations.clients.visitors),
    actionVersions: new ActionVersionResolver(accessChecks, {
      versions,
      restorer,
      comparer,
      endpoints: operations.endpoints,
    }),
    httpTriggers: new HttpTriggerResolver(accessChecks, operations.rejectedRequestCounter),
    triggers: new TriggerResolver(accessChecks, { events: logEvents, scheduler, readWeek, runBacktest }),
  };
}
