/**
 * What clients are told of their actions as these change: all of them first, then each change, once for everybody who listens to
 * the same app and copy. Knows no socket.
 */
import type { Logger } from "pino";
import type { Copy } from "../../data/action-types.js";
import type { Notifications } from "../../engine/notifications.js";
import { type LiveSource, liveSource } from "../records/live-source.js";
import type { ClientAction, ClientActions } from "./client-actions.js";

/** Channel of the notice `appId:actionId`, sent by the database as a copy of an action is written or removed. */
export const ACTION_CHANNEL = "svc_action";

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

/** Everybody in this process who listens to one copy of one app. */
interface Room {
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

function snapshotOf(room: Room, known: Map<number, ClientAction>): ClientChange {
  room.snapshot ??= { reset: true, actions: [...known.values()], removed: [] };
  return room.snapshot;
}

function tell(room: Room, change: ClientChange): void {
  for (const listener of room.listeners) listener(change);
}

function take(room: Room, id: number, action: ClientAction | null): void {
  const { known } = room;
  if (!known) return;
  if (action ? JSON.stringify(action) === JSON.stringify(known.get(id)) : !known.has(id)) return;
  room.snapshot = null;
  if (action) known.set(id, action);
  else known.delete(id);
  tell(room, { reset: false, actions: action ? [action] : [], removed: action ? [] : [id] });
}

export function createClientFeed(options: {
  clientActions: ClientActions;
  notifications: Notifications;
  log: Logger;
}): ClientFeed {
  const { clientActions, notifications, log } = options;
  const rooms = new Map<string, Room>();

  /** Reads after what was read before; what fails is read again as a whole while somebody listens. */
  function inOrder(room: Room, read: () => Promise<void>): void {
    room.order = room.order.then(read).catch((error: unknown) => {
      log.warn({ err: error, appId: room.appId }, "client actions could not be read");
      setTimeout(() => room.listeners.size > 0 && inOrder(room, () => readAll(room)), RETRY_MS).unref();
    });
  }

  async function readAll(room: Room): Promise<void> {
    const actions = await clientActions.ofCopy(room.appId, room.copy);
    room.known = new Map(actions.map((action) => [action.id, action]));
    room.snapshot = null;
    tell(room, snapshotOf(room, room.known));
  }

  function roomOf(appId: number, copy: Copy): Room {
    const key = `${appId}:${copy}`;
    const room = rooms.get(key);
    if (room) return room;
    const made: Room = {
      appId,
      copy,
      listeners: new Set(),
      known: null,
      snapshot: null,
      order: Promise.resolve(),
    };
    rooms.set(key, made);
    inOrder(made, () => readAll(made));
    return made;
  }

  notifications.listen(ACTION_CHANNEL, (notice) => {
    const [appId, id] = notice.split(":").map(Number) as [number, number];
    for (const room of [rooms.get(`${appId}:master`), rooms.get(`${appId}:production`)]) {
      if (room) inOrder(room, async () => take(room, id, await clientActions.one(appId, room.copy, id)));
    }
  });

  // Notices may have been missed: everybody begins anew.
  notifications.onGap(() => {
    for (const room of rooms.values()) inOrder(room, () => readAll(room));
  });

  return {
    follow: (appId, copy) =>
      liveSource<ClientChange>(appId, (listener) => {
        const room = roomOf(appId, copy);
        room.listeners.add(listener);
        // Who comes before the first reading is told by it.
        if (room.known) listener(snapshotOf(room, room.known));
        return () => {
          room.listeners.delete(listener);
          if (room.listeners.size === 0 && rooms.get(`${appId}:${copy}`) === room) rooms.delete(`${appId}:${copy}`);
        };
      }),
  };
}
