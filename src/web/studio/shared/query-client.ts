/** Studio's cache of query results, one per session. The key of a result consists of the GraphQL document and its variables. */
import { focusManager, type InfiniteData, QueryClient, type QueryKey } from "@tanstack/react-query";
import type { Document } from "../../document.js";
import type { Api } from "./api.js";

/** Reads again at the focus too: a window that was beside another one has been visible all the time. */
focusManager.setEventListener((onFocus) => {
  const listener = () => onFocus();
  addEventListener("focus", listener);
  addEventListener("visibilitychange", listener);
  return () => {
    removeEventListener("focus", listener);
    removeEventListener("visibilitychange", listener);
  };
});

/** Creates the client of one session. Requests are sent once, also if the browser reports that it is offline. */
export function createQueryClient(api: Api): QueryClient {
  const client = new QueryClient({
    defaultOptions: {
      queries: {
        networkMode: "always",
        retry: false,
        // The service can be away while the browser is online.
        refetchOnReconnect: false,
        queryFn: ({ queryKey: [document, variables] }) =>
          api.request(document as Document<unknown, unknown>, variables),
      },
    },
  });
  api.onReconnected(() => void client.invalidateQueries());
  return client;
}

/**
 * Reads the first page of a log again and drops its other pages. The library would otherwise request each loaded page again, one after the
 * other.
 */
export async function readFirstPageAgain(client: QueryClient, queryKey: QueryKey): Promise<void> {
  // A page that is on its way would be added to the first page, and a gap would remain between the two.
  await client.cancelQueries({ queryKey, exact: true });
  client.setQueryData<InfiniteData<unknown>>(
    queryKey,
    (log) => log && { pages: log.pages.slice(0, 1), pageParams: log.pageParams.slice(0, 1) },
  );
  await client.invalidateQueries({ queryKey, exact: true });
}
