/** Computes the widths of the grid's columns from the values of the first loaded entries. */
import { useRef } from "react";
import { formatCellValue } from "./use-cell-edit.js";
import type { EntriesState } from "./use-entries.js";

const MEASURED_ENTRY_COUNT = 40;
const MIN_COLUMN_PIXELS = 110;
const MAX_COLUMN_PIXELS = 340;
const DEFAULT_COLUMN_PIXELS = 240;
const CHARACTER_PIXELS = 7.5;
/** Width of a cell's padding plus the header's sort arrow. */
const CELL_EXTRA_PIXELS = 40;

export interface ColumnLayout {
  widthPixels: number;
  /** True if all measured values are numbers. The header is then aligned to the right, like these values. */
  isNumeric: boolean;
}

const DEFAULT_LAYOUT: ColumnLayout = { widthPixels: DEFAULT_COLUMN_PIXELS, isNumeric: false };

function measureColumn(column: string, values: readonly unknown[]): ColumnLayout {
  const maxCharacters = Math.max(column.length, ...values.map((value) => formatCellValue(value).length));
  const contentPixels = Math.round(maxCharacters * CHARACTER_PIXELS + CELL_EXTRA_PIXELS);
  return {
    widthPixels: Math.min(MAX_COLUMN_PIXELS, Math.max(MIN_COLUMN_PIXELS, contentPixels)),
    isNumeric: values.every((value) => typeof value === "number"),
  };
}

/** Hook that computes the layout of each column once, when the column's values are loaded, so that columns do not move later. */
export function useColumnLayouts(
  columns: readonly string[],
  { getEntryAt }: Pick<EntriesState, "getEntryAt">,
): ColumnLayout[] {
  const measuredLayouts = useRef(new Map<string, ColumnLayout>());
  return columns.map((column) => {
    const measuredLayout = measuredLayouts.current.get(column);
    if (measuredLayout) return measuredLayout;
    const values = Array.from({ length: MEASURED_ENTRY_COUNT }, (_, index) => getEntryAt(index)?.data[column]);
    const presentValues = values.filter((value) => value !== undefined && value !== null);
    if (presentValues.length === 0) return DEFAULT_LAYOUT;
    const layout = measureColumn(column, presentValues);
    measuredLayouts.current.set(column, layout);
    return layout;
  });
}
