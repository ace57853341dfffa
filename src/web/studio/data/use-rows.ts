/** Hook for rows of a form. Rows with a fault, such as two equal keys, are shown with a message and are not part of the form's value. */
import { createContext, useContext, useEffect, useState } from "react";
import { findDuplicate } from "./draft-rows.js";

/** Changes the number of row lists that contain a fault. The form saves only when it is 0. */
export const FaultyListsContext = createContext<(change: 1 | -1) => void>(() => undefined);

interface RowsOptions<Row> {
  /** Rows that the value contains. */
  rows: Row[];
  /** Returns the key of a row in the value; null if rows may be equal. */
  keyOf: ((row: Row) => string) | null;
  /** Returns a message about rows that cannot be written, or null. */
  check?: (rows: Row[]) => string | null;
  /** Returns the rows as they are after they were written to the value and read back, to detect changes from elsewhere. */
  read: (rows: Row[]) => Row[];
  write: (rows: Row[]) => void;
}

export function useFormRows<Row>({ rows: stored, keyOf, check, read, write }: RowsOptions<Row>) {
  const text = JSON.stringify(stored);
  const [edit, setEdit] = useState<{ rows: Row[]; text: string } | null>(null);
  const rows = edit?.text === text ? edit.rows : stored;
  const findFault = (some: Row[]): string | null => {
    const duplicate = keyOf === null ? null : findDuplicate(some.map(keyOf));
    if (duplicate !== null) return `Two rows are for "${duplicate}". Your change is not saved until they differ.`;
    return check?.(some) ?? null;
  };
  const setRows = (next: Row[]) => {
    const isWritten = findFault(next) === null;
    setEdit({ rows: next, text: isWritten ? JSON.stringify(read(next)) : text });
    if (isWritten) write(next);
  };
  const fault = findFault(rows);
  const isFaulty = fault !== null;
  const countFaults = useContext(FaultyListsContext);
  useEffect(() => {
    if (!isFaulty) return;
    countFaults(1);
    return () => countFaults(-1);
  }, [isFaulty, countFaults]);
  return { rows, set: setRows, fault };
}
