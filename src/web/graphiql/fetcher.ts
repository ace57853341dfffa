/** Sends GraphiQL's operations over HTTP and graphql-ws with one credential. */
import { createGraphiQLFetcher, type Fetcher } from "@graphiql/toolkit";
import { createClient } from "graphql-ws";

type EditorHeaders = Record<string, unknown>;

/** Removes empty headers of the Headers editor. If no header with a credential remains, the browser's session cookie is the credential. */
function removeEmptyHeaders(headers: EditorHeaders = {}): Record<string, string> {
  const filledEntries = Object.entries(headers).filter(([, value]) => typeof value === "string" && value.trim() !== "");
  return Object.fromEntries(filledEntries) as Record<string, string>;
}

/** Returns the connection parameters with the credential. Browsers cannot send headers when they open a WebSocket. */
export function socketParameters(headers: Record<string, string>): { authToken?: string } {
  const headersByName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value.trim()]));
  const authToken = headersByName.get("auth-token") ?? headersByName.get("authorization")?.replace(/^Bearer\s+/i, "");
  return authToken ? { authToken } : {};
}

/** @param url URL on this page's origin that accepts POST requests and WebSockets */
export function createFetcher(url: URL): Fetcher {
  const socketUrl = new URL(url);
  socketUrl.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return (params, options) => {
    const headers = removeEmptyHeaders(options?.headers);
    // The socket opens for the first subscription, so that it uses the current headers. It closes after the last subscription.
    const wsClient = createClient({
      url: socketUrl.href,
      connectionParams: socketParameters(headers),
      retryAttempts: 3,
    });
    const fetcher = createGraphiQLFetcher({ url: url.href, wsClient, enableIncrementalDelivery: false });
    return fetcher(params, { ...options, headers });
  };
}
