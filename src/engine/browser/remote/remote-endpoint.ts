/**
 * Address of a remote browser: its name in logs, and the connection to it. Parts other than host and port may be
 * credentials and are never logged.
 */
import { openSocketTransport, type SocketTransport } from "./socket-transport.js";

const DISCOVERY_TIMEOUT_MS = 2_000;
/** Prefix of the browser's id, which changes with each start. */
const BROWSER_PATH = "/devtools/browser/";
/** Minimum length of a credential. Shorter parts of an address are not credentials, and occur in other words. */
const SECRET_MIN_CHARACTERS = 4;

/** Returns the address without credentials. */
export function nameOf({ protocol, host }: URL): string {
  return `${protocol}//${host}`;
}

function decodeUrlPart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns the message of an error, without any part of the address except host and port. */
export function reasonOf(error: unknown, endpoint: URL): string {
  const { message, code } = error as NodeJS.ErrnoException;
  const { href, search, pathname, username, password, searchParams } = endpoint;
  const parts = [href, search, pathname, username, password, ...searchParams.values()];
  return [...parts, ...parts.map(decodeUrlPart)]
    .filter((part) => part.length >= SECRET_MIN_CHARACTERS)
    .sort((a, b) => b.length - a.length)
    .reduce((text, part) => text.replaceAll(part, "…"), message || code || "unknown reason");
}

/**
 * Requests the socket's address from a browser that was started with `--remote-debugging-port`.
 * @returns null if the browser does not answer
 */
async function discoverWebsocket(endpoint: URL, stopped?: AbortSignal): Promise<string | null> {
  const protocol = endpoint.protocol === "wss:" ? "https:" : "http:";
  const { username, password } = endpoint;
  const basic = Buffer.from(`${decodeUrlPart(username)}:${decodeUrlPart(password)}`).toString("base64");
  try {
    const response = await fetch(`${protocol}//${endpoint.host}/json/version`, {
      redirect: "error",
      signal: AbortSignal.any([AbortSignal.timeout(DISCOVERY_TIMEOUT_MS), ...(stopped ? [stopped] : [])]),
      headers: username === "" ? {} : { authorization: `Basic ${basic}` },
    });
    const { webSocketDebuggerUrl } = (await response.json()) as { webSocketDebuggerUrl: string };
    const discovered = new URL(endpoint);
    discovered.pathname = new URL(webSocketDebuggerUrl).pathname;
    return discovered.pathname.startsWith(BROWSER_PATH) ? discovered.href : null;
  } catch {
    return null;
  }
}

/**
 * Connects to the browser. If the address has only host and port, the browser is asked for its socket. If it names a
 * browser that no longer exists, it connects to the current one. Any other address is used unchanged.
 */
export async function openEndpoint(endpoint: URL, stopped?: AbortSignal): Promise<SocketTransport> {
  if (endpoint.pathname === "/" && endpoint.search === "") {
    return openSocketTransport((await discoverWebsocket(endpoint, stopped)) ?? endpoint.href, { stopped });
  }
  try {
    return await openSocketTransport(endpoint.href, { stopped });
  } catch (error) {
    const other = endpoint.pathname.startsWith(BROWSER_PATH) ? await discoverWebsocket(endpoint, stopped) : null;
    if (other === null) throw error;
    return openSocketTransport(other, { stopped });
  }
}
