/** Short names for the generated types of GraphQL results, such as Action and RunRow. Studio's components use these names. */
import type {
  ActionDiffFieldsFragment,
  ActionSummaryFragment,
  ActionWithCodeFragment,
  AdministratorRowFragment,
  AlertRowFragment,
  AppsQuery,
  CreateTokenInput,
  DataSourceWithRulesFragment,
  EntryRowFragment,
  FindCodeProblemsQuery,
  FollowActionsSubscription,
  FollowRunConsoleSubscription,
  ListActionVersionsQuery,
  ListAppVersionsQuery,
  ListInvitationsQuery,
  ListMediaQuery,
  ListPayloadPresetsQuery,
  ListStagesQuery,
  LiveVersionRowFragment,
  LogEntryRowFragment,
  ManifestPlanPartsFragment,
  MediaFileRowFragment,
  MediaFolderRowFragment,
  MemberRowFragment,
  MessageRowFragment,
  MessageWithContentFragment,
  NotificationRowFragment,
  PersonFragment,
  ReadAlertDeliveriesQuery,
  ReadAuditLogQuery,
  ReadGitConnectionQuery,
  ReadHttpEndpointsQuery,
  ReadOrganizationAuditLogQuery,
  ReadRunQuery,
  ReadRunStatisticsQuery,
  ReadScheduleWeekQuery,
  ReadSecretBindingsQuery,
  ReadSettingsQuery,
  RunRowFragment,
} from "../documents.js";

export type App = AppsQuery["apps"][number];

/** Action without its code, as the list of actions contains it. Times are in ISO 8601. */
export type ActionSummary = ActionSummaryFragment;

export type Action = ActionWithCodeFragment;

/** Live version of an action. `updatedAt` is the time of its last publication. */
export type LiveVersion = LiveVersionRowFragment;

/** URLs of an action's HTTP triggers, and the requests that the triggers have rejected. */
export type HttpEndpointsResult = ReadHttpEndpointsQuery;

export type HttpEndpoint = NonNullable<NonNullable<ReadHttpEndpointsQuery["action"]>["endpoints"]>[number];

export type SecretBinding = NonNullable<ReadSecretBindingsQuery["connections"]>["bindings"][number];

export interface ActionList {
  actions: ActionSummary[];
  published: LiveVersion[];
  total: number;
}

export type ActionChange = FollowActionsSubscription["change"];

export type LogEntry = LogEntryRowFragment;

export type ScriptError = NonNullable<LogEntry["error"]>;

export type ConsoleLine = FollowRunConsoleSubscription["lines"][number];

export type RunRow = RunRowFragment;

export type RunDetails = ReadRunQuery["run"];

export type RunStatistics = ReadRunStatisticsQuery["statistics"];

export type ScheduleWeek = ReadScheduleWeekQuery["week"];

export type CodeProblem = FindCodeProblemsQuery["problems"][number];

export type PayloadPreset = ListPayloadPresetsQuery["presets"][number];

export type ActionVersion = ListActionVersionsQuery["history"]["versions"][number];

export type ActionDiff = ActionDiffFieldsFragment;

export type DataSource = DataSourceWithRulesFragment;

export type Entry = Omit<EntryRowFragment, "data"> & { data: Record<string, unknown> };

export type SettingDetails = Omit<ReadSettingsQuery["settingsStatus"][number], "key">;

export type MediaFile = MediaFileRowFragment;

export type MediaFolder = MediaFolderRowFragment;

export type MediaListing = ListMediaQuery["media"];
export type MessageSummary = MessageRowFragment;

/** Message with its full content. */
export type Message = MessageWithContentFragment;

export type MessageStatus = Message["status"];

export type Notification = NotificationRowFragment;

export type Person = PersonFragment;

export type Member = MemberRowFragment;

export type Invitation = ListInvitationsQuery["invitations"][number];

export type TokenScope = NonNullable<CreateTokenInput["scopes"]>[number];

export type TokenKind = NonNullable<CreateTokenInput["kind"]>;

export type OrganizationAuditEntry = ReadOrganizationAuditLogQuery["log"]["items"][number];
export type Administrator = AdministratorRowFragment;
export type AuditEntry = ReadAuditLogQuery["audit"]["entries"][number];

export type AppVersion = ListAppVersionsQuery["history"]["versions"][number];

export type Stage = ListStagesQuery["stages"][number];

export type GitConnection = NonNullable<ReadGitConnectionQuery["git"]>;

export type Promotion = ListStagesQuery["promotions"][number];

export type ManifestPlan = ManifestPlanPartsFragment;

export type { AlertRuleInput as AlertInput, MessageDecision, NotificationInput } from "../documents.js";

export type Alert = AlertRowFragment;

export type AlertDelivery = ReadAlertDeliveriesQuery["deliveries"][number];
