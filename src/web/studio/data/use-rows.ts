/**
 * Hook for the rows of a form. Shows a message at rows with an error, such as two rows with the same key. The form's
 * value does not contain such rows.
 */
import { createContext, useContext, useEffect, useState } from "react";
import { findDuplicateKey } from "./draft-rows.js";

/** Context with a function that changes the count of invalid lists in a form. Pass 1 if a list becomes invalid, -1 if valid again. */
export const InvalidListCounterContext = createContext<(change: 1 | -1) => void>(() => undefined);

interface FormRowsOptions<Row> {
  /** Rows of the form's current value. */
  rows: Row[];
  /** Returns the key under which a row is stored. The function itself is null if rows may have equal keys. */
  getRowKey: ((row: Row) => string) | null;
  /** Returns an error message if the rows cannot be stored, otherwise null. */
  findRowsFault?: (rows: Row[]) => string | null;
  /**
   * Returns the rows that the prop `rows` should contain after `writeRows(rows)`. While the prop contains exactly these rows, the form
   * shows the rows as the person typed them. If the prop has another value, the form shows that value.
   */
  normalizeRows: (rows: Row[]) => Row[];
  writeRows: (rows: Row[]) => void;
}

export function useFormRows<Row>({
  rows: stored,
  getRowKey,
  findRowsFault,
  normalizeRows,
  writeRows,
}: FormRowsOptions<Row>) {
  const text = JSON.stringify(stored);
  const [edit, setEdit] = useState<{ rows: Row[]; text: string } | null>(null);
  const rows = edit?.text === text ? edit.rows : stored;
  const findFault = (rowsToCheck: Row[]): string | null => {
    const duplicate = getRowKey === null ? null : findDuplicateKey(rowsToCheck.map(getRowKey));
    if (duplicate !== null) return `Two rows are for "${duplicate}". Your change is not saved until they differ.`;
    return findRowsFault?.(rowsToCheck) ?? null;
  };
  const setRows = (next: Row[]) => {
    const isWritten = findFault(next) === null;
    setEdit({ rows: next, text: isWritten ? JSON.stringify(normalizeRows(next)) : text });
    if (isWritten) writeRows(next);
  };
  const fault = findFault(rows);
  const isFaulty = fault !== null;
  const changeInvalidListCount = useContext(InvalidListCounterContext);
  useEffect(() => {
    if (!isFaulty) return;
    changeInvalidListCount(1);
    return () => changeInvalidListCount(-1);
  }, [isFaulty, changeInvalidListCount]);
  return { rows, set: setRows, fault };
}
