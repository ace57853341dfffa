/** Interfaces of a browser and of its source (a local process or a remote endpoint), and the protocol connection to a browser. */
import { type Connection, type ConnectionTransport, connect } from "puppeteer";

/** Maximum time in which a browser starts. A run waits for a browser this long. */
export const BROWSER_START_TIMEOUT_MS = 20_000;

/** Browser in use: a local process, or a connection to a remote one. */
export interface Chromium {
  readonly connection: Connection;
  /** Process ID; null for a remote browser. */
  readonly pid: number | null;
  /** Resolves when the process has ended and its folder is removed; for a remote browser, when the connection has closed. */
  readonly ended: Promise<void>;
  /** False as soon as the connection has closed or `stop` was called, before `ended` resolves. */
  alive(): boolean;
  /** Time of the last report that V8 reached its heap limit; Unix time in milliseconds, 0 for never. */
  exhaustedAt(): number;
  /** Ends the process group, or the connection. Resolves with `ended`. */
  stop(): Promise<void>;
}

export interface BrowserSource {
  /** Name in logs. */
  readonly name: string;
  /** Starts a browser, or connects to one. @param stopped aborts the attempt */
  open(stopped?: AbortSignal): Promise<Chromium>;
  /** Checks a browser that has opened pages. @returns fields for the log @throws StartError if it is not safe to use */
  inspect(chromium: Chromium): Promise<object>;
  /** Turns the failure of an attempt into an error without secrets. */
  describeFailure(error: Error): Error;
}

/** Puppeteer's internal method that sends commands of a connection and its sessions. */
interface CommandSender {
  _rawSend?: (...values: unknown[]) => unknown;
}

/** Puppeteer creates an error for each command in advance. Its stack ends at the event loop and costs more than sending the command. */
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
export async function openConnection(transport: ConnectionTransport): Promise<Connection> {
  // A remote browser may have pages of others, so only the browser target is used.
  const targetFilter = (target: { type(): string }) => target.type() === "browser";
  const browser = await connect({ transport, defaultViewport: null, targetFilter });
  const connection = (await browser.target().createCDPSession()).connection();
  if (connection === undefined) throw new Error("the connection closed");
  sendWithoutStacks(connection as CommandSender);
  // Without page objects of Puppeteer: this engine uses the protocol directly.
  await connection.send("Target.setAutoAttach", { autoAttach: false, waitForDebuggerOnStart: false, flatten: true });
  return connection;
}
