/** Row of the grid of entries. A person can edit its cells in place. The row has no React state, because scrolling unmounts rows. */
// biome-ignore-all lint/a11y/useSemanticElements: browsers drop the roles of table elements that are laid out as grids
// biome-ignore-all lint/a11y/useFocusableInteractive: only the controls inside of rows and cells receive the focus
import X from "icon:x";
import { type KeyboardEvent, memo } from "react";
import type { Entry } from "../shared/model.js";
import { mayEdit } from "../shell/rights.js";
import { ForEditors, useRole } from "../shell/role.js";
import { type CellEdit, type CellEditFunctions, type CellFault, formatCellValue } from "./use-cell-edit.js";

/** Row number of the first entry for screen readers. The header is row 1. */
const FIRST_ENTRY_ROW = 2;

interface CellProps {
  column: string;
  text: string;
  /** CSS class for the type of the value: numbers are aligned to the right, and null is dimmed. */
  kindClass: string;
  isEditing: boolean;
  fault: string | null;
  /** Starts to edit this cell; null for people who may not edit entries. */
  startEdit: (() => void) | null;
  cellFunctions: CellEditFunctions;
}

function EntryCell({ column, text, kindClass, isEditing, fault, startEdit, cellFunctions }: CellProps) {
  const className = ["cell", kindClass, fault && "fault"].filter(Boolean).join(" ");
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    const input = event.currentTarget;
    const box = input.parentElement!;
    if (event.key === "Enter") cellFunctions.saveCell();
    else cellFunctions.cancelEdit();
    // Moves the focus to the button that has replaced the input.
    (box.firstElementChild as HTMLElement).focus();
  };
  // Does not save while a dialog is open, such as the question about unsaved changes. The dialog takes the focus from the
  // cell and returns it when it closes, so the person can continue to edit.
  const saveUnlessDialogOpens = () => {
    if (!document.querySelector("dialog[open]")) cellFunctions.saveCell();
  };
  if (isEditing) {
    return (
      <input
        // biome-ignore lint/a11y/noAutofocus: the person has opened the cell to type in it
        autoFocus
        className="cell mono"
        aria-label={column}
        value={text}
        onChange={(event) => cellFunctions.changeText(event.target.value)}
        onBlur={saveUnlessDialogOpens}
        onKeyDown={onKeyDown}
      />
    );
  }
  if (!startEdit) return <span className={className}>{text}</span>;
  return (
    <button
      type="button"
      className={className}
      aria-label={`${column}: ${text === "" ? "empty" : text}`}
      title={fault ?? "Press Enter or click to change it"}
      onClick={startEdit}
    >
      {text}
    </button>
  );
}

const getKindClass = (value: unknown): string => (value === null ? "null" : typeof value === "number" ? "number" : "");

interface EntryRowProps {
  /** Entry of this row; undefined until it is loaded. */
  entry: Entry | undefined;
  rowIndex: number;
  columns: readonly string[];
  topPixels: number;
  widthPixels: number;
  /** Widths of the columns, as a value of the CSS property `grid-template-columns`. */
  gridColumns: string;
  /** State of the cell that the person edits; null if no cell of this row is edited. */
  edit: CellEdit | null;
  fault: CellFault | null;
  cellFunctions: CellEditFunctions;
  removeEntry: (entry: Entry) => Promise<void>;
}

/** Memoized, so that React renders a row only when the row's own props change. */
export const EntryRow = memo(function EntryRow(props: EntryRowProps) {
  const { entry, rowIndex, columns, topPixels, widthPixels, gridColumns, edit, fault, cellFunctions, removeEntry } =
    props;
  const isEditor = mayEdit(useRole());
  const renderCell = (column: string) => {
    const isEdited = edit?.column === column;
    return (
      <span key={column} role="cell" className="cell-box">
        <EntryCell
          {...{ column, cellFunctions }}
          kindClass={getKindClass(entry!.data[column])}
          text={isEdited ? edit.typedText : formatCellValue(entry!.data[column])}
          isEditing={isEdited && !edit.isSaving}
          fault={fault?.column === column ? fault.message : null}
          startEdit={isEditor ? () => cellFunctions.startEdit(entry!, rowIndex, column) : null}
        />
      </span>
    );
  };
  return (
    <div
      role="row"
      aria-rowindex={rowIndex + FIRST_ENTRY_ROW}
      className="grid-row"
      style={{ gridTemplateColumns: gridColumns, width: widthPixels, transform: `translateY(${topPixels}px)` }}
    >
      {entry ? (
        <>
          <span role="rowheader" className="cell id">
            {entry.id}
          </span>
          {columns.map(renderCell)}
          <span role="cell">
            <ForEditors>
              <button
                type="button"
                className="quiet icon"
                aria-label={`Delete entry ${entry.id}`}
                onClick={() => void removeEntry(entry)}
              >
                <X size={14} aria-hidden />
              </button>
            </ForEditors>
          </span>
        </>
      ) : (
        <span role="cell" className="cell hint">
          …
        </span>
      )}
    </div>
  );
});
