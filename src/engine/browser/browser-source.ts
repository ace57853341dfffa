/**
 * Where browsers come from, as the one who keeps them present sees it: what opens one, and what is in hand once it is open. Starts no
 * process, and opens no socket.
 */
import { type Connection, type ConnectionTransport, connect } from "puppeteer";

/** Maximum time in which a browser starts. A run waits for a browser this long. */
export const BROWSER_START_TIMEOUT_MS = 20_000;

/** A browser in use: a process of ours, or a connection to somebody else's. */
export interface Chromium {
  readonly connection: Connection;
  /** null where the process is not ours, and perhaps on another machine. */
  readonly pid: number | null;
  /** Resolves once the process has ended and its folder is gone; of somebody else's, once the connection has. */
  readonly ended: Promise<void>;
  /** False as soon as the connection has closed or `stop` was called, which is before `ended` resolves. */
  alive(): boolean;
  /** When a renderer last said that V8 reached its heap limit; Unix time in milliseconds, 0 for never. */
  exhaustedAt(): number;
  /** Ends the whole process group, or the connection; resolves as `ended` does. */
  stop(): Promise<void>;
}

export interface BrowserSource {
  /** As logs name it. */
  readonly name: string;
  /** Starts a browser or connects to one. @param stopped aborts the attempt */
  open(stopped?: AbortSignal): Promise<Chromium>;
  /** What the log says of one that is open and has pages. @throws StartError when it may not serve */
  inspect(chromium: Chromium): Promise<object>;
  /** The failure of an attempt in words that may be logged and repeated. */
  fault(error: Error): Error;
}

/** What sends a command in Puppeteer, from a connection or any of its sessions. */
interface Sending {
  _rawSend?: (...values: unknown[]) => unknown;
}

/**
 * Puppeteer makes the error of each command ahead, in case that it fails: its stack leads no further than to the event loop, and costs more
 * than the sending.
 */
function sendWithoutStacks(connection: Sending): void {
  const send = connection._rawSend;
  if (!send) return;
  connection._rawSend = (...values) => {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    try {
      return send.apply(connection, values);
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  };
}

/** Opens a browser's protocol over any transport. Rejects when the transport closes first. */
export async function openConnection(transport: ConnectionTransport): Promise<Connection> {
  // Others' pages are not ours to touch: of all targets only the browser's own is wanted.
  const targetFilter = (target: { type(): string }) => target.type() === "browser";
  const browser = await connect({ transport, defaultViewport: null, targetFilter });
  const connection = (await browser.target().createCDPSession()).connection();
  if (connection === undefined) throw new Error("the connection closed");
  sendWithoutStacks(connection as Sending);
  // Puppeteer would set up a page object for every target; here pages are driven over the protocol itself.
  await connection.send("Target.setAutoAttach", { autoAttach: false, waitForDebuggerOnStart: false, flatten: true });
  return connection;
}
