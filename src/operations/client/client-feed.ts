/**
 * Actions as clients receive them: all of them first, then each change, computed once for all listeners of one app, drafts or live
 * versions. Knows no socket.
 */
import type { Logger } from "pino";
import type { Copy } from "../../data/action-types.js";
import { type Executor, rows } from "../../data/database.js";
import type { Notifications } from "../../engine/notifications.js";
import { type LiveSource, liveSource } from "../records/live-source.js";
import type { ClientAction, ClientActions } from "./client-actions.js";

/**
 * Channel of the notice `appId:actionId`, which the database sends when a copy of an action is written or removed. The id `0` stands for
 * all production copies of the app: it was published or unpublished.
 */
export const ACTION_CHANNEL = "svc_action";
const EVERY_ACTION = 0;

/** Has every process read the app's production copies again. */
export async function announcePublication(executor: Executor, appId: number): Promise<void> {
  await rows(executor, `SELECT pg_notify('${ACTION_CHANNEL}', $1)`, [`${appId}:${EVERY_ACTION}`]);
}

/** After this long a reading that failed is tried again. */
const RETRY_MS = 1_000;

/** With `reset` the client forgets what it knew; without, `actions` and `removed` are what changed. */
export interface ClientChange {
  reset: boolean;
  actions: ClientAction[];
  /** Ids that this client may no longer run. */
  removed: number[];
}

type Listener = (change: ClientChange) => void;

/** All listeners in this process to the drafts or the live versions of one app. */
interface Audience {
  appId: number;
  copy: Copy;
  listeners: Set<Listener>;
  /** What all of them know; null until it has been read for the first time. */
  known: Map<number, ClientAction> | null;
  /** The first message for who comes now, one object until something changes. */
  snapshot: ClientChange | null;
  /** Readings, one after the other, so that an older one never overwrites a newer. */
  order: Promise<void>;
}

export interface ClientFeed {
  /** The active `client` and `any` actions of that copy with analytics triggers. */
  follow(appId: number, copy: Copy): LiveSource<ClientChange>;
}

function snapshotOf(audience: Audience, known: Map<number, ClientAction>): ClientChange {
  audience.snapshot ??= { reset: true, actions: [...known.values()], removed: [] };
  return audience.snapshot;
}

function tell(audience: Audience, change: ClientChange): void {
  for (const listener of audience.listeners) listener(change);
}

function take(audience: Audience, id: number, action: ClientAction | null): void {
  const { known } = audience;
  if (!known) return;
  if (action ? JSON.stringify(action) === JSON.stringify(known.get(id)) : !known.has(id)) return;
  audience.snapshot = null;
  if (action) known.set(id, action);
  else known.delete(id);
  tell(audience, { reset: false, actions: action ? [action] : [], removed: action ? [] : [id] });
}

export function createClientFeed(options: {
  clientActions: ClientActions;
  notifications: Notifications;
  log: Logger;
}): ClientFeed {
  const { clientActions, notifications, log } = options;
  const audiences = new Map<string, Audience>();

  /** Reads in order. After a failure it reads everything again while there are listeners. */
  function inOrder(audience: Audience, read: () => Promise<void>): void {
    audience.order = audience.order.then(read).catch((error: unknown) => {
      log.warn({ err: error, appId: audience.appId }, "client actions could not be read");
      setTimeout(() => audience.listeners.size > 0 && inOrder(audience, () => readAll(audience)), RETRY_MS).unref();
    });
  }

  async function readAll(audience: Audience): Promise<void> {
    const actions = await clientActions.ofCopy(audience.appId, audience.copy);
    audience.known = new Map(actions.map((action) => [action.id, action]));
    audience.snapshot = null;
    tell(audience, snapshotOf(audience, audience.known));
  }

  function audienceOf(appId: number, copy: Copy): Audience {
    const key = `${appId}:${copy}`;
    const audience = audiences.get(key);
    if (audience) return audience;
    const made: Audience = {
      appId,
      copy,
      listeners: new Set(),
      known: null,
      snapshot: null,
      order: Promise.resolve(),
    };
    audiences.set(key, made);
    inOrder(made, () => readAll(made));
    return made;
  }

  notifications.listen(ACTION_CHANNEL, (notice) => {
    const [appId, id] = notice.split(":").map(Number) as [number, number];
    for (const audience of [audiences.get(`${appId}:master`), audiences.get(`${appId}:production`)]) {
      if (!audience) continue;
      if (id !== EVERY_ACTION)
        inOrder(audience, async () => take(audience, id, await clientActions.one(appId, audience.copy, id)));
      else if (audience.copy === "production") inOrder(audience, () => readAll(audience));
    }
  });

  // Notices may have been missed: all listeners get a new snapshot.
  notifications.onGap(() => {
    for (const audience of audiences.values()) inOrder(audience, () => readAll(audience));
  });

  return {
    follow: (appId, copy) =>
      liveSource<ClientChange>(appId, (listener) => {
        const audience = audienceOf(appId, copy);
        audience.listeners.add(listener);
        // A listener from before the first reading gets its snapshot from that.
        if (audience.known) listener(snapshotOf(audience, audience.known));
        return () => {
          audience.listeners.delete(listener);
          if (audience.listeners.size === 0 && audiences.get(`${appId}:${copy}`) === audience)
            audiences.delete(`${appId}:${copy}`);
        };
      }),
  };
}
