/**
 * Sends messages to SMTP servers over a few keep-alive connections. Reports if a message was accepted or refused, or if this is unknown.
 * Does not use nodemailer's pool, because that pool sends a message again after a lost connection.
 */
import { isIPv4, type Socket } from "node:net";
import { Readable } from "node:stream";
import SMTPConnection from "nodemailer/lib/smtp-connection";
import { createDeliveryErrorOutcome, createDeliverySuccessOutcome, type DeliveryOutcome } from "./smtp/outcome.js";
import { type PooledSmtpSession, SmtpPool } from "./smtp/pool.js";

export type { DeliveryOutcome, RefusedRecipient } from "./smtp/outcome.js";

export interface SmtpServer {
  host: string;
  port: number;
  /**
   * True for TLS from the first byte. False for STARTTLS if the server offers it. With a `user`, STARTTLS is required. Loopback hosts get
   * no STARTTLS.
   */
  secure: boolean;
  user: string | null;
  password: string | null;
  /** ID of the owner of the message, such as the app. Different owners never share a connection. */
  owner: string;
  /** Opens a connection to the server. If this fails, nothing was sent. If the error's property `forbidden` is true, a retry is useless. */
  connect: (host: string, port: number) => Promise<Socket>;
}

export interface OutgoingMail {
  from: string;
  to: readonly string[];
  content: Buffer;
  /** Called after the server accepted sender and recipients. If the result is false, the content is not sent. */
  maySendContent: () => Promise<boolean>;
  signal: AbortSignal;
}

interface SmtpTimeouts {
  greetingMs: number;
  responseMs: number;
  attemptMs: number;
}

const SMTP_TIMEOUTS: SmtpTimeouts = { greetingMs: 20_000, responseMs: 60_000, attemptMs: 300_000 };

export interface Smtp {
  /** Reports errors as an outcome, and never throws. */
  deliver(server: SmtpServer, mail: OutgoingMail): Promise<DeliveryOutcome>;
  stop(): void;
}

/**
 * Yields the content of the message. nodemailer reads it when the server is ready for the content. Sets `contentStarted.value` before it
 * yields the content.
 * @throws NotClaimedError if the content may not be sent any more
 */
async function* yieldMailContent(
  { content, maySendContent }: OutgoingMail,
  contentStarted: { value: boolean },
): AsyncGenerator<Buffer> {
  if (!(await maySendContent()))
    throw new NotClaimedError("this process has lost its claim on the message, so another process may send it");
  contentStarted.value = true;
  yield content;
}

/** Error if this process has lost its claim on the message, so that another process may send it. */
class NotClaimedError extends Error {}

/** Connections to `localhost` and loopback addresses need no TLS. Other names do not count: `127.example.com` can be any host. */
const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));

async function openConnection(server: SmtpServer, timeouts: SmtpTimeouts): Promise<SMTPConnection> {
  const { host, port, secure, user, password } = server;
  const connection = new SMTPConnection({
    host,
    port,
    secure,
    connection: await server.connect(host, port),
    // Without encryption, the password must not be sent, even if this means that no message can be sent.
    requireTLS: !secure && user !== null && !isLoopback(host),
    ignoreTLS: !secure && isLoopback(host),
    greetingTimeout: timeouts.greetingMs,
    socketTimeout: timeouts.responseMs,
    maxResponseSize: 64 * 1024,
    logger: false,
  });
  // Ignores the error, because `waitForCallback` handles the end of the connection.
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

/** Calls `start`, and settles with the result or error that `start` passes to its callback. Rejects if the connection ends before. */
function waitForCallback<T>(
  connection: SMTPConnection,
  start: (done: (error?: Error | null, value?: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const rejectLostConnection = (error?: Error) =>
      reject(error ?? new Error("the connection to the mail server was lost"));
    connection.once("error", rejectLostConnection).once("end", rejectLostConnection);
    const stop = () => connection.off("error", rejectLostConnection).off("end", rejectLostConnection);
    start((error, value) => {
      stop();
      if (error) reject(error);
      else resolve(value as T);
    });
  });
}

export function createSmtpClient({ timeouts = SMTP_TIMEOUTS }: { timeouts?: SmtpTimeouts } = {}): Smtp {
  const pool = new SmtpPool<SmtpServer>((server) => openConnection(server, timeouts));

  async function attemptDelivery(
    session: PooledSmtpSession,
    mail: OutgoingMail,
    contentStarted: { value: boolean },
  ): Promise<DeliveryOutcome> {
    const { connection } = session;
    const { from, to, content } = mail;
    const stream = Readable.from(yieldMailContent(mail, contentStarted), { objectMode: false });
    const info = await waitForCallback<SMTPConnection.SentMessageInfo>(connection, (done) =>
      connection.send({ from, to: [...to], size: content.length }, stream, done),
    );
    return createDeliverySuccessOutcome(info);
  }

  /** Rejects if the attempt is aborted. An abort closes the connection, so that nothing is sent afterwards. */
  async function rejectOnAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const onAbort = () =>
      reject(new Error("the attempt was stopped: the mail server did not answer in time, or the service is stopping"));
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      return await Promise.race([work, promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
      // Prevents an unhandled rejection: after an abort, no code awaits this promise.
      work.catch(() => undefined);
    }
  }

  async function sendOnce(
    server: SmtpServer,
    mail: OutgoingMail,
    signal: AbortSignal,
  ): Promise<DeliveryOutcome | "stale"> {
    const contentStarted = { value: false };
    let session: PooledSmtpSession | null = null;
    try {
      session = await pool.borrowSession(server, signal);
      return await rejectOnAbort(signal, attemptDelivery(session, mail, contentStarted));
    } catch (error) {
      // The server may still expect the rest of this message on the connection, so no other message may use it.
      if (session) session.isBroken = true;
      if (error instanceof NotClaimedError) return { kind: "fenced" };
      const delivery = createDeliveryErrorOutcome(error as Error, contentStarted.value);
      // True if the server had closed the idle connection before this message. The caller then sends the message again.
      const isStale =
        session?.isReused && !contentStarted.value && delivery.kind === "refused" && delivery.code === null;
      return isStale && !signal.aborted ? "stale" : delivery;
    } finally {
      if (session) pool.returnSession(session);
    }
  }

  return {
    async deliver(server, mail) {
      const signal = AbortSignal.any([mail.signal, AbortSignal.timeout(timeouts.attemptMs)]);
      for (;;) {
        const delivery = await sendOnce(server, mail, signal);
        if (delivery !== "stale") return delivery;
      }
    },
    stop: () => pool.stop(),
  };
}
