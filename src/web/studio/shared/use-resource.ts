/** A resource that a page shows, from the query cache, with its changes. Read again after each change. */
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
 * The query of one document. Its variables name the app, so that no app shows the data of another one.
 * @param state differs if the data has changed, so that it is read again. Then the focus of the window does not read it again.
 */
export const queryOf = <Value, Variables>(
  document: Document<Value, Variables>,
  variables: Variables,
  state?: string | undefined,
): UseQueryOptions<Value> => ({ queryKey: [document, variables, state], refetchOnWindowFocus: state === undefined });

export interface Resource<Value> {
  /** The data; null until it has been read. */
  value: Value | null;
  /** Message of the last rejected change, until another one starts, else of the last read; null if they succeeded. */
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

/** With placeholder data, the last data remain also if the next read fails: the library shows them only until then. */
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
      // The client would wait for the first read, although it began before the change.
      await client.cancelQueries(filter);
      await client.invalidateQueries(filter);
    });
  }, [client, hash]);
}

export function useResource<Value>(query: UseQueryOptions<Value>): Resource<Value> {
  const reading = useQuery(query);
  const readError = useLastError(reading);
  const data = useLastData(reading, query.placeholderData !== undefined);
  // Not in the library's cache of changes, which would store the secrets that some changes return.
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
  // The service answers again. Why it refused a change stays.
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
