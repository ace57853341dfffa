/**
 * The address of a browser that somebody else started: how it may be named, and where its socket is. What stands in it beside host
 * and port may be a credential, and is never told.
 */
import { openSocketTransport, type SocketTransport } from "./socket-transport.js";

const DISCOVERY_TIMEOUT_MS = 2_000;
/** Followed by an id that another start of the same browser does not have. */
const BROWSER_PATH = "/devtools/browser/";
/** Shorter pieces of an address are no credentials, and stand in other words too. */
const SECRET_MIN_CHARACTERS = 4;

/** The address without what may be a credential. */
export function nameOf({ protocol, host }: URL): string {
  return `${protocol}//${host}`;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What went wrong, without anything of the address but host and port. */
export function reasonOf(error: unknown, endpoint: URL): string {
  const { message, code } = error as NodeJS.ErrnoException;
  const { href, search, pathname, username, password, searchParams } = endpoint;
  const parts = [href, search, pathname, username, password, ...searchParams.values()];
  return [...parts, ...parts.map(decoded)]
    .filter((part) => part.length >= SECRET_MIN_CHARACTERS)
    .sort((a, b) => b.length - a.length)
    .reduce((text, part) => text.replaceAll(part, "…"), message || code || "no reason is known");
}

/** Where a browser that was started with `--remote-debugging-port` says that its socket is; null where nothing says so. */
async function discover(endpoint: URL, stopped?: AbortSignal): Promise<string | null> {
  const protocol = endpoint.protocol === "wss:" ? "https:" : "http:";
  const { username, password } = endpoint;
  const basic = Buffer.from(`${decoded(username)}:${decoded(password)}`).toString("base64");
  try {
    const response = await fetch(`${protocol}//${endpoint.host}/json/version`, {
      redirect: "error",
      signal: AbortSignal.any([AbortSignal.timeout(DISCOVERY_TIMEOUT_MS), ...(stopped ? [stopped] : [])]),
      headers: username === "" ? {} : { authorization: `Basic ${basic}` },
    });
    const { webSocketDebuggerUrl } = (await response.json()) as { webSocketDebuggerUrl: string };
    const found = new URL(endpoint);
    found.pathname = new URL(webSocketDebuggerUrl).pathname;
    return found.pathname.startsWith(BROWSER_PATH) ? found.href : null;
  } catch {
    return null;
  }
}

/**
 * Connects to the browser behind the address. One of host and port alone is asked for its browser; one that names a browser which
 * is there no more leads to the one that is there now; any other is taken as it is.
 */
export async function openEndpoint(endpoint: URL, stopped?: AbortSignal): Promise<SocketTransport> {
  if (endpoint.pathname === "/" && endpoint.search === "") {
    return openSocketTransport((await discover(endpoint, stopped)) ?? endpoint.href, { stopped });
  }
  try {
    return await openSocketTransport(endpoint.href, { stopped });
  } catch (error) {
    const other = endpoint.pathname.startsWith(BROWSER_PATH) ? await discover(endpoint, stopped) : null;
    if (other === null) throw error;
    return openSocketTransport(other, { stopped });
  }
}
