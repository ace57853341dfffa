/** One cell of a grid at a time that is typed in, and the one that was refused. Knows how a cell's text becomes a value; draws nothing. */
import { useCallback, useMemo, useRef, useState } from "react";
import { flushSync } from "react-dom";
import type { Entry } from "../shared/model.js";
import type { Entries } from "./use-entries.js";

export interface CellEdit {
  /** Entry when the typing began. The service refuses the change if the entry was changed since. */
  entry: Entry;
  index: number;
  column: string;
  text: string;
  isSaving: boolean;
}

export interface CellFault {
  entryId: number;
  column: string;
  message: string;
}

export const shownCell = (value: unknown): string =>
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

/** What a cell can ask for: the same functions as long as the grid stands. */
export interface CellActs {
  begin(entry: Entry, index: number, column: string): void;
  type(text: string): void;
  /** Saves what was typed. */
  finish(): void;
  leave(): void;
}

export function useCellEdit({ update, find }: Pick<Entries, "update" | "find">) {
  const [edit, setEdit] = useState<CellEdit | null>(null);
  const [fault, setFault] = useState<CellFault | null>(null);
  const current = useRef(edit);

  const change = useCallback((next: CellEdit | null) => {
    current.current = next;
    // The focus can go where the cell stands again.
    flushSync(() => setEdit(next));
  }, []);
  const save = useCallback(
    async ({ entry, index, column, text }: CellEdit) => {
      const before = entry.data[column];
      if (text === shownCell(before)) return change(null);
      const saving = { entry, index, column, text, isSaving: true };
      change(saving);
      // A change of another cell of this entry does not refuse this one.
      const now = find(entry.id)?.entry ?? entry;
      const base = shownCell(now.data[column]) === shownCell(before) ? now : entry;
      const message = await update(base, { [column]: typedValue(text, before) });
      setFault(message === null ? null : { entryId: entry.id, column, message });
      // Another may be typed in by now.
      if (current.current === saving) change(null);
    },
    [change, update, find],
  );
  const acts = useMemo<CellActs>(
    () => ({
      begin(entry, index, column) {
        setFault(null);
        change({ entry, index, column, text: shownCell(entry.data[column]), isSaving: false });
      },
      type: (text) => current.current && change({ ...current.current, text }),
      finish() {
        if (current.current && !current.current.isSaving) void save(current.current);
      },
      leave: () => change(null),
    }),
    [change, save],
  );
  return { edit, fault, acts };
}
