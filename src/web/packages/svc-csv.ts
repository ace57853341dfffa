/** Package `Svc.CSV`: converts CSV text to rows and rows to CSV text by the library Papa Parse. It does not read files or URLs. */
import Papa from "papaparse";
import { defineSvcNamespace } from "./define.js";

export interface CsvParseOptions {
  /** True (the default): the first line has the names of the columns, and rows are objects. False: all lines are rows, as arrays. */
  header?: boolean;
  /** Character between cells. Default: detected from the text. */
  delimiter?: string;
  /** True: converts cells such as "12" to numbers and "true" to booleans. Default false. */
  dynamicTyping?: boolean;
}

export interface CsvStringifyOptions {
  /** Character between cells. Default ",". */
  delimiter?: string;
  /** Columns to write, in this order. Default: the keys of the first row. */
  columns?: string[];
  /** True (the default): the first line has the names of the columns. */
  header?: boolean;
  /** Adds an apostrophe before a cell that a spreadsheet would treat as a formula. Default true. */
  escapeFormulae?: boolean;
}

/** Matches a cell that a spreadsheet would treat as a formula. Papa Parse's default pattern misses formulas with several lines. */
const FORMULA_PATTERN = /^[=+\-@\t\r]/;

function parseCsv(
  text: string,
  { header = true, delimiter = "", dynamicTyping = false }: CsvParseOptions = {},
): unknown[] {
  if (typeof text !== "string")
    throw new TypeError(
      `Svc.CSV.parse: the first argument must be a string with the CSV text (got ${text === null ? "null" : typeof text})`,
    );
  const { data, errors } = Papa.parse(text, { header, delimiter, dynamicTyping, skipEmptyLines: true });
  const parseError = errors.find(({ code }) => code !== "UndetectableDelimiter");
  if (parseError) throw new Error(`CSV row ${(parseError.row ?? 0) + 1}: ${parseError.message}`);
  return data;
}

function stringifyRows(rows: unknown[], options: CsvStringifyOptions = {}): string {
  if (!Array.isArray(rows))
    throw new TypeError(
      `Svc.CSV.stringify: the first argument must be an array of rows (got ${rows === null ? "null" : typeof rows})`,
    );
  const { delimiter = ",", header = true, escapeFormulae = true, columns } = options;
  return Papa.unparse(rows, {
    delimiter,
    header,
    escapeFormulae: escapeFormulae && FORMULA_PATTERN,
    ...(columns ? { columns } : {}),
  });
}

defineSvcNamespace("CSV", { parse: parseCsv, stringify: stringifyRows });
