/** Hook for a resource that a page shows and changes. It reads the resource through the query cache, and again after each change. */
import {
  hashKey,
  type Query,
  type UseQueryOptions,
  type UseQueryResult,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { Document } from "../../document.js";
import { ApiError, asApiError, handleRejectedChange } from "./api.js";
import { createReloadFunction } from "./create-reload.js";

/**
 * Returns the options with which the query cache reads a GraphQL document. The variables must contain the app's ID, so that apps do not
 * share cached data.
 * @param changeKey text that changes with the data, such as a time of change. If passed, the cache reads again when this text changes,
 *   and not when the window gets the focus.
 */
export const createQueryOptions = <Value, Variables>(
  document: Document<Value, Variables>,
  variables: Variables,
  changeKey?: string | undefined,
): UseQueryOptions<Value> => ({
  queryKey: [document, variables, changeKey],
  refetchOnWindowFocus: changeKey === undefined,
});

export interface Resource<Value> {
  /**
   * The resource as it was last read; null until the first read has succeeded. With the option `placeholderData`, it can be the data of the
   * previous query until then.
   */
  value: Value | null;
  /** Error message of the last change, or of the last read if the change succeeded; null if both succeeded. */
  fault: string | null;
  isBusy: boolean;
  /** Reads the data again and ignores the responses to earlier requests. Resolves when the last requested read has ended. */
  reload(): Promise<void>;
  /** Makes a change and reads the data again. Returns the result of the change, or null if it failed; `fault` then has the error. */
  applyChange<Result>(sendChange: () => Promise<Result>): Promise<Result | null>;
}

/** Hook that returns the error of the last ended read. The query library drops this error when the next read starts. */
function useLastError({ error, isPending }: UseQueryResult<unknown>): Error | null {
  const [lastError, setLastError] = useState(error);
  if (isPending || lastError === error) return lastError;
  setLastError(error);
  return error;
}

/**
 * Hook that returns the data of a query as it was last read; undefined if there is none.
 * @param keepsPreviousData true to return the data of the previous query if the first read of this query fails
 */
function useLastData<Value>({ data, isError }: UseQueryResult<Value>, keepsPreviousData: boolean): Value | undefined {
  const [lastData, setLastData] = useState(data);
  if (data !== undefined && data !== lastData) setLastData(data);
  return data ?? (keepsPreviousData && isError ? lastData : undefined);
}

/** Hook that returns a function which reads the query with this hash again. Its promise resolves when the newest read has ended. */
function useReload(hash: string): () => Promise<void> {
  const client = useQueryClient();
  return useMemo(() => {
    const filter = { predicate: ({ queryHash }: Query) => queryHash === hash };
    return createReloadFunction(async () => {
      // Cancels a pending first read, because it started before the change and would return the earlier data.
      await client.cancelQueries(filter);
      await client.invalidateQueries(filter);
    });
  }, [client, hash]);
}

export function useResource<Value>(query: UseQueryOptions<Value>): Resource<Value> {
  const queryResult = useQuery(query);
  const readError = useLastError(queryResult);
  const data = useLastData(queryResult, query.placeholderData !== undefined);
  // Sends changes without the query library, because its cache would store the secrets that some changes return.
  const [rejection, setRejection] = useState<{ error: ApiError; rejectedAtMs: number } | null>(null);
  const [pendingChanges, setPendingChanges] = useState(0);
  const reload = useReload(hashKey(query.queryKey));
  const applyChange = async <Result>(sendChange: () => Promise<Result>) => {
    setRejection(null);
    setPendingChanges((count) => count + 1);
    try {
      const result = await sendChange();
      await reload();
      return result;
    } catch (error) {
      const text = await handleRejectedChange(error, reload);
      setRejection({ error: new ApiError(asApiError(error).status, text), rejectedAtMs: Date.now() });
      return null;
    } finally {
      setPendingChanges((count) => count - 1);
    }
  };
  // A later successful read hides the error OFFLINE, because the service is available again. Other errors of a change stay visible.
  const isRejectionOutdated =
    rejection?.error.status === "OFFLINE" && queryResult.dataUpdatedAt > rejection.rejectedAtMs;
  const fault = (isRejectionOutdated ? null : rejection?.error) ?? readError;
  return {
    value: data ?? null,
    fault: fault && asApiError(fault).message,
    isBusy: pendingChanges > 0,
    reload,
    applyChange,
  };
}
