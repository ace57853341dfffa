/**
 * Sends changes of a data source's entries to subscribers. Each subscriber receives only changes that its current
 * rights allow it to read. A change that it cannot see causes neither a message nor a new position. The subscription
 * ends with an error when the data source is deleted, or when the subscriber loses the right to read. When the right
 * changes, the subscriber receives a message with `reset`.
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
import { type EntryDifferences, readDifferences, type StoredChange } from "./entry-differences.js";
import { type EntryPositions, POSITION_EVERY_MS, type Position } from "./entry-positions.js";
import type { EntryRights, Rights } from "./entry-rights.js";
import { createEntryUserWatch } from "./entry-user-watch.js";
import type { ReadRows } from "./read-pool.js";

/**
 * Maximum number of changes that one message covers, because each change may contain 2 MB of earlier states of entries.
 */
const CHANGES_PER_MESSAGE = 10;
/** Delay before a failed read of changes is repeated. */
const RETRY_MS = 1_000;

/** Message to a subscriber. */
export interface EntryNews extends EntryDifferences {
  /**
   * True if the message does not list all changes, or the subscriber's position is too old. Then it must read all
   * entries again.
   */
  reset: boolean;
  /** Position from which a later subscription can resume. */
  position: string;
}

const SELECT_NEWEST_CHANGE = `
  SELECT greatest((SELECT max(id) FROM data_source_change WHERE app_id = $1 AND data_source_id = $2), forgotten) AS newest, forgotten
    FROM data_source_tally WHERE app_id = $1 AND data_source_id = $2`;

const SELECT_CHANGES_SINCE = `
  SELECT id, bulk, inserted, replaced FROM data_source_change
   WHERE app_id = $1 AND data_source_id = $2 AND id > $3 ORDER BY id LIMIT ${CHANGES_PER_MESSAGE}`;

interface FeedSubscriber {
  visit: AdmittedRequest;
  where: unknown;
  /** ID of the last change that the subscriber has received; null until the subscription has started. */
  position: number | null;
  /** Position from which the subscriber wants to resume; null to start with new changes. */
  since: Position | null;
  /** Fingerprint of the columns and entries that the subscriber can see. */
  visibilityKey: string;
  push: (groupNews: EntryNews) => void;
  endFeed: (reason: ActionError) => void;
}

/** The subscribers of one data source. */
interface SourceFeed {
  appId: number;
  id: number;
  followers: Set<FeedSubscriber>;
  /**
   * Resolves when the reads that are queued so far have finished. Each new read is chained to it, so that messages stay
   * in order.
   */
  pendingReads: Promise<void>;
}

/** Subscribers that receive the same changes. */
interface Group {
  rights: Rights;
  position: number;
  where: unknown;
  followers: FeedSubscriber[];
}

const NO_DIFFERENCES: EntryDifferences = { inserted: [], updated: [], deleted: [] };
const isEmpty = ({ inserted, updated, deleted }: EntryDifferences): boolean =>
  inserted.length + updated.length + deleted.length === 0;

/**
 * Returns a key that changes when the columns or entries that the caller can see change. @throws
 * DATA_SOURCE_ACCESS_DENIED
 */
const visibilityKeyOf = (rights: Rights, source: StoredDataSource): string =>
  JSON.stringify([rights.grant(source, "select").fingerprint, source.hashedColumns]);

/** Returns the error if the subscriber has lost the right to read, which ends the subscription. @throws other errors */
function accessErrorOrThrow(error: unknown): ActionError {
  const isRefusal =
    error instanceof ActionError && ["DATA_SOURCE_ACCESS_DENIED", "UNAUTHORIZED"].includes(error.status);
  if (isRefusal) return error;
  throw error;
}

export type EntryFeed = ReturnType<typeof createEntryFeed>;

export function createEntryFeed(options: {
  db: Database;
  read: ReadRows;
  notifications: Notifications;
  sources: DataSourceRows;
  rights: EntryRights;
  positions: EntryPositions;
  log: Logger;
}) {
  const { db, read, notifications, sources, positions, log } = options;
  const feedsBySource = new Map<string, SourceFeed>();
  const keyOf = ({ appId, id }: Pick<SourceFeed, "appId" | "id">): string => `${appId}:${id}`;
  const feedByFollower = new Map<FeedSubscriber, SourceFeed>();
  const users = createEntryUserWatch<FeedSubscriber>({ db, notifications, log, onChanged: checkChosenSubscribers });

  /**
   * Runs `work` after the feed's earlier reads. After a failure it checks all subscribers of the feed again, if there
   * are any.
   */
  function inOrder(feed: SourceFeed, work: () => Promise<void>): void {
    feed.pendingReads = feed.pendingReads.then(work).catch((error: unknown) => {
      log.warn(
        { err: error, appId: feed.appId },
        "reading changes of a data source's entries for subscribers failed; the service tries again",
      );
      setTimeout(() => feed.followers.size > 0 && checkSubscribers(feed), RETRY_MS).unref();
    });
  }

  function newsOf(
    feed: SourceFeed,
    { visit, position }: Pick<FeedSubscriber, "visit" | "position">,
    differences: EntryDifferences | null,
  ) {
    const text = positions.formatPosition(feed, position!, visit.isTrusted);
    return { ...(differences ?? NO_DIFFERENCES), reset: differences === null, position: text };
  }

  const startedFollowers = ({ followers }: SourceFeed): FeedSubscriber[] =>
    [...followers].filter(({ position }) => position !== null);

  function endFeed(feed: SourceFeed, follower: FeedSubscriber, reason: ActionError): void {
    if (feed.followers.has(follower)) follower.endFeed(reason);
  }

  /** Returns the data source. If it has been removed, ends its subscriptions and returns null. */
  async function sourceOf(feed: SourceFeed): Promise<StoredDataSource | null> {
    const source = await sources.find(feed.appId, { id: feed.id }).catch((error: unknown) => {
      if (error instanceof ActionError && error.status === "DATA_SOURCE_NOT_FOUND") return null;
      throw error;
    });
    if (source) return source;
    for (const follower of [...feed.followers]) endFeed(feed, follower, new ActionError("DATA_SOURCE_NOT_FOUND"));
    return null;
  }

  /**
   * Ends the subscription if the subscriber has lost the right to read. Sends a `reset` if the columns or entries that
   * it can see have changed.
   */
  async function checkAccess(feed: SourceFeed, source: StoredDataSource, follower: FeedSubscriber): Promise<void> {
    const rights = await options.rights.of(follower.visit);
    if (!feed.followers.has(follower)) return;
    users.set(follower, feed.appId, rights.user);
    try {
      rights.scope(source, follower.where);
      const visibilityKey = visibilityKeyOf(rights, source);
      const hasChanged = visibilityKey !== follower.visibilityKey;
      follower.visibilityKey = visibilityKey;
      if (hasChanged && follower.position !== null) follower.push(newsOf(feed, follower, null));
    } catch (error) {
      endFeed(feed, follower, accessErrorOrThrow(error));
    }
  }

  /**
   * Starts a subscription at the position that it asks for, or at the newest change. In the second case it sends a
   * message with that position.
   */
  async function startSubscriber(feed: SourceFeed, follower: FeedSubscriber): Promise<void> {
    const source = await sourceOf(feed);
    if (source) await checkAccess(feed, source, follower);
    if (!feed.followers.has(follower)) return;
    const [tally] = await rows<{ newest: number; forgotten: number }>(db, SELECT_NEWEST_CHANGE, [feed.appId, feed.id]);
    const { newest, forgotten } = tally ?? { newest: 0, forgotten: 0 };
    const number = follower.since?.number ?? null;
    const canResume = number !== null && number >= forgotten && number <= newest;
    follower.position = canResume ? number : newest;
    if (!canResume) follower.push(newsOf(feed, follower, follower.since ? null : NO_DIFFERENCES));
  }

  /** Starts the subscriptions that have not started yet, including those whose start failed. */
  async function startWaiting(feed: SourceFeed): Promise<void> {
    for (const follower of [...feed.followers]) if (follower.position === null) await startSubscriber(feed, follower);
  }

  /** Groups subscribers with the same current rights, `where` and position. */
  async function groupSubscribers(followers: readonly FeedSubscriber[]): Promise<Iterable<Group>> {
    const groups = new Map<string, Group>();
    for (const follower of followers) {
      const rights = await options.rights.of(follower.visit);
      const rightsKey = rights.caller.trusted ? "trusted" : JSON.stringify(rights.caller.user);
      const key = JSON.stringify([rightsKey, follower.where, follower.position]);
      const group = groups.get(key) ?? { rights, position: follower.position!, where: follower.where, followers: [] };
      group.followers.push(follower);
      groups.set(key, group);
    }
    return groups.values();
  }

  /**
   * Returns the changes that the group can see; null if the group must read all entries again. @throws
   * DATA_SOURCE_ACCESS_DENIED
   */
  async function differencesFor(source: StoredDataSource, group: Group, changes: readonly StoredChange[]) {
    const { rights, position, where } = group;
    const laterChanges = changes.filter(({ id }) => id > position);
    const scope = rights.scope(source, where);
    try {
      return await readDifferences(read, source, { scope, where, onlyVisible: !rights.caller.trusted }, laterChanges);
    } catch (error) {
      if (!(error instanceof ActionError)) throw error;
      return null;
    }
  }

  async function notifyGroup(
    feed: SourceFeed,
    source: StoredDataSource,
    group: Group,
    changes: readonly StoredChange[],
  ) {
    try {
      const differences = await differencesFor(source, group, changes);
      const followers = group.followers.filter((follower) => feed.followers.has(follower));
      for (const follower of followers) follower.position = changes.at(-1)!.id;
      if (followers.length === 0 || (differences && isEmpty(differences))) return;
      // All subscribers of the group get one object, so that it is serialized once.
      const groupNews = newsOf(feed, followers[0]!, differences);
      for (const follower of followers) follower.push(groupNews);
    } catch (error) {
      const refusal = accessErrorOrThrow(error);
      for (const follower of group.followers) endFeed(feed, follower, refusal);
    }
  }

  async function advanceFeed(feed: SourceFeed): Promise<void> {
    for (;;) {
      const followers = startedFollowers(feed);
      if (followers.length === 0) return;
      const from = Math.min(...followers.map(({ position }) => position!));
      const changes = await rows<StoredChange>(db, SELECT_CHANGES_SINCE, [feed.appId, feed.id, from]);
      const newest = changes.at(-1)?.id;
      const source = newest === undefined ? null : await sourceOf(feed);
      if (newest === undefined || !source) return;
      for (const group of await groupSubscribers(followers.filter(({ position }) => position! < newest)))
        await notifyGroup(feed, source, group, changes);
      if (changes.length < CHANGES_PER_MESSAGE) return;
    }
  }

  function feedOf(appId: number, id: number): SourceFeed {
    const key = keyOf({ appId, id });
    const feed = feedsBySource.get(key) ?? { appId, id, followers: new Set(), pendingReads: Promise.resolve() };
    feedsBySource.set(key, feed);
    return feed;
  }

  const advanceInOrder = (feed: SourceFeed) => inOrder(feed, () => advanceFeed(feed));

  /**
   * Checks the rights of all subscribers, or of those that `isAffected` selects. Then sends new changes to all
   * subscribers.
   */
  function checkSubscribers(feed: SourceFeed, isAffected: (follower: FeedSubscriber) => boolean = () => true): void {
    inOrder(feed, async () => {
      const source = await sourceOf(feed);
      if (!source) return;
      for (const follower of startedFollowers(feed).filter(isAffected)) await checkAccess(feed, source, follower);
      await startWaiting(feed);
      await advanceFeed(feed);
    });
  }

  function checkChosenSubscribers(followers: readonly FeedSubscriber[]): void {
    const chosenSubscribers = new Set(followers);
    const theirFeeds = new Set(followers.flatMap((follower) => feedByFollower.get(follower) ?? []));
    for (const feed of theirFeeds) checkSubscribers(feed, (follower) => chosenSubscribers.has(follower));
  }

  notifications.listen(ENTRY_CHANNEL, (notice) => {
    const feed = feedsBySource.get(notice);
    if (feed) advanceInOrder(feed);
  });
  notifications.listen(DATA_SOURCE_CHANNEL, (notice) => {
    for (const feed of feedsBySource.values()) if (feed.appId === Number(notice)) checkSubscribers(feed);
  });
  notifications.listen(READER_CHANNEL, (notice) => {
    const [appId, credentialId] = notice.split(":").map(Number);
    for (const feed of feedsBySource.values())
      if (feed.appId === appId) checkSubscribers(feed, ({ visit }) => visit.caller?.credentialId === credentialId);
  });
  // Notifications may have been lost while the connection was interrupted. The changes are stored, so they are read
  // now.
  notifications.onGap(() => {
    for (const feed of feedsBySource.values()) checkSubscribers(feed);
  });

  /**
   * Sends all subscribers a new position. This happens at fixed intervals, with or without changes, so that a new
   * position does not reveal changes that the subscriber cannot see.
   */
  function renewPositions(feed: SourceFeed): void {
    inOrder(feed, async () => {
      const sameVisits = Map.groupBy(startedFollowers(feed), ({ position, visit }) => `${position} ${visit.isTrusted}`);
      for (const followers of sameVisits.values()) {
        const groupNews = newsOf(feed, followers[0]!, NO_DIFFERENCES);
        for (const follower of followers) follower.push(groupNews);
      }
    });
  }
  const renewalTimer = setInterval(() => {
    for (const feed of feedsBySource.values()) renewPositions(feed);
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
        throw new ActionError(
          "REQUEST_INVALID",
          '"where" of a subscription must not use a hashed column; filter by another column',
        );
      }
      // Evaluates the `where` once, so that an invalid one is rejected now instead of at the first change.
      const requested = { scope, where, onlyVisible: true };
      await readDifferences(read, source, requested, [{ id: 0, bulk: false, inserted: [0], replaced: [] }]);
      const visibilityKey = visibilityKeyOf(rights, source);
      return liveSource<EntryNews>(source.appId, (push, endFollow) => {
        const feed = feedOf(source.appId, source.id);
        const follower: FeedSubscriber = {
          visit,
          where,
          position: null,
          since: position,
          visibilityKey,
          push,
          endFeed: endFollow,
        };
        feed.followers.add(follower);
        feedByFollower.set(follower, feed);
        inOrder(feed, async () => {
          await startWaiting(feed);
          await advanceFeed(feed);
        });
        return () => {
          feed.followers.delete(follower);
          feedByFollower.delete(follower);
          users.remove(follower);
          if (feed.followers.size === 0 && feedsBySource.get(keyOf(feed)) === feed) feedsBySource.delete(keyOf(feed));
        };
      });
    },

    stop: () => clearInterval(renewalTimer),
  };
}
