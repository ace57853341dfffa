/** A resource that a page shows, from the query cache, with its changes. Read again after each change. */
import { type QueryKey, type UseQueryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import type { Document } from "../../document.js";
import { ApiError, asApiError, refusalText } from "./api.js";

export interface ResourceQuery<Value> {
  queryKey: QueryKey;
  /** Left out if the key is a document with its variables. */
  queryFn?: () => Promise<Value>;
  enabled?: boolean;
  /** Reads again at this interval while the page is visible. */
  refetchInterval?: number | false;
  /** `keepPreviousData`, if a filter or the length of the list changes the key. */
  placeholderData?: (previous: Value | undefined) => Value | undefined;
}

/** The query of one document. Its variables name the app, so that no app shows the data of another one. */
export const queryOf = <Value, Variables>(
  document: Document<Value, Variables>,
  variables: Variables,
): ResourceQuery<Value> => ({ queryKey: [document, variables] });

export interface Resource<Value> {
  /** null until it has been read. */
  value: Value | null;
  /** Message of the last change, else of the last read; null if it succeeded. */
  fault: string | null;
  busy: boolean;
  /** Reads again; a response to an earlier request is dropped. */
  reload(): Promise<void>;
  /** Makes a change and reads again. @returns the result of the change, null if it was refused */
  change<Result>(make: () => Promise<Result>): Promise<Result | null>;
}

/** Error of the last read that has ended: the library forgets it when the next one starts. */
function useLastError(error: Error | null, isFetching: boolean): Error | null {
  const [last, setLast] = useState(error);
  if (isFetching || last === error) return last;
  setLast(error);
  return error;
}

export function useResource<Value>(query: ResourceQuery<Value>): Resource<Value> {
  const client = useQueryClient();
  const { data, error, isFetching, dataUpdatedAt } = useQuery<Value>(query as UseQueryOptions<Value>);
  const readError = useLastError(error, isFetching);
  const [refusedAt, setRefusedAt] = useState(0);
  const key = JSON.stringify(query.queryKey);
  const reload = useCallback(async () => {
    const filter = { queryKey: JSON.parse(key) as QueryKey };
    // The client would wait for the first read, although it began before the change.
    await client.cancelQueries(filter);
    await client.invalidateQueries(filter);
  }, [client, key]);
  const changing = useMutation<unknown, Error, () => Promise<unknown>>({
    async mutationFn(make) {
      try {
        const result = await make();
        await reload();
        return result;
      } catch (error) {
        throw new ApiError(asApiError(error).status, await refusalText(error, reload));
      }
    },
    onError: () => setRefusedAt(Date.now()),
  });
  // The service answers again. Why it refused a change stays.
  const isOver =
    dataUpdatedAt > refusedAt && changing.error !== null && asApiError(changing.error).status === "OFFLINE";
  const fault = (isOver ? null : changing.error) ?? readError;
  return {
    value: data ?? null,
    fault: fault && asApiError(fault).message,
    busy: changing.isPending,
    reload,
    change: async <Result>(make: () => Promise<Result>) =>
      (await changing.mutateAsync(make).catch(() => null)) as Result | null,
  };
}
