/**
 * Sends changes of a data source's entries to subscribers. A subscriber only receives changes that its current rights allow it to read. The
 * subscription ends with an error when the subscriber loses the right to read, or when the data source is deleted.
 */
import { hash } from "node:crypto";
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
const VISIBILITY_KEY_CHARACTERS = 12;

const SELECT_NEWEST_CHANGE = `
  SELECT greatest((SELECT max(id) FROM data_source_change WHERE app_id = $1 AND data_source_id = $2), forgotten) AS newest,
         forgotten AS "newestDeleted"
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

/** Returns a short key that changes when the caller can read other columns or entries than before. @throws DATA_SOURCE_ACCESS_DENIED */
function createVisibilityKey(rights: CallerEntryRights, source: StoredDataSource): string {
  const readableJson = JSON.stringify([rights.requirePermissions(source, "select").fingerprint, source.hashedColumns]);
  return hash("sha256", readableJson, "base64url").slice(0, VISIBILITY_KEY_CHARACTERS);
}

/** Returns `error` if it says that the subscriber has lost the right to read. @throws any other error */
function requireAccessError(error: unknown): ActionError {
  const isAccessError =
    error instanceof ActionError && ["DATA_SOURCE_ACCESS_DENIED", "UNAUTHORIZED"].includes(error.status);
  if (isAccessError) return error;
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
  private readonly feedBySubscriber = new Map<EntrySubscriber, DataSourceFeed>();
  private readonly users = new SignedInUserWatch<EntrySubscriber>({
    db: this.options.db,
    notifications: this.options.notifications,
    log: this.options.log,
    onChanged: (subscribers) => this.checkChosenSubscribers(subscribers),
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
          this.checkSubscribers(feed, ({ request }) => request.caller?.credentialId === credentialId);
    });
    // Notifications may be lost while the database connection is interrupted. The stored changes are read now instead.
    notifications.onGap(() => {
      for (const feed of this.feedsBySource.values()) this.checkSubscribers(feed);
    });
  }

  /** Runs `work` after all earlier reads for the same data source. After an error, checks all subscribers again after RETRY_MS. */
  private runInOrder(feed: DataSourceFeed, work: () => Promise<void>): void {
    feed.pendingReads = feed.pendingReads.then(work).catch((error: unknown) => {
      this.options.log.warn(
        { err: error, appId: feed.appId },
        "reading changes of a data source's entries for subscribers failed; the service tries again",
      );
      setTimeout(() => feed.subscribers.size > 0 && this.checkSubscribers(feed), RETRY_MS).unref();
    });
  }

  private createMessage(
    feed: DataSourceFeed,
    { request, position, visibilityKey }: Pick<EntrySubscriber, "request" | "position" | "visibilityKey">,
    differences: EntryDifferences | null,
  ) {
    const text = this.options.positions.formatPosition(feed, { changeId: position!, visibilityKey }, request.isTrusted);
    return { ...(differences ?? NO_DIFFERENCES), reset: differences === null, position: text };
  }

  /** Returns the data source of the feed. If it was removed, ends all subscriptions to it and returns null. */
  private async findSource(feed: DataSourceFeed): Promise<StoredDataSource | null> {
    const source = await this.options.sources.find(feed.appId, { id: feed.id }).catch((error: unknown) => {
      if (error instanceof ActionError && error.status === "DATA_SOURCE_NOT_FOUND") return null;
      throw error;
    });
    if (source) return source;
    for (const subscriber of [...feed.subscribers])
      endSubscription(feed, subscriber, new ActionError("DATA_SOURCE_NOT_FOUND"));
    return null;
  }

  /** Ends the subscription if the subscriber has lost the right to read. Sends a `reset` if other columns or entries are visible now. */
  private async checkAccess(
    feed: DataSourceFeed,
    source: StoredDataSource,
    subscriber: EntrySubscriber,
  ): Promise<void> {
    const rights = await this.options.rights.resolve(subscriber.request);
    if (!feed.subscribers.has(subscriber)) return;
    this.users.setUser(subscriber, feed.appId, rights.user);
    try {
      rights.createReadScope(source, subscriber.where);
      const visibilityKey = createVisibilityKey(rights, source);
      const hasChanged = visibilityKey !== subscriber.visibilityKey;
      subscriber.visibilityKey = visibilityKey;
      if (hasChanged && subscriber.position !== null)
        subscriber.sendMessage(this.createMessage(feed, subscriber, null));
    } catch (error) {
      endSubscription(feed, subscriber, requireAccessError(error));
    }
  }

  /**
   * Sets the change after which the subscription starts: the position `since`, or the newest change if there is no `since`. In two cases,
   * starts after the newest change and sends a `reset`: the changes after `since` are no longer stored, or the subscriber's rights have
   * changed since then. Stored changes do not show which entries became visible.
   */
  private async startSubscriber(feed: DataSourceFeed, subscriber: EntrySubscriber): Promise<void> {
    const source = await this.findSource(feed);
    if (source) await this.checkAccess(feed, source, subscriber);
    if (!feed.subscribers.has(subscriber)) return;
    const [tally] = await rows<{ newest: number; newestDeleted: number }>(this.options.db, SELECT_NEWEST_CHANGE, [
      feed.appId,
      feed.id,
    ]);
    const { newest, newestDeleted } = tally ?? { newest: 0, newestDeleted: 0 };
    const { changeId: sinceChangeId = null, visibilityKey } = subscriber.since ?? {};
    const hasSameRights = visibilityKey === undefined || visibilityKey === subscriber.visibilityKey;
    const canResume =
      sinceChangeId !== null && sinceChangeId >= newestDeleted && sinceChangeId <= newest && hasSameRights;
    subscriber.position = canResume ? sinceChangeId : newest;
    if (!canResume)
      subscriber.sendMessage(this.createMessage(feed, subscriber, subscriber.since ? null : NO_DIFFERENCES));
  }

  private async startWaitingSubscribers(feed: DataSourceFeed): Promise<void> {
    for (const subscriber of [...feed.subscribers])
      if (subscriber.position === null) await this.startSubscriber(feed, subscriber);
  }

  /** Groups subscribers that get the same message: same rights, `where` and position. */
  private async groupSubscribers(subscribers: readonly EntrySubscriber[]): Promise<Iterable<SubscriberGroup>> {
    const groups = new Map<string, SubscriberGroup>();
    for (const subscriber of subscribers) {
      const rights = await this.options.rights.resolve(subscriber.request);
      const rightsKey = rights.caller.isTrusted ? "trusted" : JSON.stringify(rights.caller.user);
      const key = JSON.stringify([rightsKey, subscriber.where, subscriber.position, subscriber.visibilityKey]);
      const group = groups.get(key) ?? {
        rights,
        position: subscriber.position!,
        where: subscriber.where,
        subscribers: [],
      };
      group.subscribers.push(subscriber);
      groups.set(key, group);
    }
    return groups.values();
  }

  /** Returns the changes that the group can see; null if the group must read all entries again. @throws DATA_SOURCE_ACCESS_DENIED */
  private async readDifferences(
    source: StoredDataSource,
    group: SubscriberGroup,
    changes: readonly StoredEntryChangeSet[],
  ) {
    const { rights, position, where } = group;
    const laterChanges = changes.filter(({ id }) => id > position);
    const scope = rights.createReadScope(source, where);
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
      const differences = await this.readDifferences(source, group, changes);
      const subscribers = group.subscribers.filter((subscriber) => feed.subscribers.has(subscriber));
      for (const subscriber of subscribers) subscriber.position = changes.at(-1)!.id;
      if (subscribers.length === 0 || (differences && hasNoDifferences(differences))) return;
      // All subscribers of the group get the same message object, so that the message is serialized only once.
      const groupMessage = this.createMessage(feed, subscribers[0]!, differences);
      for (const subscriber of subscribers) subscriber.sendMessage(groupMessage);
    } catch (error) {
      const accessError = requireAccessError(error);
      for (const subscriber of group.subscribers) endSubscription(feed, subscriber, accessError);
    }
  }

  private async advanceFeed(feed: DataSourceFeed): Promise<void> {
    for (;;) {
      const subscribers = listStartedSubscribers(feed);
      if (subscribers.length === 0) return;
      const from = Math.min(...subscribers.map(({ position }) => position!));
      const changes = await rows<StoredEntryChangeSet>(this.options.db, SELECT_CHANGES_SINCE, [
        feed.appId,
        feed.id,
        from,
      ]);
      const newestChangeId = changes.at(-1)?.id;
      const source = newestChangeId === undefined ? null : await this.findSource(feed);
      if (newestChangeId === undefined || !source) return;
      for (const group of await this.groupSubscribers(subscribers.filter(({ position }) => position! < newestChangeId)))
        await this.notifyGroup(feed, source, group, changes);
      if (changes.length < MAX_CHANGES_PER_MESSAGE) return;
    }
  }

  private openFeed(appId: number, id: number): DataSourceFeed {
    const key = createFeedKey({ appId, id });
    const feed = this.feedsBySource.get(key) ?? { appId, id, subscribers: new Set(), pendingReads: Promise.resolve() };
    this.feedsBySource.set(key, feed);
    return feed;
  }

  private advanceInOrder(feed: DataSourceFeed) {
    this.runInOrder(feed, () => this.advanceFeed(feed));
  }

  /** Checks the rights of affected subscribers (default: all), and then sends new changes to all subscribers of the feed. */
  private checkSubscribers(
    feed: DataSourceFeed,
    isAffected: (subscriber: EntrySubscriber) => boolean = () => true,
  ): void {
    this.runInOrder(feed, async () => {
      const source = await this.findSource(feed);
      if (!source) return;
      for (const subscriber of listStartedSubscribers(feed).filter(isAffected))
        await this.checkAccess(feed, source, subscriber);
      await this.startWaitingSubscribers(feed);
      await this.advanceFeed(feed);
    });
  }

  private checkChosenSubscribers(subscribers: readonly EntrySubscriber[]): void {
    const chosenSubscribers = new Set(subscribers);
    const affectedFeeds = new Set(subscribers.flatMap((subscriber) => this.feedBySubscriber.get(subscriber) ?? []));
    for (const feed of affectedFeeds) this.checkSubscribers(feed, (subscriber) => chosenSubscribers.has(subscriber));
  }

  /**
   * Sends each subscriber a new position. Runs at fixed intervals: otherwise the time of a new position would reveal a change that the
   * subscriber cannot see.
   */
  private renewPositions(feed: DataSourceFeed): void {
    this.runInOrder(feed, async () => {
      const subscribersByRequest = Map.groupBy(
        listStartedSubscribers(feed),
        ({ position, request, visibilityKey }) => `${position} ${request.isTrusted} ${visibilityKey}`,
      );
      for (const subscribers of subscribersByRequest.values()) {
        const groupMessage = this.createMessage(feed, subscribers[0]!, NO_DIFFERENCES);
        for (const subscriber of subscribers) subscriber.sendMessage(groupMessage);
      }
    });
  }

  /**
   * Subscribes to changes of the entries that match `where`. Starts at the position `since`, or with the next change if `since` is missing.
   * @throws DATA_SOURCE_NOT_FOUND, DATA_SOURCE_ACCESS_DENIED, REQUEST_INVALID
   */
  async follow(
    request: AdmittedRequest,
    source: StoredDataSource,
    { where, since }: { where: unknown; since: unknown },
  ): Promise<SubscriptionSource<EntryChangeMessage>> {
    const { read, positions } = this.options;
    const position = positions.parse(source, since, request.isTrusted);
    const rights = await this.options.rights.resolve(request);
    const scope = rights.createReadScope(source, where);
    if (separateHashedConditions(where, source.hashedColumns)) {
      throw new ActionError(
        "REQUEST_INVALID",
        '"where" of a subscription must not use a hashed column; filter by another column',
      );
    }
    // Evaluates the `where` once, so that an invalid `where` is rejected now and not only at the first change.
    const requested = { scope, where, onlyVisible: true };
    await readEntryDifferences(read, source, requested, [{ id: 0, bulk: false, inserted: [0], replaced: [] }]);
    const visibilityKey = createVisibilityKey(rights, source);
    return createSubscriptionSource<EntryChangeMessage>(source.appId, (push, endSubscription) => {
      const feed = this.openFeed(source.appId, source.id);
      const subscriber: EntrySubscriber = {
        request,
        where,
        position: null,
        since: position,
        visibilityKey,
        sendMessage: push,
        endSubscription,
      };
      feed.subscribers.add(subscriber);
      this.feedBySubscriber.set(subscriber, feed);
      this.runInOrder(feed, async () => {
        await this.startWaitingSubscribers(feed);
        await this.advanceFeed(feed);
      });
      return () => {
        feed.subscribers.delete(subscriber);
        this.feedBySubscriber.delete(subscriber);
        this.users.remove(subscriber);
        if (feed.subscribers.size === 0 && this.feedsBySource.get(createFeedKey(feed)) === feed)
          this.feedsBySource.delete(createFeedKey(feed));
      };
    });
  }

  stop() {
    clearInterval(this.renewalTimer);
  }
}
