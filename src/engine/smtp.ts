/**
 * Sends messages to SMTP servers over a few keep-alive connections to each server. Reports the outcome of each attempt:
 * accepted, refused or unknown. nodemailer implements the protocol. Its pool is not used, because it sends a message
 * again when a connection is lost.
 */
import { isIPv4, type Socket } from "node:net";
import { Readable } from "node:stream";
import SMTPConnection from "nodemailer/lib/smtp-connection";
import { type Delivery, outcomeOfError, outcomeOfSuccess } from "./smtp/outcome.js";
import { createSmtpPool, type PooledSession } from "./smtp/pool.js";

export type { Delivery, RefusedRecipient } from "./smtp/outcome.js";

export interface SmtpServer {
  host: string;
  port: number;
  /** True for TLS from the first byte. False for STARTTLS if the server offers it. */
  secure: boolean;
  user: string | null;
  password: string | null;
  /** Owner of the message. Connections are not shared between owners. */
  owner: string;
  /** Opens a connection. If it rejects, nothing was sent. An error with `forbidden` means that a retry is useless. */
  connect: (host: string, port: number) => Promise<Socket>;
}

export interface MailHandover {
  from: string;
  to: readonly string[];
  content: Buffer;
  /**
   * Called when the server has accepted the envelope, before the first byte of the content is sent. If it resolves with
   * false, nothing is sent.
   */
  mayBegin: () => Promise<boolean>;
  signal: AbortSignal;
}

export interface SmtpTimes {
  greetingMs: number;
  /** Maximum time in milliseconds that the server may take for each response. */
  responseMs: number;
  /** Time limit of an attempt in milliseconds. */
  attemptMs: number;
}

const SMTP_TIMES: SmtpTimes = { greetingMs: 20_000, responseMs: 60_000, attemptMs: 300_000 };

export interface Smtp {
  /** Sends a message. Reports errors as an outcome, and never throws. */
  deliver(server: SmtpServer, handover: MailHandover): Promise<Delivery>;
  stop(): void;
}

/** Yields the content of the message when nodemailer requests it, which is when the server is ready for it. */
async function* yieldMailContent(
  { content, mayBegin }: MailHandover,
  started: { value: boolean },
): AsyncGenerator<Buffer> {
  if (!(await mayBegin())) throw new FencedError();
  started.value = true;
  yield content;
}

class FencedError extends Error {}

/**
 * True for an address of this machine: such a connection needs no TLS. Only an IP address counts, because
 * `127.example.com` can be any host.
 */
const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));

async function openConnection(server: SmtpServer, times: SmtpTimes): Promise<SMTPConnection> {
  const { host, port, secure, user, password } = server;
  const connection = new SMTPConnection({
    host,
    port,
    secure,
    connection: await server.connect(host, port),
    // The password must not be sent without encryption, even if this means that no mail can be sent.
    requireTLS: !secure && user !== null && !isLoopback(host),
    ignoreTLS: !secure && isLoopback(host),
    greetingTimeout: times.greetingMs,
    socketTimeout: times.responseMs,
    maxResponseSize: 64 * 1024,
    logger: false,
  });
  // Ignores errors here, because each wait below handles the end of the connection.
  connection.on("error", () => undefined);
  try {
    await waitForCallback(connection, (done) => connection.connect(done));
    if (user !== null)
      await waitForCallback(connection, (done) => connection.login({ user, pass: password ?? "" }, done));
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Calls `start`, and resolves with the result that `start` passes to its callback. Rejects when the connection ends. */
function waitForCallback<T>(
  connection: SMTPConnection,
  start: (done: (error?: Error | null, value?: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const rejectLost = (error?: Error) => reject(error ?? new Error("the connection was lost"));
    connection.once("error", rejectLost).once("end", rejectLost);
    const stop = () => connection.off("error", rejectLost).off("end", rejectLost);
    start((error, value) => {
      stop();
      if (error) reject(error);
      else resolve(value as T);
    });
  });
}

export function createSmtp({ times = SMTP_TIMES }: { times?: SmtpTimes } = {}): Smtp {
  const pool = createSmtpPool<SmtpServer>((server) => openConnection(server, times));

  async function attemptDelivery(
    session: PooledSession,
    handover: MailHandover,
    started: { value: boolean },
  ): Promise<Delivery> {
    const { connection } = session;
    const { from, to, content } = handover;
    const stream = Readable.from(yieldMailContent(handover, started), { objectMode: false });
    const info = await waitForCallback<SMTPConnection.SentMessageInfo>(connection, (done) =>
      connection.send({ from, to: [...to], size: content.length }, stream, done),
    );
    return outcomeOfSuccess(info);
  }

  /** Waits for `work`. If the attempt is aborted, closes the connection, so that nothing is sent afterwards. */
  async function rejectOnAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const onTimeout = () => reject(new Error("the server did not answer in time"));
    signal.addEventListener("abort", onTimeout, { once: true });
    if (signal.aborted) onTimeout();
    try {
      return await Promise.race([work, promise]);
    } finally {
      signal.removeEventListener("abort", onTimeout);
      // After an abort, no code awaits this promise.
      work.catch(() => undefined);
    }
  }

  async function sendOnce(
    server: SmtpServer,
    handover: MailHandover,
    signal: AbortSignal,
  ): Promise<Delivery | "stale"> {
    const started = { value: false };
    let session: PooledSession | null = null;
    try {
      session = await pool.takeSession(server, signal);
      return await rejectOnAbort(signal, attemptDelivery(session, handover, started));
    } catch (error) {
      // The connection may still have an open envelope, so the next message must not use it.
      if (session) session.broken = true;
      if (error instanceof FencedError) return { kind: "fenced" };
      const delivery = outcomeOfError(error as Error, started.value);
      // The server had closed this idle connection meanwhile, so the failure says nothing about the message.
      const isStale = session?.reused && !started.value && delivery.kind === "refused" && delivery.code === null;
      return isStale && !signal.aborted ? "stale" : delivery;
    } finally {
      if (session) pool.giveBack(session);
    }
  }

  return {
    async deliver(server, handover) {
      const signal = AbortSignal.any([handover.signal, AbortSignal.timeout(times.attemptMs)]);
      for (;;) {
        const delivery = await sendOnce(server, handover, signal);
        if (delivery !== "stale") return delivery;
      }
    },
    stop: pool.stop,
  };
}
