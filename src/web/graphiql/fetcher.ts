/** Sends GraphiQL's operations over HTTP, and its subscriptions over a WebSocket, with the same credential. */
import { createGraphiQLFetcher, type Fetcher } from "@graphiql/toolkit";
import { createClient } from "graphql-ws";

type EditorHeaders = Record<string, unknown>;

/** Removes headers with an empty value. GraphiQL's Headers editor contains an empty token header at first. */
function removeEmptyHeaders(headers: EditorHeaders = {}): Record<string, string> {
  const filledEntries = Object.entries(headers).filter(([, value]) => typeof value === "string" && value.trim() !== "");
  return Object.fromEntries(filledEntries) as Record<string, string>;
}

/** Returns the token from the headers as a parameter of the connection, because browsers cannot send headers on a WebSocket. */
export function createGraphiqlSocketParameters(headers: Record<string, string>): { authToken?: string } {
  const headersByName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value.trim()]));
  const authToken = headersByName.get("auth-token") ?? headersByName.get("authorization")?.replace(/^Bearer\s+/i, "");
  return authToken ? { authToken } : {};
}

/** Creates the function that sends GraphiQL's operations. @param url GraphQL endpoint on this page's origin, for POST and WebSockets */
export function createGraphiqlFetcher(url: URL): Fetcher {
  const socketUrl = new URL(url);
  socketUrl.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return (params, options) => {
    const headers = removeEmptyHeaders(options?.headers);
    // Each operation has its own client, with the editor's current headers. The client opens a WebSocket only for a subscription.
    const wsClient = createClient({
      url: socketUrl.href,
      connectionParams: createGraphiqlSocketParameters(headers),
      retryAttempts: 3,
    });
    const fetcher = createGraphiQLFetcher({ url: url.href, wsClient, enableIncrementalDelivery: false });
    return fetcher(params, { ...options, headers });
  };
}
