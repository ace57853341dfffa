/**
 * Streams published notifications to their readers. A reader that reconnects passes the cursor of the last one that it
 * received, and misses none.
 */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { Notifications as Notices } from "../../engine/notifications.js";
import type { Caller } from "../../rules/access.js";
import { inScope } from "../../rules/scope.js";
import { type LiveSource, liveSource } from "../records/live-source.js";
import {
  lastPosition,
  NOTIFICATION_CHANNEL,
  type Notification,
  positionBefore,
  publishedAfter,
} from "./notification-rows.js";
import { READER_CHANNEL, type Reader, type ReaderOf, usersOf } from "./reader.js";

const RETRY_MS = 1_000;

type Listener = (one: Notification) => void;

interface Follower {
  caller: Caller;
  /** The reader at the last check. */
  reader: Reader;
  listener: Listener;
}

/** All subscribers in this process to one app. */
interface Room {
  appId: number;
  followers: Set<Follower>;
  /** Subscribers, including those that are being added. */
  members: number;
  /** Cursor up to which it has read; null before its first subscriber. */
  place: number | null;
  /** Serializes reads. */
  order: Promise<void>;
}

export interface NotificationFeed {
  /** @param after cursor of the last notification that the caller received; null: only new ones */
  follow(appId: number, caller: Caller, after: number | null): Promise<LiveSource<Notification>>;
}

export function createNotificationFeed(options: {
  db: DataSource;
  notices: Notices;
  readerOf: ReaderOf;
  log: Logger;
}): NotificationFeed {
  const { db, notices, readerOf, log } = options;
  const rooms = new Map<number, Room>();

  function inOrder(room: Room, read: () => Promise<void>): void {
    room.order = room.order.then(read).catch((error: unknown) => {
      log.warn({ err: error, appId: room.appId }, "notifications could not be read");
      setTimeout(() => rooms.get(room.appId) === room && inOrder(room, read), RETRY_MS).unref();
    });
  }

  /** All notifications after `place`, page by page. */
  async function* after(appId: number, place: number, reader: string, until: number): AsyncGenerator<Notification> {
    for (let last = place; last < until; ) {
      const found = await publishedAfter(db, appId, last, reader);
      for (const one of found) if (one.cursor! <= until) yield one;
      if (found.length === 0) return;
      last = found.at(-1)!.cursor!;
    }
  }

  /** Scopes are matched with the current users of the subscribers: an entry may have changed since they subscribed. */
  async function lookAgain({ appId, followers }: Room): Promise<void> {
    const users = await usersOf(
      db,
      appId,
      [...followers].map(({ reader }) => reader.key),
    );
    for (const follower of followers)
      follower.reader = { ...follower.reader, user: users.get(follower.reader.key) ?? null };
  }

  /** Delivers new notifications, one object for all their readers. */
  async function readOn(room: Room): Promise<void> {
    if (room.place === null) return;
    let areKnown = false;
    for await (const one of after(room.appId, room.place, "", Number.POSITIVE_INFINITY)) {
      if (one.scope !== null && !areKnown) await lookAgain(room);
      areKnown ||= one.scope !== null;
      room.place = one.cursor!;
      for (const { reader, listener } of room.followers) if (inScope(one.scope, reader.user)) listener(one);
    }
  }

  /** Applies a page's new user, or a sign-out. */
  async function changeReader({ appId, followers }: Room, credentialId: number): Promise<void> {
    for (const follower of followers)
      if (follower.caller.credentialId === credentialId) follower.reader = await readerOf(follower.caller, appId);
  }

  function roomOf(appId: number): Room {
    const room = rooms.get(appId) ?? { appId, followers: new Set(), members: 0, place: null, order: Promise.resolve() };
    rooms.set(appId, room);
    return room;
  }

  notices.listen(NOTIFICATION_CHANNEL, (notice) => {
    const room = rooms.get(Number(notice));
    if (room) inOrder(room, () => readOn(room));
  });
  notices.listen(READER_CHANNEL, (notice) => {
    const [appId, credentialId] = notice.split(":").map(Number) as [number, number];
    const room = rooms.get(appId);
    if (room) inOrder(room, () => changeReader(room, credentialId));
  });
  notices.onGap(() => {
    for (const room of rooms.values()) {
      for (const { caller } of room.followers) inOrder(room, () => changeReader(room, caller.credentialId));
      inOrder(room, () => readOn(room));
    }
  });

  function sourceFor(appId: number, caller: Caller, reader: Reader, seen: number | null): LiveSource<Notification> {
    return liveSource<Notification>(appId, (listener) => {
      const since = new Date();
      const room = roomOf(appId);
      const follower: Follower = { caller, reader, listener };
      room.members += 1;
      let open = true;
      let from = seen;
      inOrder(room, async () => {
        from ??= await positionBefore(db, appId, since);
        room.place ??= await lastPosition(db, appId);
        for await (const one of after(appId, from, reader.key, room.place)) {
          if (!open) return;
          if (inScope(one.scope, reader.user)) listener(one);
          from = one.cursor!;
        }
        if (!open) return;
        room.followers.add(follower);
        // Includes notifications since the last read, or since this reader disconnected.
        await readOn(room);
      });
      return () => {
        if (open) room.members -= 1;
        open = false;
        room.followers.delete(follower);
        if (room.members === 0 && rooms.get(appId) === room) rooms.delete(appId);
      };
    });
  }

  return {
    follow: async (appId, caller, seen) => sourceFor(appId, caller, await readerOf(caller, appId), seen),
  };
}
