/** A resource that a page shows, from the query cache, with its changes. Read again after each change. */
import {
  hashKey,
  type Query,
  type UseQueryOptions,
  type UseQueryResult,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useCallback, useState } from "react";
import type { Document } from "../../document.js";
import { ApiError, asApiError, refusalText } from "./api.js";

/**
 * The query of one document. Its variables name the app, so that no app shows the data of another one.
 * @param state differs if the data has changed, so that it is read again
 */
export const queryOf = <Value, Variables>(
  document: Document<Value, Variables>,
  variables: Variables,
  state?: string | undefined,
): UseQueryOptions<Value> => ({ queryKey: [document, variables, state] });

export interface Resource<Value> {
  /** The data; null until it has been read. */
  value: Value | null;
  /** Message of the last change, else of the last read; null if it succeeded. */
  fault: string | null;
  busy: boolean;
  /** Reads again; a response to an earlier request is dropped. */
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

export function useResource<Value>(query: UseQueryOptions<Value>): Resource<Value> {
  const client = useQueryClient();
  const reading = useQuery(query);
  const readError = useLastError(reading);
  const [refusedAt, setRefusedAt] = useState(0);
  const hash = hashKey(query.queryKey);
  const reload = useCallback(async () => {
    const filter = { predicate: ({ queryHash }: Query) => queryHash === hash };
    // The client would wait for the first read, although it began before the change.
    await client.cancelQueries(filter);
    await client.invalidateQueries(filter);
  }, [client, hash]);
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
  const isOffline = changing.error !== null && asApiError(changing.error).status === "OFFLINE";
  const fault = (isOffline && reading.dataUpdatedAt > refusedAt ? null : changing.error) ?? readError;
  return {
    value: reading.data ?? null,
    fault: fault && asApiError(fault).message,
    busy: changing.isPending,
    reload,
    change: async <Result>(make: () => Promise<Result>) =>
      (await changing.mutateAsync(make).catch(() => null)) as Result | null,
  };
}
