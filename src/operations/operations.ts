/** Makes the operations of one process and ties them to each other. Starts nothing. */
import { readFileSync } from "node:fs";
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { Config } from "../config.js";
import type { Browsers } from "../engine/browser/browsers.js";
import type { DiskRoom } from "../engine/disk-room.js";
import { createIsolateCheck } from "../engine/isolate-check.js";
import { createKeyRing } from "../engine/key-ring.js";
import type { Notifications } from "../engine/notifications.js";
import { createRateWindow } from "../engine/rate-window.js";
import { createSecretScans, type SecretScans } from "../engine/secret-scan.js";
import { StartError } from "../errors.js";
import type { Caller } from "../rules/access.js";
import type { SessionOf } from "../rules/env-script.js";
import { type Addressed, addressedAssets, createCatalogue } from "../rules/packages.js";
import { CREDENTIAL_CHANNEL, type Credentials, createCredentials } from "./access/credentials.js";
import { createGate, type Gate } from "./access/gate.js";
import { createPatience } from "./access/patience.js";
import { createPeople } from "./access/people.js";
import { ACTION_EDITED_CHANNEL, createActionFeed } from "./actions/action-feed.js";
import { createAuthoring } from "./actions/authoring.js";
import { ALERT_CHANNEL } from "./alerts/alert-rows.js";
import { createAlerts } from "./alerts/alerts.js";
import { createAppVersions } from "./apps/app-versions.js";
import { createApps } from "./apps/apps.js";
import { ACTION_CHANNEL } from "./client/client-feed.js";
import { createClients } from "./client/clients.js";
import type { Acceptance } from "./communicate/acceptance.js";
import { createCommunicate } from "./communicate/communicate.js";
import { operatorMail } from "./communicate/destinations.js";
import { MESSAGE_CHANNEL } from "./communicate/outbox.js";
import { DATA_SOURCE_CHANNEL } from "./data-sources/data-source-rows.js";
import { ENTRY_CHANNEL } from "./data-sources/entry-changes.js";
import type { Outlet } from "./data-sources/hook-messages.js";
import { createStore, type Store } from "./data-sources/store.js";
import { createVerification } from "./data-sources/verification.js";
import { createMedia } from "./media/media.js";
import { NOTIFICATION_CHANNEL } from "./notifications/notification-rows.js";
import { createNotify } from "./notifications/notify.js";
import { READER_CHANNEL } from "./notifications/reader.js";
import type { KeptScripts } from "./packages/kept-scripts.js";
import { createPackages } from "./packages/packages.js";
import { listAudit, type Trail } from "./records/audit.js";
import { createLogs, LOG_CHANNEL } from "./records/execution-logs.js";
import { createIntake, type Intake } from "./records/intake.js";
import { createLogEvents, type LogEvents } from "./records/log-events.js";
import { createLogTail } from "./records/log-tail.js";
import { createQueueRoom, type QueueBounds, type QueueRoom } from "./records/queue-room.js";
import { createRunWords, type RunWords } from "./records/run-words.js";
import { createBacklogs } from "./runs/backlog.js";
import { CONSOLE_CHANNEL, createRunConsole } from "./runs/console.js";
import { createExecution, lostEnding } from "./runs/execution.js";
import { createInstance } from "./runs/instance.js";
import { createLedger } from "./runs/ledger.js";
import { AWAITED_CHANNEL, CANCEL_CHANNEL } from "./runs/run-facts.js";
import { createRunHistory } from "./runs/run-history.js";
import { createRunScripts } from "./runs/run-scripts.js";
import { createRunStatistics } from "./runs/run-statistics.js";
import { createRunTraces } from "./runs/run-traces.js";
import { createRuns } from "./runs/runs.js";
import { createSecrecy } from "./runs/secrecy.js";
import { createWaits, LIMITS_CHANNEL } from "./runs/waits.js";
import { createDataKeys, settingsKeyFile } from "./settings/data-keys.js";
import { createSettings } from "./settings/settings.js";
import { createBacktest } from "./triggers/backtest.js";
import { createSchedule } from "./triggers/schedule.js";
import { createSchedulePause } from "./triggers/schedule-pause.js";
import { createTriggerIndex, SCHEDULE_CHANNEL } from "./triggers/trigger-index.js";
import { createScheduleWeek } from "./triggers/week.js";
import { createRetention } from "./upkeep/retention.js";
import { createTrimming } from "./upkeep/trimming.js";
import { createVitals } from "./upkeep/vitals.js";
import type { Measures } from "./watch/measures.js";
import type { Tracing } from "./watch/tracing.js";

/** Every channel of notices between processes. */
export const CHANNELS = [
  CREDENTIAL_CHANNEL,
  LOG_CHANNEL,
  CANCEL_CHANNEL,
  AWAITED_CHANNEL,
  LIMITS_CHANNEL,
  CONSOLE_CHANNEL,
  SCHEDULE_CHANNEL,
  ACTION_CHANNEL,
  ACTION_EDITED_CHANNEL,
  DATA_SOURCE_CHANNEL,
  ENTRY_CHANNEL,
  MESSAGE_CHANNEL,
  NOTIFICATION_CHANNEL,
  READER_CHANNEL,
  ALERT_CHANNEL,
];

export interface Surroundings {
  config: Config;
  db: DataSource;
  /** Its address, for readers with connections of their own. */
  databaseUrl: string;
  notifications: Notifications;
  /** null in a process that is no runner. */
  browsers: Browsers | null;
  room: DiskRoom;
  measures: Measures;
  tracing: Tracing;
  /** The service's address for people and browsers. */
  baseUrl: string;
  /** The service's address for the runs of this process. */
  apiUrl: string;
  /** No other process shares the database. */
  alone: boolean;
  /** Unix time in milliseconds, by which schedules fire. */
  now: () => number;
  log: Logger;
}

const queueBounds = ({ queueMax, queueMaxPerApp, queueMaxMb }: Config): QueueBounds => ({
  max: queueMax,
  maxPerApp: queueMaxPerApp,
  maxBytes: queueMaxMb * 2 ** 20,
});

export type Operations = Awaited<ReturnType<typeof createOperations>>;

function readCatalogue({ packagesFile }: Config): ReturnType<typeof createCatalogue> {
  if (!packagesFile) return createCatalogue();
  try {
    return createCatalogue(JSON.parse(readFileSync(packagesFile, "utf8")));
  } catch (error) {
    throw new StartError(`PACKAGES_FILE ${packagesFile}: ${(error as Error).message}`, { cause: error });
  }
}

/** What dependencies become by the catalogue, from npm and from elsewhere, and at which addresses of the service. */
function dependenciesOf({ config, db, baseUrl, log }: Surroundings, intake: Intake) {
  const catalogue = readCatalogue(config);
  const addressed: Addressed = (stored) => addressedAssets(stored, catalogue, baseUrl);
  const { npm, allowPrivateNetwork, egressAddress } = config;
  return {
    catalogue,
    addressed,
    packages: createPackages({ db, catalogue, intake, npm, allowPrivateNetwork, egressAddress, log }),
  };
}

/** The parts that runs are made of: the ledger, this process's hold on it, and their logs. */
function createRunning(
  surroundings: Surroundings,
  parts: {
    credentials: Credentials;
    catalogue: ReturnType<typeof createCatalogue>;
    keptScripts: KeptScripts;
    queueRoom: QueueRoom;
    intake: Intake;
    settings: ReturnType<typeof createSettings>;
    sessionOf: SessionOf;
    scans: SecretScans;
    /** What else is to be looked at from time to time. */
    onBeat: () => Promise<void>;
  },
) {
  const { config, db, notifications, browsers, apiUrl, alone, measures, tracing, log } = surroundings;
  const { credentials, catalogue, keptScripts, queueRoom, intake, settings, sessionOf, scans, onBeat } = parts;
  const logs = createLogs(db);
  const tail = createLogTail({ logs, notifications, log });
  const ledger = createLedger(db);
  const instance = createInstance({
    db,
    roles: config.roles,
    alone,
    onBeat: async () => {
      const settled = await runs.settleOrphans();
      const lost = (await ledger.endLost(lostEnding)) + settled.lost;
      if (lost > 0) log.warn({ lost }, "ended runs that nobody performed any longer");
      measures.runsLost(lost);
      const { queuedAgain } = settled;
      if (queuedAgain > 0) log.warn({ queuedAgain }, "queued runs again that had been taken and not begun");
      measures.ticks("late", await ledger.skipLate());
      await runs.lookForAwaited();
      await onBeat();
    },
    onLapse: () => runs.abandon(),
    log,
  });
  const console = createRunConsole({ db, notifications });
  const traces = createRunTraces({ db, tracing, apiUrl });
  const execution = createExecution({
    db,
    ledger,
    runPage: async (request) => browsers!.run(request),
    secrecy: createSecrecy({ settings, scans }),
    console,
    scripts: createRunScripts({ sessionOf, credentials, catalogue, keptScripts, apiUrl }),
    timeoutMs: config.serverTimeoutMs,
    measures,
    traces,
    log,
  });
  const concurrency = browsers ? config.runnerConcurrency : 0;
  const waits = createWaits({ db, ledger });
  const rooms = { queueRoom, intake };
  const holder = instance.id;
  const runs = createRuns({ db, ledger, ...rooms, logs, execution, traces, waits, notifications, holder, concurrency });
  const runWords = createRunWords(db);
  return { logs, tail, ledger, instance, console, runs, waits, runWords, backlogs: createBacklogs({ db, queueRoom }) };
}

/** What keeps the tables small, and what is told of the whole service. */
function upkeepOf({ config, db }: Surroundings, lag: () => Promise<number>, depths: QueueRoom["depths"]) {
  return {
    retention: createRetention({ db, days: config.logRetentionDays }),
    trimming: createTrimming({ db, maxBytes: config.logMaxMb * 2 ** 20 }),
    vitals: createVitals({ db, lag, depths }),
  };
}

/** Messages to people outside, notifications to an app's users, codes by which those prove who they are, and alerts to its authors. */
function createMessaging(
  { config, db, notifications, baseUrl, now, log }: Surroundings,
  parts: {
    settings: ReturnType<typeof createSettings>;
    store: Store;
    scans: SecretScans;
    logEvents: LogEvents;
    intake: Intake;
    userChanged: (caller: Caller, appId: number) => Promise<void>;
    holder: string;
  },
) {
  const { settings, store, intake, userChanged, holder } = parts;
  const { sessionOf } = store;
  const { allowPrivateNetwork, mailFrom } = config;
  const shared = { db, allowPrivateNetwork, baseUrl, now, log };
  const communicate = createCommunicate({ ...shared, ...parts, operator: operatorMail(config) });
  const connections = communicate.checked;
  const notify = createNotify({
    ...shared,
    notices: notifications,
    settings,
    sessionOf,
    intake,
    connections,
    mailFrom,
    holder,
  });
  const { acceptance } = communicate;
  return {
    communicate,
    notify,
    verification: createVerification({ db, ...store, settings, userChanged, acceptance }),
    alerts: createAlerts({ ...shared, settings, notice: communicate.notice }),

    /** Lets go of what dead processes held. */
    async recover(): Promise<void> {
      await communicate.recover();
      await notify.push.recover();
    },
  };
}

/** Where the messages of data sources' hooks go. @param acceptance is made after the data sources, with what it needs of them */
function outletOf(gate: Gate, acceptance: () => Acceptance): Outlet {
  return {
    count: gate.countMessages,
    statusFor: (appId, kind) => acceptance().statusFor(appId, kind),
    accept: (...message) => acceptance().acceptHooked(...message),
    refuse: (...message) => acceptance().refuseHooked(...message),
  };
}

/** What starts actions by itself, and the ledger of what was started. */
function triggersOf(
  { config, db, now }: Surroundings,
  {
    runs,
    runWords,
    ...parts
  }: {
    schedule: ReturnType<typeof createSchedule>;
    runs: ReturnType<typeof createRuns>;
    runWords: RunWords;
    logEvents: LogEvents;
  },
) {
  const { defaultTimezone } = config;
  return {
    ...parts,
    week: createScheduleWeek({ db, now, defaultTimezone }),
    history: createRunHistory({ db, runs, runWords }),
    statistics: createRunStatistics({ db }),
    backtest: createBacktest(db),
    pause: createSchedulePause(db),
  };
}

export async function createOperations(surroundings: Surroundings) {
  const { config, db, notifications, room, baseUrl, now, measures, log } = surroundings;
  const credentials = createCredentials({ db, notifications });
  const gate = createGate({ db, window: createRateWindow(db), limits: config.rateLimits, room });
  const intake = createIntake({ quotaBytes: config.intakeQuotaMb * 2 ** 20, room });
  const queueRoom = createQueueRoom(db, queueBounds(config));
  const logEvents = createLogEvents({ db, queueRoom, intake });
  const ring = createKeyRing({ keys: config.settingsKeys, path: settingsKeyFile(config.dataDir) });
  const dataKeys = createDataKeys({ db, ring });
  await dataKeys.start();
  const { clientTimeoutMs, serverTimeoutMs, defaultTimezone } = config;
  const people = createPeople({ db, credentials });
  const asksSecondFactor = (appId: number) => messaging.verification.asksSecondFactor(appId);
  const userChanged = (caller: Caller, appId: number) => messaging.notify.userChanged(caller, appId);
  const outlet = outletOf(gate, () => messaging.communicate.acceptance);
  const ofStore = { logEvents, intake, person: people.session, asksSecondFactor, userChanged, outlet };
  const store = createStore({ ...surroundings, ...ofStore });
  const { sessionOf } = store;
  const { organizationOf } = people;
  const settings = createSettings({ db, dataKeys, baseUrl, clientTimeoutMs, sessionOf, logEvents, intake });
  const apps = createApps({ db, organizationOf, settings, logEvents, intake });
  const appVersions = createAppVersions({ db, settings, logEvents, intake });
  const { catalogue, addressed, packages } = dependenciesOf(surroundings, intake);
  const schedule = createSchedule({ db, now, defaultTimezone, measures });
  const triggerIndex = createTriggerIndex({ now, defaultTimezone });
  const { check: checkCode } = createIsolateCheck();
  const authoring = createAuthoring({ db, checkCode, packages, addressed, triggerIndex, serverTimeoutMs, log });
  const scans = createSecretScans();
  const { scripts: keptScripts } = packages;
  const ofRuns = { credentials, catalogue, keptScripts, queueRoom, intake, settings, sessionOf, scans };
  const running = createRunning(surroundings, { ...ofRuns, onBeat: () => messaging.recover() });
  const { ledger, instance, runs, runWords } = running;
  const ofMessages = { settings, store, scans, logEvents, intake, userChanged, holder: instance.id };
  const messaging = createMessaging(surroundings, ofMessages);
  const ofClients = { credentials, notifications, ledger, logEvents, intake, room, addressed };
  const clients = createClients({ db, ...ofClients, holder: instance.id, timeoutMs: clientTimeoutMs, log });
  const ofMedia = { ring, intake, logEvents, appUserOf: store.appUsers.userOf };
  const media = await createMedia({ config, db, ...ofMedia, baseUrl, log });
  const trail: Trail = (appId, options, reserve) => listAudit(db, appId, options, reserve);
  return {
    ...running,
    credentials,
    gate,
    patience: createPatience(),
    settings,
    people,
    apps,
    authoring,
    actionFeed: createActionFeed({ db, notifications, log }),
    appVersions,
    trail,
    triggers: triggersOf(surroundings, { schedule, runs, runWords, logEvents }),
    ...upkeepOf(surroundings, schedule.lag, queueRoom.depths),
    dataKeys,
    clients,
    store,
    media,
    ...messaging,
    packages,
  };
}
