/**
 * Notifications as they are published, for whom they are: a reader that comes again names the place it has seen, and misses none.
 * Knows no socket.
 */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { Notifications as Notices } from "../../engine/notifications.js";
import { inScope } from "../../rules/scope.js";
import { type LiveSource, liveSource } from "../records/live-source.js";
import {
  lastPlace,
  NOTIFICATION_CHANNEL,
  type Notification,
  placeBefore,
  publishedAfter,
} from "./notification-rows.js";
import type { Reader } from "./reader.js";

const RETRY_MS = 1_000;

type Listener = (one: Notification) => void;

/** Everybody in this process who follows one app. */
interface Room {
  appId: number;
  followers: Set<{ reader: Reader; listener: Listener }>;
  /** Followers, and those about to be. */
  members: number;
  /** Up to where it has read; null before the first of its followers. */
  place: number | null;
  /** Readings, one after the other. */
  order: Promise<void>;
}

export interface NotificationFeed {
  /** @param after the place of the last one that the reader has seen; null: from now on */
  follow(appId: number, reader: Reader, after: number | null): LiveSource<Notification>;
}

export function createNotificationFeed(options: { db: DataSource; notices: Notices; log: Logger }): NotificationFeed {
  const { db, notices, log } = options;
  const rooms = new Map<number, Room>();

  function inOrder(room: Room, read: () => Promise<void>): void {
    room.order = room.order.then(read).catch((error: unknown) => {
      log.warn({ err: error, appId: room.appId }, "notifications could not be read");
      setTimeout(() => rooms.get(room.appId) === room && inOrder(room, read), RETRY_MS).unref();
    });
  }

  /** All after `place`, page by page. */
  async function* after(appId: number, place: number, reader: string, until: number): AsyncGenerator<Notification> {
    for (let last = place; last < until; ) {
      const found = await publishedAfter(db, appId, last, reader);
      for (const one of found) if (one.cursor! <= until) yield one;
      if (found.length === 0) return;
      last = found.at(-1)!.cursor!;
    }
  }

  /** What is new, as one object for all whom it is for. */
  async function readOn(room: Room): Promise<void> {
    if (room.place === null) return;
    for await (const one of after(room.appId, room.place, "", Number.POSITIVE_INFINITY)) {
      room.place = one.cursor!;
      for (const { reader, listener } of room.followers) if (inScope(one.scope, reader.user)) listener(one);
    }
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
  notices.onGap(() => {
    for (const room of rooms.values()) inOrder(room, () => readOn(room));
  });

  return {
    follow: (appId, reader, seen) =>
      liveSource<Notification>(appId, (listener) => {
        const since = new Date();
        const room = roomOf(appId);
        const follower = { reader, listener };
        room.members += 1;
        let open = true;
        let from = seen;
        inOrder(room, async () => {
          from ??= await placeBefore(db, appId, since);
          room.place ??= await lastPlace(db, appId);
          for await (const one of after(appId, from, reader.key, room.place)) {
            if (!open) return;
            if (inScope(one.scope, reader.user)) listener(one);
            from = one.cursor!;
          }
          if (!open) return;
          room.followers.add(follower);
          // What was published since the room last looked, or since this reader went away.
          await readOn(room);
        });
        return () => {
          if (open) room.members -= 1;
          open = false;
          room.followers.delete(follower);
          if (room.members === 0 && rooms.get(appId) === room) rooms.delete(appId);
        };
      }),
  };
}
