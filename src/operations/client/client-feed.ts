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
interface FeedSubscribers {
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

function getOrCreateSnapshot(audience: FeedSubscribers, actionsById: Map<number, ClientAction>): ClientActionUpdate {
  audience.snapshot ??= { reset: true, actions: [...actionsById.values()], removed: [] };
  return audience.snapshot;
}

function notifySubscribers(audience: FeedSubscribers, change: ClientActionUpdate): void {
  for (const listener of audience.listeners) listener(change);
}

function applyActionChange(audience: FeedSubscribers, id: number, action: ClientAction | null): void {
  const { actionsById } = audience;
  if (!actionsById) return;
  if (action ? JSON.stringify(action) === JSON.stringify(actionsById.get(id)) : !actionsById.has(id)) return;
  audience.snapshot = null;
  if (action) actionsById.set(id, action);
  else actionsById.delete(id);
  notifySubscribers(audience, { reset: false, actions: action ? [action] : [], removed: action ? [] : [id] });
}

export function createClientActionFeed(options: {
  clientActions: ClientActions;
  notifications: DatabaseNotifications;
  log: Logger;
}): ClientActionFeed {
  const { clientActions, notifications, log } = options;
  const audiences = new Map<string, FeedSubscribers>();

  /** Calls `read` after all previous reads. If it fails, reads all actions again after RETRY_MS while there are subscribers. */
  function runAfterPreviousReads(audience: FeedSubscribers, read: () => Promise<void>): void {
    audience.lastRead = audience.lastRead.then(read).catch((error: unknown) => {
      log.warn(
        { err: error, appId: audience.appId },
        "an app's client actions could not be read; the service reads all of them again in 1 s",
      );
      setTimeout(
        () => audience.listeners.size > 0 && runAfterPreviousReads(audience, () => readAll(audience)),
        RETRY_MS,
      ).unref();
    });
  }

  async function readAll(audience: FeedSubscribers): Promise<void> {
    const actions = await clientActions.list(audience.appId, audience.copy);
    audience.actionsById = new Map(actions.map((action) => [action.id, action]));
    audience.snapshot = null;
    notifySubscribers(audience, getOrCreateSnapshot(audience, audience.actionsById));
  }

  /**
   * Waits for running reads, because a client that subscribes meanwhile uses their result. Then removes `audience` if it still has no
   * subscribers.
   */
  async function removeUnused(audience: FeedSubscribers): Promise<void> {
    for (let read = null; read !== audience.lastRead; ) {
      read = audience.lastRead;
      await read;
    }
    const key = `${audience.appId}:${audience.copy}`;
    if (audience.listeners.size === 0 && audiences.get(key) === audience) audiences.delete(key);
  }

  function getOrCreateAudience(appId: number, copy: DraftOrLive): FeedSubscribers {
    const key = `${appId}:${copy}`;
    const audience = audiences.get(key);
    if (audience) return audience;
    const newAudience: FeedSubscribers = {
      appId,
      copy,
      listeners: new Set(),
      actionsById: null,
      snapshot: null,
      lastRead: Promise.resolve(),
    };
    audiences.set(key, newAudience);
    runAfterPreviousReads(newAudience, () => readAll(newAudience));
    return newAudience;
  }

  notifications.listen(CLIENT_ACTION_CHANNEL, (notice) => {
    const [appId, id] = notice.split(":").map(Number) as [number, number];
    for (const audience of [audiences.get(`${appId}:master`), audiences.get(`${appId}:production`)]) {
      if (!audience) continue;
      if (id !== ALL_ACTIONS_ID)
        runAfterPreviousReads(audience, async () =>
          applyActionChange(audience, id, await clientActions.find(appId, audience.copy, id)),
        );
      else if (audience.copy === "production") runAfterPreviousReads(audience, () => readAll(audience));
    }
  });

  // Notifications may have been lost, so all actions are read again and all subscribers get a new snapshot.
  notifications.onGap(() => {
    for (const audience of audiences.values()) runAfterPreviousReads(audience, () => readAll(audience));
  });

  return {
    follow: (appId, copy) =>
      createSubscriptionSource<ClientActionUpdate>(appId, (listener) => {
        const audience = getOrCreateAudience(appId, copy);
        audience.listeners.add(listener);
        // If the actions have not been read yet, the subscriber gets the snapshot after the first read.
        if (audience.actionsById) listener(getOrCreateSnapshot(audience, audience.actionsById));
        return () => {
          audience.listeners.delete(listener);
          if (audience.listeners.size === 0) runInBackground(removeUnused(audience));
        };
      }),
  };
}
