/**
 * Notifications between the processes on one database, by LISTEN and NOTIFY: short texts, usually IDs. After a lost connection, listeners
 * read again what they may have missed.
 */

import pg from "pg";
import type { Logger } from "pino";
import { runInBackground } from "../background.js";
import { createClient } from "../postgres.js";

const CHECK_MS = 10_000;
const RECONNECT_MS = 500;
/** Milliseconds for which the process listens to a channel after its last follower has left, so that the next follower need not wait. */
const LINGER_MS = 30_000;

export type NotificationHandler = (payload: string) => void;

export interface Notifications {
  start(): Promise<void>;
  /** Calls `listener` for each notification on `channel`, which is one of `channels`. Returns a function that unsubscribes. */
  listen(channel: string, listener: NotificationHandler): () => void;
  /**
   * Like `listen`, for a channel to which the process listens only while it has followers. `onGap` is called whenever
   * notifications may have been missed: when listening starts, and after a lost connection.
   */
  follow(channel: string, listener: NotificationHandler, onGap: () => void): () => void;
  /** Calls `listener` after a lost connection, because notifications may have been missed. */
  onGap(listener: () => void): () => void;
  /** False while notifications may be missed. */
  healthy(): boolean;
  stop(): Promise<void>;
}

interface Follower {
  hear: NotificationHandler;
  onGap: () => void;
}

/** A channel with followers. */
interface Followed {
  followers: Set<Follower>;
  /** Connection that listens to the channel or is about to; null if there is none. */
  askedOf: pg.Client | null;
  leaving: NodeJS.Timeout | undefined;
}

/** `channels` and `followed` list all channels that can be used. Each is a plain identifier. */
export function createNotifications(options: {
  url: string;
  channels: readonly string[];
  followed?: readonly string[];
  lingerMs?: number;
  log: Logger;
}): Notifications {
  const { url, channels, followed = [], lingerMs = LINGER_MS, log } = options;
  const listeners = new Map<string, Set<NotificationHandler>>(channels.map((channel) => [channel, new Set()]));
  const follows = new Map<string, Followed>(
    followed.map((channel) => [channel, { followers: new Set(), askedOf: null, leaving: undefined }]),
  );
  const gapListeners = new Set<() => void>();
  let client: pg.Client | null = null;
  /** Last command on the connection. The next one waits for it. */
  let asking: Promise<unknown> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  async function connect(): Promise<void> {
    const next = createClient(url, "svc-app-actions notices");
    next.on("notification", ({ channel, payload = "" }) => {
      for (const listener of listeners.get(channel) ?? []) listener(payload);
      for (const { hear } of follows.get(channel)?.followers ?? []) hear(payload);
    });
    next.on("error", (error) => handleLostConnection(next, error));
    next.on("end", () => handleLostConnection(next, new Error("the connection ended")));
    try {
      await next.connect();
      await next.query(channels.map((channel) => `LISTEN ${pg.escapeIdentifier(channel)}`).join("; "));
    } catch (error) {
      // A half-open client must not outlive the attempt.
      next.end().catch(() => undefined);
      throw error;
    }
    client = next;
    timer = setTimeout(() => runInBackground(checkConnection()), CHECK_MS);
    for (const [channel, channelState] of follows)
      if (channelState.followers.size > 0) runInBackground(notifyListeners(channel, channelState));
  }

  function runStatement(whom: pg.Client, text: string): Promise<unknown> {
    asking = asking.then(() => whom.query(text)).catch((error: Error) => handleLostConnection(whom, error));
    return asking;
  }

  /**
   * Starts to listen to the channel. Its followers then read what they missed. Without a connection, the next connection starts to listen.
   */
  async function notifyListeners(channel: string, channelState: Followed): Promise<void> {
    const requested = client;
    if (!requested || channelState.askedOf === requested) return;
    channelState.askedOf = requested;
    await runStatement(requested, `LISTEN ${pg.escapeIdentifier(channel)}`);
    if (requested === client) for (const { onGap } of channelState.followers) onGap();
  }

  function removeListener(channel: string, channelState: Followed): void {
    const requested = channelState.askedOf;
    channelState.askedOf = null;
    if (requested === null || requested !== client) return;
    runInBackground(runStatement(requested, `UNLISTEN ${pg.escapeIdentifier(channel)}`));
  }

  function handleLostConnection(lost: pg.Client, error: Error): void {
    if (client !== lost) return;
    client = null;
    clearTimeout(timer);
    // The connection is already lost.
    lost.end().catch(() => undefined);
    if (stopped) return;
    log.warn({ reason: error.message }, "lost the connection for database notifications");
    timer = setTimeout(() => runInBackground(reconnect()), RECONNECT_MS);
  }

  async function reconnect(): Promise<void> {
    try {
      await connect();
      if (stopped) return await stop();
      log.info("database notifications work again");
      for (const listener of gapListeners) listener();
    } catch {
      if (!stopped) timer = setTimeout(() => runInBackground(reconnect()), RECONNECT_MS);
    }
  }

  // A dead peer is only noticed by a query without a response.
  async function checkConnection(): Promise<void> {
    const requested = client;
    if (!requested) return;
    const silence = setTimeout(() => handleLostConnection(requested, new Error("no answer in time")), CHECK_MS);
    try {
      await runStatement(requested, "SELECT 1");
      if (client === requested) timer = setTimeout(() => runInBackground(checkConnection()), CHECK_MS);
    } finally {
      clearTimeout(silence);
    }
  }

  async function stop(): Promise<void> {
    stopped = true;
    clearTimeout(timer);
    for (const { leaving } of follows.values()) clearTimeout(leaving);
    const last = client;
    client = null;
    await last?.end();
  }

  return {
    start: connect,
    listen(channel, listener) {
      const set = listeners.get(channel);
      if (!set) throw new Error(`unknown channel ${channel}`);
      set.add(listener);
      return () => set.delete(listener);
    },
    follow(channel, onNotice, onGap) {
      const channelState = follows.get(channel);
      if (!channelState) throw new Error(`the channel ${channel} does not support subscriptions`);
      const follower = { hear: onNotice, onGap };
      channelState.followers.add(follower);
      clearTimeout(channelState.leaving);
      runInBackground(notifyListeners(channel, channelState));
      return () => {
        if (!channelState.followers.delete(follower) || channelState.followers.size > 0 || stopped) return;
        channelState.leaving = setTimeout(removeListener, lingerMs, channel, channelState).unref();
      };
    },
    onGap(listener) {
      gapListeners.add(listener);
      return () => gapListeners.delete(listener);
    },
    healthy: () => client !== null,
    stop,
  };
}
