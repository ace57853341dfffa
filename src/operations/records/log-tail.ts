/**
 * Live execution logs, in the order of their IDs. Transactions get IDs before they commit, so a higher ID can become visible first: an
 * entry is delivered once every lower ID is delivered, or its transaction has ended. A follower resumes after the last ID that it received,
 * with a limited number of entries.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { runInBackground } from "../../background.js";
import type { Notifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import { type ExecutionLogs, type FollowedEntry, LOG_CHANNEL, type LogEntry } from "./execution-logs.js";
import { type LiveSource, liveSource } from "./live-source.js";

/** Maximum number of entries that one read returns; their bytes are limited too. */
const ENTRIES_PER_READ = 25;
/** Number of attempts of a failed read, over half a minute in total, because the database may be restarting. */
const READ_ATTEMPTS = 60;
const READ_AGAIN_MS = 500;
/** Number of IDs below the newest for which transactions may still be open when the first follower subscribes. */
const UNDER_WAY_IDS = 1_000;
/** Interval and maximum time in milliseconds for which open transactions are awaited. After it, later entries are delivered first. */
const UNDER_WAY_LOOK_MS = 20;
const UNDER_WAY_MAX_MS = 5_000;
/** Maximum number of earlier entries of the app that a resuming follower receives, the newest ones. */
const RESUMED_MAX = 1_000;
/** Minimum interval between reads that are caused only by apps without followers. */
const OTHERS_MS = 1_000;

export interface TailFilter {
  appId: number;
  actionId?: number | null | undefined;
  type?: string | null | undefined;
  /** ID after which the follower resumes. Without one it gets new entries only. */
  after?: number | null | undefined;
}

interface TailFollower extends TailFilter {
  push: (entry: LogEntry) => void;
  endTail: (reason: ActionError) => void;
  isOpen: boolean;
}

export interface LogTail {
  /** Follows entries of the app that match the filter, in the order of their IDs. All followers get the same object for an entry. */
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
  /** ID up to which every entry is delivered, or will never be written; null while there is no subscriber. */
  let settled: number | null = null;
  /** IDs above `settled` that existed before the first follower. */
  let passedIds = new Set<number>();
  let openCount = 0;
  let stopFollowing = () => {};
  let pendingWork: Promise<void> = Promise.resolve();
  /**
   * The newest catch-up of each app, by app ID. The next one of the app waits for it, so that an app whose followers reconnect often
   * delays only these followers.
   */
  const catchUps = new Map<number, Promise<void>>();
  let isPlanned = false;
  let planTimer: NodeJS.Timeout | undefined;

  /** Runs the work after all earlier work has ended. */
  function enqueueWork(work: () => Promise<void>): Promise<void> {
    pendingWork = pendingWork
      .then(work)
      .catch((error) => log.warn({ err: error }, "log entries could not be delivered"));
    return pendingWork;
  }

  /** Runs the work while the follower is open, and ends the follower if the work fails. */
  async function runForFollower(follower: TailFollower, work: () => Promise<void>): Promise<void> {
    if (!follower.isOpen) return;
    try {
      await work();
    } catch (error) {
      log.warn({ err: error, appId: follower.appId }, "a subscription to log entries could not start");
      if (follower.isOpen) follower.endTail(new ActionError("INTERNAL_ERROR"));
    }
  }

  async function readWithRetries<T>(read: () => Promise<T>): Promise<T> {
    for (let attemptsLeft = readAttempts - 1; attemptsLeft > 0 && openCount > 0; attemptsLeft -= 1) {
      try {
        return await read();
      } catch (error) {
        log.warn({ err: error }, "log entries could not be read; trying again");
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
      const { entries, left } = await readWithRetries(() => logs.findSome(remainingIds.slice(0, ENTRIES_PER_READ)));
      for (const entry of entries) pushEntry(entry);
      remainingIds = [...left, ...remainingIds.slice(ENTRIES_PER_READ)];
    }
  }

  function deliverEntry(entry: FollowedEntry): void {
    for (const follower of followers.get(entry.appId) ?? [])
      if (matchesFilter(follower, entry)) follower.push(entry.entry);
  }

  /** Returns the first missing ID above `settled`; null if none is missing up to the newest. */
  function firstMissingId(from: number, foundIds: readonly { id: number }[]): number | null {
    let expected = from + 1;
    for (const { id } of foundIds) {
      if (id !== expected) return expected;
      expected += 1;
    }
    return null;
  }

  /** Resolves when every transaction has ended that could still write an id below the existing ones. */
  async function writersEnded(): Promise<void> {
    const before = new Set(await readWithRetries(() => logs.writers()));
    const until = Date.now() + UNDER_WAY_MAX_MS;
    while (before.size > 0 && Date.now() < until) {
      const now = new Set(await readWithRetries(() => logs.writers()));
      for (const writer of before) if (!now.has(writer)) before.delete(writer);
      if (before.size > 0) await delay(UNDER_WAY_LOOK_MS, undefined, { ref: false });
    }
  }

  /** Delivers the entries after `settled` whose predecessors are all delivered. */
  async function advanceTail(): Promise<void> {
    isPlanned = false;
    while (openCount > 0 && settled !== null) {
      const from: number = settled;
      let foundIds = await readWithRetries(() => logs.idsAfter(from));
      if (foundIds.length === 0) return;
      if (firstMissingId(from, foundIds) !== null) {
        const last = foundIds.at(-1)!.id;
        await writersEnded();
        foundIds = (await readWithRetries(() => logs.idsAfter(from))).filter(({ id }) => id <= last);
      }
      const ids = foundIds.filter(({ id, appId }) => followers.has(appId) && !passedIds.has(id)).map(({ id }) => id);
      await readForEach(ids, deliverEntry);
      settled = Math.max(from, foundIds.at(-1)?.id ?? from);
      for (const id of passedIds) if (id <= settled) passedIds.delete(id);
    }
  }

  // Notifications during a read are combined: one further read handles them all.
  function planAdvance(): void {
    if (isPlanned) return;
    isPlanned = true;
    runInBackground(enqueueWork(advanceTail));
  }

  /**
   * Handles a notification. Those of other apps move `settled` too: otherwise a follower of a quiet app would wait for all IDs in between.
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

  /** @param since time before which entries are not delivered */
  async function startTail(since: Date): Promise<void> {
    const newest = await readWithRetries(() => logs.newestId());
    const from = Math.max(0, newest - UNDER_WAY_IDS);
    const foundIds = await readWithRetries(() => logs.idsAfter(from));
    passedIds = new Set(foundIds.filter(({ createdAt }) => createdAt < since).map(({ id }) => id));
    settled = from;
  }

  /** Delivers to one follower the entries after `from` up to `upTo`, until it leaves. */
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

  /** Delivers missed entries to a resuming follower, without delaying the other followers. */
  async function resumeFollower(follower: TailFollower, after: number): Promise<void> {
    const upTo = settled!;
    const { appId } = follower;
    const from = await readWithRetries(() => logs.beforeNewestOfApp(appId, RESUMED_MAX, after, upTo));
    await catchUp(follower, from, upTo);
    const joinTail = async () => {
      await catchUp(follower, upTo, settled!);
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
    if (settled === null) await startTail(since);
    if (follower.after == null) return addFollower(follower);
    // The others get their entries first, so that everything up to `settled` is in order.
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
              if (openCount === 0) settled = null;
            }),
          );
        };
      });
    },
  };
}
