/**
 * Hook with the state of the cell that the person edits in the grid of entries, and the last change that the service rejected. It converts
 * the typed text to a value.
 */
import { useCallback, useMemo, useRef, useState } from "react";
import { flushSync } from "react-dom";
import type { Entry } from "../shared/model.js";
import { parseCellText } from "../shared/typed-value.js";
import type { EntriesState } from "./use-entries.js";

export interface CellEdit {
  /** Entry as it was when the person began to edit. The service rejects the save if another person has changed the edited cell since. */
  entry: Entry;
  rowIndex: number;
  column: string;
  typedText: string;
  isSaving: boolean;
}

export interface CellFault {
  entryId: number;
  column: string;
  message: string;
  /** Text that the person typed, which the service has not stored. */
  typedText: string;
}

export const formatCellValue = (value: unknown): string =>
  value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

/** Functions that the cells of the grid call. The object stays the same while the grid is mounted, so that it causes no renders. */
export interface CellEditFunctions {
  startEdit(entry: Entry, index: number, column: string): void;
  changeText(text: string): void;
  saveCell(): void;
  cancelEdit(): void;
}

export function useCellEdit({ updateEntry, findEntry }: Pick<EntriesState, "updateEntry" | "findEntry">) {
  const [edit, setEdit] = useState<CellEdit | null>(null);
  const [fault, setFault] = useState<CellFault | null>(null);
  const currentEdit = useRef(edit);

  const changeEdit = useCallback((next: CellEdit | null) => {
    currentEdit.current = next;
    // React must render the cell at once, because only an element in the document can receive the focus.
    flushSync(() => setEdit(next));
  }, []);
  const saveEdit = useCallback(
    async ({ entry, rowIndex, column, typedText }: CellEdit) => {
      const originalValue = entry.data[column];
      if (typedText === formatCellValue(originalValue)) return changeEdit(null);
      const savingEdit = { entry, rowIndex, column, typedText, isSaving: true };
      changeEdit(savingEdit);
      // If the cell still has its original value, sends the newest `updatedAt` of its entry as the precondition. So a change of another cell
      // does not prevent the save.
      const newestEntry = findEntry(entry.id)?.entry ?? entry;
      const baseEntry =
        formatCellValue(newestEntry.data[column]) === formatCellValue(originalValue) ? newestEntry : entry;
      const message = await updateEntry(baseEntry, { [column]: parseCellText(typedText, originalValue) });
      setFault(message === null ? null : { entryId: entry.id, column, message, typedText });
      // If the person has started to edit another cell while the save was sent, that cell stays open.
      if (currentEdit.current === savingEdit) changeEdit(null);
    },
    [changeEdit, updateEntry, findEntry],
  );
  const cellFunctions = useMemo<CellEditFunctions>(
    () => ({
      startEdit(entry, rowIndex, column) {
        setFault(null);
        changeEdit({ entry, rowIndex, column, typedText: formatCellValue(entry.data[column]), isSaving: false });
      },
      changeText: (text) => currentEdit.current && changeEdit({ ...currentEdit.current, typedText: text }),
      saveCell() {
        if (currentEdit.current && !currentEdit.current.isSaving) void saveEdit(currentEdit.current);
      },
      cancelEdit: () => changeEdit(null),
    }),
    [changeEdit, saveEdit],
  );
  const hasUnsavedText =
    edit !== null && !edit.isSaving && edit.typedText !== formatCellValue(edit.entry.data[edit.column]);
  return { edit, fault, hasUnsavedText, cellFunctions };
}
