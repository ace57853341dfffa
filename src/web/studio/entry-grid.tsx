/** Entries as a grid: of a hundred thousand rows those in sight are drawn, and the one that is typed in. */
import { defaultRangeExtractor, type Range, useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useRef } from "react";
import { EntryRow } from "./entry-row.js";
import type { Entry } from "./model.js";
import { useCellEdit } from "./use-cell-edit.js";
import type { Entries, EntryOrder } from "./use-entries.js";

const ROW_PIXELS = 30;
const ID_PIXELS = 70;
const COLUMN_PIXELS = 240;
const REMOVE_PIXELS = 40;

interface EntryGridProps {
  columns: string[];
  entries: Entries;
  order: EntryOrder | null;
  setOrder: (order: EntryOrder | null) => void;
  remove: (entry: Entry) => Promise<void>;
}

const ARROWS = { ASC: " ↑", DESC: " ↓" };

type HeadProps = Pick<EntryGridProps, "columns" | "order" | "setOrder"> & { width: number; tracks: string };

function Head({ columns, order, setOrder, width, tracks }: HeadProps) {
  const sort = (column: string) => {
    if (order?.column !== column) setOrder({ column, direction: "ASC" });
    else setOrder(order.direction === "ASC" ? { column, direction: "DESC" } : null);
  };
  return (
    <div className="grid-row grid-head" style={{ gridTemplateColumns: tracks, width }}>
      <span className="cell id">id</span>
      {columns.map((column) => (
        <button key={column} type="button" className="cell" onClick={() => sort(column)}>
          <b>{column}</b>
          {order?.column === column && ARROWS[order.direction]}
        </button>
      ))}
      <span />
    </div>
  );
}

export function EntryGrid({ columns, entries, order, setOrder, remove }: EntryGridProps) {
  const box = useRef<HTMLDivElement>(null);
  const { edit, fault, acts } = useCellEdit(entries);
  const typedAt = edit?.index ?? null;
  const rangeExtractor = useCallback(
    (range: Range) => {
      const seen = defaultRangeExtractor(range);
      // Who scrolls away while typing finds the cell as it was left.
      if (typedAt === null || typedAt >= range.count || seen.includes(typedAt)) return seen;
      return [...seen, typedAt].sort((a, b) => a - b);
    },
    [typedAt],
  );
  const virtual = useVirtualizer({
    count: entries.total ?? 0,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PIXELS,
    overscan: 6,
    rangeExtractor,
  });
  const rows = virtual.getVirtualItems();
  const { startIndex: from, endIndex: to } = virtual.range ?? { startIndex: 0, endIndex: 0 };
  const { show } = entries;
  useEffect(() => show(from, to), [show, from, to]);
  const width = ID_PIXELS + COLUMN_PIXELS * columns.length + REMOVE_PIXELS;
  const tracks = [ID_PIXELS, ...columns.map(() => COLUMN_PIXELS), REMOVE_PIXELS]
    .map((pixels) => `${pixels}px`)
    .join(" ");
  const row = (index: number, start: number) => {
    const entry = edit?.index === index && !edit.isSaving ? edit.entry : entries.at(index);
    return (
      <EntryRow
        key={index}
        {...{ entry, index, columns, start, width, tracks, acts, remove }}
        edit={edit && edit.entry.id === entry?.id ? edit : null}
        fault={fault && fault.entryId === entry?.id ? fault : null}
      />
    );
  };
  return (
    <>
      <p className="fault" role="alert">
        {fault && `${fault.column} of entry ${fault.entryId}: ${fault.message}`}
      </p>
      <div ref={box} className="grid-box">
        <Head {...{ columns, order, setOrder, width, tracks }} />
        <div className="grid-rows" style={{ height: virtual.getTotalSize(), width }}>
          {rows.map(({ index, start }) => row(index, start))}
        </div>
      </div>
    </>
  );
}
