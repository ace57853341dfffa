/**
 * Sends changes of a data source's entries to subscribers. A subscriber only receives changes that its current rights allow it to read. The
 * subscription ends with an error when the subscriber loses the right to read, or when the data source is deleted.
 */
import type { Logger } from "pino";
import { type Db, rows } from "../../data/database.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import { separateHashedConditions } from "../../rules/entries/hashed-where.js";
import type { AdmittedRequest } from "../access/access-checks.js";
import { PAGE_USER_CHANGE_CHANNEL } from "../notifications/reader.js";
import { createSubscriptionSource, type SubscriptionSource } from "../records/subscription-source.js";
import { DATA_SOURCE_CHANNEL, type DataSourceRows, type StoredDataSource } from "./data-source-rows.js";
import { ENTRY_CHANNEL } from "./entry-changes.js";
import { type EntryDifferences, readEntryDifferences, type StoredEntryChangeSet } from "./entry-differences.js";
import { SUBSCRIPTION_POSITION_RENEWAL_INTERVAL_MS, type SubscriptionPositionCodec } from "./entry-positions.js";
import type { CallerEntryRights, EntryRightsResolver } from "./entry-rights.js";
import {
  createFeedKey,
  type DataSourceFeed,
  type EntryChangeMessage,
  type EntrySubscriber,
  endSubscription,
  listStartedSubscribers,
} from "./entry-subscribers.js";
import { SignedInUserWatch } from "./entry-user-watch.js";
import type { ReadRows } from "./read-pool.js";

/** Maximum number of changes that are read for one message. Each change can contain 2 MB of earlier states of entries. */
const MAX_CHANGES_PER_MESSAGE = 10;
const RETRY_MS = 1_000;

const SELECT_NEWEST_CHANGE = `
  SELECT greatest((SELECT max(id) FROM data_source_change WHERE app_id = $1 AND data_source_id = $2), forgotten) AS newest, forgotten
    FROM data_source_tally WHERE app_id = $1 AND data_source_id = $2`;

const SELECT_CHANGES_SINCE = `
  SELECT id, bulk, inserted, replaced FROM data_source_change
   WHERE app_id = $1 AND data_source_id = $2 AND id > $3 ORDER BY id LIMIT ${MAX_CHANGES_PER_MESSAGE}`;

interface SubscriberGroup {
  rights: CallerEntryRights;
  position: number;
  where: unknown;
  subscribers: EntrySubscriber[];
}

const NO_DIFFERENCES: EntryDifferences = { inserted: [], updated: [], deleted: [] };
const hasNoDifferences = ({ inserted, updated, deleted }: EntryDifferences): boolean =>
  inserted.length + updated.length + deleted.length === 0;

/** Returns a key that changes when the caller can read other columns or entries than before. @throws DATA_SOURCE_ACCESS_DENIED */
const visibilityKeyOf = (rights: CallerEntryRights, source: StoredDataSource): string =>
  JSON.stringify([rights.grant(source, "select").fingerprint, source.hashedColumns]);

/** Returns `error` if the subscriber has lost the right to read. @throws any other error */
function accessErrorOrThrow(error: unknown): ActionError {
  const isRefusal =
    error instanceof ActionError && ["DATA_SOURCE_ACCESS_DENIED", "UNAUTHORIZED"].includes(error.status);
  if (isRefusal) return error;
  throw error;
}

interface EntryChangeFeedOptions {
  db: Db;
  read: ReadRows;
  notifications: DatabaseNotifications;
  sources: DataSourceRows;
  rights: EntryRightsResolver;
  positions: SubscriptionPositionCodec;
  log: Logger;
}

export class EntryChangeFeed {
  private readonly feedsBySource = new Map<string, DataSourceFeed>();
  private readonly feedByFollower = new Map<EntrySubscriber, DataSourceFeed>();
  private readonly users = new SignedInUserWatch<EntrySubscriber>({
    db: this.options.db,
    notifications: this.options.notifications,
    log: this.options.log,
    onChanged: (followers) => this.checkChosenSubscribers(followers),
  });
  private readonly renewalTimer = setInterval(() => {
    for (const feed of this.feedsBySource.values()) this.renewPositions(feed);
  }, SUBSCRIPTION_POSITION_RENEWAL_INTERVAL_MS).unref();

  constructor(private readonly options: EntryChangeFeedOptions) {
    const { notifications } = options;
    notifications.listen(ENTRY_CHANNEL, (notice) => {
      const feed = this.feedsBySource.get(notice);
      if (feed) this.advanceInOrder(feed);
    });
    notifications.listen(DATA_SOURCE_CHANNEL, (notice) => {
      for (const feed of this.feedsBySource.values()) if (feed.appId === Number(notice)) this.checkSubscribers(feed);
    });
    notifications.listen(PAGE_USER_CHANGE_CHANNEL, (notice) => {
      const [appId, credentialId] = notice.split(":").map(Number);
      for (const feed of this.feedsBySource.values())
        if (feed.appId === appId)
          this.checkSubscribers(feed, ({ visit }) => visit.caller?.credentialId === credentialId);
    });
    // Notifications may be lost while the database connection is interrupted. The stored changes are read now instead.
    notifications.onGap(() => {
      for (const feed of this.feedsBySource.values()) this.checkSubscribers(feed);
    });
  }

  /** Runs `work` after all earlier reads for the same data source. After an error, checks all subscribers again after RETRY_MS. */
  private inOrder(feed: DataSourceFeed, work: () => Promise<void>): void {
    feed.pendingReads = feed.pendingReads.then(work).catch((error: unknown) => {
      this.options.log.warn(
        { err: error, appId: feed.appId },
        "reading changes of a data source's entries for subscribers failed; the service tries again",
      );
      setTimeout(() => feed.subscribers.size > 0 && this.checkSubscribers(feed), RETRY_MS).unref();
    });
  }

  private newsOf(
    feed: DataSourceFeed,
    { visit, position }: Pick<EntrySubscriber, "visit" | "position">,
    differences: EntryDifferences | null,
  ) {
    const text = this.options.positions.formatPosition(feed, position!, visit.isTrusted);
    return { ...(differences ?? NO_DIFFERENCES), reset: differences === null, position: text };
  }

  /** If the data source was removed, ends all subscriptions to it and returns null. */
  private async sourceOf(feed: DataSourceFeed): Promise<StoredDataSource | null> {
    const source = await this.options.sources.find(feed.appId, { id: feed.id }).catch((error: unknown) => {
      if (error instanceof ActionError && error.status === "DATA_SOURCE_NOT_FOUND") return null;
      throw error;
    });
    if (source) return source;
    for (const follower of [...feed.subscribers])
      endSubscription(feed, follower, new ActionError("DATA_SOURCE_NOT_FOUND"));
    return null;
  }

  /** Ends the subscription if the subscriber has lost the right to read. Sends a `reset` if other columns or entries are visible now. */
  private async checkAccess(feed: DataSourceFeed, source: StoredDataSource, follower: EntrySubscriber): Promise<void> {
    const rights = await this.options.rights.of(follower.visit);
    if (!feed.subscribers.has(follower)) return;
    this.users.set(follower, feed.appId, rights.user);
    try {
      rights.readScope(source, follower.where);
      const visibilityKey = visibilityKeyOf(rights, source);
      const hasChanged = visibilityKey !== follower.visibilityKey;
      follower.visibilityKey = visibilityKey;
      if (hasChanged && follower.position !== null) follower.sendMessage(this.newsOf(feed, follower, null));
    } catch (error) {
      endSubscription(feed, follower, accessErrorOrThrow(error));
    }
  }

  /** Starts after the position `since`. Without `since`, or if later changes are no longer stored, starts after the newest change. */
  private async startSubscriber(feed: DataSourceFeed, follower: EntrySubscriber): Promise<void> {
    const source = await this.sourceOf(feed);
    if (source) await this.checkAccess(feed, source, follower);
    if (!feed.subscribers.has(follower)) return;
    const [tally] = await rows<{ newest: number; forgotten: number }>(this.options.db, SELECT_NEWEST_CHANGE, [
      feed.appId,
      feed.id,
    ]);
    const { newest, forgotten } = tally ?? { newest: 0, forgotten: 0 };
    const number = follower.since?.changeId ?? null;
    const canResume = number !== null && number >= forgotten && number <= newest;
    follower.position = canResume ? number : newest;
    if (!canResume) follower.sendMessage(this.newsOf(feed, follower, follower.since ? null : NO_DIFFERENCES));
  }

  private async startWaiting(feed: DataSourceFeed): Promise<void> {
    for (const follower of [...feed.subscribers])
      if (follower.position === null) await this.startSubscriber(feed, follower);
  }

  private async groupSubscribers(followers: readonly EntrySubscriber[]): Promise<Iterable<SubscriberGroup>> {
    const groups = new Map<string, SubscriberGroup>();
    for (const follower of followers) {
      const rights = await this.options.rights.of(follower.visit);
      const rightsKey = rights.caller.isTrusted ? "trusted" : JSON.stringify(rights.caller.user);
      const key = JSON.stringify([rightsKey, follower.where, follower.position]);
      const group = groups.get(key) ?? { rights, position: follower.position!, where: follower.where, subscribers: [] };
      group.subscribers.push(follower);
      groups.set(key, group);
    }
    return groups.values();
  }

  /** Returns the changes that the group can see; null if the group must read all entries again. @throws DATA_SOURCE_ACCESS_DENIED */
  private async differencesFor(
    source: StoredDataSource,
    group: SubscriberGroup,
    changes: readonly StoredEntryChangeSet[],
  ) {
    const { rights, position, where } = group;
    const laterChanges = changes.filter(({ id }) => id > position);
    const scope = rights.readScope(source, where);
    try {
      return await readEntryDifferences(
        this.options.read,
        source,
        { scope, where, onlyVisible: !rights.caller.isTrusted },
        laterChanges,
      );
    } catch (error) {
      if (!(error instanceof ActionError)) throw error;
      return null;
    }
  }

  private async notifyGroup(
    feed: DataSourceFeed,
    source: StoredDataSource,
    group: SubscriberGroup,
    changes: readonly StoredEntryChangeSet[],
  ) {
    try {
      const differences = await this.differencesFor(source, group, changes);
      const followers = group.subscribers.filter((follower) => feed.subscribers.has(follower));
      for (const follower of followers) follower.position = changes.at(-1)!.id;
      if (followers.length === 0 || (differences && hasNoDifferences(differences))) return;
      // All subscribers of the group get the same message object, so that the message is serialized only once.
      const groupNews = this.newsOf(feed, followers[0]!, differences);
      for (const follower of followers) follower.sendMessage(groupNews);
    } catch (error) {
      const refusal = accessErrorOrThrow(error);
      for (const follower of group.subscribers) endSubscription(feed, follower, refusal);
    }
  }

  private async advanceFeed(feed: DataSourceFeed): Promise<void> {
    for (;;) {
      const followers = listStartedSubscribers(feed);
      if (followers.length === 0) return;
      const from = Math.min(...followers.map(({ position }) => position!));
      const changes = await rows<StoredEntryChangeSet>(this.options.db, SELECT_CHANGES_SINCE, [
        feed.appId,
        feed.id,
        from,
      ]);
      const newest = changes.at(-1)?.id;
      const source = newest === undefined ? null : await this.sourceOf(feed);
      if (newest === undefined || !source) return;
      for (const group of await this.groupSubscribers(followers.filter(({ position }) => position! < newest)))
        await this.notifyGroup(feed, source, group, changes);
      if (changes.length < MAX_CHANGES_PER_MESSAGE) return;
    }
  }

  private feedOf(appId: number, id: number): DataSourceFeed {
    const key = createFeedKey({ appId, id });
    const feed = this.feedsBySource.get(key) ?? { appId, id, subscribers: new Set(), pendingReads: Promise.resolve() };
    this.feedsBySource.set(key, feed);
    return feed;
  }

  private advanceInOrder(feed: DataSourceFeed) {
    this.inOrder(feed, () => this.advanceFeed(feed));
  }

  /** Checks the rights of affected subscribers (default: all), and then sends new changes to all subscribers of the feed. */
  private checkSubscribers(
    feed: DataSourceFeed,
    isAffected: (follower: EntrySubscriber) => boolean = () => true,
  ): void {
    this.inOrder(feed, async () => {
      const source = await this.sourceOf(feed);
      if (!source) return;
      for (const follower of listStartedSubscribers(feed).filter(isAffected))
        await this.checkAccess(feed, source, follower);
      await this.startWaiting(feed);
      await this.advanceFeed(feed);
    });
  }

  private checkChosenSubscribers(followers: readonly EntrySubscriber[]): void {
    const chosenSubscribers = new Set(followers);
    const theirFeeds = new Set(followers.flatMap((follower) => this.feedByFollower.get(follower) ?? []));
    for (const feed of theirFeeds) this.checkSubscribers(feed, (follower) => chosenSubscribers.has(follower));
  }

  /** Runs at fixed intervals, so that the time of a new position does not reveal changes that a subscriber cannot see. */
  private renewPositions(feed: DataSourceFeed): void {
    this.inOrder(feed, async () => {
      const sameVisits = Map.groupBy(
        listStartedSubscribers(feed),
        ({ position, visit }) => `${position} ${visit.isTrusted}`,
      );
      for (const followers of sameVisits.values()) {
        const groupNews = this.newsOf(feed, followers[0]!, NO_DIFFERENCES);
        for (const follower of followers) follower.sendMessage(groupNews);
      }
    });
  }

  /**
   * Subscribes to changes of the entries that match `where`. Starts at the position `since`, or with the next change if `since` is missing.
   * @throws DATA_SOURCE_NOT_FOUND, DATA_SOURCE_ACCESS_DENIED, REQUEST_INVALID
   */
  async follow(
    visit: AdmittedRequest,
    source: StoredDataSource,
    { where, since }: { where: unknown; since: unknown },
  ): Promise<SubscriptionSource<EntryChangeMessage>> {
    const { read, positions } = this.options;
    const position = positions.parse(source, since, visit.isTrusted);
    const rights = await this.options.rights.of(visit);
    const scope = rights.readScope(source, where);
    if (separateHashedConditions(where, source.hashedColumns)) {
      throw new ActionError(
        "REQUEST_INVALID",
        '"where" of a subscription must not use a hashed column; filter by another column',
      );
    }
    // Evaluates the `where` once, so that an invalid `where` is rejected now and not only at the first change.
    const requested = { scope, where, onlyVisible: true };
    await readEntryDifferences(read, source, requested, [{ id: 0, bulk: false, inserted: [0], replaced: [] }]);
    const visibilityKey = visibilityKeyOf(rights, source);
    return createSubscriptionSource<EntryChangeMessage>(source.appId, (push, endFollow) => {
      const feed = this.feedOf(source.appId, source.id);
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
      this.feedByFollower.set(follower, feed);
      this.inOrder(feed, async () => {
        await this.startWaiting(feed);
        await this.advanceFeed(feed);
      });
      return () => {
        feed.subscribers.delete(follower);
        this.feedByFollower.delete(follower);
        this.users.remove(follower);
        if (feed.subscribers.size === 0 && this.feedsBySource.get(createFeedKey(feed)) === feed)
          this.feedsBySource.delete(createFeedKey(feed));
      };
    });
  }

  stop() {
    clearInterval(this.renewalTimer);
  }
}
