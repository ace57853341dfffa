/** Hook for a resource that a page shows and changes. Reads it through the query cache, and again after each change. */
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
import { ApiError, asApiError, refusalText } from "./api.js";
import { createReload } from "./newest-read.js";

/**
 * Returns the query of a GraphQL document. The variables must contain the app's ID, so that apps do not share cached data.
 * @param state text that changes with the data. A change causes a read. With a state, the focus of the window causes no read.
 */
export const queryOf = <Value, Variables>(
  document: Document<Value, Variables>,
  variables: Variables,
  state?: string | undefined,
): UseQueryOptions<Value> => ({ queryKey: [document, variables, state], refetchOnWindowFocus: state === undefined });

export interface Resource<Value> {
  /** The data; null until it has been read. */
  value: Value | null;
  /** Message of the last change if it was rejected, otherwise of the last read if it failed; null if both succeeded. */
  fault: string | null;
  busy: boolean;
  /** Reads again; a response to an earlier request is dropped. Resolves when no reload is pending. */
  reload(): Promise<void>;
  /** Makes a change and reads again. @returns the result of the change, null if it was refused */
  change<Result>(make: () => Promise<Result>): Promise<Result | null>;
}

/** Error of the last read that has ended. Without data, the library removes it when the next read starts. */
function useLastError({ error, isPending }: UseQueryResult<unknown>): Error | null {
  const [last, setLast] = useState(error);
  if (isPending || last === error) return last;
  setLast(error);
  return error;
}

/** Returns the last data. With `isKept`, also after a failed read of another query; the library removes placeholder data then. */
function useLastData<Value>({ data, isError }: UseQueryResult<Value>, isKept: boolean): Value | undefined {
  const [last, setLast] = useState(data);
  if (data !== undefined && data !== last) setLast(data);
  return data ?? (isKept && isError ? last : undefined);
}

/** Returns a function that reads the query with this hash again. It resolves when the newest read has ended. */
function useReload(hash: string): () => Promise<void> {
  const client = useQueryClient();
  return useMemo(() => {
    const filter = { predicate: ({ queryHash }: Query) => queryHash === hash };
    return createReload(async () => {
      // Cancels a first read that is still pending: it started before the change, and the library would reuse it.
      await client.cancelQueries(filter);
      await client.invalidateQueries(filter);
    });
  }, [client, hash]);
}

export function useResource<Value>(query: UseQueryOptions<Value>): Resource<Value> {
  const reading = useQuery(query);
  const readError = useLastError(reading);
  const data = useLastData(reading, query.placeholderData !== undefined);
  // Changes are not made by the library, because its cache would store the secrets that some changes return.
  const [rejection, setRejection] = useState<{ error: ApiError; at: number } | null>(null);
  const [pendingChanges, setPendingChanges] = useState(0);
  const reload = useReload(hashKey(query.queryKey));
  const change = async <Result>(make: () => Promise<Result>) => {
    setRejection(null);
    setPendingChanges((count) => count + 1);
    try {
      const result = await make();
      await reload();
      return result;
    } catch (error) {
      const text = await refusalText(error, reload);
      setRejection({ error: new ApiError(asApiError(error).status, text), at: Date.now() });
      return null;
    } finally {
      setPendingChanges((count) => count - 1);
    }
  };
  // A later successful read removes the error OFFLINE. Other errors of a change stay.
  const isOver = rejection?.error.status === "OFFLINE" && reading.dataUpdatedAt > rejection.at;
  const fault = (isOver ? null : rejection?.error) ?? readError;
  return {
    value: data ?? null,
    fault: fault && asApiError(fault).message,
    busy: pendingChanges > 0,
    reload,
    change,
  };
}
