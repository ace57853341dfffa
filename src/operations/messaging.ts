/**
 * Creates the modules that send something to people: e-mails and text messages, notifications, verification codes, and
 * alerts. Does not start them.
 */
import type { SecretScans } from "../engine/secret-scan.js";
import type { Caller } from "../rules/access.js";
import type { AccessGate } from "./access/gate.js";
import { createAlerts } from "./alerts/alerts.js";
import type { MessageAcceptance } from "./communicate/acceptance.js";
import { createCommunicate } from "./communicate/communicate.js";
import { readOperatorMail } from "./communicate/destinations.js";
import type { MessageOutlet } from "./data-sources/hook-messages.js";
import type { DataSourceStore } from "./data-sources/store.js";
import { createVerification } from "./data-sources/verification.js";
import { createNotify } from "./notifications/notify.js";
import type { IntakeLimiter } from "./records/intake.js";
import type { LogEvents } from "./records/log-events.js";
import { createSettings } from "./settings/settings.js";
import type { Surroundings } from "./surroundings.js";

export function createMessaging(
  { config, db, notifications, baseUrl, now, log }: Surroundings,
  parts: {
    settings: ReturnType<typeof createSettings>;
    store: DataSourceStore;
    scans: SecretScans;
    logEvents: LogEvents;
    intake: IntakeLimiter;
    userChanged: (caller: Caller, appId: number) => Promise<void>;
    holder: string;
  },
) {
  const { settings, store, intake, userChanged, holder } = parts;
  const { sessionOf } = store;
  const { allowPrivateNetwork, mailFrom } = config;
  const sharedParts = { db, allowPrivateNetwork, baseUrl, now, log };
  const communicate = createCommunicate({ ...sharedParts, ...parts, operator: readOperatorMail(config) });
  const connections = communicate.checked;
  const notify = createNotify({
    ...sharedParts,
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
    alerts: createAlerts({ ...sharedParts, settings, notice: communicate.notice }),

    /**
     * Returns claimed messages and push notifications to their queues if no process works on them: those whose claim
     * response this process did not receive. With `mayDeclareDead`, also those of processes whose lease has expired.
     */
    async recover(mayDeclareDead: boolean): Promise<void> {
      await communicate.recover(mayDeclareDead);
      await notify.push.recover(mayDeclareDead);
    },
  };
}

/**
 * Creates the interface through which hooks of data sources send messages.
 * @param acceptance returns the module that stores messages, which is created later than this interface
 */
export function messageOutletOf(gate: AccessGate, acceptance: () => MessageAcceptance): MessageOutlet {
  return {
    countRequest: gate.countMessages,
    statusFor: (appId, kind) => acceptance().statusFor(appId, kind),
    accept: (...message) => acceptance().acceptHooked(...message),
    logRefusal: (...message) => acceptance().refuseHooked(...message),
  };
}
