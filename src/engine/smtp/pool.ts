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

/**
 * Returns the key of a server's connections. Two servers have the same key only if all their settings, including the credentials, are
 * equal.
 */
const computeServerKey = (server: object): string => createHash("sha256").update(JSON.stringify(server)).digest("hex");

export class SmtpPool<Server extends object> {
  private readonly connectionsByServer = new Map<string, ServerConnections>();
  private stopped = false;

  constructor(private readonly openConnection: (server: Server) => Promise<SMTPConnection>) {}

  private freeSlot(key: string): void {
    const connections = this.connectionsByServer.get(key)!;
    connections.openCount -= 1;
    connections.waitingCallers.shift()?.();
    if (connections.openCount === 0 && connections.waitingCallers.length === 0) this.connectionsByServer.delete(key);
  }

  private closeSession(session: OpenSession): void {
    clearTimeout(session.timer);
    const connections = this.connectionsByServer.get(session.key);
    if (connections) connections.idle = connections.idle.filter((other) => other !== session);
    if (session.isBroken || this.stopped) session.connection.close();
    else session.connection.quit();
    this.freeSlot(session.key);
  }

  /** Resolves with an idle connection, or with null if the caller must open one. @throws the signal's reason */
  private async waitForIdleSessionOrSlot(key: string, signal: AbortSignal): Promise<OpenSession | null> {
    for (;;) {
      signal.throwIfAborted();
      const connections = this.connectionsByServer.get(key) ?? { openCount: 0, idle: [], waitingCallers: [] };
      this.connectionsByServer.set(key, connections);
      const idleSession = connections.idle.pop();
      if (idleSession) return idleSession;
      if (connections.openCount < CONNECTIONS_PER_SERVER) {
        connections.openCount += 1;
        return null;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      connections.waitingCallers.push(resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
      await promise;
      connections.waitingCallers = connections.waitingCallers.filter((waiter) => waiter !== resolve);
    }
  }

  /**
   * Returns an idle connection to the server, or opens one. Call `returnSession` afterwards.
   * @throws the abort reason of the signal; errors of opening a connection
   */
  async borrowSession(server: Server, signal: AbortSignal): Promise<PooledSmtpSession> {
    const key = computeServerKey(server);
    const idleSession = await this.waitForIdleSessionOrSlot(key, signal);
    if (idleSession) {
      clearTimeout(idleSession.timer);
      idleSession.isReused = true;
      return idleSession;
    }
    try {
      const connection = await this.openConnection(server);
      const session: OpenSession = {
        key,
        connection,
        isReused: false,
        isBroken: false,
        messageCount: 0,
        timer: undefined,
      };
      connection.once("end", () => {
        session.isBroken = true;
        if (this.connectionsByServer.get(key)?.idle.includes(session)) this.closeSession(session);
      });
      return session;
    } catch (error) {
      this.freeSlot(key);
      throw error;
    }
  }

  returnSession(session: PooledSmtpSession): void {
    const openSession = session as OpenSession;
    openSession.messageCount += 1;
    if (this.stopped || openSession.isBroken || openSession.messageCount >= MESSAGES_PER_CONNECTION) {
      this.closeSession(openSession);
      return;
    }
    const connections = this.connectionsByServer.get(openSession.key)!;
    connections.idle.push(openSession);
    openSession.timer = setTimeout(() => this.closeSession(openSession), IDLE_TIMEOUT_MS).unref();
    connections.waitingCallers.shift()?.();
  }

  /** Closes idle connections now, and other connections when their message has been sent. */
  stop(): void {
    this.stopped = true;
    for (const { idle } of this.connectionsByServer.values())
      for (const session of [...idle]) this.closeSession(session);
  }
}
