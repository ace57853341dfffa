/**
 * Hands messages to SMTP servers over a few kept connections for each, and says of every try what is certain: taken, refused, or
 * unsure. nodemailer speaks the protocol; its own pool sends a message again when a connection is lost, so that is not used.
 * Knows no outbox.
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
  /** TLS from the first byte; else STARTTLS where the server offers it. */
  secure: boolean;
  user: string | null;
  password: string | null;
  /** Whose it is: nobody else gets a connection that was opened for it. */
  owner: string;
  /** Opens the way to it; a rejection says that nothing was sent, and by `forbidden` whether it never will be. */
  connect: (host: string, port: number) => Promise<Socket>;
}

export interface Handover {
  from: string;
  to: readonly string[];
  content: Buffer;
  /** Asked after the server has taken the envelope, before the first byte of the content: false sends nothing. */
  mayBegin: () => Promise<boolean>;
  /** Gives the try up. */
  signal: AbortSignal;
}

export interface SmtpTimes {
  greetingMs: number;
  /** Of silence. */
  answerMs: number;
  /** A whole try. */
  tryMs: number;
}

const TIMES: SmtpTimes = { greetingMs: 20_000, answerMs: 60_000, tryMs: 300_000 };

export interface Smtp {
  /** Never throws. */
  deliver(server: SmtpServer, handover: Handover): Promise<Delivery>;
  stop(): void;
}

/** The content, asked for by nodemailer when the server waits for it. */
async function* guarded({ content, mayBegin }: Handover, begun: { value: boolean }): AsyncGenerator<Buffer> {
  if (!(await mayBegin())) throw new FencedError();
  begun.value = true;
  yield content;
}

class FencedError extends Error {}

/** True for a host of this machine, where TLS adds nothing. Only an address counts: `127.example.com` is a name that may lead anywhere. */
const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));

async function open(server: SmtpServer, times: SmtpTimes): Promise<SMTPConnection> {
  const { host, port, secure, user, password } = server;
  const connection = new SMTPConnection({
    host,
    port,
    secure,
    connection: await server.connect(host, port),
    // A password in the open is worse than no mail.
    requireTLS: !secure && user !== null && !isLoopback(host),
    ignoreTLS: !secure && isLoopback(host),
    greetingTimeout: times.greetingMs,
    socketTimeout: times.answerMs,
    maxResponseSize: 64 * 1024,
    logger: false,
  });
  // Each wait below hears of the end itself.
  connection.on("error", () => undefined);
  try {
    await heard(connection, (done) => connection.connect(done));
    if (user !== null) await heard(connection, (done) => connection.login({ user, pass: password ?? "" }, done));
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** What `ask` calls back with, or the connection's end. */
function heard<T>(
  connection: SMTPConnection,
  ask: (done: (error?: Error | null, value?: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const lost = (error?: Error) => reject(error ?? new Error("the connection was lost"));
    connection.once("error", lost).once("end", lost);
    const stop = () => connection.off("error", lost).off("end", lost);
    ask((error, value) => {
      stop();
      if (error) reject(error);
      else resolve(value as T);
    });
  });
}

export function createSmtp({ times = TIMES }: { times?: SmtpTimes } = {}): Smtp {
  const pool = createSmtpPool<SmtpServer>((server) => open(server, times));

  async function attempt(session: PooledSession, handover: Handover, begun: { value: boolean }): Promise<Delivery> {
    const { connection } = session;
    const { from, to, content } = handover;
    const stream = Readable.from(guarded(handover, begun), { objectMode: false });
    const info = await heard<SMTPConnection.SentMessageInfo>(connection, (done) =>
      connection.send({ from, to: [...to], size: content.length }, stream, done),
    );
    return outcomeOfSuccess(info);
  }

  /** The connection is given up with the try, so that nothing of it comes through later. */
  async function within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const end = () => reject(new Error("the server did not answer in time"));
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    try {
      return await Promise.race([work, promise]);
    } finally {
      signal.removeEventListener("abort", end);
      work.catch(() => undefined);
    }
  }

  async function once(server: SmtpServer, handover: Handover, signal: AbortSignal): Promise<Delivery | "stale"> {
    const begun = { value: false };
    let session: PooledSession | null = null;
    try {
      session = await pool.take(server, signal);
      return await within(signal, attempt(session, handover, begun));
    } catch (error) {
      // An envelope may be open there: the next message is not to meet it.
      if (session) session.broken = true;
      if (error instanceof FencedError) return { kind: "fenced" };
      const delivery = outcomeOfError(error as Error, begun.value);
      // A connection that the server had given up meanwhile says nothing of the message.
      const isStale = session?.reused && !begun.value && delivery.kind === "refused" && delivery.code === null;
      return isStale && !signal.aborted ? "stale" : delivery;
    } finally {
      if (session) pool.giveBack(session);
    }
  }

  return {
    async deliver(server, handover) {
      const signal = AbortSignal.any([handover.signal, AbortSignal.timeout(times.tryMs)]);
      for (;;) {
        const delivery = await once(server, handover, signal);
        if (delivery !== "stale") return delivery;
      }
    },
    stop: pool.stop,
  };
}
