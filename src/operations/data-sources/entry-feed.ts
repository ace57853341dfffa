/**
 * Sends changes of a data source's entries to its subscribers, each under its current rights. A subscriber learns
 * nothing of changes that it cannot see: it gets no message, and no position that would count them. A subscription ends
 * with an error when the data source or the right is gone, and gets a `reset` when its rights change.
 */
import type { Logger } from "pino";
import type { DataSource as Database } from "typeorm";
import { rows } from "../../data/database.js";
import type { Notifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import { splitHashed } from "../../rules/entries/hashed-where.js";
import type { AdmittedRequest } from "../access/gate.js";
import { READER_CHANNEL } from "../notifications/reader.js";
import { type LiveSource, liveSource } from "../records/live-source.js";
import { DATA_SOURCE_CHANNEL, type DataSourceRows, type StoredDataSource } from "./data-source-rows.js";
import { ENTRY_CHANNEL } from "./entry-changes.js";
import { type Differences, differences, type StoredChange } from "./entry-differences.js";
import { type EntryPositions, POSITION_EVERY_MS, type Position } from "./entry-positions.js";
import type { EntryRights, Rights } from "./entry-rights.js";
import { createEntryUserWatch } from "./entry-user-watch.js";
import type { Read } from "./read-pool.js";

/** Maximum changes per message: each may hold 2 MB of earlier states. */
const TOGETHER = 10;
/** Delay before a failed read is repeated. */
const RETRY_MS = 1_000;

/** With `reset` more has changed than is listed, or the position is too old: read the entries again. */
export interface EntryNews extends Differences {
  reset: boolean;
  /** Position from which a later subscription can resume. */
  position: string;
}

const NEWEST = `
  SELECT greatest((SELECT max(id) FROM data_source_change WHERE app_id = $1 AND data_source_id = $2), forgotten) AS newest, forgotten
    FROM data_source_tally WHERE app_id = $1 AND data_source_id = $2`;

const SINCE = `
  SELECT id, bulk, inserted, replaced FROM data_source_change
   WHERE app_id = $1 AND data_source_id = $2 AND id > $3 ORDER BY id LIMIT ${TOGETHER}`;

interface Follower {
  visit: AdmittedRequest;
  where: unknown;
  /** Position up to which it has received changes; null until its first message. */
  position: number | null;
  /** Position from which it resumes; null: from now. */
  since: Position | null;
  /** Fingerprint of its visible columns and entries. */
  shown: string;
  push: (news: EntryNews) => void;
  end: (reason: ActionError) => void;
}

/** The subscribers of one data source. */
interface Room {
  appId: number;
  id: number;
  followers: Set<Follower>;
  /** Serializes reads. */
  order: Promise<void>;
}

/** Subscribers that receive the same changes. */
interface Group {
  rights: Rights;
  position: number;
  where: unknown;
  followers: Follower[];
}

const NOTHING: Differences = { inserted: [], updated: [], deleted: [] };
const isEmpty = ({ inserted, updated, deleted }: Differences): boolean =>
  inserted.length + updated.length + deleted.length === 0;

/** @throws DATA_SOURCE_ACCESS_DENIED */
const shownBy = (rights: Rights, source: StoredDataSource): string =>
  JSON.stringify([rights.grant(source, "select").fingerprint, source.hashedColumns]);

/** The error of a lost right that ends a subscription; null for other errors. */
function refusalIn(error: unknown): ActionError {
  const isRefusal =
    error instanceof ActionError && ["DATA_SOURCE_ACCESS_DENIED", "UNAUTHORIZED"].includes(error.status);
  if (isRefusal) return error;
  throw error;
}

export type EntryFeed = ReturnType<typeof createEntryFeed>;

export function createEntryFeed(options: {
  db: Database;
  read: Read;
  notifications: Notifications;
  sources: DataSourceRows;
  rights: EntryRights;
  positions: EntryPositions;
  log: Logger;
}) {
  const { db, read, notifications, sources, positions, log } = options;
  const rooms = new Map<string, Room>();
  const keyOf = ({ appId, id }: Pick<Room, "appId" | "id">): string => `${appId}:${id}`;
  const roomOfFollower = new Map<Follower, Room>();
  const users = createEntryUserWatch<Follower>({ db, notifications, log, onChanged: examineThose });

  /** Reads in order. After a failure it reads everything again while there are subscribers. */
  function inOrder(room: Room, work: () => Promise<void>): void {
    room.order = room.order.then(work).catch((error: unknown) => {
      log.warn({ err: error, appId: room.appId }, "changes of entries could not be read");
      setTimeout(() => room.followers.size > 0 && checkSubscribers(room), RETRY_MS).unref();
    });
  }

  function newsOf(room: Room, { visit, position }: Pick<Follower, "visit" | "position">, found: Differences | null) {
    const text = positions.textOf(room, position!, visit.isTrusted);
    return { ...(found ?? NOTHING), reset: found === null, position: text };
  }

  const startedFollowers = ({ followers }: Room): Follower[] =>
    [...followers].filter(({ position }) => position !== null);

  function end(room: Room, follower: Follower, reason: ActionError): void {
    if (room.followers.has(follower)) follower.end(reason);
  }

  /** Returns the data source; if it is gone, ends all subscriptions and returns null. */
  async function sourceOf(room: Room): Promise<StoredDataSource | null> {
    const source = await sources.find(room.appId, { id: room.id }).catch((error: unknown) => {
      if (error instanceof ActionError && error.status === "DATA_SOURCE_NOT_FOUND") return null;
      throw error;
    });
    if (source) return source;
    for (const follower of [...room.followers]) end(room, follower, new ActionError("DATA_SOURCE_NOT_FOUND"));
    return null;
  }

  /** Ends a subscription that has lost its right, and resets one whose visible data has changed. */
  async function examine(room: Room, source: StoredDataSource, follower: Follower): Promise<void> {
    const rights = await options.rights.of(follower.visit);
    if (!room.followers.has(follower)) return;
    users.set(follower, room.appId, rights.user);
    try {
      rights.scope(source, follower.where);
      const shown = shownBy(rights, source);
      const hasChanged = shown !== follower.shown;
      follower.shown = shown;
      if (hasChanged && follower.position !== null) follower.push(newsOf(room, follower, null));
    } catch (error) {
      end(room, follower, refusalIn(error));
    }
  }

  /** Sends the first message of a subscription. */
  async function begin(room: Room, follower: Follower): Promise<void> {
    const source = await sourceOf(room);
    if (source) await examine(room, source, follower);
    if (!room.followers.has(follower)) return;
    const [tally] = await rows<{ newest: number; forgotten: number }>(db, NEWEST, [room.appId, room.id]);
    const { newest, forgotten } = tally ?? { newest: 0, forgotten: 0 };
    const number = follower.since?.number ?? null;
    const resumes = number !== null && number >= forgotten && number <= newest;
    follower.position = resumes ? number : newest;
    if (!resumes) follower.push(newsOf(room, follower, follower.since ? null : NOTHING));
  }

  /** Starts subscriptions that have not started, including those whose start failed before. */
  async function startWaiting(room: Room): Promise<void> {
    for (const follower of [...room.followers]) if (follower.position === null) await begin(room, follower);
  }

  /** Subscribers with the same current rights, the same where and the same position. */
  async function groups(followers: readonly Follower[]): Promise<Iterable<Group>> {
    const found = new Map<string, Group>();
    for (const follower of followers) {
      const rights = await options.rights.of(follower.visit);
      const who = rights.as.trusted ? "trusted" : JSON.stringify(rights.as.user);
      const key = JSON.stringify([who, follower.where, follower.position]);
      const group = found.get(key) ?? { rights, position: follower.position!, where: follower.where, followers: [] };
      group.followers.push(follower);
      found.set(key, group);
    }
    return found.values();
  }

  /** Returns the changes as the group sees them; null: the group must read again. @throws as `scope` */
  async function differencesFor(source: StoredDataSource, group: Group, changes: readonly StoredChange[]) {
    const { rights, position, where } = group;
    const later = changes.filter(({ id }) => id > position);
    const scope = rights.scope(source, where);
    try {
      return await differences(read, source, { scope, where, onlyVisible: !rights.as.trusted }, later);
    } catch (error) {
      if (!(error instanceof ActionError)) throw error;
      return null;
    }
  }

  async function tell(room: Room, source: StoredDataSource, group: Group, changes: readonly StoredChange[]) {
    try {
      const found = await differencesFor(source, group, changes);
      const followers = group.followers.filter((follower) => room.followers.has(follower));
      for (const follower of followers) follower.position = changes.at(-1)!.id;
      if (followers.length === 0 || (found && isEmpty(found))) return;
      // One object for all, so that it is serialized once.
      const news = newsOf(room, followers[0]!, found);
      for (const follower of followers) follower.push(news);
    } catch (error) {
      const refusal = refusalIn(error);
      for (const follower of group.followers) end(room, follower, refusal);
    }
  }

  async function advance(room: Room): Promise<void> {
    for (;;) {
      const followers = startedFollowers(room);
      if (followers.length === 0) return;
      const from = Math.min(...followers.map(({ position }) => position!));
      const changes = await rows<StoredChange>(db, SINCE, [room.appId, room.id, from]);
      const newest = changes.at(-1)?.id;
      const source = newest === undefined ? null : await sourceOf(room);
      if (newest === undefined || !source) return;
      for (const group of await groups(followers.filter(({ position }) => position! < newest)))
        await tell(room, source, group, changes);
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

  /** Checks the rights of the subscribers for which `whom` returns true, and sends them new changes. */
  function checkSubscribers(room: Room, whom: (follower: Follower) => boolean = () => true): void {
    inOrder(room, async () => {
      const source = await sourceOf(room);
      if (!source) return;
      for (const follower of startedFollowers(room).filter(whom)) await examine(room, source, follower);
      await startWaiting(room);
      await advance(room);
    });
  }

  function examineThose(followers: readonly Follower[]): void {
    const chosen = new Set(followers);
    const theirs = new Set(followers.flatMap((follower) => roomOfFollower.get(follower) ?? []));
    for (const room of theirs) checkSubscribers(room, (follower) => chosen.has(follower));
  }

  notifications.listen(ENTRY_CHANNEL, (notice) => {
    const room = rooms.get(notice);
    if (room) advanceRoom(room);
  });
  notifications.listen(DATA_SOURCE_CHANNEL, (notice) => {
    for (const room of rooms.values()) if (room.appId === Number(notice)) checkSubscribers(room);
  });
  notifications.listen(READER_CHANNEL, (notice) => {
    const [appId, credentialId] = notice.split(":").map(Number);
    for (const room of rooms.values())
      if (room.appId === appId) checkSubscribers(room, ({ visit }) => visit.caller?.credentialId === credentialId);
  });
  // Notifications may have been missed; the changes are still stored.
  notifications.onGap(() => {
    for (const room of rooms.values()) checkSubscribers(room);
  });

  /** Runs at intervals, whether or not anything changes, so that it reveals nothing. */
  function renewPositions(room: Room): void {
    inOrder(room, async () => {
      const alike = Map.groupBy(startedFollowers(room), ({ position, visit }) => `${position} ${visit.isTrusted}`);
      for (const followers of alike.values()) {
        const news = newsOf(room, followers[0]!, NOTHING);
        for (const follower of followers) follower.push(news);
      }
    });
  }
  const renewing = setInterval(() => {
    for (const room of rooms.values()) renewPositions(room);
  }, POSITION_EVERY_MS).unref();

  return {
    /**
     * Subscribes to changes of entries that match `where`, from the position `since` or from now.
     * @throws DATA_SOURCE_NOT_FOUND, DATA_SOURCE_ACCESS_DENIED, REQUEST_INVALID
     */
    async follow(
      visit: AdmittedRequest,
      source: StoredDataSource,
      { where, since }: { where: unknown; since: unknown },
    ): Promise<LiveSource<EntryNews>> {
      const position = positions.parse(source, since, visit.isTrusted);
      const rights = await options.rights.of(visit);
      const scope = rights.scope(source, where);
      if (splitHashed(where, source.hashedColumns)) {
        throw new ActionError("REQUEST_INVALID", "the where of a subscription must not use a hashed column");
      }
      // An invalid where is rejected now instead of at the first change.
      const requested = { scope, where, onlyVisible: true };
      await differences(read, source, requested, [{ id: 0, bulk: false, inserted: [0], replaced: [] }]);
      const shown = shownBy(rights, source);
      return liveSource<EntryNews>(source.appId, (push, end) => {
        const room = roomOf(source.appId, source.id);
        const follower: Follower = { visit, where, position: null, since: position, shown, push, end };
        room.followers.add(follower);
        roomOfFollower.set(follower, room);
        inOrder(room, async () => {
          await startWaiting(room);
          await advance(room);
        });
        return () => {
          room.followers.delete(follower);
          roomOfFollower.delete(follower);
          users.remove(follower);
          if (room.followers.size === 0 && rooms.get(keyOf(room)) === room) rooms.delete(keyOf(room));
        };
      });
    },

    stop: () => clearInterval(renewing),
  };
}
