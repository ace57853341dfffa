/** Messages about the edited cell: changes and deletions by other people, and a rejected change with the text that was not stored. */
import { useEffect, useState } from "react";
import { CopyButton } from "../shared/copy-button.js";
import type { Entry } from "../shared/model.js";
import { type CellEdit, type CellFault, formatCell } from "./use-cell-edit.js";
import type { Entries } from "./use-entries.js";

/** Message that another person has changed the edited cell; null if nobody has. */
function changedElsewhereText({ entry, column, isSaving }: CellEdit, { data, updatedAt }: Entry): string | null {
  const [before, now] = [formatCell(entry.data[column]), formatCell(data[column])];
  if (isSaving || updatedAt === entry.updatedAt || now === before) return null;
  return `${column} of entry ${entry.id} changed elsewhere while you edited it: it is now “${now}”.`;
}

/** Returns the ID of the edited entry if it was deleted. An entry that is not loaded may also have moved to another page. */
function useDeletedEntry(missingId: number | null, { isDeleted }: Pick<Entries, "isDeleted">): number | null {
  const [deletedId, setDeletedId] = useState<number | null>(null);
  useEffect(() => {
    if (missingId === null) return;
    let isOver = false;
    isDeleted(missingId).then(
      (deleted) => isOver || setDeletedId(deleted ? missingId : null),
      // The save reports the deletion if this read fails.
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
  /** Loaded state of the edited entry; undefined if it is not loaded. */
  editedEntry: Entry | undefined;
  entries: Pick<Entries, "isDeleted">;
}

export function CellNotices({ edit, fault, editedEntry, entries }: CellNoticesProps) {
  const missingId = edit && !editedEntry && !edit.isSaving ? edit.entry.id : null;
  const deletedId = useDeletedEntry(missingId, entries);
  return (
    <>
      <p className="notice" role="status">
        {edit && editedEntry && changedElsewhereText(edit, editedEntry)}
        {deletedId !== null &&
          `Someone else deleted entry ${deletedId} while you edited it. Your text cannot be saved.`}
      </p>
      <p className="fault" role="alert">
        {fault && `${fault.column} of entry ${fault.entryId}: ${fault.message}`}
      </p>
      {fault && fault.typed !== "" && (
        <p className="row unsaved-text">
          <span className="hint">Your text:</span> <code>{fault.typed}</code>{" "}
          <CopyButton className="small" text={() => fault.typed} />
        </p>
      )}
    </>
  );
}
