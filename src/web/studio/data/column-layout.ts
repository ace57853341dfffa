/** Widths of the columns in the grid of entries, from the first entries that are loaded. */
import { useRef } from "react";
import { formatCell } from "./use-cell-edit.js";
import type { Entries } from "./use-entries.js";

const ENTRIES_MEASURED = 40;
const MIN_PIXELS = 110;
const MAX_PIXELS = 340;
const DEFAULT_PIXELS = 240;
const CHARACTER_PIXELS = 7.5;
/** Padding of a cell, and the arrow that shows the order. */
const EXTRA_PIXELS = 40;

export interface ColumnLayout {
  pixels: number;
  /** True if all measured values are numbers, so that the header is aligned with them. */
  isNumeric: boolean;
}

const DEFAULT_LAYOUT: ColumnLayout = { pixels: DEFAULT_PIXELS, isNumeric: false };

function measureColumn(column: string, values: readonly unknown[]): ColumnLayout {
  const longest = Math.max(column.length, ...values.map((value) => formatCell(value).length));
  const pixels = Math.round(longest * CHARACTER_PIXELS + EXTRA_PIXELS);
  return {
    pixels: Math.min(MAX_PIXELS, Math.max(MIN_PIXELS, pixels)),
    isNumeric: values.every((value) => typeof value === "number"),
  };
}

/** Measures a column once, when it has values. Its width then stays the same, so that the grid does not move under the pointer. */
export function useColumnLayouts(columns: readonly string[], { at }: Pick<Entries, "at">): ColumnLayout[] {
  const measured = useRef(new Map<string, ColumnLayout>());
  return columns.map((column) => {
    const known = measured.current.get(column);
    if (known) return known;
    const values = Array.from({ length: ENTRIES_MEASURED }, (_, index) => at(index)?.data[column]);
    const present = values.filter((value) => value !== undefined && value !== null);
    if (present.length === 0) return DEFAULT_LAYOUT;
    const layout = measureColumn(column, present);
    measured.current.set(column, layout);
    return layout;
  });
}
