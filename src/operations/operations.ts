/** Creates the operations modules of one process and connects them. Does not start them. */
import { readFileSync } from "node:fs";
import type { Config } from "../config.js";
import { createKeyRing } from "../engine/key-ring.js";
import { createRateWindow } from "../engine/rate-window.js";
import { createSecretScannerCache } from "../engine/secret-scan.js";
import { StartError } from "../errors.js";
import type { Caller } from "../rules/access.js";
import { type AddAssetUrls, addAssetUrls, createPackageCatalogue } from "../rules/packages.js";
import { createAccessChecks } from "./access/access-checks.js";
import { AppTokens } from "./access/app-tokens.js";
import { Credentials } from "./access/credentials.js";
import { People } from "./access/people.js";
import { RejectionDelay } from "./access/rejection-delay.js";
import { ToolCallLog } from "./access/tool-calls.js";
import { createAccountModules } from "./accounts/people-accounts.js";
import { createInvitationMailer, createServiceMailer } from "./accounts/service-mail.js";
import { ActionChangeFeed } from "./actions/action-feed.js";
import { createAuthoringModules } from "./actions/authoring.js";
import { Ai } from "./ai/ai.js";
import { AppVersions } from "./apps/app-versions.js";
import { Apps } from "./apps/apps.js";
import { createClientModules } from "./client/clients.js";
import { createDataSourceModules } from "./data-sources/store.js";
import { GitConnections } from "./git/git-connections.js";
import { GitWebhookQueue } from "./git/git-deliveries.js";
import { GitPullOrder } from "./git/git-pull-order.js";
import { GitPulls } from "./git/git-pulls.js";
import { GitRepository } from "./git/git-repository.js";
import { GitWebhooks } from "./git/git-webhooks.js";
import { RunReplayer } from "./history/replay.js";
import { RunQueries } from "./history/run-queries.js";
import { createRunStatisticsReader } from "./history/run-statistics.js";
import { TriggerEndpoints } from "./http/endpoints.js";
import { HttpTriggers } from "./http/http-triggers.js";
import { RejectedRequestCounter } from "./http/rejected-request-counter.js";
import { TriggerAuthenticator } from "./http/trigger-authenticator.js";
import { Manifests } from "./manifest/manifests.js";
import { createMedia } from "./media/media.js";
import { Administrators } from "./members/administrators.js";
import { Editors } from "./members/editors.js";
import { Invitations } from "./members/invitations.js";
import { Members } from "./members/members.js";
import { createHookMessageStore, createMessagingAndNotificationModules } from "./messaging.js";
import { OAuthServer } from "./oauth/oauth.js";
import { createPackageProbe } from "./packages/package-probe.js";
import { DependencyResolver } from "./packages/packages.js";
import type { ProcessDependencies } from "./process-dependencies.js";
import { type ListAuditLog, listAuditEntries } from "./records/audit.js";
import { LogEventStore } from "./records/log-events.js";
import { QueueLimits, type RunQueueBounds } from "./records/queue-limits.js";
import { ReceivedDataLimiter } from "./records/received-data-limiter.js";
import type { RunSearch } from "./records/run-words.js";
import { createOutgoingRequestModules } from "./requests/requests.js";
import { createRunComponents } from "./running.js";
import type { Enqueuer } from "./runs/enqueue.js";
import { DataKeys, getSettingsKeyFilePath } from "./settings/data-keys.js";
import { Settings } from "./settings/settings.js";
import { StagePromotions } from "./stages/promotions.js";
import { Stages } from "./stages/stages.js";
import { createBacktestRunner } from "./triggers/backtest.js";
import { Scheduler } from "./triggers/schedule.js";
import { SchedulePause } from "./triggers/schedule-pause.js";
import { TriggerIndex } from "./triggers/trigger-index.js";
import { createScheduleWeekReader } from "./triggers/week.js";
import { createDataRetention } from "./upkeep/retention.js";
import { createLogTrimming } from "./upkeep/trimming.js";
import { Vitals } from "./upkeep/vitals.js";

const readQueueBounds = ({ queueMax, queueMaxPerApp, queueMaxMb }: Config): RunQueueBounds => ({
  maxRuns: queueMax,
  maxRunsPerApp: queueMaxPerApp,
  maxPayloadBytes: queueMaxMb * 2 ** 20,
});

export type Operations = Awaited<ReturnType<typeof createOperations>>;

/**
 * Creates the catalogue of packages, from the file of PACKAGES_FILE if this variable is set.
 * @throws StartError if the file cannot be used
 */
export function readCatalogue({
  packagesFile,
}: Pick<Config, "packagesFile">): ReturnType<typeof createPackageCatalogue> {
  if (!packagesFile) return createPackageCatalogue();
  try {
    return createPackageCatalogue(JSON.parse(readFileSync(packagesFile, "utf8")));
  } catch (error) {
    throw new StartError(`the file ${packagesFile} of PACKAGES_FILE cannot be used: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** Creates the modules that load the scripts of an app's dependencies from the built-in catalogue, npm and URLs. */
function createDependencyModules(
  { config, db, baseUrl, browsers, log }: ProcessDependencies,
  receivedDataLimiter: ReceivedDataLimiter,
) {
  const catalogue = readCatalogue(config);
  const addUrls: AddAssetUrls = (stored) => addAssetUrls(stored, catalogue, baseUrl);
  const { npm, bundlerSandbox, allowPrivateNetwork, egressAddress } = config;
  return {
    catalogue,
    addAssetUrls: addUrls,
    packages: new DependencyResolver({
      db,
      catalogue,
      receivedDataLimiter,
      npm,
      bundlerSandbox,
      probe: createPackageProbe(browsers),
      allowPrivateNetwork,
      egressAddress,
      log,
    }),
  };
}

/** Creates the modules that delete old rows from tables, and the metrics of the whole service. */
function createUpkeepModules({ config, db, log }: ProcessDependencies, schedule: Scheduler, queueLimits: QueueLimits) {
  return {
    retention: createDataRetention({ db, days: config.logRetentionDays, log }),
    trimming: createLogTrimming({ db, maxBytes: config.logMaxMb * 2 ** 20, log }),
    vitals: new Vitals({ db, schedule, readDepths: () => queueLimits.readDepths() }),
  };
}

/** Creates the modules that start actions without a caller (schedules and log events), and the queries about runs. */
function createTriggerModules(
  { config, db, now }: ProcessDependencies,
  {
    enqueuer,
    runSearch,
    ...parts
  }: {
    scheduler: Scheduler;
    enqueuer: Enqueuer;
    runSearch: RunSearch;
    logEvents: LogEventStore;
  },
) {
  const { defaultTimezone } = config;
  return {
    ...parts,
    readWeek: createScheduleWeekReader({ db, now, defaultTimezone }),
    runQueries: new RunQueries(db, runSearch),
    replayer: new RunReplayer(db, enqueuer),
    readStatistics: createRunStatisticsReader({ db, runSearch }),
    runBacktest: createBacktestRunner(db),
    pause: new SchedulePause(db),
  };
}

function createAccessModules({ config, db, notifications, diskSpace, baseUrl, log }: ProcessDependencies) {
  const { openIdProviders: providers } = config;
  const mail = createServiceMailer(config, log);
  const credentials = new Credentials({ db, notifications });
  const people = new People({ db });
  const accounts = createAccountModules({ db, credentials, people, baseUrl, mail, providers });
  const members = new Members({ db, credentials });
  return {
    credentials,
    accessChecks: createAccessChecks({ db, rateWindow: createRateWindow(db), limits: config.rateLimits, diskSpace }),
    people,
    tokens: new AppTokens({ db, credentials, people, log }),
    accounts,
    members,
    administrators: new Administrators({ db, credentials }),
    editors: new Editors({ db, credentials, people }),
    invitations: new Invitations({
      db,
      credentials,
      members,
      accounts: accounts.accounts,
      links: accounts.links,
      send: mail && createInvitationMailer(mail),
    }),
  };
}

function createHttpTriggerModules(
  { config, db, log }: ProcessDependencies,
  parts: Omit<
    ConstructorParameters<typeof HttpTriggers>[0],
    "db" | "authenticator" | "rejectedRequestCounter" | "maxRequestsPerWindow"
  > &
    ConstructorParameters<typeof TriggerAuthenticator>[0],
) {
  const rejectedRequestCounter = new RejectedRequestCounter({ db, log });
  const { accessChecks, endpoints, runs, logs, receivedDataLimiter } = parts;
  const { http: maxRequestsPerWindow } = config.rateLimits;
  const triggerOptions = {
    accessChecks,
    endpoints,
    runs,
    logs,
    receivedDataLimiter,
    authenticator: new TriggerAuthenticator(parts),
    rejectedRequestCounter,
    maxRequestsPerWindow,
  };
  return { endpoints, rejectedRequestCounter, httpTriggers: new HttpTriggers({ db, ...triggerOptions }) };
}

/** Creates the OAuth server, and the module that counts and records the tool calls of AI agents. */
const createProgramModules = (
  parts: ConstructorParameters<typeof ToolCallLog>[0] & ConstructorParameters<typeof OAuthServer>[0],
) => ({
  toolCalls: new ToolCallLog(parts),
  oauth: new OAuthServer(parts),
});

function createIntegrationModules(
  { db, config, log }: ProcessDependencies,
  parts: Pick<ConstructorParameters<typeof Ai>[0], "settings" | "scannerCache" | "logEvents">,
) {
  const integrations = createOutgoingRequestModules({ db, config, log, ...parts });
  return { ...integrations, ai: new Ai({ db, log, ...parts, ...integrations, allowHttp: config.allowPrivateNetwork }) };
}

function createGitModules(
  { config, db, baseUrl, log }: ProcessDependencies,
  parts: Pick<ConstructorParameters<typeof GitConnections>[0], "settings" | "credentials"> &
    Pick<ConstructorParameters<typeof GitPulls>[0], "manifests" | "publishing"> &
    Pick<ConstructorParameters<typeof GitWebhooks>[0], "accessChecks"> &
    Pick<ConstructorParameters<typeof GitWebhookQueue>[0], "holder"> &
    ConstructorParameters<typeof GitRepository>[0],
) {
  const connections = new GitConnections({ db, baseUrl, allowHttp: config.allowPrivateNetwork, ...parts });
  const [order, repository] = [new GitPullOrder(db), new GitRepository(parts)];
  const pulls = new GitPulls({ connections, order, repository, log, ...parts });
  const deliveries = new GitWebhookQueue({ db, ...parts });
  return { connections, pulls, webhooks: new GitWebhooks({ connections, pulls, deliveries, log, ...parts }) };
}

function createManifestModules(
  processDependencies: ProcessDependencies,
  options: ConstructorParameters<typeof Manifests>[0] &
    Omit<ConstructorParameters<typeof Stages>[0], "manifests" | "log"> &
    Omit<Parameters<typeof createGitModules>[1], "manifests">,
) {
  const manifests = new Manifests(options);
  const stages = new Stages({ ...options, manifests, log: processDependencies.log });
  const git = createGitModules(processDependencies, { ...options, manifests });
  return { manifests, stages, git, promotions: new StagePromotions({ ...options, manifests }) };
}

function createEventModules({ config, db, diskSpace }: ProcessDependencies) {
  const receivedDataLimiter = new ReceivedDataLimiter({ quotaBytes: config.intakeQuotaMb * 2 ** 20, diskSpace });
  const queueLimits = new QueueLimits(db, readQueueBounds(config));
  return { receivedDataLimiter, queueLimits, logEvents: new LogEventStore({ db, queueLimits, receivedDataLimiter }) };
}

export async function createOperations(processDependencies: ProcessDependencies) {
  const { config, db, notifications, diskSpace, baseUrl, now, measures, log } = processDependencies;
  const access = createAccessModules(processDependencies);
  const { credentials, accessChecks, people } = access;
  const { queueLimits, ...eventOptions } = createEventModules(processDependencies);
  const { logEvents, receivedDataLimiter } = eventOptions;
  const ring = createKeyRing({ keys: config.settingsKeys, path: getSettingsKeyFilePath(config.dataDir) });
  const dataKeys = new DataKeys({ db, ring });
  await dataKeys.start();
  const { clientTimeoutMs, serverTimeoutMs, allowPrivateNetwork, defaultTimezone } = config;
  const needsSecondFactor = (appId: number) => messaging.verification.needsSecondFactor(appId);
  const userChanged = (caller: Caller, appId: number) => messaging.notificationModules.userChanged(caller, appId);
  const hookMessageStore = createHookMessageStore(accessChecks, () => messaging.messagingModules.outboxWriter);
  const storeOptions = { ring, ...eventOptions, readSession: people.session, needsSecondFactor, userChanged };
  const store = createDataSourceModules({ ...processDependencies, ...storeOptions, hookMessageStore });
  const { readAppSession } = store;
  const findAppUser = (caller: Caller | null) => store.appUsers.findUserOfCaller(caller);
  const settings = new Settings({ db, dataKeys, baseUrl, clientTimeoutMs, readAppSession, ...eventOptions });
  const apps = new Apps({ db, credentials, people, settings, ...eventOptions });
  const { catalogue, addAssetUrls, packages } = createDependencyModules(processDependencies, receivedDataLimiter);
  const scheduler = new Scheduler({ db, now, defaultTimezone, measures });
  const endpoints = new TriggerEndpoints({ db, dataKeys, baseUrl });
  const triggerIndex = new TriggerIndex({ now, defaultTimezone });
  const authoringOptions = { packages, addAssetUrls, triggerIndex, endpoints, serverTimeoutMs, allowPrivateNetwork };
  const authoring = createAuthoringModules({ db, ...authoringOptions, log });
  const scannerCache = createSecretScannerCache();
  const integrations = createIntegrationModules(processDependencies, { settings, scannerCache, logEvents });
  const runOptions = { ...integrations, settings, readAppSession, scannerCache, findAppUser, credentials };
  const onRenewal = (mayDeclareDead: boolean) =>
    messaging.recover(mayDeclareDead).then(() => definitions.git.webhooks.recover(mayDeclareDead));
  const queueOptions = { queueLimits, receivedDataLimiter, onRenewal };
  const running = createRunComponents(processDependencies, { ...runOptions, catalogue, packages, ...queueOptions });
  const { repository, lease, enqueuer, runSearch } = running;
  const messagingOptions = { settings, store, scannerCache, ...eventOptions, userChanged, processId: lease.holder };
  const messaging = createMessagingAndNotificationModules(processDependencies, messagingOptions);
  const clientOptions = { credentials, repository, ...eventOptions, diskSpace, addAssetUrls, findAppUser };
  const clientConfig = { timeoutMs: clientTimeoutMs, allowHttp: allowPrivateNetwork };
  const clients = createClientModules({ db, notifications, ...clientOptions, ...clientConfig, log });
  const mediaOptions = { ring, processId: lease.holder, ...eventOptions, findAppUser };
  const media = await createMedia({ config, db, read: store.read, ...mediaOptions, baseUrl, log });
  const manifestOptions = { holder: lease.holder, ...access, ...eventOptions, ...store, ...authoring, ...integrations };
  const definitions = createManifestModules(processDependencies, { db, settings, apps, packages, ...manifestOptions });
  return {
    ...running,
    ...integrations,
    ...access,
    rejectionDelay: new RejectionDelay(),
    settings,
    apps,
    authoring,
    ...createHttpTriggerModules(processDependencies, { ...running, ...access, endpoints, ...eventOptions, settings }),
    ...definitions,
    actionFeed: new ActionChangeFeed({ db, notifications, log }),
    appVersions: new AppVersions({ db, settings, ...eventOptions, checkETag: apps.checkETag.bind(apps) }),
    listAuditEntries: ((appId, options, reserve) =>
      listAuditEntries(db, appId, options, reserve)) satisfies ListAuditLog,
    ...createProgramModules({ db, accessChecks, credentials }),
    triggers: createTriggerModules(processDependencies, { scheduler, enqueuer, runSearch, logEvents }),
    ...createUpkeepModules(processDependencies, scheduler, queueLimits),
    dataKeys,
    clients,
    store,
    media,
    ...messaging,
    packages,
  };
}
