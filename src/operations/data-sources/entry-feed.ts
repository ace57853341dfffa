/**
 * Sends changes of a data source's entries to subscribers. Each subscriber only receives changes that its current
 * rights allow it to read. For a change that it cannot see, it gets neither a message nor a new position. The
 * subscription ends with an error when the data source is deleted, or when the subscriber loses the right to read. When
 * its rights change otherwise, the subscriber gets a message with `reset`.
 */
import type { Logger } from "pino";
import type { DataSource as Database } from "typeorm";
import { rows } from "../../data/database.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import { splitHashedWhere } from "../../rules/entries/hashed-where.js";
import type { AdmittedRequest } from "../access/access-checks.js";
import { READER_CHANNEL } from "../notifications/reader.js";
import { createLiveSource, type LiveSource } from "../records/live-source.js";
import { DATA_SOURCE_CHANNEL, type DataSourceRows, type StoredDataSource } from "./data-source-rows.js";
import { ENTRY_CHANNEL } from "./entry-changes.js";
import { type EntryDifferences, readDifferences, type StoredChange } from "./entry-differences.js";
import { type EntryPositions, POSITION_INTERVAL_MS, type Position } from "./entry-positions.js";
import type { CallerEntryRights, EntryRightsResolver } from "./entry-rights.js";
import { createEntryUserWatch } from "./entry-user-watch.js";
import type { ReadRows } from "./read-pool.js";

/**
 * Maximum number of changes that are read for one message. Each change can contain 2 MB of earlier states of entries.
 */
const MAX_CHANGES_PER_MESSAGE = 10;
/** Delay in milliseconds before a failed read of changes is repeated. */
const RETRY_MS = 1_000;

/** A message with changes of entries that a subscriber receives. */
export interface EntryChangeMessage extends EntryDifferences {
  /**
   * True if the subscriber must read all entries again, because the message does not list all changes or because the
   * subscriber's position is too old.
   */
  reset: boolean;
  /** Position of this message in the stream of changes. A later subscription can resume from it. */
  position: string;
}

const SELECT_NEWEST_CHANGE = `
  SELECT greatest((SELECT max(id) FROM data_source_change WHERE app_id = $1 AND data_source_id = $2), forgotten) AS newest, forgotten
    FROM data_source_tally WHERE app_id = $1 AND data_source_id = $2`;

const SELECT_CHANGES_SINCE = `
  SELECT id, bulk, inserted, replaced FROM data_source_change
   WHERE app_id = $1 AND data_source_id = $2 AND id > $3 ORDER BY id LIMIT ${MAX_CHANGES_PER_MESSAGE}`;

interface EntrySubscriber {
  visit: AdmittedRequest;
  where: unknown;
  /** ID of the last change that was processed for the subscriber; null until the subscription has started. */
  position: number | null;
  /** Position from which the subscriber wants to resume; null to start with new changes. */
  since: Position | null;
  /**
   * Key of the columns and entries that the subscriber can see. The key changes when the subscriber's rights change.
   */
  visibilityKey: string;
  sendMessage: (message: EntryChangeMessage) => void;
  endSubscription: (reason: ActionError) => void;
}

/** All subscribers in this process to the entries of one data source. */
interface SourceFeed {
  appId: number;
  id: number;
  subscribers: Set<EntrySubscriber>;
  /**
   * Promise that resolves after all reads that have been queued. Each new read is chained to this promise, so that
   * messages are sent in order.
   */
  pendingReads: Promise<void>;
}

/** Subscribers with the same rights, `where` and position, which receive the same message. */
interface SubscriberGroup {
  rights: CallerEntryRights;
  position: number;
  where: unknown;
  subscribers: EntrySubscriber[];
}

const NO_DIFFERENCES: EntryDifferences = { inserted: [], updated: [], deleted: [] };
const hasNoDifferences = ({ inserted, updated, deleted }: EntryDifferences): boolean =>
  inserted.length + updated.length + deleted.length === 0;

/**
 * Returns a key that changes when other columns or entries become visible to the caller.
 * @throws DATA_SOURCE_ACCESS_DENIED
 */
const visibilityKeyOf = (rights: CallerEntryRights, source: StoredDataSource): string =>
  JSON.stringify([rights.grant(source, "select").fingerprint, source.hashedColumns]);

/**
 * Returns the error if it means that the subscriber has lost the right to read; this error ends the subscription.
 * @throws any other error
 */
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
  notifications: DatabaseNotifications;
  sources: DataSourceRows;
  rights: EntryRightsResolver;
  positions: EntryPositions;
  log: Logger;
}) {
  const { db, read, notifications, sources, positions, log } = options;
  const feedsBySource = new Map<string, SourceFeed>();
  const keyOf = ({ appId, id }: Pick<SourceFeed, "appId" | "id">): string => `${appId}:${id}`;
  const feedByFollower = new Map<EntrySubscriber, SourceFeed>();
  const users = createEntryUserWatch<EntrySubscriber>({ db, notifications, log, onChanged: checkChosenSubscribers });

  /**
   * Runs `work` after all earlier reads of this feed. If `work` fails, checks all subscribers of the feed again after
   * RETRY_MS.
   */
  function inOrder(feed: SourceFeed, work: () => Promise<void>): void {
    feed.pendingReads = feed.pendingReads.then(work).catch((error: unknown) => {
      log.warn(
        { err: error, appId: feed.appId },
        "reading changes of a data source's entries for subscribers failed; the service tries again",
      );
      setTimeout(() => feed.subscribers.size > 0 && checkSubscribers(feed), RETRY_MS).unref();
    });
  }

  function newsOf(
    feed: SourceFeed,
    { visit, position }: Pick<EntrySubscriber, "visit" | "position">,
    differences: EntryDifferences | null,
  ) {
    const text = positions.formatPosition(feed, position!, visit.isTrusted);
    return { ...(differences ?? NO_DIFFERENCES), reset: differences === null, position: text };
  }

  const startedFollowers = ({ subscribers }: SourceFeed): EntrySubscriber[] =>
    [...subscribers].filter(({ position }) => position !== null);

  function endFeed(feed: SourceFeed, follower: EntrySubscriber, reason: ActionError): void {
    if (feed.subscribers.has(follower)) follower.endSubscription(reason);
  }

  /**
   * Returns the data source of the feed. If the data source was removed, ends all subscriptions of the feed and returns
   * null.
   */
  async function sourceOf(feed: SourceFeed): Promise<StoredDataSource | null> {
    const source = await sources.find(feed.appId, { id: feed.id }).catch((error: unknown) => {
      if (error instanceof ActionError && error.status === "DATA_SOURCE_NOT_FOUND") return null;
      throw error;
    });
    if (source) return source;
    for (const follower of [...feed.subscribers]) endFeed(feed, follower, new ActionError("DATA_SOURCE_NOT_FOUND"));
    return null;
  }

  /**
   * Ends the subscription if the subscriber has lost the right to read. Sends a message with `reset` if other columns
   * or entries have become visible to the subscriber.
   */
  async function checkAccess(feed: SourceFeed, source: StoredDataSource, follower: EntrySubscriber): Promise<void> {
    const rights = await options.rights.of(follower.visit);
    if (!feed.subscribers.has(follower)) return;
    users.set(follower, feed.appId, rights.user);
    try {
      rights.readScope(source, follower.where);
      const visibilityKey = visibilityKeyOf(rights, source);
      const hasChanged = visibilityKey !== follower.visibilityKey;
      follower.visibilityKey = visibilityKey;
      if (hasChanged && follower.position !== null) follower.sendMessage(newsOf(feed, follower, null));
    } catch (error) {
      endFeed(feed, follower, accessErrorOrThrow(error));
    }
  }

  /**
   * Starts a subscription at the position `since` if possible. Otherwise starts it at the newest change, and sends the
   * subscriber a message with the position of this change.
   */
  async function startSubscriber(feed: SourceFeed, follower: EntrySubscriber): Promise<void> {
    const source = await sourceOf(feed);
    if (source) await checkAccess(feed, source, follower);
    if (!feed.subscribers.has(follower)) return;
    const [tally] = await rows<{ newest: number; forgotten: number }>(db, SELECT_NEWEST_CHANGE, [feed.appId, feed.id]);
    const { newest, forgotten } = tally ?? { newest: 0, forgotten: 0 };
    const number = follower.since?.changeId ?? null;
    const canResume = number !== null && number >= forgotten && number <= newest;
    follower.position = canResume ? number : newest;
    if (!canResume) follower.sendMessage(newsOf(feed, follower, follower.since ? null : NO_DIFFERENCES));
  }

  /** Starts all subscriptions of the feed that have not started yet, including those whose start failed before. */
  async function startWaiting(feed: SourceFeed): Promise<void> {
    for (const follower of [...feed.subscribers]) if (follower.position === null) await startSubscriber(feed, follower);
  }

  /**
   * Groups subscribers that have the same current rights, `where` and position, so that changes are computed once per
   * group.
   */
  async function groupSubscribers(followers: readonly EntrySubscriber[]): Promise<Iterable<SubscriberGroup>> {
    const groups = new Map<string, SubscriberGroup>();
    for (const follower of followers) {
      const rights = await options.rights.of(follower.visit);
      const rightsKey = rights.caller.isTrusted ? "trusted" : JSON.stringify(rights.caller.user);
      const key = JSON.stringify([rightsKey, follower.where, follower.position]);
      const group = groups.get(key) ?? { rights, position: follower.position!, where: follower.where, subscribers: [] };
      group.subscribers.push(follower);
      groups.set(key, group);
    }
    return groups.values();
  }

  /**
   * Returns the changes that the subscribers of the group can see; null if the subscribers must read all entries again.
   * @throws DATA_SOURCE_ACCESS_DENIED
   */
  async function differencesFor(source: StoredDataSource, group: SubscriberGroup, changes: readonly StoredChange[]) {
    const { rights, position, where } = group;
    const laterChanges = changes.filter(({ id }) => id > position);
    const scope = rights.readScope(source, where);
    try {
      return await readDifferences(read, source, { scope, where, onlyVisible: !rights.caller.isTrusted }, laterChanges);
    } catch (error) {
      if (!(error instanceof ActionError)) throw error;
      return null;
    }
  }

  async function notifyGroup(
    feed: SourceFeed,
    source: StoredDataSource,
    group: SubscriberGroup,
    changes: readonly StoredChange[],
  ) {
    try {
      const differences = await differencesFor(source, group, changes);
      const followers = group.subscribers.filter((follower) => feed.subscribers.has(follower));
      for (const follower of followers) follower.position = changes.at(-1)!.id;
      if (followers.length === 0 || (differences && hasNoDifferences(differences))) return;
      // All subscribers of the group get the same message object, so that the message is serialized only once.
      const groupNews = newsOf(feed, followers[0]!, differences);
      for (const follower of followers) follower.sendMessage(groupNews);
    } catch (error) {
      const refusal = accessErrorOrThrow(error);
      for (const follower of group.subscribers) endFeed(feed, follower, refusal);
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
      if (changes.length < MAX_CHANGES_PER_MESSAGE) return;
    }
  }

  function feedOf(appId: number, id: number): SourceFeed {
    const key = keyOf({ appId, id });
    const feed = feedsBySource.get(key) ?? { appId, id, subscribers: new Set(), pendingReads: Promise.resolve() };
    feedsBySource.set(key, feed);
    return feed;
  }

  const advanceInOrder = (feed: SourceFeed) => inOrder(feed, () => advanceFeed(feed));

  /**
   * Checks the rights of the subscribers for which `isAffected` returns true; without `isAffected`, of all subscribers.
   * Then sends new changes to all subscribers of the feed.
   */
  function checkSubscribers(feed: SourceFeed, isAffected: (follower: EntrySubscriber) => boolean = () => true): void {
    inOrder(feed, async () => {
      const source = await sourceOf(feed);
      if (!source) return;
      for (const follower of startedFollowers(feed).filter(isAffected)) await checkAccess(feed, source, follower);
      await startWaiting(feed);
      await advanceFeed(feed);
    });
  }

  function checkChosenSubscribers(followers: readonly EntrySubscriber[]): void {
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
  // Notifications may have been lost while the database connection was interrupted. The changes are stored in the
  // database, so they are read now.
  notifications.onGap(() => {
    for (const feed of feedsBySource.values()) checkSubscribers(feed);
  });

  /**
   * Sends a new position to all subscribers of the feed. Called at fixed intervals, even if nothing has changed. So a
   * new position does not reveal changes that a subscriber cannot see.
   */
  function renewPositions(feed: SourceFeed): void {
    inOrder(feed, async () => {
      const sameVisits = Map.groupBy(startedFollowers(feed), ({ position, visit }) => `${position} ${visit.isTrusted}`);
      for (const followers of sameVisits.values()) {
        const groupNews = newsOf(feed, followers[0]!, NO_DIFFERENCES);
        for (const follower of followers) follower.sendMessage(groupNews);
      }
    });
  }
  const renewalTimer = setInterval(() => {
    for (const feed of feedsBySource.values()) renewPositions(feed);
  }, POSITION_INTERVAL_MS).unref();

  return {
    /**
     * Subscribes to changes of the entries that match `where`. Starts at the position `since`, or with the next change
     * if `since` is missing.
     * @throws DATA_SOURCE_NOT_FOUND, DATA_SOURCE_ACCESS_DENIED, REQUEST_INVALID
     */
    async follow(
      visit: AdmittedRequest,
      source: StoredDataSource,
      { where, since }: { where: unknown; since: unknown },
    ): Promise<LiveSource<EntryChangeMessage>> {
      const position = positions.parse(source, since, visit.isTrusted);
      const rights = await options.rights.of(visit);
      const scope = rights.readScope(source, where);
      if (splitHashedWhere(where, source.hashedColumns)) {
        throw new ActionError(
          "REQUEST_INVALID",
          '"where" of a subscription must not use a hashed column; filter by another column',
        );
      }
      // Evaluates the `where` once, so that an invalid `where` is rejected now and not only at the first change.
      const requested = { scope, where, onlyVisible: true };
      await readDifferences(read, source, requested, [{ id: 0, bulk: false, inserted: [0], replaced: [] }]);
      const visibilityKey = visibilityKeyOf(rights, source);
      return createLiveSource<EntryChangeMessage>(source.appId, (push, endFollow) => {
        const feed = feedOf(source.appId, source.id);
        const follower: EntrySubscriber = {
          visit,
          where,
          position: null,
          since: position,
          visibilityKey,
          sendMessage: push,
          endSubscription: endFollow,
        };
        feed.subscribers.add(follower);
        feedByFollower.set(follower, feed);
        inOrder(feed, async () => {
          await startWaiting(feed);
          await advanceFeed(feed);
        });
        return () => {
          feed.subscribers.delete(follower);
          feedByFollower.delete(follower);
          users.remove(follower);
          if (feed.subscribers.size === 0 && feedsBySource.get(keyOf(feed)) === feed) feedsBySource.delete(keyOf(feed));
        };
      });
    },

    stop: () => clearInterval(renewalTimer),
  };
}
