/** Exports all entries that a caller can see as CSV, JSON or JSON lines. Reads them in batches, so that only one batch is in memory. */

import Papa from "papaparse";
import { toReadableEntryText } from "../../rules/entries/entry-input.js";
import type { VisibleEntryScope } from "../../rules/entry-query/options.js";
import { SqlStatement } from "../../rules/entry-query/statement.js";
import { refuseField } from "../../rules/fields.js";
import {
  type DataSourceKey,
  type EntryRow,
  entryColumnsSql,
  entryConditionSql,
  limitBySizeSql,
  rowToEntryView,
} from "./entry-rows.js";
import type { ReadRows } from "./read-pool.js";

export interface EntryExportOptions {
  format: ExportFormat;
  /** Only for CSV: true to prevent spreadsheet programs from executing cells as formulas. */
  spreadsheet: boolean;
}

export const EXPORT_FORMATS = ["csv", "json", "jsonl"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Maximum number of entries that one SQL statement reads. A statement also stops after 8 MB of entries. */
const ENTRIES_PER_STATEMENT = 1_000;

/** Parses the export format in a request; "json" if it is missing. @throws REQUEST_INVALID */
export function parseExportFormat(value: unknown): ExportFormat {
  if (value === undefined || value === "") return "json";
  if ((EXPORT_FORMATS as readonly unknown[]).includes(value)) return value as ExportFormat;
  refuseField("format", '"csv", "json" or "jsonl"', value);
}

/** Converts a value to the content of a CSV cell: missing values and null to an empty text, objects and lists to JSON text. */
function toCell(value: unknown): unknown {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : value;
}

interface ExportFormatter {
  openingText: string;
  /** Returns the exported text of some entries. @param data JSON text of each entry; at least one */
  formatEntries(data: readonly string[], isFirst: boolean): string;
  closingText: string;
}

/** Matches the beginning of a spreadsheet formula. The pattern of Papa Parse does not match formulas of several lines. */
const FORMULA_START_PATTERN = /^[=+\-@\t\r]/;

/** With `spreadsheet`, puts a `'` before each text and column name that a spreadsheet program would execute as a formula. */
function createCsvFormatter(columns: readonly string[], spreadsheet: boolean): ExportFormatter {
  const line = (cells: readonly unknown[]) => {
    const text = Papa.unparse([[...cells]], { escapeFormulae: spreadsheet && FORMULA_START_PATTERN });
    // An import ignores empty lines. So an entry without values is written as a line with an empty quoted cell.
    return `${text === "" ? '""' : text}\r\n`;
  };
  return {
    openingText: columns.length === 0 ? "" : line(columns),
    formatEntries: (data) =>
      data
        .map((text) => {
          const entry = JSON.parse(text) as Record<string, unknown>;
          return line(columns.map((column) => toCell(Object.hasOwn(entry, column) ? entry[column] : undefined)));
        })
        .join(""),
    closingText: "",
  };
}

const JSON_FORMATTER: ExportFormatter = {
  openingText: "[",
  formatEntries: (data, first) => `${first ? "" : ","}\n${data.map(toReadableEntryText).join(",\n")}`,
  closingText: "\n]\n",
};
const JSON_LINES_FORMATTER: ExportFormatter = {
  openingText: "",
  formatEntries: (data) => `${data.map(toReadableEntryText).join("\n")}\n`,
  closingText: "",
};

export class EntryExport {
  constructor(private readonly options: { read: ReadRows }) {}

  /** Yields the entries that the caller can see, page by page. Also yields entries that are appended during the export. */
  private async *readPages(key: DataSourceKey, scope: VisibleEntryScope): AsyncGenerator<string[]> {
    let last: EntryRow | undefined;
    for (;;) {
      const statement = new SqlStatement();
      const conditions = [entryConditionSql(key, { scope, where: null }, statement, "e")];
      if (last) {
        conditions.push(
          `(e."order", e.id) > (${statement.bind(last.order, "float8")}, ${statement.bind(last.id, "bigint")})`,
        );
      }
      const select = `SELECT ${entryColumnsSql("e")} FROM data_source_entry e WHERE ${conditions.join(" AND ")}
        ORDER BY e."order", e.id LIMIT ${ENTRIES_PER_STATEMENT}`;
      const rows = await this.options.read<EntryRow>(
        key.appId,
        limitBySizeSql(select, ENTRIES_PER_STATEMENT),
        statement.values,
      );
      if (rows.length === 0) return;
      yield rows.map((row) => rowToEntryView(row, key.id, scope, null).data.text);
      last = rows.at(-1)!;
    }
  }

  /**
   * Yields the text of an export in parts.
   * @param columns columns of the data source in order, from which the header of a CSV file is written
   */
  async *exportRows(
    key: DataSourceKey,
    columns: readonly string[],
    scope: VisibleEntryScope,
    { format, spreadsheet }: EntryExportOptions,
  ): AsyncGenerator<string> {
    const visibleColumns = columns.filter((column) => scope.canSeeColumn(column));
    const formatter =
      format === "csv"
        ? createCsvFormatter(visibleColumns, spreadsheet)
        : format === "json"
          ? JSON_FORMATTER
          : JSON_LINES_FORMATTER;
    yield formatter.openingText;
    let isFirst = true;
    for await (const data of this.readPages(key, scope)) {
      yield formatter.formatEntries(data, isFirst);
      isFirst = false;
    }
    yield formatter.closingText;
  }
}
