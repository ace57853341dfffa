/**
 * Streams published notifications to their readers. A reader that reconnects sends the cursor of the last notification that it received,
 * and then receives all later ones.
 */
import type { Logger } from "pino";
import type { Db } from "../../data/database.js";
import type { DatabaseNotifications as Notices } from "../../engine/notifications.js";
import type { Caller } from "../../rules/access.js";
import { isUserInScope } from "../../rules/notification-scope.js";
import { createSubscriptionSource, type SubscriptionSource } from "../records/subscription-source.js";
import {
  listNotificationsPublishedAfter,
  NOTIFICATION_CHANNEL,
  type Notification,
  readLastNotificationCursor,
  readNotificationCursorBefore,
} from "./notification-rows.js";
import type { FindCredentialsInScope, FindNotificationReader } from "./reader.js";

const READ_RETRY_MS = 1_000;

type NotificationListener = (notification: Notification) => void;

interface NotificationSubscriber {
  caller: Caller;
  listener: NotificationListener;
  isOpen: boolean;
  /**
   * Cursor after which the subscriber needs notifications. If the subscriber has sent no cursor, null until the service has read it from
   * the database.
   */
  seenCursor: number | null;
}

interface AppFeed {
  appId: number;
  subscribers: Set<NotificationSubscriber>;
  /** Number of subscriptions, including those that are still being added. */
  subscriberCount: number;
  readCursor: number | null;
  /** Resolves when the last requested read from the database has ended. Reads run one after the other. */
  lastRead: Promise<void>;
}

export interface NotificationFeed {
  /**
   * Streams the notifications that the caller can read. `after` is the cursor of the last notification that the caller received. If it is
   * null, streams the notifications of the last `lastSeconds` seconds (by default none) and new ones.
   */
  follow(appId: number, caller: Caller, after: number | null, lastSeconds?: number): SubscriptionSource<Notification>;
}

export function createNotificationFeed(options: {
  db: Db;
  notices: Notices;
  findReader: FindNotificationReader;
  findCredentialsInScope: FindCredentialsInScope;
  log: Logger;
}): NotificationFeed {
  const { db, notices, findReader, findCredentialsInScope, log } = options;
  const feedsByApp = new Map<number, AppFeed>();

  function enqueueRead(feed: AppFeed, read: () => Promise<void>): void {
    feed.lastRead = feed.lastRead.then(read).catch((error: unknown) => {
      log.warn({ err: error, appId: feed.appId }, "notifications could not be read; trying again");
      setTimeout(() => feedsByApp.get(feed.appId) === feed && enqueueRead(feed, read), READ_RETRY_MS).unref();
    });
  }

  async function* readNotificationsAfter(appId: number, readCursor: number): AsyncGenerator<Notification> {
    for (let last = readCursor; ; ) {
      const page = await listNotificationsPublishedAfter(db, appId, last);
      yield* page;
      if (page.length === 0) return;
      last = page.at(-1)!.cursor!;
    }
  }

  /** Passes the missed notifications up to the cursor `until` to one subscriber. Before each batch, reads who is signed in now. */
  async function sendBacklog(appId: number, subscriber: NotificationSubscriber, until: number): Promise<void> {
    while (subscriber.seenCursor! < until) {
      const { key, user } = await findReader(subscriber.caller, appId);
      const batch = await listNotificationsPublishedAfter(db, appId, subscriber.seenCursor!, key);
      if (batch.length === 0) return;
      for (const notification of batch) {
        if (!subscriber.isOpen || notification.cursor! > until) return;
        if (isUserInScope(notification.scope, user)) subscriber.listener(notification);
        subscriber.seenCursor = notification.cursor!;
      }
    }
  }

  /** Reads new notifications, and passes each one to the subscribers whose current user may read it. */
  async function readNewNotifications(feed: AppFeed): Promise<void> {
    if (feed.readCursor === null) return;
    const { appId, subscribers } = feed;
    for await (const notification of readNotificationsAfter(appId, feed.readCursor)) {
      const credentialIds = [...new Set(Array.from(subscribers, ({ caller }) => caller.credentialId))];
      const credentialsInScope = await findCredentialsInScope(db, appId, credentialIds, notification.scope);
      feed.readCursor = notification.cursor!;
      for (const { caller, listener } of subscribers)
        if (credentialsInScope.has(caller.credentialId)) listener(notification);
    }
  }

  function getOrCreateFeed(appId: number): AppFeed {
    const feed = feedsByApp.get(appId) ?? {
      appId,
      subscribers: new Set(),
      subscriberCount: 0,
      readCursor: null,
      lastRead: Promise.resolve(),
    };
    feedsByApp.set(appId, feed);
    return feed;
  }

  notices.listen(NOTIFICATION_CHANNEL, (notice) => {
    const feed = feedsByApp.get(Number(notice));
    if (feed) enqueueRead(feed, () => readNewNotifications(feed));
  });
  notices.onGap(() => {
    for (const feed of feedsByApp.values()) enqueueRead(feed, () => readNewNotifications(feed));
  });

  return {
    follow: (appId, caller, after, lastSeconds = 0) =>
      createSubscriptionSource<Notification>(appId, (listener) => {
        const since = new Date(Date.now() - lastSeconds * 1_000);
        const feed = getOrCreateFeed(appId);
        const subscriber: NotificationSubscriber = { caller, listener, isOpen: true, seenCursor: after };
        feed.subscriberCount += 1;
        enqueueRead(feed, async () => {
          subscriber.seenCursor ??= await readNotificationCursorBefore(db, appId, since);
          feed.readCursor ??= await readLastNotificationCursor(db, appId);
          await sendBacklog(appId, subscriber, feed.readCursor);
          if (!subscriber.isOpen) return;
          feed.subscribers.add(subscriber);
          // Passes the notifications above `readCursor` to each subscriber who may read them, also to the new subscriber.
          await readNewNotifications(feed);
        });
        return () => {
          if (subscriber.isOpen) feed.subscriberCount -= 1;
          subscriber.isOpen = false;
          feed.subscribers.delete(subscriber);
          if (feed.subscriberCount === 0 && feedsByApp.get(appId) === feed) feedsByApp.delete(appId);
        };
      }),
  };
}
