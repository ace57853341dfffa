/**
 * Sends new execution log entries to followers (subscribers), in the order of their IDs. A transaction gets the ID of
 * its entry before it commits, so a higher ID can become visible first. So an entry is delivered only when each lower
 * ID is delivered or will never be written. A follower can resume after the last ID that it received; it then gets a
 * limited number of missed entries.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { runInBackground } from "../../background.js";
import type { Notifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import { type ExecutionLogs, type FollowedEntry, LOG_CHANNEL, type LogEntry } from "./execution-logs.js";
import { type LiveSource, liveSource } from "./live-source.js";

/** Maximum number of entries that one read returns. PAGE_MAX_BYTES also limits a read. */
const ENTRIES_PER_READ = 25;
/**
 * Maximum number of attempts to read entries. They take half a minute in total, because the database may be restarting.
 */
const READ_ATTEMPTS = 60;
/** Delay before a failed read is repeated. */
const READ_AGAIN_MS = 500;
/** When the first follower subscribes, transactions of this many IDs below the newest ID may still be open. */
const OPEN_IDS_MAX = 1_000;
/** Interval at which the service checks whether open transactions have ended. */
const OPEN_CHECK_EVERY_MS = 20;
/**
 * Maximum time for which later entries wait for open transactions. After this time they are delivered without waiting.
 */
const OPEN_WAIT_MAX_MS = 5_000;
/** Maximum number of missed entries that a resuming follower receives. Older missed entries are skipped. */
const RESUMED_MAX = 1_000;
/** Minimum interval between reads that only entries of apps without followers cause. */
const OTHERS_MS = 1_000;

export interface TailFilter {
  appId: number;
  actionId?: number | null | undefined;
  type?: string | null | undefined;
  /** ID of the last entry that the follower received before. Without it, the follower gets only new entries. */
  after?: number | null | undefined;
}

interface TailFollower extends TailFilter {
  push: (entry: LogEntry) => void;
  endTail: (reason: ActionError) => void;
  isOpen: boolean;
}

export interface LogTail {
  /**
   * Returns a source of the app's new entries that match the filter, in the order of their IDs. All followers get the
   * same object for an entry.
   */
  follow(filter: TailFilter): LiveSource<LogEntry>;
}

const matchesFilter = ({ actionId, type, after }: TailFilter, { taskId, entry }: FollowedEntry): boolean =>
  (actionId == null || taskId === actionId) && (type == null || entry.type === type) && entry.id > (after ?? 0);

export function createLogTail(options: {
  logs: ExecutionLogs;
  notifications: Notifications;
  log: Logger;
  readAttempts?: number;
}): LogTail {
  const { logs, notifications, log, readAttempts = READ_ATTEMPTS } = options;
  const followers = new Map<number, Set<TailFollower>>();
  /** All entries up to this ID are delivered or will never be written; null while there are no followers. */
  let deliveredUpTo: number | null = null;
  /**
   * IDs above `deliveredUpTo` of entries that are older than the first follower's subscription. They are not delivered.
   */
  let olderIds = new Set<number>();
  let openCount = 0;
  let stopFollowing = () => {};
  let pendingWork: Promise<void> = Promise.resolve();
  /**
   * For each app ID: resolves when the app's latest follower has received its missed entries. The app's next resuming
   * follower waits for this. So an app whose followers reconnect often delays only its own followers.
   */
  const catchUps = new Map<number, Promise<void>>();
  let isPlanned = false;
  let planTimer: NodeJS.Timeout | undefined;

  /** Runs `work` after all earlier work has ended. */
  function enqueueWork(work: () => Promise<void>): Promise<void> {
    pendingWork = pendingWork
      .then(work)
      .catch((error) => log.warn({ err: error }, "delivering execution log entries to subscribers failed"));
    return pendingWork;
  }

  /** Runs `work` unless the follower has left. If `work` fails, ends the follower's subscription with an error. */
  async function runForFollower(follower: TailFollower, work: () => Promise<void>): Promise<void> {
    if (!follower.isOpen) return;
    try {
      await work();
    } catch (error) {
      log.warn({ err: error, appId: follower.appId }, "a subscription to execution log entries could not be started");
      if (follower.isOpen) follower.endTail(new ActionError("INTERNAL_ERROR"));
    }
  }

  async function readWithRetries<T>(read: () => Promise<T>): Promise<T> {
    for (let attemptsLeft = readAttempts - 1; attemptsLeft > 0 && openCount > 0; attemptsLeft -= 1) {
      try {
        return await read();
      } catch (error) {
        log.warn({ err: error }, "reading execution log entries failed; the service tries again");
        await delay(READ_AGAIN_MS, undefined, { ref: false });
      }
    }
    return read();
  }

  async function readForEach(
    ids: readonly number[],
    pushEntry: (entry: FollowedEntry) => void,
    isWanted = () => true,
  ): Promise<void> {
    for (let remainingIds = ids; remainingIds.length > 0 && isWanted(); ) {
      const { entries, left } = await readWithRetries(() => logs.findFitting(remainingIds.slice(0, ENTRIES_PER_READ)));
      for (const entry of entries) pushEntry(entry);
      remainingIds = [...left, ...remainingIds.slice(ENTRIES_PER_READ)];
    }
  }

  function deliverEntry(entry: FollowedEntry): void {
    for (const follower of followers.get(entry.appId) ?? [])
      if (matchesFilter(follower, entry)) follower.push(entry.entry);
  }

  /** Returns the first ID above `from` that is missing in `foundIds`; null if no ID is missing. */
  function firstMissingId(from: number, foundIds: readonly { id: number }[]): number | null {
    let expected = from + 1;
    for (const { id } of foundIds) {
      if (id !== expected) return expected;
      expected += 1;
    }
    return null;
  }

  /**
   * Resolves when all transactions have ended that may still write an entry with an ID below the existing IDs, or after
   * OPEN_WAIT_MAX_MS.
   */
  async function waitForWriters(): Promise<void> {
    const before = new Set(await readWithRetries(() => logs.openWriters()));
    const until = Date.now() + OPEN_WAIT_MAX_MS;
    while (before.size > 0 && Date.now() < until) {
      const now = new Set(await readWithRetries(() => logs.openWriters()));
      for (const writer of before) if (!now.has(writer)) before.delete(writer);
      if (before.size > 0) await delay(OPEN_CHECK_EVERY_MS, undefined, { ref: false });
    }
  }

  /** Delivers the entries above `deliveredUpTo`, in the order of their IDs. */
  async function advanceTail(): Promise<void> {
    isPlanned = false;
    while (openCount > 0 && deliveredUpTo !== null) {
      const from: number = deliveredUpTo;
      let foundIds = await readWithRetries(() => logs.idsAfter(from));
      if (foundIds.length === 0) return;
      if (firstMissingId(from, foundIds) !== null) {
        const last = foundIds.at(-1)!.id;
        await waitForWriters();
        foundIds = (await readWithRetries(() => logs.idsAfter(from))).filter(({ id }) => id <= last);
      }
      const ids = foundIds.filter(({ id, appId }) => followers.has(appId) && !olderIds.has(id)).map(({ id }) => id);
      await readForEach(ids, deliverEntry);
      deliveredUpTo = Math.max(from, foundIds.at(-1)?.id ?? from);
      for (const id of olderIds) if (id <= deliveredUpTo) olderIds.delete(id);
    }
  }

  // Several notifications during a read cause only one further read.
  function planAdvance(): void {
    if (isPlanned) return;
    isPlanned = true;
    runInBackground(enqueueWork(advanceTail));
  }

  /**
   * Handles a notification about a new entry. Entries of apps without followers also move `deliveredUpTo`, although they are
   * not delivered. Otherwise the next entry of a followed app would have to wait until all IDs in between are read.
   */
  function handleNotice(notice: string): void {
    if (followers.has(Number(notice.slice(0, notice.indexOf(":"))))) planAdvance();
    else if (followers.size > 0 && !planTimer) {
      planTimer = setTimeout(() => {
        planTimer = undefined;
        if (openCount > 0) planAdvance();
      }, OTHERS_MS).unref();
    }
  }

  /**
   * Prepares the delivery to the first follower. @param since entries that were created before this time are not
   * delivered
   */
  async function startTail(since: Date): Promise<void> {
    const newest = await readWithRetries(() => logs.newestId());
    const from = Math.max(0, newest - OPEN_IDS_MAX);
    const foundIds = await readWithRetries(() => logs.idsAfter(from));
    olderIds = new Set(foundIds.filter(({ createdAt }) => createdAt < since).map(({ id }) => id));
    deliveredUpTo = from;
  }

  /** Delivers to one follower the missed entries with IDs above `from` up to `upTo`. Stops if the follower leaves. */
  async function catchUp(follower: TailFollower, from: number, upTo: number): Promise<void> {
    const pushEntry = (entry: FollowedEntry) =>
      follower.isOpen && matchesFilter(follower, entry) && follower.push(entry.entry);
    for (let after = from; after < upTo && follower.isOpen; ) {
      const ids = await readWithRetries(() => logs.idsOfApp(follower.appId, after, upTo));
      await readForEach(ids, pushEntry, () => follower.isOpen);
      after = ids.at(-1) ?? upTo;
    }
  }

  function addFollower(follower: TailFollower): void {
    if (!follower.isOpen) return;
    const set = followers.get(follower.appId) ?? new Set();
    followers.set(follower.appId, set.add(follower));
    planAdvance();
  }

  /**
   * Delivers the missed entries to a resuming follower, and then adds it to the other followers. The other followers do
   * not wait for this.
   */
  async function resumeFollower(follower: TailFollower, after: number): Promise<void> {
    const upTo = deliveredUpTo!;
    const { appId } = follower;
    const from = await readWithRetries(() => logs.beforeNewestOfApp(appId, RESUMED_MAX, after, upTo));
    await catchUp(follower, from, upTo);
    const joinTail = async () => {
      await catchUp(follower, upTo, deliveredUpTo!);
      addFollower(follower);
    };
    await enqueueWork(() => runForFollower(follower, joinTail));
  }

  function planResume(follower: TailFollower, after: number): void {
    const { appId } = follower;
    const before = catchUps.get(appId) ?? Promise.resolve();
    const done = before
      .then(() => runForFollower(follower, () => resumeFollower(follower, after)))
      .then(() => {
        if (catchUps.get(appId) === done) catchUps.delete(appId);
      });
    catchUps.set(appId, done);
  }

  async function joinFollower(follower: TailFollower, since: Date): Promise<void> {
    if (deliveredUpTo === null) await startTail(since);
    if (follower.after == null) return addFollower(follower);
    // The other followers get their entries first. Then the missed entries of this follower end exactly at `deliveredUpTo`.
    await advanceTail();
    planResume(follower, follower.after);
  }

  return {
    follow(filter) {
      const { appId } = filter;
      return liveSource<LogEntry>(appId, (push, endTail) => {
        const follower: TailFollower = { ...filter, push, endTail, isOpen: true };
        openCount += 1;
        if (openCount === 1) stopFollowing = notifications.follow(LOG_CHANNEL, handleNotice, planAdvance);
        const since = new Date();
        runInBackground(enqueueWork(() => runForFollower(follower, () => joinFollower(follower, since))));
        return () => {
          if (!follower.isOpen) return;
          follower.isOpen = false;
          openCount -= 1;
          const set = followers.get(appId);
          if (set?.delete(follower) && set.size === 0) followers.delete(appId);
          if (openCount > 0) return;
          stopFollowing();
          clearTimeout(planTimer);
          planTimer = undefined;
          runInBackground(
            enqueueWork(async () => {
              if (openCount === 0) deliveredUpTo = null;
            }),
          );
        };
      });
    },
  };
}
