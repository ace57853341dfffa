/**
 * Sends actions to clients: first all actions, then each change. A change is computed once for all subscribers of one
 * app and version.
 */
import type { Logger } from "pino";
import type { Copy } from "../../data/action-types.js";
import { type Executor, rows } from "../../data/database.js";
import type { Notifications } from "../../engine/notifications.js";
import { type LiveSource, liveSource } from "../records/live-source.js";
import type { ClientAction, ClientActions } from "./client-actions.js";

/**
 * Notification channel with `appId:actionId`, sent by the database when a draft or live version is written or removed.
 * The id `0` means all live versions of the app: it was published or unpublished.
 */
export const ACTION_CHANNEL = "svc_action";
const EVERY_ACTION = 0;

/** Makes every process read the app's live versions again. */
export async function announcePublication(executor: Executor, appId: number): Promise<void> {
  await rows(executor, `SELECT pg_notify('${ACTION_CHANNEL}', $1)`, [`${appId}:${EVERY_ACTION}`]);
}

/** Delay before a failed read is repeated. */
const RETRY_MS = 1_000;

/**
 * A change as clients receive it. If `reset` is true, the client removes all its actions before it applies `actions`
 * and `removed`.
 */
export interface ClientChange {
  reset: boolean;
  actions: ClientAction[];
  /** IDs of actions that this client can no longer run. */
  removed: number[];
}

type ChangeListener = (change: ClientChange) => void;

/** All subscribers in this process to the drafts or the live versions of one app. */
interface FeedAudience {
  appId: number;
  copy: Copy;
  listeners: Set<ChangeListener>;
  /** Current actions; null until they have been read. */
  known: Map<number, ClientAction> | null;
  /** First message for new subscribers. All get the same object until an action changes. */
  snapshot: ClientChange | null;
  /** Runs reads one after the other, so that an older read never overwrites a newer one. */
  order: Promise<void>;
}

export interface ClientFeed {
  /** Subscribes to the active `client` and `any` actions of that version with analytics triggers. */
  follow(appId: number, copy: Copy): LiveSource<ClientChange>;
}

function snapshotOf(audience: FeedAudience, known: Map<number, ClientAction>): ClientChange {
  audience.snapshot ??= { reset: true, actions: [...known.values()], removed: [] };
  return audience.snapshot;
}

function notifyAudience(audience: FeedAudience, change: ClientChange): void {
  for (const listener of audience.listeners) listener(change);
}

function storeAction(audience: FeedAudience, id: number, action: ClientAction | null): void {
  const { known } = audience;
  if (!known) return;
  if (action ? JSON.stringify(action) === JSON.stringify(known.get(id)) : !known.has(id)) return;
  audience.snapshot = null;
  if (action) known.set(id, action);
  else known.delete(id);
  notifyAudience(audience, { reset: false, actions: action ? [action] : [], removed: action ? [] : [id] });
}

export function createClientFeed(options: {
  clientActions: ClientActions;
  notifications: Notifications;
  log: Logger;
}): ClientFeed {
  const { clientActions, notifications, log } = options;
  const audiences = new Map<string, FeedAudience>();

  /** Runs reads in order. After a failure it reads everything again while there are subscribers. */
  function inOrder(audience: FeedAudience, read: () => Promise<void>): void {
    audience.order = audience.order.then(read).catch((error: unknown) => {
      log.warn({ err: error, appId: audience.appId }, "client actions could not be read; trying again");
      setTimeout(() => audience.listeners.size > 0 && inOrder(audience, () => readAll(audience)), RETRY_MS).unref();
    });
  }

  async function readAll(audience: FeedAudience): Promise<void> {
    const actions = await clientActions.list(audience.appId, audience.copy);
    audience.known = new Map(actions.map((action) => [action.id, action]));
    audience.snapshot = null;
    notifyAudience(audience, snapshotOf(audience, audience.known));
  }

  function audienceOf(appId: number, copy: Copy): FeedAudience {
    const key = `${appId}:${copy}`;
    const audience = audiences.get(key);
    if (audience) return audience;
    const newAudience: FeedAudience = {
      appId,
      copy,
      listeners: new Set(),
      known: null,
      snapshot: null,
      order: Promise.resolve(),
    };
    audiences.set(key, newAudience);
    inOrder(newAudience, () => readAll(newAudience));
    return newAudience;
  }

  notifications.listen(ACTION_CHANNEL, (notice) => {
    const [appId, id] = notice.split(":").map(Number) as [number, number];
    for (const audience of [audiences.get(`${appId}:master`), audiences.get(`${appId}:production`)]) {
      if (!audience) continue;
      if (id !== EVERY_ACTION)
        inOrder(audience, async () => storeAction(audience, id, await clientActions.find(appId, audience.copy, id)));
      else if (audience.copy === "production") inOrder(audience, () => readAll(audience));
    }
  });

  // Notifications may have been missed: all subscribers get a new snapshot.
  notifications.onGap(() => {
    for (const audience of audiences.values()) inOrder(audience, () => readAll(audience));
  });

  return {
    follow: (appId, copy) =>
      liveSource<ClientChange>(appId, (listener) => {
        const audience = audienceOf(appId, copy);
        audience.listeners.add(listener);
        // If the actions have not been read yet, the first read sends the snapshot.
        if (audience.known) listener(snapshotOf(audience, audience.known));
        return () => {
          audience.listeners.delete(listener);
          if (audience.listeners.size === 0 && audiences.get(`${appId}:${copy}`) === audience)
            audiences.delete(`${appId}:${copy}`);
        };
      }),
  };
}
