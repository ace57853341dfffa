/**
 * Hook for the rows of a form. Rows with an error, such as two rows with the same key, are shown with a message but are not part of the
 * form's value.
 */
import { createContext, useContext, useEffect, useState } from "react";
import { findDuplicate } from "./draft-rows.js";

/**
 * Counts the lists of rows that contain an error: call it with 1 for a new error and with -1 when it is gone. The form can be saved only if
 * there is none.
 */
export const FaultyListsContext = createContext<(change: 1 | -1) => void>(() => undefined);

interface RowsOptions<Row> {
  /** Rows of the form's current value. */
  rows: Row[];
  /** Returns the key under which a row is stored. Null if rows may have equal keys. */
  keyOf: ((row: Row) => string) | null;
  /** Returns an error message if the rows cannot be stored, otherwise null. */
  check?: (rows: Row[]) => string | null;
  /**
   * Returns the rows as they are after they were stored and read again. The hook compares them with later values, to detect changes from
   * elsewhere.
   */
  readBack: (rows: Row[]) => Row[];
  writeRows: (rows: Row[]) => void;
}

export function useFormRows<Row>({ rows: stored, keyOf, check, readBack, writeRows }: RowsOptions<Row>) {
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
    setEdit({ rows: next, text: isWritten ? JSON.stringify(readBack(next)) : text });
    if (isWritten) writeRows(next);
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
