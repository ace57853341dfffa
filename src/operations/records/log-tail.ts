/**
 * Sends new execution log entries to subscribers, in the order of their IDs. Transactions can commit in another order. So an entry waits
 * until no open transaction can write an entry with a lower ID.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { runInBackground } from "../../background.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import { type ExecutionLogs, LOG_CHANNEL, type LogEntry, type LogEntryEvent } from "./execution-logs.js";
import { createSubscriptionSource, type SubscriptionSource } from "./subscription-source.js";

/** Maximum number of log entries that one read returns. LIST_PAGE_MAX_BYTES limits their total size. */
const ENTRIES_PER_READ = 25;
/** Maximum attempts of a read. Together, they take at least half a minute. In this time, a database can restart. */
const READ_ATTEMPTS = 60;
const READ_RETRY_DELAY_MS = 500;
/** For the first subscriber, reading starts this many IDs below the newest ID, because lower IDs may not be committed yet. */
const UNCOMMITTED_IDS_MAX = 1_000;
const OPEN_TRANSACTION_CHECK_INTERVAL_MS = 20;
/** Maximum wait for open transactions, which may still write entries with lower IDs. After this time, newer entries are sent anyway. */
const OPEN_TRANSACTION_WAIT_MAX_MS = 5_000;
/** Maximum number of missed log entries that a subscriber gets when it reconnects. Older missed entries are skipped. */
const MISSED_ENTRIES_MAX = 1_000;
/** Delay in milliseconds of a read if only apps without subscribers have new entries. */
const UNFOLLOWED_READ_INTERVAL_MS = 1_000;

export interface LogTailFilter {
  appId: number;
  actionId?: number | null | undefined;
  type?: string | null | undefined;
  /** ID of the last entry that the subscriber received before it reconnected; without it, the subscriber gets only new entries. */
  after?: number | null | undefined;
}

interface TailSubscriber extends LogTailFilter {
  sendEntry: (entry: LogEntry) => void;
  endSubscription: (reason: ActionError) => void;
  isOpen: boolean;
}

export interface LogTail {
  /** Returns a source of new entries that match the filter. All subscribers get the same object for an entry. */
  follow(filter: LogTailFilter): SubscriptionSource<LogEntry>;
}

const matchesFilter = ({ actionId, type, after }: LogTailFilter, { taskId, entry }: LogEntryEvent): boolean =>
  (actionId == null || taskId === actionId) && (type == null || entry.type === type) && entry.id > (after ?? 0);

export function createLogTail(options: {
  logs: ExecutionLogs;
  notifications: DatabaseNotifications;
  log: Logger;
  readAttempts?: number;
}): LogTail {
  const { logs, notifications, log, readAttempts = READ_ATTEMPTS } = options;
  const subscribersByApp = new Map<number, Set<TailSubscriber>>();
  /** All entries up to this ID were sent or are not needed; null while there are no subscribers. */
  let lastDeliveredId: number | null = null;
  /** IDs above `lastDeliveredId` of entries that were created before the first subscriber was added. These entries are not sent. */
  let olderIds = new Set<number>();
  let openCount = 0;
  let stopFollowing = () => {};
  let pendingWork: Promise<void> = Promise.resolve();
  /** For each app, resolves when its latest subscriber has its missed entries. The app's next subscriber waits for this promise. */
  const catchUpsByApp = new Map<number, Promise<void>>();
  let isAdvanceScheduled = false;
  let advanceTimer: NodeJS.Timeout | undefined;

  function enqueueWork(work: () => Promise<void>): Promise<void> {
    pendingWork = pendingWork
      .then(work)
      .catch((error) => log.warn({ err: error }, "delivering execution log entries to subscribers failed"));
    return pendingWork;
  }

  /** Runs `work` for a subscriber, unless the subscriber has left. If `work` fails, ends the subscription with an error. */
  async function runForSubscriber(subscriber: TailSubscriber, work: () => Promise<void>): Promise<void> {
    if (!subscriber.isOpen) return;
    try {
      await work();
    } catch (error) {
      log.warn({ err: error, appId: subscriber.appId }, "a subscription to execution log entries could not be started");
      if (subscriber.isOpen) subscriber.endSubscription(new ActionError("INTERNAL_ERROR"));
    }
  }

  async function readWithRetries<T>(read: () => Promise<T>): Promise<T> {
    for (let attemptsLeft = readAttempts - 1; attemptsLeft > 0 && openCount > 0; attemptsLeft -= 1) {
      try {
        return await read();
      } catch (error) {
        log.warn({ err: error }, "reading execution log entries failed; the service tries again");
        await delay(READ_RETRY_DELAY_MS, undefined, { ref: false });
      }
    }
    return read();
  }

  async function readForEach(
    ids: readonly number[],
    pushEntry: (entry: LogEntryEvent) => void,
    isWanted = () => true,
  ): Promise<void> {
    for (let remainingIds = ids; remainingIds.length > 0 && isWanted(); ) {
      const batch = await readWithRetries(() => logs.findFitting(remainingIds.slice(0, ENTRIES_PER_READ)));
      for (const entry of batch.entries) pushEntry(entry);
      remainingIds = [...batch.remainingIds, ...remainingIds.slice(ENTRIES_PER_READ)];
    }
  }

  function deliverEntry(entry: LogEntryEvent): void {
    for (const subscriber of subscribersByApp.get(entry.appId) ?? [])
      if (matchesFilter(subscriber, entry)) subscriber.sendEntry(entry.entry);
  }

  /** Returns the first ID above `from` that is missing in `foundIds`; null if none is missing up to the last one. */
  function findFirstMissingId(from: number, foundIds: readonly { id: number }[]): number | null {
    let expected = from + 1;
    for (const { id } of foundIds) {
      if (id !== expected) return expected;
      expected += 1;
    }
    return null;
  }

  /** Waits up to OPEN_TRANSACTION_WAIT_MAX_MS until the transactions that are open now, and may write log entries, have ended. */
  async function waitForWriters(): Promise<void> {
    const openBefore = new Set(await readWithRetries(() => logs.listOpenWriters()));
    const deadline = Date.now() + OPEN_TRANSACTION_WAIT_MAX_MS;
    while (openBefore.size > 0 && Date.now() < deadline) {
      const stillOpen = new Set(await readWithRetries(() => logs.listOpenWriters()));
      for (const writer of openBefore) if (!stillOpen.has(writer)) openBefore.delete(writer);
      if (openBefore.size > 0) await delay(OPEN_TRANSACTION_CHECK_INTERVAL_MS, undefined, { ref: false });
    }
  }

  async function advanceTail(): Promise<void> {
    isAdvanceScheduled = false;
    while (openCount > 0 && lastDeliveredId !== null) {
      const from: number = lastDeliveredId;
      let foundIds = await readWithRetries(() => logs.listIdsAfter(from));
      if (foundIds.length === 0) return;
      if (findFirstMissingId(from, foundIds) !== null) {
        const last = foundIds.at(-1)!.id;
        await waitForWriters();
        foundIds = (await readWithRetries(() => logs.listIdsAfter(from))).filter(({ id }) => id <= last);
      }
      const ids = foundIds
        .filter(({ id, appId }) => subscribersByApp.has(appId) && !olderIds.has(id))
        .map(({ id }) => id);
      await readForEach(ids, deliverEntry);
      lastDeliveredId = Math.max(from, foundIds.at(-1)?.id ?? from);
      for (const id of olderIds) if (id <= lastDeliveredId) olderIds.delete(id);
    }
  }

  // Plans only one further read, however many notifications arrive during a read.
  function scheduleAdvance(): void {
    if (isAdvanceScheduled) return;
    isAdvanceScheduled = true;
    runInBackground(enqueueWork(advanceTail));
  }

  /**
   * Plans a read of new entries. If the app of the notice has no subscribers, plans the read for later, because it only moves
   * `lastDeliveredId` past the app's entries.
   */
  function handleNotice(notice: string): void {
    if (subscribersByApp.has(Number(notice.slice(0, notice.indexOf(":"))))) scheduleAdvance();
    else if (subscribersByApp.size > 0 && !advanceTimer) {
      advanceTimer = setTimeout(() => {
        advanceTimer = undefined;
        if (openCount > 0) scheduleAdvance();
      }, UNFOLLOWED_READ_INTERVAL_MS).unref();
    }
  }

  /** Starts sending for the first subscriber. Entries that were created before `since` are not sent. */
  async function startTail(since: Date): Promise<void> {
    const newest = await readWithRetries(() => logs.readNewestId());
    const from = Math.max(0, newest - UNCOMMITTED_IDS_MAX);
    const foundIds = await readWithRetries(() => logs.listIdsAfter(from));
    olderIds = new Set(foundIds.filter(({ createdAt }) => createdAt < since).map(({ id }) => id));
    lastDeliveredId = from;
  }

  /** Sends one subscriber the missed entries with IDs above `from` and up to `upTo`. Stops when the subscriber leaves. */
  async function catchUp(subscriber: TailSubscriber, from: number, upTo: number): Promise<void> {
    const pushEntry = (entry: LogEntryEvent) =>
      subscriber.isOpen && matchesFilter(subscriber, entry) && subscriber.sendEntry(entry.entry);
    for (let after = from; after < upTo && subscriber.isOpen; ) {
      const ids = await readWithRetries(() => logs.listIdsOfApp(subscriber.appId, after, upTo));
      await readForEach(ids, pushEntry, () => subscriber.isOpen);
      after = ids.at(-1) ?? upTo;
    }
  }

  function addSubscriber(subscriber: TailSubscriber): void {
    if (!subscriber.isOpen) return;
    const set = subscribersByApp.get(subscriber.appId) ?? new Set();
    subscribersByApp.set(subscriber.appId, set.add(subscriber));
    scheduleAdvance();
  }

  /**
   * Sends a reconnected subscriber its missed entries. In the meantime, the other subscribers get new entries. Afterwards, sends this
   * subscriber these entries too, and adds it to the other subscribers.
   */
  async function resumeSubscriber(subscriber: TailSubscriber, after: number): Promise<void> {
    const upTo = lastDeliveredId!;
    const { appId } = subscriber;
    const from = await readWithRetries(() => logs.findCursorBeforeNewest(appId, MISSED_ENTRIES_MAX, after, upTo));
    await catchUp(subscriber, from, upTo);
    const joinSubscribers = async () => {
      await catchUp(subscriber, upTo, lastDeliveredId!);
      addSubscriber(subscriber);
    };
    await enqueueWork(() => runForSubscriber(subscriber, joinSubscribers));
  }

  function scheduleResume(subscriber: TailSubscriber, after: number): void {
    const { appId } = subscriber;
    const before = catchUpsByApp.get(appId) ?? Promise.resolve();
    const done = before
      .then(() => runForSubscriber(subscriber, () => resumeSubscriber(subscriber, after)))
      .then(() => {
        if (catchUpsByApp.get(appId) === done) catchUpsByApp.delete(appId);
      });
    catchUpsByApp.set(appId, done);
  }

  async function joinSubscriber(subscriber: TailSubscriber, since: Date): Promise<void> {
    if (lastDeliveredId === null) await startTail(since);
    if (subscriber.after == null) return addSubscriber(subscriber);
    // First moves `lastDeliveredId` past all existing entries. This subscriber then gets them as missed entries, also those in `olderIds`.
    await advanceTail();
    scheduleResume(subscriber, subscriber.after);
  }

  return {
    follow(filter) {
      const { appId } = filter;
      return createSubscriptionSource<LogEntry>(appId, (push, endSubscription) => {
        const subscriber: TailSubscriber = { ...filter, sendEntry: push, endSubscription, isOpen: true };
        openCount += 1;
        if (openCount === 1) stopFollowing = notifications.follow(LOG_CHANNEL, handleNotice, scheduleAdvance);
        const since = new Date();
        runInBackground(enqueueWork(() => runForSubscriber(subscriber, () => joinSubscriber(subscriber, since))));
        return () => {
          if (!subscriber.isOpen) return;
          subscriber.isOpen = false;
          openCount -= 1;
          const set = subscribersByApp.get(appId);
          if (set?.delete(subscriber) && set.size === 0) subscribersByApp.delete(appId);
          if (openCount > 0) return;
          stopFollowing();
          clearTimeout(advanceTimer);
          advanceTimer = undefined;
          runInBackground(
            enqueueWork(async () => {
              if (openCount === 0) lastDeliveredId = null;
            }),
          );
        };
      });
    },
  };
}
