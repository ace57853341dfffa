/**
 * Grid of the entries of a data source. A data source may have millions of entries, so the grid renders only the visible rows and the edited
 * row.
 */
// biome-ignore-all lint/a11y/useSemanticElements: browsers drop the roles of table elements that are laid out as grids
// biome-ignore-all lint/a11y/useFocusableInteractive: only the controls inside of rows and cells receive the focus
import { defaultRangeExtractor, type Range, useVirtualizer, type Virtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useRef } from "react";
import type { Entry } from "../shared/model.js";
import { useUnsavedChanges } from "../shared/use-unsaved-changes.js";
import { CellNotices } from "./cell-notices.js";
import { type ColumnLayout, useColumnLayouts } from "./column-layout.js";
import { EntryRow } from "./entry-row.js";
import { useCellEdit } from "./use-cell-edit.js";
import type { EntriesState, EntryOrder } from "./use-entries.js";

const ROW_HEIGHT_PIXELS = 30;
const ID_COLUMN_PIXELS = 70;
const REMOVE_COLUMN_PIXELS = 40;

interface EntryGridProps {
  columns: string[];
  entries: EntriesState;
  sortOrder: EntryOrder | null;
  setOrder: (order: EntryOrder | null) => void;
  removeEntry: (entry: Entry) => Promise<void>;
  /** Number of entries that the person has added since the grid was opened. When it grows, the grid scrolls to its end. */
  insertedCount: number;
  /** Called with the part "cell" and true when a cell gets unsaved text, and with false when the text is saved or discarded. */
  onDirtyChange: (part: string, isDirty: boolean) => void;
}

const ORDER_ARROWS = { ASC: " ↑", DESC: " ↓" };
const ARIA_SORT_VALUES = { ASC: "ascending", DESC: "descending" } as const;

type GridHeadProps = Pick<EntryGridProps, "columns" | "sortOrder" | "setOrder"> & {
  columnLayouts: readonly ColumnLayout[];
  widthPixels: number;
  gridColumns: string;
};

function GridHead({ columns, sortOrder, setOrder, columnLayouts, widthPixels, gridColumns }: GridHeadProps) {
  const sort = (column: string) => {
    if (sortOrder?.column !== column) setOrder({ column, direction: "ASC" });
    else setOrder(sortOrder.direction === "ASC" ? { column, direction: "DESC" } : null);
  };
  return (
    <div
      role="row"
      aria-rowindex={1}
      className="grid-row grid-head"
      style={{ gridTemplateColumns: gridColumns, width: widthPixels }}
    >
      <span role="columnheader" className="cell id">
        id
      </span>
      {columns.map((column, columnIndex) => (
        <span
          key={column}
          role="columnheader"
          className="cell-box"
          aria-sort={sortOrder?.column === column ? ARIA_SORT_VALUES[sortOrder.direction] : "none"}
        >
          <button
            type="button"
            className={columnLayouts[columnIndex]!.isNumeric ? "cell number" : "cell"}
            onClick={() => sort(column)}
          >
            <b>{column}</b>
            <span aria-hidden="true">{sortOrder?.column === column && ORDER_ARROWS[sortOrder.direction]}</span>
          </button>
        </span>
      ))}
      <span role="columnheader">
        <span className="unseen">Delete</span>
      </span>
    </div>
  );
}

/**
 * Hook that scrolls to the end of the grid after the person has added an entry. It scrolls again at each change of
 * `entryCount`, until a read has returned more entries.
 */
function useScrollToEnd(
  insertedCount: number,
  entryCount: number,
  virtualizer: Pick<Virtualizer<Element, Element>, "scrollToIndex">,
) {
  const lastCounts = useRef({ inserted: insertedCount, total: entryCount });
  useEffect(() => {
    const isNew = insertedCount > lastCounts.current.inserted;
    if (!isNew) return;
    virtualizer.scrollToIndex(entryCount - 1, { align: "end" });
    if (entryCount > lastCounts.current.total) lastCounts.current = { inserted: insertedCount, total: entryCount };
  }, [insertedCount, entryCount, virtualizer]);
  useEffect(() => {
    // Other people's entries change `entryCount` too. `total` is updated for them, so that they do not scroll the grid.
    if (insertedCount === lastCounts.current.inserted) lastCounts.current.total = entryCount;
  }, [insertedCount, entryCount]);
}

export function EntryGrid(props: EntryGridProps) {
  const { columns, entries, sortOrder, setOrder, insertedCount, removeEntry, onDirtyChange } = props;
  const scrollBox = useRef<HTMLDivElement>(null);
  const { edit, fault, hasUnsavedText, cellFunctions } = useCellEdit(entries);
  const setDirty = useCallback((isDirty: boolean) => onDirtyChange("cell", isDirty), [onDirtyChange]);
  useUnsavedChanges(setDirty, hasUnsavedText);
  const editedEntry = edit ? entries.findEntry(edit.entry.id) : undefined;
  const editedIndex = edit && (editedEntry?.rowIndex ?? edit.rowIndex);
  const rangeExtractor = useCallback(
    (range: Range) => {
      const indexes = defaultRangeExtractor(range);
      // The row of the edited cell stays rendered when it is scrolled out of sight. Otherwise the typed text would be lost.
      if (editedIndex === null || editedIndex >= range.count || indexes.includes(editedIndex)) return indexes;
      return [...indexes, editedIndex].sort((a, b) => a - b);
    },
    [editedIndex],
  );
  const virtualizer = useVirtualizer({
    // The number of rows includes the edited cell's row, even if other people have deleted entries.
    count: Math.max(entries.totalCount ?? 0, editedIndex === null ? 0 : editedIndex + 1),
    getScrollElement: () => scrollBox.current,
    estimateSize: () => ROW_HEIGHT_PIXELS,
    overscan: 6,
    rangeExtractor,
  });
  useScrollToEnd(insertedCount, entries.totalCount ?? 0, virtualizer);
  const rows = virtualizer.getVirtualItems();
  const { startIndex: from, endIndex: to } = virtualizer.range ?? { startIndex: 0, endIndex: 0 };
  const { setVisibleRange } = entries;
  useEffect(() => setVisibleRange(from, to), [setVisibleRange, from, to]);
  const layouts = useColumnLayouts(columns, entries);
  const trackPixels = [ID_COLUMN_PIXELS, ...layouts.map(({ widthPixels }) => widthPixels), REMOVE_COLUMN_PIXELS];
  const widthPixels = trackPixels.reduce((sum, pixels) => sum + pixels, 0);
  const gridColumns = trackPixels.map((pixels) => `${pixels}px`).join(" ");
  const renderRow = (index: number, topPixels: number) => {
    const entry = edit && editedIndex === index && !edit.isSaving ? edit.entry : entries.getEntryAt(index);
    return (
      <EntryRow
        key={index}
        {...{ entry, rowIndex: index, columns, topPixels, widthPixels, gridColumns, cellFunctions, removeEntry }}
        edit={edit && editedIndex === index && edit.entry.id === entry?.id ? edit : null}
        fault={fault && fault.entryId === entry?.id ? fault : null}
      />
    );
  };
  return (
    <>
      <CellNotices {...{ edit, fault, entries }} editedEntry={editedEntry?.entry} />
      <div
        ref={scrollBox}
        className="grid-box"
        role="table"
        aria-label="Entries"
        aria-rowcount={entries.totalCount === null ? -1 : entries.totalCount + 1}
      >
        <div role="rowgroup" className="grid-heads">
          <GridHead
            {...{
              columns,
              sortOrder,
              setOrder,
              columnLayouts: layouts,
              widthPixels,
              gridColumns,
            }}
          />
        </div>
        <div role="rowgroup" className="grid-rows" style={{ height: virtualizer.getTotalSize(), width: widthPixels }}>
          {rows.map(({ index, start }) => renderRow(index, start))}
        </div>
      </div>
    </>
  );
}
