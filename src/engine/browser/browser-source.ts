/** Interfaces of a browser and of a browser source (a local Chromium process or a remote endpoint). Opens the DevTools connection. */
import { type Connection, type ConnectionTransport, connect } from "puppeteer";

/** Time limit for the start of a browser, and for one attempt of a run to wait for a running browser. */
export const BROWSER_START_TIMEOUT_MS = 20_000;

export interface Chromium {
  readonly connection: Connection;
  /** Null for a remote browser. */
  readonly pid: number | null;
  /** Resolves when the process has ended and its profile folder is removed; for a remote browser, when the connection has closed. */
  readonly ended: Promise<void>;
  /** False as soon as the connection has closed or `stop` was called, which is before `ended` resolves. */
  isAlive(): boolean;
  /** Unix time in milliseconds at which V8 last reported a full heap; 0 if there was no report. */
  getHeapFullTime(): number;
  stop(): Promise<void>;
}

export interface BrowserSource {
  readonly name: string;
  /** Starts a browser, or connects to a remote one. @throws StartError whose message contains no secrets */
  open(stopSignal: AbortSignal): Promise<Chromium>;
  /** Call this method after the browser has opened pages. Returns fields for the log. @throws StartError if a process has no sandbox */
  checkSandbox(chromium: Chromium): Promise<object>;
}

interface CommandSender {
  _rawSend?: (...values: unknown[]) => unknown;
}

/** Makes commands faster: Puppeteer creates an error before each command, and its stack trace would take longer than the command. */
function omitErrorStacks(connection: CommandSender): void {
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

export async function openBrowserConnection(transport: ConnectionTransport): Promise<Connection> {
  // A remote browser may have pages of other clients, so this filter makes Puppeteer ignore all pages.
  const targetFilter = (target: { type(): string }) => target.type() === "browser";
  const browser = await connect({ transport, defaultViewport: null, targetFilter });
  const connection = (await browser.target().createCDPSession()).connection();
  if (connection === undefined) throw new Error("the connection to the browser closed before the browser was ready");
  omitErrorStacks(connection as CommandSender);
  // Without this command, Puppeteer creates page objects, which the service does not use.
  await connection.send("Target.setAutoAttach", { autoAttach: false, waitForDebuggerOnStart: false, flatten: true });
  return connection;
}
