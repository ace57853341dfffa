/** Sends GraphiQL's operations over HTTP and graphql-ws with one credential. */
import { createGraphiQLFetcher, type Fetcher } from "@graphiql/toolkit";
import { createClient } from "graphql-ws";

type Headers = Record<string, unknown>;

/** Removes empty headers of the Headers editor: without a credential the cookie counts. */
function filledHeaders(headers: Headers = {}): Record<string, string> {
  const filled = Object.entries(headers).filter(([, value]) => typeof value === "string" && value.trim() !== "");
  return Object.fromEntries(filled) as Record<string, string>;
}

/** A browser's websocket cannot have headers, so the credential is in the connection's parameters. */
export function connectionParams(headers: Record<string, string>): { authToken?: string } {
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value.trim()]));
  const authToken = byName.get("auth-token") ?? byName.get("authorization")?.replace(/^Bearer\s+/i, "");
  return authToken ? { authToken } : {};
}

/** @param url path of POST and the websocket, on this page's own origin */
export function createFetcher(url: URL): Fetcher {
  const socketUrl = new URL(url);
  socketUrl.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return (params, options) => {
    const headers = filledHeaders(options?.headers);
    // Lazy: the socket opens with a subscription, with the current headers, and closes after it.
    const wsClient = createClient({
      url: socketUrl.href,
      connectionParams: connectionParams(headers),
      retryAttempts: 3,
    });
    const fetcher = createGraphiQLFetcher({ url: url.href, wsClient, enableIncrementalDelivery: false });
    return fetcher(params, { ...options, headers });
  };
}
