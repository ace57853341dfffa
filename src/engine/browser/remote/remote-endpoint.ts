/** Connects to a remote browser by its URL. Logs show only the host and port of the URL, because the rest may be credentials. */
import { openSocketTransport, type SocketTransport } from "./socket-transport.js";

const DISCOVERY_TIMEOUT_MS = 2_000;
/** Start of a DevTools URL's path. The next part is the browser's ID, which changes with each start of the browser. */
const DEVTOOLS_PATH = "/devtools/browser/";
/** A shorter part of the URL may also occur in ordinary words, so it is not masked. */
const SECRET_MIN_CHARACTERS = 4;

export function getEndpointName({ protocol, host }: URL): string {
  return `${protocol}//${host}`;
}

function decodeUrlPart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function getMaskedErrorMessage(error: unknown, endpoint: URL): string {
  const { message, code } = error as NodeJS.ErrnoException;
  const { href, search, pathname, username, password, searchParams } = endpoint;
  const parts = [href, search, pathname, username, password, ...searchParams.values()];
  return [...parts, ...parts.map(decodeUrlPart)]
    .filter((part) => part.length >= SECRET_MIN_CHARACTERS)
    .sort((a, b) => b.length - a.length)
    .reduce((text, part) => text.replaceAll(part, "…"), message || code || "unknown reason");
}

/** Requests the WebSocket URL from a browser with `--remote-debugging-port`. Returns null if the browser sends no valid response. */
async function discoverWebSocketUrl(endpoint: URL, stopped: AbortSignal): Promise<string | null> {
  const protocol = endpoint.protocol === "wss:" ? "https:" : "http:";
  const { username, password } = endpoint;
  const basic = Buffer.from(`${decodeUrlPart(username)}:${decodeUrlPart(password)}`).toString("base64");
  try {
    const response = await fetch(`${protocol}//${endpoint.host}/json/version`, {
      redirect: "error",
      signal: AbortSignal.any([AbortSignal.timeout(DISCOVERY_TIMEOUT_MS), stopped]),
      headers: username === "" ? {} : { authorization: `Basic ${basic}` },
    });
    const { webSocketDebuggerUrl } = (await response.json()) as { webSocketDebuggerUrl: string };
    const discovered = new URL(endpoint);
    discovered.pathname = new URL(webSocketDebuggerUrl).pathname;
    return discovered.pathname.startsWith(DEVTOOLS_PATH) ? discovered.href : null;
  } catch {
    return null;
  }
}

/** Connects to the URL. If this fails, and the URL has no path or an old browser ID, requests the current URL from the browser. */
export async function openRemoteBrowserTransport(endpoint: URL, stopped: AbortSignal): Promise<SocketTransport> {
  const { href, pathname, search } = endpoint;
  try {
    return await openSocketTransport(href, stopped);
  } catch (error) {
    const mayDiscover = pathname.startsWith(DEVTOOLS_PATH) || (pathname === "/" && search === "");
    const discoveredUrl = mayDiscover ? await discoverWebSocketUrl(endpoint, stopped) : null;
    if (discoveredUrl === null) throw error;
    return openSocketTransport(discoveredUrl, stopped);
  }
}
