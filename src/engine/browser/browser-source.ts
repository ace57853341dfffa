/**
 * Interfaces of a browser and of a browser source, which is a local Chromium process or a remote endpoint. Also opens
 * the DevTools connection.
 */
import { type Connection, type ConnectionTransport, connect } from "puppeteer";

/** Time limit for the start of a browser in milliseconds. A run waits at most this long for a browser. */
export const BROWSER_START_TIMEOUT_MS = 20_000;

/** Browser in use: a local process, or a connection to a remote one. */
export interface Chromium {
  readonly connection: Connection;
  /** Process ID of the browser; null for a remote browser. */
  readonly pid: number | null;
  /**
   * Resolves when the browser's process has ended and the service has removed its profile folder. For a remote browser,
   * resolves when the connection has closed.
   */
  readonly ended: Promise<void>;
  /** False as soon as the connection has closed or `stop` was called, which is before `ended` resolves. */
  isAlive(): boolean;
  /** Time at which V8 last reported that its heap is full, in Unix milliseconds; 0 if it never did. */
  getHeapFullTime(): number;
  /** Ends the browser's process group, or closes the connection. Resolves together with `ended`. */
  stop(): Promise<void>;
}

export interface BrowserSource {
  /** Name of the browser source in log lines. */
  readonly name: string;
  /**
   * Starts a browser, or connects to a remote one.
   * @param stopped signal that aborts the start or the connection attempt
   */
  open(stopped?: AbortSignal): Promise<Chromium>;
  /**
   * Checks the sandbox of a browser after the browser has opened pages.
   * @returns fields for the log
   * @throws StartError if the sandbox is not safe
   */
  checkSandbox(chromium: Chromium): Promise<object>;
  /** Converts an error of `open` to an error whose message contains no secrets. */
  describeFailure(error: Error): Error;
}

/** Internal method of Puppeteer that sends all commands of a connection. */
interface CommandSender {
  _rawSend?: (...values: unknown[]) => unknown;
}

/**
 * Sends commands without stack traces. Puppeteer creates an error for each command in advance, and creating the error's
 * stack trace takes longer than the command.
 */
function sendWithoutStacks(connection: CommandSender): void {
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

/** Connects to a browser over a transport. Rejects if the transport closes first. */
export async function openBrowserConnection(transport: ConnectionTransport): Promise<Connection> {
  // A remote browser may have pages of other clients, so this filter makes Puppeteer ignore all pages.
  const targetFilter = (target: { type(): string }) => target.type() === "browser";
  const browser = await connect({ transport, defaultViewport: null, targetFilter });
  const connection = (await browser.target().createCDPSession()).connection();
  if (connection === undefined) throw new Error("the connection to the browser closed before it was ready");
  sendWithoutStacks(connection as CommandSender);
  // Stops Puppeteer from creating its page objects, because the service controls pages with protocol commands instead.
  await connection.send("Target.setAutoAttach", { autoAttach: false, waitForDebuggerOnStart: false, flatten: true });
  return connection;
}
