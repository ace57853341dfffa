/** What a page has read from the service, or why it could not; read again after each change that it makes. Draws nothing. */
import { useCallback, useEffect, useState } from "react";
import { asApiError } from "./api.js";

export interface Loaded<Value> {
  /** null while it is read for the first time. */
  value: Value | null;
  /** Of the last reading or the last change. */
  fault: string | null;
  busy: boolean;
  reload(): Promise<void>;
  /** Makes a change and reads again. @returns what the change gave, null where it was refused */
  change<Result>(make: () => Promise<Result>): Promise<Result | null>;
}

/** @param read keeps its identity as long as it reads the same */
export function useLoaded<Value>(read: () => Promise<Value>): Loaded<Value> {
  const [value, setValue] = useState<Value | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const reload = useCallback(async () => {
    try {
      setValue(await read());
    } catch (error) {
      setFault(asApiError(error).message);
    }
  }, [read]);
  useEffect(() => void reload(), [reload]);
  const change = useCallback(
    async <Result>(make: () => Promise<Result>) => {
      setBusy(true);
      setFault(null);
      try {
        const result = await make();
        await reload();
        return result;
      } catch (error) {
        setFault(asApiError(error).message);
        return null;
      } finally {
        setBusy(false);
      }
    },
    [reload],
  );
  return { value, fault, busy, reload, change };
}
