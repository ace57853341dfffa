/** What a page has read from the service, or why it could not; read again after each change and when the connection is back. Draws nothing. */
import { useCallback, useEffect, useRef, useState } from "react";
import { type Api, ApiError, asApiError, refusalText } from "./api.js";
import { useRefresh } from "./use-refresh.js";

export interface Loaded<Value> {
  /** null while it is read for the first time. */
  value: Value | null;
  /** Of the last change, else of the last read. */
  fault: string | null;
  busy: boolean;
  reload(): Promise<void>;
  /** Makes a change and reads again. @returns what the change gave, null where it was refused */
  change<Result>(make: () => Promise<Result>): Promise<Result | null>;
}

/**
 * @param read keeps its identity as long as it reads the same
 * @param intervalMs reads again at this interval while the page is visible
 */
export function useLoaded<Value>(api: Api, read: () => Promise<Value>, intervalMs?: number): Loaded<Value> {
  const [value, setValue] = useState<Value | null>(null);
  const [readFault, setReadFault] = useState<ApiError | null>(null);
  const [changeFault, setChangeFault] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const latest = useRef(0);
  const reload = useCallback(async () => {
    latest.current += 1;
    const turn = latest.current;
    try {
      const found = await read();
      if (turn !== latest.current) return;
      setValue(found);
      setReadFault(null);
      // The service answers again. Why it refused a change stays.
      setChangeFault((old) => (old?.status === "OFFLINE" ? null : old));
    } catch (error) {
      if (turn === latest.current) setReadFault(asApiError(error));
    }
  }, [read]);
  useEffect(() => void reload(), [reload]);
  useRefresh(api, reload, intervalMs);
  const change = useCallback(
    async <Result>(make: () => Promise<Result>) => {
      setBusy(true);
      setChangeFault(null);
      try {
        const result = await make();
        await reload();
        return result;
      } catch (error) {
        const text = await refusalText(error, reload);
        setChangeFault(new ApiError(asApiError(error).status, text));
        return null;
      } finally {
        setBusy(false);
      }
    },
    [reload],
  );
  return { value, fault: (changeFault ?? readFault)?.message ?? null, busy, reload, change };
}
