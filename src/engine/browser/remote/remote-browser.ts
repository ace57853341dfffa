/** Source of a remote browser, to which the service connects by its DevTools URL. */

import { networkInterfaces } from "node:os";
import querystring from "node:querystring";
import type { Logger } from "pino";
import { type Connection, ProtocolError } from "puppeteer";
import { StartError } from "../../../errors.js";
import { type BrowserSource, openBrowserConnection } from "../browser-source.js";
import { findUnsafeBrowserFlags } from "../chromium-flags.js";
import { openSocketTransport, type SocketTransport } from "./socket-transport.js";

const ANSWER_TIMEOUT_MS = 10_000;
const DISCOVERY_TIMEOUT_MS = 2_000;
/** Start of a DevTools URL's path. The next part is the browser's ID, which changes with each start of the browser. */
const DEVTOOLS_PATH = "/devtools/browser/";

export interface RemoteBrowserOptions {
  /** URL with `ws:` or `wss:`. Only its host and port are logged, because other parts may be credentials. */
  endpoint: string;
  /** IP address at which the proxy ports of this service listen. */
  egressHost: string;
  /** False to accept a browser that runs without its sandbox. Never use this for untrusted code. */
  sandbox: boolean;
  log: Logger;
}

export interface RemoteBrowser extends BrowserSource {
  /** True if a connection to a proxy port from this IP address may come from this browser. */
  mayConnectFrom(address: string): boolean;
}

/** Requests the WebSocket URL from a browser with `--remote-debugging-port`. Returns null if the browser sends no valid response. */
async function discoverWebSocketUrl(endpoint: URL, stopSignal: AbortSignal): Promise<string | null> {
  const protocol = endpoint.protocol === "wss:" ? "https:" : "http:";
  const { username, password } = endpoint;
  const userInfo = `${querystring.unescape(username)}:${querystring.unescape(password)}`;
  try {
    const response = await fetch(`${protocol}//${endpoint.host}/json/version`, {
      redirect: "error",
      signal: AbortSignal.any([AbortSignal.timeout(DISCOVERY_TIMEOUT_MS), stopSignal]),
      headers: username === "" ? {} : { authorization: `Basic ${Buffer.from(userInfo).toString("base64")}` },
    });
    const { webSocketDebuggerUrl } = (await response.json()) as { webSocketDebuggerUrl: string };
    const webSocketUrl = new URL(endpoint);
    webSocketUrl.pathname = new URL(webSocketDebuggerUrl).pathname;
    return webSocketUrl.pathname.startsWith(DEVTOOLS_PATH) ? webSocketUrl.href : null;
  } catch {
    return null;
  }
}

/** Connects to the URL. If this fails, and the URL has no path or an old browser ID, requests the current URL from the browser. */
async function openTransport(endpoint: URL, stopSignal: AbortSignal): Promise<SocketTransport> {
  const { href, pathname, search } = endpoint;
  try {
    return await openSocketTransport(href, stopSignal);
  } catch (error) {
    const mayDiscover = pathname.startsWith(DEVTOOLS_PATH) || (pathname === "/" && search === "");
    const discoveredUrl = mayDiscover ? await discoverWebSocketUrl(endpoint, stopSignal) : null;
    if (discoveredUrl === null) throw error;
    return openSocketTransport(discoveredUrl, stopSignal);
  }
}

const isLoopback = (address: string) => /^127\.|^::1$/.test(address);

function isThisMachine(address: string): boolean {
  const interfaces = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return isLoopback(address) || interfaces.some((network) => network.address === address);
}

async function checkRemoteBrowser(
  connection: Connection,
  peer: string,
  options: RemoteBrowserOptions,
  name: string,
): Promise<void> {
  const { egressHost, sandbox, log } = options;
  if (isLoopback(egressHost) && !isThisMachine(peer)) {
    throw new Error(
      `the browser is on another machine, so it cannot reach the egress proxy (got EGRESS_PROXY_HOST=${egressHost}); set EGRESS_PROXY_HOST to the address at which the browser reaches this machine`,
    );
  }
  const { commandLine } = await connection.send("SystemInfo.getInfo").catch(() => ({ commandLine: "" }));
  if (!commandLine) {
    log.warn(
      { browser: name },
      "the browser does not report its command line, so the service cannot check if it isolates actions",
    );
    return;
  }
  const faults = findUnsafeBrowserFlags(commandLine, egressHost, sandbox);
  if (faults.length > 0) {
    throw new Error(
      `the browser does not isolate actions: its command line ${faults.join(", ")}; npm run browser-flags prints the required flags`,
    );
  }
  if (!sandbox) log.warn({ browser: name }, "CHROME_SANDBOX=off: the browser's sandbox is not checked");
}

export function createRemoteBrowserSource(options: RemoteBrowserOptions): RemoteBrowser {
  const { egressHost } = options;
  const endpoint = new URL(options.endpoint);
  const name = `${endpoint.protocol}//${endpoint.host}`;
  let peer: string | null = null;
  let product = "";
  return {
    name,

    mayConnectFrom(address) {
      if (peer === null) return false;
      // A browser on this machine connects from the address at which the proxy port listens.
      const isProxyAddress = address === egressHost || (isLoopback(egressHost) && isLoopback(address));
      return address === peer || (isProxyAddress && isThisMachine(peer));
    },

    async open(stopSignal) {
      let transport: SocketTransport | undefined;
      let timer: NodeJS.Timeout | undefined;
      try {
        transport = await openTransport(endpoint, stopSignal);
        timer = setTimeout(transport.close, ANSWER_TIMEOUT_MS);
        const connection = await openBrowserConnection(transport);
        await checkRemoteBrowser(connection, transport.peer, options, name);
        ({ product } = await connection.send("Browser.getVersion"));
        // Sets `peer` before the first context is created, because the proxy port of a context calls `mayConnectFrom`.
        peer = transport.peer;
        return { ...transport, connection, pid: null, getHeapFullTime: () => 0 };
      } catch (error) {
        transport?.close();
        // Node leaves out the message if several addresses of a host reject the connection.
        const { message, code } = error as NodeJS.ErrnoException;
        // The text of a protocol error comes from the other side, which may repeat the credentials of the URL.
        const reason =
          error instanceof ProtocolError ? "it rejected a command, or closed the connection" : message || code;
        throw new StartError(`the browser at ${name} (BROWSER_WS_ENDPOINTS) cannot be used: ${reason}`);
      } finally {
        clearTimeout(timer);
      }
    },

    checkSandbox: async () => ({ browser: name, product }),
  };
}
