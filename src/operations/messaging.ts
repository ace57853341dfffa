/**
 * Creates the modules that send messages to people: e-mails and text messages, notifications, verification codes, and
 * alerts. Does not start them.
 */
import type { SecretScannerCache } from "../engine/secret-scan.js";
import type { Caller } from "../rules/access.js";
import type { AccessChecks } from "./access/access-checks.js";
import { createAlertModules } from "./alerts/alerts.js";
import { createMessagingModules } from "./communicate/communicate.js";
import { readOperatorMailServer } from "./communicate/destinations.js";
import type { OutboxWriter } from "./communicate/outbox-writer.js";
import type { HookMessageStore } from "./data-sources/hook-messages.js";
import type { DataSourceModules } from "./data-sources/store.js";
import { AppUserVerification } from "./data-sources/verification.js";
import { createNotificationModules } from "./notifications/notify.js";
import type { ProcessDependencies } from "./process-dependencies.js";
import type { LogEventStore } from "./records/log-events.js";
import type { ReceivedDataLimiter } from "./records/received-data-limiter.js";
import { Settings } from "./settings/settings.js";

export function createMessagingAndNotificationModules(
  { config, db, notifications, baseUrl, now, log }: ProcessDependencies,
  parts: {
    settings: Settings;
    store: DataSourceModules;
    scannerCache: SecretScannerCache;
    logEvents: LogEventStore;
    receivedDataLimiter: ReceivedDataLimiter;
    userChanged: (caller: Caller, appId: number) => Promise<void>;
    processId: string;
  },
) {
  const { settings, store, receivedDataLimiter, userChanged, processId } = parts;
  const { readAppSession, appUsers } = store;
  const { allowPrivateNetwork, mailFrom } = config;
  const sharedOptions = { db, allowPrivateNetwork, baseUrl, now, log };
  const messagingModules = createMessagingModules({
    ...sharedOptions,
    ...parts,
    operatorMail: readOperatorMailServer(config),
  });
  const connections = messagingModules.checked;
  const notificationModules = createNotificationModules({
    ...sharedOptions,
    notices: notifications,
    settings,
    readAppSession,
    readSignedInUsers: (...credentials) => appUsers.findUsersOfCredentials(...credentials),
    receivedDataLimiter,
    connections,
    mailFrom,
    processId,
  });
  const { outboxWriter } = messagingModules;
  return {
    messagingModules,
    notificationModules,
    verification: new AppUserVerification({ db, ...store, settings, userChanged, outboxWriter }),
    alerts: createAlertModules({ ...sharedOptions, settings, queueAppEmail: messagingModules.queueAppEmail }),

    /**
     * Releases messages (e-mail, text, push) that this process has claimed but is not sending, for example because the response to the
     * claim was lost. With `mayDeclareDead`, also releases the messages of processes whose lease has expired.
     */
    async recover(mayDeclareDead: boolean): Promise<void> {
      await messagingModules.recover(mayDeclareDead);
      await notificationModules.push.recover(mayDeclareDead);
    },
  };
}

/**
 * Creates the interface through which hooks of data sources send messages.
 * @param outboxWriter returns the module that stores messages; a function, because the module is created after this interface
 */
export function createHookMessageStore(accessChecks: AccessChecks, outboxWriter: () => OutboxWriter): HookMessageStore {
  return {
    countRequest: accessChecks.countMessages,
    selectMessageStatus: (appId, kind) => outboxWriter().selectMessageStatus(appId, kind),
    accept: (...message) => outboxWriter().storeHookMessage(...message),
    logRefusal: (...message) => outboxWriter().storeHookRefusal(...message),
  };
}
