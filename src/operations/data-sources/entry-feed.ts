/**
 * What those who follow a data source are told of its entries as they are committed, each under its own rights of that moment, from a
 * position that it may come back with. Knows no socket.
 */
import type { Logger } from "pino";
import type { DataSource as Database } from "typeorm";
import { rows } from "../../data/database.js";
import type { Notifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import { described } from "../../rules/described.js";
import { splitHashed } from "../../rules/entries/hashed-where.js";
import type { Admission } from "../access/gate.js";
import { type LiveSource, liveSource } from "../records/live-source.js";
import type { DataSourceRows, StoredDataSource } from "./data-source-rows.js";
import { ENTRY_CHANNEL } from "./entry-changes.js";
import { type Differences, differences, type StoredChange } from "./entry-differences.js";
import type { EntryRights, Rights } from "./entry-rights.js";
import type { Read } from "./read-pool.js";

/** Changes that one message sums up: each may hold 2 MB of what was replaced. */
const TOGETHER = 10;
/** After this long a reading that failed is tried again. */
const RETRY_MS = 1_000;

/** With `reset` more has changed than is told, or it was too long ago: what is known is to be read anew. */
export interface EntryNews extends Differences {
  reset: boolean;
  /** What a later subscription goes on from. */
  position: string;
}

const NEWEST = `
  SELECT greatest((SELECT max(id) FROM data_source_change WHERE app_id = $1 AND data_source_id = $2), forgotten) AS newest, forgotten
    FROM data_source_tally WHERE app_id = $1 AND data_source_id = $2`;

const SINCE = `
  SELECT id, bulk, inserted, replaced FROM data_source_change
   WHERE app_id = $1 AND data_source_id = $2 AND id > $3 ORDER BY id LIMIT ${TOGETHER}`;

interface Follower {
  visit: Admission;
  where: unknown;
  /** null until its first message. */
  position: number | null;
  /** What it could not be told of, for its rights did not let it. */
  missed: boolean;
  since: number | null;
  tell: (news: EntryNews) => void;
}

interface Room {
  appId: number;
  id: number;
  followers: Set<Follower>;
  /** Readings, one after the other. */
  order: Promise<void>;
}

const nothing = (): Differences => ({ inserted: [], updated: [], deleted: [] });
const newsOf = (position: number, found: Differences | null): EntryNews => ({
  ...(found ?? nothing()),
  reset: found === null,
  position: String(position),
});

/** @throws REQUEST_INVALID */
function positionIn(since: unknown): number | null {
  if (since === undefined || since === null) return null;
  if (typeof since === "string" && /^\d{1,15}$/.test(since)) return Number(since);
  throw new ActionError(
    "REQUEST_INVALID",
    `since must be a position that this subscription gave; ${described(since)} came`,
  );
}

export type EntryFeed = ReturnType<typeof createEntryFeed>;

export function createEntryFeed(options: {
  db: Database;
  read: Read;
  notifications: Notifications;
  sources: DataSourceRows;
  rights: EntryRights;
  log: Logger;
}) {
  const { db, read, notifications, sources, log } = options;
  const rooms = new Map<string, Room>();
  const keyOf = ({ appId, id }: Pick<Room, "appId" | "id">): string => `${appId}:${id}`;

  /** Reads after what was read before; what fails is read again while somebody follows. */
  function inOrder(room: Room, work: () => Promise<void>): void {
    room.order = room.order.then(work).catch((error: unknown) => {
      log.warn({ err: error, appId: room.appId }, "changes of entries could not be read");
      setTimeout(() => room.followers.size > 0 && inOrder(room, () => advance(room)), RETRY_MS).unref();
    });
  }

  /** Where the follower begins. */
  async function begin(room: Room, follower: Follower): Promise<void> {
    const [tally] = await rows<{ newest: number; forgotten: number }>(db, NEWEST, [room.appId, room.id]);
    const { newest, forgotten } = tally ?? { newest: 0, forgotten: 0 };
    const { since } = follower;
    const isKnown = since === null || (since >= forgotten && since <= newest);
    follower.position = isKnown ? (since ?? newest) : newest;
    if (since === null || !isKnown) follower.tell(newsOf(follower.position, isKnown ? nothing() : null));
  }

  /** The rights of each follower as they are now, and who share them. */
  async function groups(source: StoredDataSource, followers: readonly Follower[]) {
    const found = new Map<string, { rights: Rights; position: number; where: unknown; followers: Follower[] }>();
    for (const follower of followers) {
      const rights = await options.rights.of(follower.visit);
      const who = rights.as.trusted ? "trusted" : JSON.stringify(rights.as.user);
      const key = JSON.stringify([who, follower.where, follower.position, follower.missed, source.id]);
      const group = found.get(key) ?? { rights, position: follower.position!, where: follower.where, followers: [] };
      group.followers.push(follower);
      found.set(key, group);
    }
    return found.values();
  }

  /** What the group is told of the changes; undefined where its rights do not let it be told of any. */
  async function newsFor(
    source: StoredDataSource,
    { rights, position, where }: { rights: Rights; position: number; where: unknown },
    changes: readonly StoredChange[],
  ): Promise<EntryNews | undefined> {
    const later = changes.filter(({ id }) => id > position);
    try {
      const scope = rights.scope(source, where);
      return newsOf(changes.at(-1)!.id, await differences(read, source, { scope, where }, later));
    } catch (error) {
      if (!(error instanceof ActionError)) throw error;
      return error.status === "DATA_SOURCE_ACCESS_DENIED" || error.status === "UNAUTHORIZED"
        ? undefined
        : newsOf(changes.at(-1)!.id, null);
    }
  }

  function tell(follower: Follower, news: EntryNews | undefined, newest: number): void {
    follower.position = newest;
    // Whoever regains a right has to read what it could not be told of.
    if (news) follower.tell(follower.missed ? newsOf(newest, null) : news);
    follower.missed = news === undefined;
  }

  async function advance(room: Room): Promise<void> {
    for (;;) {
      const started = [...room.followers].filter(({ position }) => position !== null);
      if (started.length === 0) return;
      const from = Math.min(...started.map(({ position }) => position!));
      const changes = await rows<StoredChange>(db, SINCE, [room.appId, room.id, from]);
      const newest = changes.at(-1)?.id;
      if (newest === undefined) return;
      const source = await sources.find(room.appId, room);
      const behind = started.filter(({ position }) => position! < newest);
      for (const group of await groups(source, behind)) {
        const news = await newsFor(source, group, changes);
        for (const follower of group.followers) if (room.followers.has(follower)) tell(follower, news, newest);
      }
      if (changes.length < TOGETHER) return;
    }
  }

  function roomOf(appId: number, id: number): Room {
    const key = keyOf({ appId, id });
    const room = rooms.get(key) ?? { appId, id, followers: new Set(), order: Promise.resolve() };
    rooms.set(key, room);
    return room;
  }

  const advanceRoom = (room: Room) => inOrder(room, () => advance(room));
  notifications.listen(ENTRY_CHANNEL, (notice) => {
    const room = rooms.get(notice);
    if (room) advanceRoom(room);
  });
  // Notices may have been missed; the changes are still there.
  notifications.onGap(() => {
    for (const room of rooms.values()) advanceRoom(room);
  });

  return {
    /**
     * The changes of entries that match `where`, from the position `since` on, or from now.
     * @throws DATA_SOURCE_NOT_FOUND, DATA_SOURCE_ACCESS_DENIED, REQUEST_INVALID
     */
    async follow(
      visit: Admission,
      source: StoredDataSource,
      { where, since }: { where: unknown; since: unknown },
    ): Promise<LiveSource<EntryNews>> {
      const position = positionIn(since);
      const rights = await options.rights.of(visit);
      const scope = rights.scope(source, where);
      if (splitHashed(where, source.hashedColumns)) {
        throw new ActionError("REQUEST_INVALID", "a where on a hashed column cannot be followed");
      }
      // A where that is none is refused now, and not when something changes.
      await differences(read, source, { scope, where }, [{ id: 0, bulk: false, inserted: [0], replaced: [] }]);
      return liveSource<EntryNews>(source.appId, (listener) => {
        const room = roomOf(source.appId, source.id);
        const follower: Follower = { visit, where, position: null, missed: false, since: position, tell: listener };
        room.followers.add(follower);
        inOrder(room, async () => {
          if (room.followers.has(follower)) await begin(room, follower);
          await advance(room);
        });
        return () => {
          room.followers.delete(follower);
          if (room.followers.size === 0 && rooms.get(keyOf(room)) === room) rooms.delete(keyOf(room));
        };
      });
    },
  };
}
