/** Messages about the edited cell: changes and deletions by other people, and a rejected change with the text that was not stored. */
import { useEffect, useState } from "react";
import { CopyButton } from "../shared/copy-button.js";
import type { Entry } from "../shared/model.js";
import { type CellEdit, type CellFault, formatCellValue } from "./use-cell-edit.js";
import type { EntriesState } from "./use-entries.js";

/** Returns a message if the value of the edited cell has changed elsewhere since the edit began; otherwise, and during a save, null. */
function getChangedElsewhereText({ entry, column, isSaving }: CellEdit, { data, updatedAt }: Entry): string | null {
  const [editedValue, newestValue] = [formatCellValue(entry.data[column]), formatCellValue(data[column])];
  if (isSaving || updatedAt === entry.updatedAt || newestValue === editedValue) return null;
  return `${column} of entry ${entry.id} changed elsewhere while you edited it: it is now “${newestValue}”.`;
}

/**
 * Returns the ID of the edited entry if another person has deleted it. @param missingId ID of the edited entry if the
 * loaded entries do not contain it, otherwise null
 */
function useDeletedEntry(missingId: number | null, { isDeleted }: Pick<EntriesState, "isDeleted">): number | null {
  const [deletedId, setDeletedId] = useState<number | null>(null);
  useEffect(() => {
    if (missingId === null) return;
    let isOver = false;
    isDeleted(missingId).then(
      (deleted) => isOver || setDeletedId(deleted ? missingId : null),
      // Ignores a failed read: the save then reports the deletion.
      () => undefined,
    );
    return () => {
      isOver = true;
    };
  }, [missingId, isDeleted]);
  return missingId === null ? null : deletedId;
}

interface CellNoticesProps {
  edit: CellEdit | null;
  fault: CellFault | null;
  /** The edited entry as it was last loaded; undefined if it is not loaded. */
  editedEntry: Entry | undefined;
  entries: Pick<EntriesState, "isDeleted">;
}

export function CellNotices({ edit, fault, editedEntry, entries }: CellNoticesProps) {
  const missingId = edit && !editedEntry && !edit.isSaving ? edit.entry.id : null;
  const deletedId = useDeletedEntry(missingId, entries);
  return (
    <>
      <p className="notice" role="status">
        {edit && editedEntry && getChangedElsewhereText(edit, editedEntry)}
        {deletedId !== null &&
          `Someone else deleted entry ${deletedId} while you edited it. Your text cannot be saved.`}
      </p>
      <p className="fault" role="alert">
        {fault && `${fault.column} of entry ${fault.entryId}: ${fault.message}`}
      </p>
      {fault && fault.typedText !== "" && (
        <p className="row unsaved-text">
          <span className="hint">Your text:</span> <code>{fault.typedText}</code>{" "}
          <CopyButton className="small" getText={() => fault.typedText} />
        </p>
      )}
    </>
  );
}
