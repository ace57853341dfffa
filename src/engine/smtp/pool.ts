/** Keeps a few connections to each SMTP server open, and closes idle ones. Each sends one message at a time. */
import { createHash } from "node:crypto";
import type SMTPConnection from "nodemailer/lib/smtp-connection";

const CONNECTIONS_PER_SERVER = 10;
const MESSAGES_PER_CONNECTION = 100;
const IDLE_TIMEOUT_MS = 5_000;

export interface PooledSmtpSession {
  connection: SMTPConnection;
  isReused: boolean;
  isBroken: boolean;
}

interface OpenSession extends PooledSmtpSession {
  key: string;
  messageCount: number;
  timer: NodeJS.Timeout | undefined;
}

interface ServerConnections {
  openCount: number;
  idle: OpenSession[];
  waitingCallers: (() => void)[];
}

/** Two servers have the same key only if all their settings, including the credentials, are equal. */
const computeServerKey = (server: object): string => createHash("sha256").update(JSON.stringify(server)).digest("hex");

export class SmtpPool<Server extends object> {
  private readonly places = new Map<string, ServerConnections>();
  private stopped = false;

  constructor(private readonly open: (server: Server) => Promise<SMTPConnection>) {}

  private freeSlot(key: string): void {
    const place = this.places.get(key)!;
    place.openCount -= 1;
    place.waitingCallers.shift()?.();
    if (place.openCount === 0 && place.waitingCallers.length === 0) this.places.delete(key);
  }

  private closeSession(pooled: OpenSession): void {
    clearTimeout(pooled.timer);
    const place = this.places.get(pooled.key);
    if (place) place.idle = place.idle.filter((session) => session !== pooled);
    if (pooled.isBroken || this.stopped) pooled.connection.close();
    else pooled.connection.quit();
    this.freeSlot(pooled.key);
  }

  /** Resolves with an idle connection, or with null if the caller must open one. @throws the signal's reason */
  private async acquireSession(key: string, signal: AbortSignal): Promise<OpenSession | null> {
    for (;;) {
      signal.throwIfAborted();
      const place = this.places.get(key) ?? { openCount: 0, idle: [], waitingCallers: [] };
      this.places.set(key, place);
      const idle = place.idle.pop();
      if (idle) return idle;
      if (place.openCount < CONNECTIONS_PER_SERVER) {
        place.openCount += 1;
        return null;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      place.waitingCallers.push(resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
      await promise;
      place.waitingCallers = place.waitingCallers.filter((waiter) => waiter !== resolve);
    }
  }

  async takeSession(server: Server, signal: AbortSignal): Promise<PooledSmtpSession> {
    const key = computeServerKey(server);
    const idle = await this.acquireSession(key, signal);
    if (idle) {
      clearTimeout(idle.timer);
      idle.isReused = true;
      return idle;
    }
    try {
      const connection = await this.open(server);
      const pooled: OpenSession = {
        key,
        connection,
        isReused: false,
        isBroken: false,
        messageCount: 0,
        timer: undefined,
      };
      connection.once("end", () => {
        pooled.isBroken = true;
        if (this.places.get(key)?.idle.includes(pooled)) this.closeSession(pooled);
      });
      return pooled;
    } catch (error) {
      this.freeSlot(key);
      throw error;
    }
  }

  giveBack(session: PooledSmtpSession): void {
    const pooled = session as OpenSession;
    pooled.messageCount += 1;
    if (this.stopped || pooled.isBroken || pooled.messageCount >= MESSAGES_PER_CONNECTION) {
      this.closeSession(pooled);
      return;
    }
    const place = this.places.get(pooled.key)!;
    place.idle.push(pooled);
    pooled.timer = setTimeout(() => this.closeSession(pooled), IDLE_TIMEOUT_MS).unref();
    place.waitingCallers.shift()?.();
  }

  /** Closes idle connections now, and other connections when their message has been sent. */
  stop(): void {
    this.stopped = true;
    for (const { idle } of this.places.values()) for (const pooled of [...idle]) this.closeSession(pooled);
  }
}
