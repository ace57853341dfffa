/**
 * Sends the actions that start on analytics events to clients in browsers: first all actions, then each change. The service reads each
 * change of an app only once for all clients that use drafts, and once for all clients that use live versions.
 */
import type { Logger } from "pino";
import { runInBackground } from "../../background.js";
import type { DraftOrLive } from "../../data/action-types.js";
import { rows, type SqlClient } from "../../data/database.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import { createSubscriptionSource, type SubscriptionSource } from "../records/subscription-source.js";
import type { ClientAction, ClientActions } from "./client-actions.js";

/**
 * PostgreSQL notification channel. A database trigger sends `appId:actionId` when an action with the environment `client` or `any` is
 * written or removed. The action ID `0` means that the app was published or unpublished.
 */
export const CLIENT_ACTION_CHANNEL = "svc_action";
const ALL_ACTIONS_ID = 0;

/** Makes all processes read the live versions of the app again. */
export async function notifyPublicationChange(executor: SqlClient, appId: number): Promise<void> {
  await rows(executor, `SELECT pg_notify('${CLIENT_ACTION_CHANNEL}', $1)`, [`${appId}:${ALL_ACTIONS_ID}`]);
}

/** Delay in milliseconds before a failed read of actions is repeated. */
const RETRY_MS = 1_000;

/**
 * A change of an app's actions in the form that clients receive. If `reset` is true, the client removes all its actions
 * before it applies `actions` and `removed`.
 */
export interface ClientActionUpdate {
  reset: boolean;
  actions: ClientAction[];
  /** IDs of actions that the client can no longer run. */
  removed: number[];
}

type ChangeListener = (change: ClientActionUpdate) => void;

/** All subscribers in this process to the drafts or the live versions of one app. */
interface AppFeed {
  appId: number;
  copy: DraftOrLive;
  listeners: Set<ChangeListener>;
  /** Current actions by ID; null until the service has read the actions for the first time. */
  actionsById: Map<number, ClientAction> | null;
  /** First message for new subscribers, with all actions. Created when it is first needed, and set to null when an action changes. */
  snapshot: ClientActionUpdate | null;
  /** Resolves when the latest read has ended. Reads run one after the other, so that an older result never overwrites a newer one. */
  lastRead: Promise<void>;
}

export interface ClientActionFeed {
  /**
   * Subscribes to active actions with an analytics trigger and the environment `client` or `any`. `copy` selects drafts or live versions.
   */
  follow(appId: number, copy: DraftOrLive): SubscriptionSource<ClientActionUpdate>;
}

function getOrCreateSnapshot(feed: AppFeed, actionsById: Map<number, ClientAction>): ClientActionUpdate {
  feed.snapshot ??= { reset: true, actions: [...actionsById.values()], removed: [] };
  return feed.snapshot;
}

function notifySubscribers(feed: AppFeed, change: ClientActionUpdate): void {
  for (const listener of feed.listeners) listener(change);
}

function applyActionChange(feed: AppFeed, id: number, action: ClientAction | null): void {
  const { actionsById } = feed;
  if (!actionsById) return;
  if (action ? JSON.stringify(action) === JSON.stringify(actionsById.get(id)) : !actionsById.has(id)) return;
  feed.snapshot = null;
  if (action) actionsById.set(id, action);
  else actionsById.delete(id);
  notifySubscribers(feed, { reset: false, actions: action ? [action] : [], removed: action ? [] : [id] });
}

export function createClientActionFeed(options: {
  clientActions: ClientActions;
  notifications: DatabaseNotifications;
  log: Logger;
}): ClientActionFeed {
  const { clientActions, notifications, log } = options;
  const feedsByKey = new Map<string, AppFeed>();

  /** Calls `read` after all previous reads. If it fails, reads all actions again after RETRY_MS while there are subscribers. */
  function runAfterPreviousReads(feed: AppFeed, read: () => Promise<void>): void {
    feed.lastRead = feed.lastRead.then(read).catch((error: unknown) => {
      log.warn(
        { err: error, appId: feed.appId },
        "an app's client actions could not be read; the service reads all of them again in 1 s",
      );
      setTimeout(() => feed.listeners.size > 0 && runAfterPreviousReads(feed, () => readAll(feed)), RETRY_MS).unref();
    });
  }

  async function readAll(feed: AppFeed): Promise<void> {
    const actions = await clientActions.list(feed.appId, feed.copy);
    feed.actionsById = new Map(actions.map((action) => [action.id, action]));
    feed.snapshot = null;
    notifySubscribers(feed, getOrCreateSnapshot(feed, feed.actionsById));
  }

  /**
   * Waits for running reads, because a client that subscribes meanwhile uses their result. Then removes `feed` if it still has no
   * subscribers.
   */
  async function removeUnused(feed: AppFeed): Promise<void> {
    for (let read = null; read !== feed.lastRead; ) {
      read = feed.lastRead;
      await read;
    }
    const key = `${feed.appId}:${feed.copy}`;
    if (feed.listeners.size === 0 && feedsByKey.get(key) === feed) feedsByKey.delete(key);
  }

  function getOrCreateFeed(appId: number, copy: DraftOrLive): AppFeed {
    const key = `${appId}:${copy}`;
    const feed = feedsByKey.get(key);
    if (feed) return feed;
    const newFeed: AppFeed = {
      appId,
      copy,
      listeners: new Set(),
      actionsById: null,
      snapshot: null,
      lastRead: Promise.resolve(),
    };
    feedsByKey.set(key, newFeed);
    runAfterPreviousReads(newFeed, () => readAll(newFeed));
    return newFeed;
  }

  notifications.listen(CLIENT_ACTION_CHANNEL, (notice) => {
    const [appId, id] = notice.split(":").map(Number) as [number, number];
    for (const feed of [feedsByKey.get(`${appId}:master`), feedsByKey.get(`${appId}:production`)]) {
      if (!feed) continue;
      if (id !== ALL_ACTIONS_ID)
        runAfterPreviousReads(feed, async () =>
          applyActionChange(feed, id, await clientActions.find(appId, feed.copy, id)),
        );
      else if (feed.copy === "production") runAfterPreviousReads(feed, () => readAll(feed));
    }
  });

  // Notifications may have been lost, so all actions are read again and all subscribers get a new snapshot.
  notifications.onGap(() => {
    for (const feed of feedsByKey.values()) runAfterPreviousReads(feed, () => readAll(feed));
  });

  return {
    follow: (appId, copy) =>
      createSubscriptionSource<ClientActionUpdate>(appId, (listener) => {
        const feed = getOrCreateFeed(appId, copy);
        feed.listeners.add(listener);
        // If the actions have not been read yet, the subscriber gets the snapshot after the first read.
        if (feed.actionsById) listener(getOrCreateSnapshot(feed, feed.actionsById));
        return () => {
          feed.listeners.delete(listener);
          if (feed.listeners.size === 0) runInBackground(removeUnused(feed));
        };
      }),
  };
}
