/**
 * Notifications between all processes that use one database, with LISTEN and NOTIFY of PostgreSQL. A notification is a short text, usually
 * an ID. After a lost connection, listeners read again what they may have missed.
 */

import pg from "pg";
import type { Logger } from "pino";
import { runInBackground } from "../background.js";
import { createClient } from "../postgres.js";

const CONNECTION_CHECK_MS = 10_000;
const RECONNECT_MS = 500;
/** Time for which a process still listens to a channel after the last follower (caller of `follow`) has unsubscribed. */
const LISTEN_LINGER_MS = 30_000;

type NotificationHandler = (payload: string) => void;

export interface DatabaseNotifications {
  start(): Promise<void>;
  /** Subscribes to a channel from `options.channels`. Returns a function that unsubscribes. */
  listen(channel: string, listener: NotificationHandler): () => void;
  /**
   * Subscribes to a channel from `options.followedChannels`. The process listens to such a channel only while it has followers, and shortly
   * afterwards. Calls `onGap` whenever notifications may have been missed: when listening starts, and after a lost connection. Returns a
   * function that unsubscribes.
   */
  follow(channel: string, listener: NotificationHandler, onGap: () => void): () => void;
  /**
   * Calls `listener` after each reconnect, because notifications may have been missed while the connection was lost. Returns a function
   * that unsubscribes.
   */
  onGap(listener: () => void): () => void;
  /** False while the database connection is lost, so that the process may miss notifications. */
  isHealthy(): boolean;
  stop(): Promise<void>;
}

interface ChannelFollower {
  listener: NotificationHandler;
  onGap: () => void;
}

interface ChannelState {
  followers: Set<ChannelFollower>;
  /** Connection that listens to the channel or will soon do so; null if no connection does. */
  connection: pg.Client | null;
  unlistenTimer: NodeJS.Timeout | undefined;
}

/**
 * Creates the notifications of this process. `listen` accepts only `channels`, and `follow` only `followedChannels`. Each channel name is a
 * plain SQL identifier.
 */
export function createDatabaseNotifications(options: {
  url: string;
  channels: readonly string[];
  followedChannels?: readonly string[];
  lingerMs?: number;
  log: Logger;
}): DatabaseNotifications {
  const { url, channels, followedChannels = [], lingerMs = LISTEN_LINGER_MS, log } = options;
  const listeners = new Map<string, Set<NotificationHandler>>(channels.map((channel) => [channel, new Set()]));
  const channelStates = new Map<string, ChannelState>(
    followedChannels.map((channel) => [channel, { followers: new Set(), connection: null, unlistenTimer: undefined }]),
  );
  const gapListeners = new Set<() => void>();
  let client: pg.Client | null = null;
  /** Resolves when the last LISTEN or UNLISTEN command has ended. The next command waits for it. */
  let lastCommand: Promise<unknown> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  async function connect(): Promise<void> {
    const newClient = createClient(url, "svc-app-actions notices");
    newClient.on("notification", ({ channel, payload = "" }) => {
      for (const listener of listeners.get(channel) ?? []) listener(payload);
      for (const { listener } of channelStates.get(channel)?.followers ?? []) listener(payload);
    });
    newClient.on("error", (error) => handleLostConnection(newClient, error));
    newClient.on("end", () =>
      handleLostConnection(newClient, new Error("the database connection for notifications ended")),
    );
    try {
      await newClient.connect();
      await newClient.query(channels.map((channel) => `LISTEN ${pg.escapeIdentifier(channel)}`).join("; "));
    } catch (error) {
      // Closes the connection, which may be open even if the attempt failed. Ignores errors of closing, because `error` has the reason.
      newClient.end().catch(() => undefined);
      throw error;
    }
    client = newClient;
    timer = setTimeout(() => runInBackground(checkConnection()), CONNECTION_CHECK_MS);
    for (const [channel, channelState] of channelStates)
      if (channelState.followers.size > 0) runInBackground(startListening(channel, channelState));
  }

  function runStatement(connection: pg.Client, text: string): Promise<unknown> {
    lastCommand = lastCommand
      .then(() => connection.query(text))
      .catch((error: Error) => handleLostConnection(connection, error));
    return lastCommand;
  }

  /** Listens to the channel, and then calls `onGap` of its followers. Without a connection, both happen after the next connect. */
  async function startListening(channel: string, channelState: ChannelState): Promise<void> {
    const currentClient = client;
    if (!currentClient || channelState.connection === currentClient) return;
    channelState.connection = currentClient;
    await runStatement(currentClient, `LISTEN ${pg.escapeIdentifier(channel)}`);
    if (currentClient === client) for (const { onGap } of channelState.followers) onGap();
  }

  function stopListening(channel: string, channelState: ChannelState): void {
    const listeningClient = channelState.connection;
    channelState.connection = null;
    if (listeningClient === null || listeningClient !== client) return;
    runInBackground(runStatement(listeningClient, `UNLISTEN ${pg.escapeIdentifier(channel)}`));
  }

  function handleLostConnection(lostClient: pg.Client, error: Error): void {
    if (client !== lostClient) return;
    client = null;
    clearTimeout(timer);
    // Closes the socket, which may still be open after a failed or unanswered query. Ignores errors, because this connection is not used
    // any more.
    lostClient.end().catch(() => undefined);
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

  /** Sends a query, because only a missing response shows that the database is unreachable. */
  async function checkConnection(): Promise<void> {
    const currentClient = client;
    if (!currentClient) return;
    const silenceTimer = setTimeout(
      () => handleLostConnection(currentClient, new Error("the database did not answer a query in time")),
      CONNECTION_CHECK_MS,
    );
    try {
      await runStatement(currentClient, "SELECT 1");
      if (client === currentClient) timer = setTimeout(() => runInBackground(checkConnection()), CONNECTION_CHECK_MS);
    } finally {
      clearTimeout(silenceTimer);
    }
  }

  async function stop(): Promise<void> {
    stopped = true;
    clearTimeout(timer);
    for (const { unlistenTimer } of channelStates.values()) clearTimeout(unlistenTimer);
    const lastClient = client;
    client = null;
    await lastClient?.end();
  }

  return {
    start: connect,
    listen(channel, listener) {
      const handlers = listeners.get(channel);
      if (!handlers) throw new Error(`this process does not listen to the PostgreSQL channel ${channel}`);
      handlers.add(listener);
      return () => handlers.delete(listener);
    },
    follow(channel, listener, onGap) {
      const channelState = channelStates.get(channel);
      if (!channelState)
        throw new Error(`the PostgreSQL channel ${channel} is not in the list of channels that can be followed`);
      const follower = { listener, onGap };
      channelState.followers.add(follower);
      clearTimeout(channelState.unlistenTimer);
      runInBackground(startListening(channel, channelState));
      return () => {
        if (!channelState.followers.delete(follower) || channelState.followers.size > 0 || stopped) return;
        channelState.unlistenTimer = setTimeout(stopListening, lingerMs, channel, channelState).unref();
      };
    },
    onGap(listener) {
      gapListeners.add(listener);
      return () => gapListeners.delete(listener);
    },
    isHealthy: () => client !== null,
    stop,
  };
}
