/** Creates the modules of notifications and connects them: database rows, readers, the feed, devices and Web Push. */
import type { Logger } from "pino";
import type { Db } from "../../data/database.js";
import type { AddressCheckedConnections } from "../../engine/checked-connections.js";
import { isPublicAddress } from "../../engine/egress-proxy.js";
import type { DatabaseNotifications as Notices } from "../../engine/notifications.js";
import type { Caller } from "../../rules/access.js";
import type { ReadAppSession } from "../../rules/app-session.js";
import { parseMailSender } from "../../rules/message-destination.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import type { Settings } from "../settings/settings.js";
import { createNotificationFeed } from "./notification-feed.js";
import { NotificationsService } from "./notifications.js";
import { PushSender } from "./push-sender.js";
import { PushSubscriptions } from "./push-subscriptions.js";
import {
  createNotificationReaderFinder,
  createScopeMatcher,
  notifyPageUserChange,
  type ReadSignedInUsers,
} from "./reader.js";
import { createVapidKeyProvider } from "./vapid-keys.js";

export type NotificationModules = ReturnType<typeof createNotificationModules>;

export function createNotificationModules(options: {
  db: Db;
  notices: Notices;
  settings: Settings;
  readAppSession: ReadAppSession;
  readSignedInUsers: ReadSignedInUsers;
  receivedDataLimiter: ReceivedDataLimiter;
  connections: AddressCheckedConnections;
  allowPrivateNetwork: boolean;
  mailFrom: string | null;
  baseUrl: string;
  processId: string;
  now: () => number;
  log: Logger;
}) {
  const { db, notices, settings, readAppSession, receivedDataLimiter, connections, allowPrivateNetwork, mailFrom } =
    options;
  const { baseUrl, processId, now, log } = options;
  const findReader = createNotificationReaderFinder(readAppSession);
  const findCredentialsInScope = createScopeMatcher(options.readSignedInUsers);
  const readVapidKeys = createVapidKeyProvider({ db, settings });
  const mayReach = (address: string) => allowPrivateNetwork || isPublicAddress(address);
  const senderAddress = parseMailSender(mailFrom ?? "")?.from;
  const vapidSubject = `mailto:${senderAddress ?? `push@${new URL(baseUrl).hostname}`}`;
  const pushSubscriptions = new PushSubscriptions({
    db,
    findReader: findReader,
    readVapidKeys: readVapidKeys,
    receivedDataLimiter,
    mayConnectTo: mayReach,
    allowHttp: allowPrivateNetwork,
  });
  return {
    service: new NotificationsService({ db, findReader: findReader, receivedDataLimiter, now }),
    feed: createNotificationFeed({ db, notices, findReader: findReader, findCredentialsInScope, log }),
    devices: pushSubscriptions,
    push: new PushSender({
      db,
      readVapidKeys: readVapidKeys,
      findCredentialsInScope,
      connections,
      subject: vapidSubject,
      processId,
      now,
      log,
    }),

    /**
     * Assigns the push devices of a page to the user who is now signed in to it, and notifies all processes that the user has changed. Call
     * this function after a sign-in or sign-out.
     */
    async userChanged(caller: Caller, appId: number): Promise<void> {
      await pushSubscriptions.assignToCurrentUser(caller, appId);
      await notifyPageUserChange(db, appId, caller.credentialId);
    },
  };
}
