/** Entries as a grid: of a hundred thousand rows those in sight are drawn; a cell is changed where it stands. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { Entry } from "./model.js";
import type { Entries, EntryOrder } from "./use-entries.js";

const ROW_PIXELS = 30;

const shownCell = (value: unknown): string =>
  value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

/** What was typed keeps the type that the cell had: a text stays one, and all else is JSON where it is some. */
function typedValue(text: string, before: unknown): unknown {
  if (typeof before === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

interface CellProps {
  column: string;
  value: unknown;
  save: (value: unknown) => Promise<string | null>;
}

function Cell({ column, value, save }: CellProps) {
  const [text, setText] = useState<string | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const cell = useRef<HTMLButtonElement>(null);
  const finish = async () => {
    if (text === null) return;
    const refused = text === shownCell(value) ? null : await save(typedValue(text, value));
    setFault(refused);
    setText(null);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") setText(null);
    if (event.key === "Enter") void finish();
    if (event.key === "Escape" || event.key === "Enter") setTimeout(() => cell.current?.focus());
  };
  if (text !== null) {
    return (
      <input
        // biome-ignore lint/a11y/noAutofocus: the person has asked to type here
        autoFocus
        className="cell mono"
        aria-label={column}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onBlur={() => void finish()}
        onKeyDown={onKeyDown}
      />
    );
  }
  return (
    <button
      ref={cell}
      type="button"
      className={fault ? "cell fault" : "cell"}
      title={fault ?? `${column}: press Enter or click to change it`}
      onClick={() => setText(shownCell(value))}
    >
      {shownCell(value)}
    </button>
  );
}

interface RowProps {
  entry: Entry | undefined;
  index: number;
  columns: string[];
  entries: Entries;
  remove: () => void;
}

function Row({ entry, index, columns, entries, remove }: RowProps) {
  if (!entry) return <span className="cell hint">…</span>;
  return (
    <>
      <span className="cell id">{entry.id}</span>
      {columns.map((column) => (
        <Cell
          key={`${entry.id} ${column}`}
          column={column}
          value={entry.data[column]}
          save={(value) => entries.update(index, { [column]: value })}
        />
      ))}
      <button type="button" className="quiet small" aria-label={`Delete entry ${entry.id}`} onClick={remove}>
        ✕
      </button>
    </>
  );
}

interface EntryGridProps {
  columns: string[];
  entries: Entries;
  order: EntryOrder | null;
  setOrder: (order: EntryOrder | null) => void;
  remove: (index: number) => void;
}

const ARROWS = { ASC: " ↑", DESC: " ↓" };

export function EntryGrid({ columns, entries, order, setOrder, remove }: EntryGridProps) {
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: entries.total ?? 0,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PIXELS,
    overscan: 10,
  });
  const rows = virtual.getVirtualItems();
  const [from, to] = [rows[0]?.index ?? 0, rows.at(-1)?.index ?? 0];
  const { show } = entries;
  useEffect(() => show(from, to), [show, from, to]);
  const sort = (column: string) => {
    if (order?.column !== column) setOrder({ column, direction: "ASC" });
    else setOrder(order.direction === "ASC" ? { column, direction: "DESC" } : null);
  };
  const width = { gridTemplateColumns: `70px repeat(${columns.length}, minmax(120px, 240px)) 40px` };
  return (
    <div ref={box} className="grid-box">
      <div className="grid-row grid-head" style={width}>
        <span className="cell id">id</span>
        {columns.map((column) => (
          <button key={column} type="button" className="cell" onClick={() => sort(column)}>
            <b>{column}</b>
            {order?.column === column && ARROWS[order.direction]}
          </button>
        ))}
        <span />
      </div>
      <div className="grid-rows" style={{ height: virtual.getTotalSize() }}>
        {rows.map(({ index, start }) => (
          <div key={index} className="grid-row" style={{ ...width, transform: `translateY(${start}px)` }}>
            <Row {...{ index, columns, entries }} entry={entries.at(index)} remove={() => remove(index)} />
          </div>
        ))}
      </div>
    </div>
  );
}
