/**
 * Notices between the processes on one database, by LISTEN and NOTIFY: short texts, ids alone.
 * Knows no meaning of a notice; what was missed while the connection was down is the listener's to read again.
 */
import pg from "pg";
import type { Logger } from "pino";
import { createClient } from "../postgres.js";

const CHECK_MS = 10_000;
const RECONNECT_MS = 500;

export type NoticeListener = (payload: string) => void;

export interface Notifications {
  start(): Promise<void>;
  /** Calls `listener` for each notice on `channel`; the returned function ends that. */
  listen(channel: string, listener: NoticeListener): () => void;
  /** Calls `listener` after the connection came back: notices may have been missed. */
  onGap(listener: () => void): () => void;
  /** false while notices may be missed. */
  healthy(): boolean;
  stop(): Promise<void>;
}

/** `channels` is the closed list of channels, each a plain identifier. */
export function createNotifications(options: { url: string; channels: readonly string[]; log: Logger }): Notifications {
  const { url, channels, log } = options;
  const listeners = new Map<string, Set<NoticeListener>>(channels.map((channel) => [channel, new Set()]));
  const gapListeners = new Set<() => void>();
  let client: pg.Client | null = null;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  async function connect(): Promise<void> {
    const next = createClient(url, "svc-app-actions notices");
    next.on("notification", ({ channel, payload }) => {
      for (const listener of listeners.get(channel) ?? []) listener(payload ?? "");
    });
    next.on("error", (error) => lose(next, error));
    next.on("end", () => lose(next, new Error("the connection ended")));
    try {
      await next.connect();
      for (const channel of channels) await next.query(`LISTEN ${pg.escapeIdentifier(channel)}`);
    } catch (error) {
      // A half-open client must not outlive the attempt.
      void next.end().catch(() => undefined);
      throw error;
    }
    client = next;
    timer = setTimeout(check, CHECK_MS);
  }

  function lose(lost: pg.Client, error: Error): void {
    if (client !== lost) return;
    client = null;
    clearTimeout(timer);
    void lost.end().catch(() => undefined);
    if (stopped) return;
    log.warn({ err: error }, "lost the connection for notices");
    timer = setTimeout(reconnect, RECONNECT_MS);
  }

  async function reconnect(): Promise<void> {
    try {
      await connect();
      if (stopped) return void (await stop());
      log.info("notices are back");
      for (const listener of gapListeners) listener();
    } catch {
      if (!stopped) timer = setTimeout(reconnect, RECONNECT_MS);
    }
  }

  // A dead peer is noticed by nothing but a question that goes unanswered.
  async function check(): Promise<void> {
    const asked = client;
    if (!asked) return;
    const silence = setTimeout(() => lose(asked, new Error("no answer in time")), CHECK_MS);
    try {
      await asked.query("SELECT 1");
      if (client === asked) timer = setTimeout(check, CHECK_MS);
    } catch (error) {
      lose(asked, error as Error);
    } finally {
      clearTimeout(silence);
    }
  }

  async function stop(): Promise<void> {
    stopped = true;
    clearTimeout(timer);
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
    onGap(listener) {
      gapListeners.add(listener);
      return () => gapListeners.delete(listener);
    },
    healthy: () => client !== null,
    stop,
  };
}
