/**
 * Exports all entries that a caller can see, as CSV, JSON or JSON lines. It reads entries in batches, so that only one
 * batch is in memory.
 */

import Papa from "papaparse";
import type { EntryScope } from "../../rules/entry-query/options.js";
import { Statement } from "../../rules/entry-query/statement.js";
import { refuseField } from "../../rules/fields.js";
import { boundBySize, type DataSourceKey, entriesOf, type RawRow, rowColumns, viewOf } from "./entry-rows.js";
import type { ReadRows } from "./read-pool.js";

export interface EntryExportOptions {
  format: ExportFormat;
  /** For CSV: true to prevent spreadsheet programs from running a cell as a formula. */
  spreadsheet: boolean;
}

export const EXPORT_FORMATS = ["csv", "json", "jsonl"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Maximum number of entries that one statement reads. A statement also stops at 8 MB. */
const ENTRIES_AT_ONCE = 1_000;

/** Validates the format in a request; the default is "json". @throws REQUEST_INVALID */
export function exportFormat(value: unknown): ExportFormat {
  if (value === undefined || value === "") return "json";
  if ((EXPORT_FORMATS as readonly unknown[]).includes(value)) return value as ExportFormat;
  refuseField("format", '"csv", "json" or "jsonl"', value);
}

/**
 * Returns the CSV cell of a value: missing values and null become an empty text, objects and lists become JSON, and
 * other values stay unchanged.
 */
function toCell(value: unknown): unknown {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : value;
}

interface RowWriter {
  opening: string;
  /** Returns the text of some entries. @param data JSON texts of at least one entry */
  formatEntries(data: readonly string[], isFirst: boolean): string;
  closing: string;
}

/** Matches the start of a formula. The built-in expression of Papa Parse misses formulas of several lines. */
const FORMULA_START = /^[=+\-@\t\r]/;

/**
 * Returns the functions that format entries as CSV. @param spreadsheet true to put a `'` before texts and names of
 * columns that a spreadsheet would run as formulas
 */
function csvWriter(columns: readonly string[], spreadsheet: boolean): RowWriter {
  const line = (cells: readonly unknown[]) => {
    const text = Papa.unparse([[...cells]], { escapeFormulae: spreadsheet && FORMULA_START });
    // An import ignores empty lines, so an entry without values becomes a line with an empty quoted cell.
    return `${text === "" ? '""' : text}\r\n`;
  };
  return {
    opening: columns.length === 0 ? "" : line(columns),
    formatEntries: (data) =>
      data
        .map((text) => {
          const entry = JSON.parse(text) as Record<string, unknown>;
          return line(columns.map((column) => toCell(Object.hasOwn(entry, column) ? entry[column] : undefined)));
        })
        .join(""),
    closing: "",
  };
}

const JSON_LIST: RowWriter = {
  opening: "[",
  formatEntries: (data, first) => `${first ? "" : ","}\n${data.join(",\n")}`,
  closing: "\n]\n",
};
const JSON_LINES: RowWriter = { opening: "", formatEntries: (data) => `${data.join("\n")}\n`, closing: "" };

export type EntryExport = ReturnType<typeof createEntryExport>;

export function createEntryExport({ read }: { read: ReadRows }) {
  /**
   * Yields the data of all visible entries in pages, in order. Includes entries that are appended during the export.
   */
  async function* readPages(key: DataSourceKey, scope: EntryScope): AsyncGenerator<string[]> {
    let last: RawRow | undefined;
    for (;;) {
      const statement = new Statement();
      const conditions = [entriesOf(key, { scope, where: null }, statement, "e")];
      if (last) {
        conditions.push(
          `(e."order", e.id) > (${statement.bind(last.order, "float8")}, ${statement.bind(last.id, "bigint")})`,
        );
      }
      const select = `SELECT ${rowColumns("e")} FROM data_source_entry e WHERE ${conditions.join(" AND ")}
        ORDER BY e."order", e.id LIMIT ${ENTRIES_AT_ONCE}`;
      const rows = await read<RawRow>(key.appId, boundBySize(select, ENTRIES_AT_ONCE), statement.values);
      if (rows.length === 0) return;
      yield rows.map((row) => viewOf(row, key.id, scope, null).data.text);
      last = rows.at(-1)!;
    }
  }

  return {
    /**
     * Yields the text of an export, in parts. @param columns columns of the data source in order, for the header of a
     * CSV file
     */
    async *exportRows(
      key: DataSourceKey,
      columns: readonly string[],
      scope: EntryScope,
      { format, spreadsheet }: EntryExportOptions,
    ): AsyncGenerator<string> {
      const visibleColumns = columns.filter((column) => scope.canSee(column));
      const rowWriter =
        format === "csv" ? csvWriter(visibleColumns, spreadsheet) : format === "json" ? JSON_LIST : JSON_LINES;
      yield rowWriter.opening;
      let first = true;
      for await (const data of readPages(key, scope)) {
        yield rowWriter.formatEntries(data, first);
        first = false;
      }
      yield rowWriter.closing;
    },
  };
}
