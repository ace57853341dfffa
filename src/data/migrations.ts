/** Lists the migrations in the order of their execution. Add new migrations at the end. */

import { Foundation1763600000000 } from "../../migrations/1763600000000-foundation.js";
import { Settings1763600001000 } from "../../migrations/1763600001000-settings.js";
import { Actions1763600002000 } from "../../migrations/1763600002000-actions.js";
import { Runs1763600003000 } from "../../migrations/1763600003000-runs.js";
import { Triggers1763600008000 } from "../../migrations/1763600008000-triggers.js";
import { Console1763600020000 } from "../../migrations/1763600020000-console.js";
import { Idempotency1763600040000 } from "../../migrations/1763600040000-idempotency.js";
import { VersionSummary1763600041000 } from "../../migrations/1763600041000-version-summary.js";
import { ClientActions1763600050000 } from "../../migrations/1763600050000-client-actions.js";
import { AppVersions1763600060000 } from "../../migrations/1763600060000-app-versions.js";
import { PageSessions1763600061000 } from "../../migrations/1763600061000-page-sessions.js";
import { Retention1763600070000 } from "../../migrations/1763600070000-retention.js";
import { PageSessionsOfASignIn1763600081000 } from "../../migrations/1763600081000-page-sessions-of-a-sign-in.js";
import { SecretValues1763600082000 } from "../../migrations/1763600082000-secret-values.js";
import { EntryBytes1763600083000 } from "../../migrations/1763600083000-entry-bytes.js";
import { QueueTurns1763600085000 } from "../../migrations/1763600085000-queue-turns.js";
import { PayloadOnce1763600086000 } from "../../migrations/1763600086000-payload-once.js";
import { ActionChanges1763600090000 } from "../../migrations/1763600090000-action-changes.js";
import { DataSources1763600100000 } from "../../migrations/1763600100000-data-sources.js";
import { EntrySize1763600100500 } from "../../migrations/1763600100500-entry-size.js";
import { DataSourceChanges1763600101000 } from "../../migrations/1763600101000-data-source-changes.js";
import { Media1763600110000 } from "../../migrations/1763600110000-media.js";
import { Messages1763600120000 } from "../../migrations/1763600120000-messages.js";
import { Notifications1763600130000 } from "../../migrations/1763600130000-notifications.js";
import { KeptScripts1763600140000 } from "../../migrations/1763600140000-kept-scripts.js";
import { VerificationCodes1763600160100 } from "../../migrations/1763600160100-verification-codes.js";
import { PushDeliveriesHeld1763600160200 } from "../../migrations/1763600160200-push-deliveries-held.js";
import { RunHistory1763600175000 } from "../../migrations/1763600175000-run-history.js";
import { BoundsOfRows1763600180000 } from "../../migrations/1763600180000-bounds-of-rows.js";
import { BoundsChecked1763600180100 } from "../../migrations/1763600180100-bounds-checked.js";
import {
  PartitionsOfEntries1763600180200,
  PartitionsOfEvents1763600180300,
  PartitionsOfRuns1763600180500,
  PartitionsOfTrail1763600180400,
} from "../../migrations/1763600180200-partitions.js";
import { Searches1763600180600 } from "../../migrations/1763600180600-searches.js";
import { SchedulesPaused1763600180700 } from "../../migrations/1763600180700-schedules-paused.js";
import { RunTraces1763600190000 } from "../../migrations/1763600190000-run-traces.js";
import { Alerts1763600190100 } from "../../migrations/1763600190100-alerts.js";
import { RunLimits1763600200000 } from "../../migrations/1763600200000-run-limits.js";
import { ScriptUses1763600240000 } from "../../migrations/1763600240000-script-uses.js";
import { Declarations1763600260000 } from "../../migrations/1763600260000-declarations.js";
import { AppUsers1764000400000 } from "../../migrations/1764000400000-app-users.js";
import { CredentialsOfPeople1764000410000 } from "../../migrations/1764000410000-credentials-of-people.js";
import { SettingsState1764000500000 } from "../../migrations/1764000500000-settings-state.js";
import { MediaStoreIdentity1764000700000 } from "../../migrations/1764000700000-media-store-identity.js";
import { IgnoredProxy1764000750000 } from "../../migrations/1764000750000-ignored-proxy.js";
import { RunSandbox1764000900000 } from "../../migrations/1764000900000-run-sandbox.js";
import { IntegrationOrigins1764001000000 } from "../../migrations/1764001000000-integration-origins.js";
import { Roles1764001100000 } from "../../migrations/1764001100000-roles.js";
import { Accounts1764100000000 } from "../../migrations/1764100000000-accounts.js";
import { ActionAccess1764100100000 } from "../../migrations/1764100100000-action-access.js";
import { Invitations1764200000000 } from "../../migrations/1764200000000-invitations.js";
import { HttpTriggers1764200150000 } from "../../migrations/1764200150000-http-triggers.js";
import { SignInMethods1764300000000 } from "../../migrations/1764300000000-sign-in-methods.js";
import { DeclaredSettings1764300100000 } from "../../migrations/1764300100000-declared-settings.js";
import { Visitors1764400000000 } from "../../migrations/1764400000000-visitors.js";
import { BrowserHolder1764410000000 } from "../../migrations/1764410000000-browser-holder.js";
import { TokenUses1764500000000 } from "../../migrations/1764500000000-token-uses.js";
import { OauthGrants1764600000000 } from "../../migrations/1764600000000-oauth-grants.js";
import { GrantsOfCredentials1764600000100 } from "../../migrations/1764600000100-grants-of-credentials.js";
import { ScheduleJitter1764600003100 } from "../../migrations/1764600003100-schedule-jitter.js";
import { RunRequests1764700000000 } from "../../migrations/1764700000000-run-requests.js";
import { SecretBindings1764700100000 } from "../../migrations/1764700100000-secret-bindings.js";
import { AiUsage1764900000000 } from "../../migrations/1764900000000-ai-usage.js";
import { OriginIndex1765000000000 } from "../../migrations/1765000000000-origin-index.js";
import { VisitorsIndexes1765900000000 } from "../../migrations/1765900000000-visitors-indexes.js";
import { ActionSource1765900100000 } from "../../migrations/1765900100000-action-source.js";
import { Stages1765900200000 } from "../../migrations/1765900200000-stages.js";
import { QueuedNotices1766000000000 } from "../../migrations/1766000000000-queued-notices.js";
import { RoleTimes1766100000000 } from "../../migrations/1766100000000-role-times.js";
import { AdministratorTimes1766200000000 } from "../../migrations/1766200000000-administrator-times.js";
import { GrantMakers1766300000000 } from "../../migrations/1766300000000-grant-makers.js";
import { GrantsOfMakers1766300000100 } from "../../migrations/1766300000100-grants-of-makers.js";
import { PublishedVersions1766400000000 } from "../../migrations/1766400000000-published-versions.js";
import { TestsRequired1766500000000 } from "../../migrations/1766500000000-tests-required.js";
import { GitConnections1766600000000 } from "../../migrations/1766600000000-git-connections.js";
import { GitPullOrder1766700000000 } from "../../migrations/1766700000000-git-pull-order.js";
import { GitWebhooks1766800000000 } from "../../migrations/1766800000000-git-webhooks.js";
import { GitWebhookPulls1766900000000 } from "../../migrations/1766900000000-git-webhook-pulls.js";
import { VisitorBlocks1766990000000 } from "../../migrations/1766990000000-visitor-blocks.js";
import { VisitorDevices1767000000000 } from "../../migrations/1767000000000-visitor-devices.js";
import { MediaOrphans1767100000000 } from "../../migrations/1767100000000-media-orphans.js";
import { SearchWordsByPattern1767200000000 } from "../../migrations/1767200000000-search-words-by-pattern.js";
import {
  LiveVersionIds1767300000000,
  LiveVersionIndex1767300000100,
} from "../../migrations/1767300000000-live-version-ids.js";
import { HttpEventsOfActions1767400000000 } from "../../migrations/1767400000000-http-events-of-actions.js";
import { TraceContextOfRuns1767500000000 } from "../../migrations/1767500000000-trace-context-of-runs.js";

export const MIGRATIONS = [
  Foundation1763600000000,
  Settings1763600001000,
  Actions1763600002000,
  Runs1763600003000,
  Triggers1763600008000,
  Console1763600020000,
  Idempotency1763600040000,
  VersionSummary1763600041000,
  ClientActions1763600050000,
  AppVersions1763600060000,
  PageSessions1763600061000,
  Retention1763600070000,
  PageSessionsOfASignIn1763600081000,
  SecretValues1763600082000,
  EntryBytes1763600083000,
  QueueTurns1763600085000,
  PayloadOnce1763600086000,
  ActionChanges1763600090000,
  DataSources1763600100000,
  EntrySize1763600100500,
  DataSourceChanges1763600101000,
  Media1763600110000,
  Messages1763600120000,
  Notifications1763600130000,
  KeptScripts1763600140000,
  VerificationCodes1763600160100,
  PushDeliveriesHeld1763600160200,
  RunHistory1763600175000,
  BoundsOfRows1763600180000,
  BoundsChecked1763600180100,
  PartitionsOfEntries1763600180200,
  PartitionsOfEvents1763600180300,
  PartitionsOfTrail1763600180400,
  PartitionsOfRuns1763600180500,
  Searches1763600180600,
  SchedulesPaused1763600180700,
  RunTraces1763600190000,
  Alerts1763600190100,
  RunLimits1763600200000,
  ScriptUses1763600240000,
  Declarations1763600260000,
  AppUsers1764000400000,
  CredentialsOfPeople1764000410000,
  SettingsState1764000500000,
  MediaStoreIdentity1764000700000,
  IgnoredProxy1764000750000,
  RunSandbox1764000900000,
  IntegrationOrigins1764001000000,
  Roles1764001100000,
  Accounts1764100000000,
  ActionAccess1764100100000,
  Invitations1764200000000,
  HttpTriggers1764200150000,
  SignInMethods1764300000000,
  DeclaredSettings1764300100000,
  Visitors1764400000000,
  BrowserHolder1764410000000,
  TokenUses1764500000000,
  OauthGrants1764600000000,
  GrantsOfCredentials1764600000100,
  ScheduleJitter1764600003100,
  RunRequests1764700000000,
  SecretBindings1764700100000,
  AiUsage1764900000000,
  OriginIndex1765000000000,
  VisitorsIndexes1765900000000,
  ActionSource1765900100000,
  Stages1765900200000,
  QueuedNotices1766000000000,
  RoleTimes1766100000000,
  AdministratorTimes1766200000000,
  GrantMakers1766300000000,
  GrantsOfMakers1766300000100,
  PublishedVersions1766400000000,
  TestsRequired1766500000000,
  GitConnections1766600000000,
  GitPullOrder1766700000000,
  GitWebhooks1766800000000,
  GitWebhookPulls1766900000000,
  VisitorBlocks1766990000000,
  VisitorDevices1767000000000,
  MediaOrphans1767100000000,
  SearchWordsByPattern1767200000000,
  LiveVersionIds1767300000000,
  LiveVersionIndex1767300000100,
  HttpEventsOfActions1767400000000,
  TraceContextOfRuns1767500000000,
];
