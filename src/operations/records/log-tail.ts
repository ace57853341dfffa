/** Live execution logs: turns notices into entries, each read once, for whoever follows that app. */
import { setTimeout as delay } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import type { Notifications } from "../../engine/notifications.js";
import { type FollowedEntry, LOG_CHANNEL, type LogEntry, type Logs } from "./execution-logs.js";
import { type LiveSource, liveSource } from "./live-source.js";

/** Entries read at once, as far as their bytes allow. */
const READ_TOGETHER = 25;
/** A reading that fails is tried again, for half a minute in all: the database may be restarting under it. */
const READ_ATTEMPTS = 60;
const READ_AGAIN_MS = 500;
/** How far ids may lie behind the newest whose notices come later than its own. */
const OUT_OF_ORDER_MAX = 1_000;
/** A gap may bring a thousand of each app. */
const DELIVERED_MAX = 20 * OUT_OF_ORDER_MAX;

export interface TailFilter {
  appId: number;
  actionId?: number | null | undefined;
  type?: string | null | undefined;
}

interface Follower extends TailFilter {
  since: Date;
  push: (entry: LogEntry) => void;
}

export interface LogTail {
  /** The app's entries from now on, those that fit the filter; an entry is the same object for every follower. */
  follow(filter: TailFilter): LiveSource<LogEntry>;
}

const fits = ({ actionId, type }: TailFilter, { taskId, entry }: FollowedEntry): boolean =>
  (actionId == null || taskId === actionId) && (type == null || entry.type === type);

export function createLogTail(options: { logs: Logs; notifications: Notifications; log: Logger }): LogTail {
  const { logs, notifications, log } = options;
  const followers = new Map<number, Set<Follower>>();
  /** Ids whose notices have come and that nobody has read yet. */
  const noticed: number[] = [];
  /** Ids that were delivered last: what is read for a gap and what is noticed may be the same. */
  const delivered = new LRUCache<number, true>({ max: DELIVERED_MAX });
  let newest = 0;
  let unfollow = () => {};
  let order: Promise<void> = Promise.resolve();

  function deliver(one: FollowedEntry): void {
    if (delivered.has(one.entry.id)) return;
    delivered.set(one.entry.id, true);
    newest = Math.max(newest, one.entry.id);
    for (const follower of followers.get(one.appId) ?? []) if (fits(follower, one)) follower.push(one.entry);
  }

  /** One after the other, so that entries arrive in the order of their notices. */
  function inOrder(work: () => Promise<void>): void {
    order = order.then(work).catch((error) => log.warn({ err: error }, "a log entry could not be delivered"));
  }

  async function reading<T>(read: () => Promise<T>): Promise<T> {
    for (let left = READ_ATTEMPTS - 1; left > 0 && followers.size > 0; left -= 1) {
      try {
        return await read();
      } catch (error) {
        log.warn({ err: error }, "log entries could not be read; trying again");
        await delay(READ_AGAIN_MS, undefined, { ref: false });
      }
    }
    return read();
  }

  async function readNew(ids: readonly number[]): Promise<void> {
    for (let rest: readonly number[] = ids.filter((id) => !delivered.has(id)); rest.length > 0; ) {
      const { found, left } = await reading(() => logs.findSome(rest.slice(0, READ_TOGETHER)));
      for (const one of found) deliver(one);
      rest = [...left, ...rest.slice(READ_TOGETHER)];
    }
  }

  const readNoticed = (): Promise<void> => readNew(noticed.splice(0, READ_TOGETHER));

  // While one reading is under way the next notices gather, and one reading takes them all.
  function hear(notice: string): void {
    const [appId, id] = notice.split(":").map(Number) as [number, number];
    if (!followers.has(appId)) return;
    noticed.push(id);
    inOrder(readNoticed);
  }

  function readGap(): void {
    // Not all that is written before the newest was told of before it.
    const last = newest - OUT_OF_ORDER_MAX;
    for (const [appId, set] of followers) {
      const since = new Date(Math.min(...[...set].map((follower) => follower.since.getTime())));
      inOrder(async () => readNew(await reading(() => logs.missed(appId, last, since))));
    }
  }

  return {
    follow(filter) {
      const { appId } = filter;
      return liveSource<LogEntry>(appId, (push) => {
        const follower: Follower = { ...filter, since: new Date(), push };
        const set = followers.get(appId) ?? new Set();
        followers.set(appId, set.add(follower));
        if (followers.size === 1 && set.size === 1) unfollow = notifications.follow(LOG_CHANNEL, hear, readGap);
        return () => {
          if (set.delete(follower) && set.size === 0 && followers.delete(appId) && followers.size === 0) unfollow();
        };
      });
    },
  };
}
