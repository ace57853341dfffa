/** Studio's cache of query results, one for each session. */
import { focusManager, type InfiniteData, QueryClient, type QueryKey } from "@tanstack/react-query";
import type { Document } from "../../document.js";
import type { ApiClient } from "./api.js";

/** Reads the queries again when the window gets the focus or becomes visible. By default, the query library ignores the focus. */
focusManager.setEventListener((onFocus) => {
  const listener = () => onFocus();
  addEventListener("focus", listener);
  addEventListener("visibilitychange", listener);
  return () => {
    removeEventListener("focus", listener);
    removeEventListener("visibilitychange", listener);
  };
});

/**
 * Creates the cache of one session. It does not retry failed requests, and sends requests even if the browser reports that it is offline.
 */
export function createQueryClient(api: ApiClient): QueryClient {
  const client = new QueryClient({
    defaultOptions: {
      queries: {
        networkMode: "always",
        retry: false,
        // The browser's event "online" does not mean that the service is available.
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
 * Reads the first page of a log again, and removes the other loaded pages from the cache. Otherwise, the query library would request all of
 * them again, one after the other.
 */
export async function readFirstPageAgain(client: QueryClient, queryKey: QueryKey): Promise<void> {
  // Cancels the read of a later page. Its entries would follow the new first page, and entries between them would be missing.
  await client.cancelQueries({ queryKey, exact: true });
  client.setQueryData<InfiniteData<unknown>>(
    queryKey,
    (log) => log && { pages: log.pages.slice(0, 1), pageParams: log.pageParams.slice(0, 1) },
  );
  await client.invalidateQueries({ queryKey, exact: true });
}
