/**
 * Streams published notifications to their readers. A reader that reconnects sends the cursor of the last notification
 * that it received, and misses none.
 */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { Notifications as Notices } from "../../engine/notifications.js";
import type { Caller } from "../../rules/access.js";
import { isUserInScope } from "../../rules/scope.js";
import { type LiveSource, liveSource } from "../records/live-source.js";
import {
  lastPosition,
  NOTIFICATION_CHANNEL,
  type Notification,
  positionBefore,
  publishedAfter,
} from "./notification-rows.js";
import { type NotificationReader, READER_CHANNEL, type ReaderOf, usersOf } from "./reader.js";

const RETRY_MS = 1_000;

type NotificationListener = (notification: Notification) => void;

interface FeedFollower {
  caller: Caller;
  /** The caller as a reader, with the app user that the last check found. */
  reader: NotificationReader;
  listener: NotificationListener;
}

/** Subscribers in this process to the notifications of one app. */
interface AppFeed {
  appId: number;
  followers: Set<FeedFollower>;
  /** Subscribers, including those that are being added. */
  subscriberCount: number;
  /** Cursor up to which notifications were read; null before the first subscriber. */
  readCursor: number | null;
  /** Resolves after the last queued read, so that reads run one after the other. */
  lastRead: Promise<void>;
}

export interface NotificationFeed {
  /**
   * Streams notifications to the caller.
   * @param after cursor of the last notification that the caller received; null for new ones only
   */
  follow(appId: number, caller: Caller, after: number | null): Promise<LiveSource<Notification>>;
}

export function createNotificationFeed(options: {
  db: DataSource;
  notices: Notices;
  readerOf: ReaderOf;
  log: Logger;
}): NotificationFeed {
  const { db, notices, readerOf, log } = options;
  const feedsByApp = new Map<number, AppFeed>();

  function enqueueRead(feed: AppFeed, read: () => Promise<void>): void {
    feed.lastRead = feed.lastRead.then(read).catch((error: unknown) => {
      log.warn({ err: error, appId: feed.appId }, "notifications could not be read; trying again");
      setTimeout(() => feedsByApp.get(feed.appId) === feed && enqueueRead(feed, read), RETRY_MS).unref();
    });
  }

  /** Yields all notifications after `readCursor`, page by page. */
  async function* notificationsAfter(
    appId: number,
    readCursor: number,
    reader: string,
    until: number,
  ): AsyncGenerator<Notification> {
    for (let last = readCursor; last < until; ) {
      const newNotifications = await publishedAfter(db, appId, last, reader);
      for (const notification of newNotifications) if (notification.cursor! <= until) yield notification;
      if (newNotifications.length === 0) return;
      last = newNotifications.at(-1)!.cursor!;
    }
  }

  /**
   * Reads the users of all subscribers again before scopes are compared, because a user's entry may have changed since
   * the subscription.
   */
  async function rereadFeed({ appId, followers }: AppFeed): Promise<void> {
    const users = await usersOf(
      db,
      appId,
      [...followers].map(({ reader }) => reader.key),
    );
    for (const follower of followers)
      follower.reader = { ...follower.reader, user: users.get(follower.reader.key) ?? null };
  }

  /** Delivers new notifications. All readers of a notification get the same object. */
  async function readNewNotifications(feed: AppFeed): Promise<void> {
    if (feed.readCursor === null) return;
    let areUsersCurrent = false;
    for await (const notification of notificationsAfter(feed.appId, feed.readCursor, "", Number.POSITIVE_INFINITY)) {
      if (notification.scope !== null && !areUsersCurrent) await rereadFeed(feed);
      areUsersCurrent ||= notification.scope !== null;
      feed.readCursor = notification.cursor!;
      for (const { reader, listener } of feed.followers)
        if (isUserInScope(notification.scope, reader.user)) listener(notification);
    }
  }

  /** Applies a sign-in or sign-out on a page to its subscriptions. */
  async function changeReader({ appId, followers }: AppFeed, credentialId: number): Promise<void> {
    for (const follower of followers)
      if (follower.caller.credentialId === credentialId) follower.reader = await readerOf(follower.caller, appId);
  }

  function feedOf(appId: number): AppFeed {
    const feed = feedsByApp.get(appId) ?? {
      appId,
      followers: new Set(),
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
  notices.listen(READER_CHANNEL, (notice) => {
    const [appId, credentialId] = notice.split(":").map(Number) as [number, number];
    const feed = feedsByApp.get(appId);
    if (feed) enqueueRead(feed, () => changeReader(feed, credentialId));
  });
  notices.onGap(() => {
    for (const feed of feedsByApp.values()) {
      for (const { caller } of feed.followers) enqueueRead(feed, () => changeReader(feed, caller.credentialId));
      enqueueRead(feed, () => readNewNotifications(feed));
    }
  });

  function sourceFor(
    appId: number,
    caller: Caller,
    reader: NotificationReader,
    seenCursor: number | null,
  ): LiveSource<Notification> {
    return liveSource<Notification>(appId, (listener) => {
      const since = new Date();
      const feed = feedOf(appId);
      const follower: FeedFollower = { caller, reader, listener };
      feed.subscriberCount += 1;
      let isOpen = true;
      let from = seenCursor;
      enqueueRead(feed, async () => {
        from ??= await positionBefore(db, appId, since);
        feed.readCursor ??= await lastPosition(db, appId);
        for await (const notification of notificationsAfter(appId, from, reader.key, feed.readCursor)) {
          if (!isOpen) return;
          if (isUserInScope(notification.scope, reader.user)) listener(notification);
          from = notification.cursor!;
        }
        if (!isOpen) return;
        feed.followers.add(follower);
        // This includes notifications since the last read, or since this reader disconnected.
        await readNewNotifications(feed);
      });
      return () => {
        if (isOpen) feed.subscriberCount -= 1;
        isOpen = false;
        feed.followers.delete(follower);
        if (feed.subscriberCount === 0 && feedsByApp.get(appId) === feed) feedsByApp.delete(appId);
      };
    });
  }

  return {
    follow: async (appId, caller, seenCursor) => sourceFor(appId, caller, await readerOf(caller, appId), seenCursor),
  };
}
