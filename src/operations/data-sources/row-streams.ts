/**
 * Parses the rows of an imported file while the file is received: CSV, a JSON array, or JSON lines. Only a part of the file is in memory at
 * a time.
 */
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import streamArray from "stream-json/streamers/stream-array.js";
import { ActionError } from "../../errors.js";
import { ENTRY_MAX_BYTES } from "../../limits.js";
import {
  CsvError,
  CsvParser,
  DELIMITER_SAMPLE_MAX_CHARACTERS,
  detectDelimiter,
  isValidDelimiter,
} from "../../rules/csv.js";
import { CSV_CELL_TYPE_DESCRIPTIONS, CSV_CELL_TYPES, type CsvCellType, convertCsvCell } from "../../rules/csv-types.js";
import { describeValue, isObject } from "../../rules/describe-value.js";
import { checkColumnName } from "../../rules/entries/columns.js";

export const IMPORT_FORMATS = ["csv", "json", "jsonl"] as const;
export type ImportFormat = (typeof IMPORT_FORMATS)[number];

/** Maximum length of a row in characters. A row can be longer than its entry, for example because of escape sequences. */
const ROW_MAX_CHARACTERS = 4 * ENTRY_MAX_BYTES;

const createInvalidFileError = (message: string): ActionError => new ActionError("REQUEST_INVALID", message);
const createRowTooLongError = (): ActionError =>
  createInvalidFileError(`a row of the file is longer than the maximum of ${ROW_MAX_CHARACTERS} characters`);

/** Rejects a file as soon as one of its rows is too long, because a row without an end would fill the memory. */
class RowLengthLimit {
  private rowCharacters = 0;

  resetRowLength(): void {
    this.rowCharacters = 0;
  }

  async *watch(text: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const part of text) {
      this.rowCharacters += part.length;
      if (this.rowCharacters > ROW_MAX_CHARACTERS) throw createRowTooLongError();
      yield part;
    }
  }
}

/** Decodes UTF-8 and drops a byte order mark. @throws ActionError REQUEST_INVALID for invalid UTF-8 */
async function* decodeUtf8(bytes: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    for await (const chunk of bytes) yield decoder.decode(chunk as Buffer, { stream: true });
    yield decoder.decode();
  } catch (error) {
    if (error instanceof TypeError)
      throw createInvalidFileError("the file must be UTF-8 text; save it with this encoding");
    throw error;
  }
}

/** Yields the values of complete lines. @param firstLine number of the first line of `text` in the file, for error messages */
function* parseJsonLines(text: string, firstLine: number): Generator<unknown> {
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      throw createInvalidFileError(
        `line ${firstLine + index} of the file must be a JSON value (got a text of ${line.length} characters)`,
      );
    }
    yield value;
  }
}

function countLineBreaks(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

async function* readJsonLines(bytes: Readable): AsyncGenerator<unknown> {
  let restOfText = "";
  let lineNumber = 1;
  for await (const text of decodeUtf8(bytes)) {
    // Only the new text is searched for line breaks. For a long line, searching `restOfText` again with each chunk would be slow.
    const lineEnd = text.lastIndexOf("\n") + 1;
    if (lineEnd > 0) {
      const completeLines = restOfText + text.slice(0, lineEnd);
      yield* parseJsonLines(completeLines, lineNumber);
      lineNumber += countLineBreaks(completeLines);
    }
    restOfText = lineEnd > 0 ? text.slice(lineEnd) : restOfText + text;
    if (restOfText.length > ROW_MAX_CHARACTERS) throw createRowTooLongError();
  }
  yield* parseJsonLines(restOfText, lineNumber);
}

async function* readJsonArray(bytes: Readable): AsyncGenerator<unknown> {
  const rows = streamArray.withParserAsStream({ streamValues: false });
  const rowLengthLimit = new RowLengthLimit();
  const parserInput = pipeline(rowLengthLimit.watch(decodeUtf8(bytes)), rows);
  // Prevents an unhandled rejection. Either `rows` emits the same error, or `await parserInput` throws it below.
  parserInput.catch(() => undefined);
  try {
    for await (const { value } of rows as AsyncIterable<{ value: unknown }>) {
      rowLengthLimit.resetRowLength();
      yield value;
    }
    await parserInput;
  } catch (error) {
    if (error instanceof ActionError) throw error;
    if ((error as { code?: string }).code !== undefined && !/JSON|Parser|Top-level/i.test((error as Error).message))
      throw error;
    throw createInvalidFileError("the file must be one complete JSON array of entries");
  }
}

/** Yields the text in parts. The first part is large enough to detect the delimiter, or contains the whole file (`isWhole`). */
async function* readWithSample(text: AsyncIterable<string>): AsyncGenerator<{ part: string; isWhole: boolean }> {
  let formatSample: string | null = "";
  for await (const part of text) {
    if (formatSample === null) {
      yield { part, isWhole: false };
      continue;
    }
    formatSample += part;
    if (formatSample.length < DELIMITER_SAMPLE_MAX_CHARACTERS) continue;
    yield { part: formatSample.slice(0, DELIMITER_SAMPLE_MAX_CHARACTERS), isWhole: false };
    if (formatSample.length > DELIMITER_SAMPLE_MAX_CHARACTERS)
      yield { part: formatSample.slice(DELIMITER_SAMPLE_MAX_CHARACTERS), isWhole: false };
    formatSample = null;
  }
  if (formatSample !== null) yield { part: formatSample, isWhole: true };
}

async function* parseCsvRows(bytes: Readable, layout: CsvLayout): AsyncGenerator<string[]> {
  let csvParser: CsvParser | null = null;
  for await (const { part, isWhole } of readWithSample(decodeUtf8(bytes))) {
    let text = part;
    if (!csvParser) {
      const { delimiter, skippedCharacters } = detectDelimiter(part, isWhole);
      layout.delimiter ??= delimiter;
      csvParser = new CsvParser(layout.delimiter);
      text = part.slice(skippedCharacters);
    }
    yield* csvParser.write(text);
    if (csvParser.unfinishedRowCharacters > ROW_MAX_CHARACTERS) throw createRowTooLongError();
  }
  if (csvParser) yield* csvParser.finish();
}

function requireValidHeader(cells: string[]): string[] {
  const names = new Set<string>();
  for (const name of cells) {
    checkColumnName(name, "the header of the file");
    if (names.has(name))
      throw createInvalidFileError(
        `the header of the file contains the column ${describeValue(name)} twice; rename one of them`,
      );
    names.add(name);
  }
  return cells;
}

/** Returns the type of each column; "text" for a column that is not in `types`. @throws ActionError REQUEST_INVALID */
function listColumnTypes(columns: readonly string[], types: CsvColumnTypes): CsvCellType[] {
  const unknownColumn = Object.keys(types).find((name) => !columns.includes(name));
  if (unknownColumn !== undefined)
    throw createInvalidFileError(
      `"types" contains a column that is not in the header of the file (got ${describeValue(unknownColumn)})`,
    );
  return columns.map((name) => types[name] ?? "text");
}

function requireCellValue(cell: string, type: CsvCellType, label: () => string): unknown {
  const value = convertCsvCell(cell, type);
  if (value === undefined)
    throw createInvalidFileError(`${label()} must be ${CSV_CELL_TYPE_DESCRIPTIONS[type]} (got ${describeValue(cell)})`);
  return value;
}

/** Yields the rows of a CSV file as objects. The first row of the file contains the column names, and is not yielded. */
async function* readCsvObjects(
  bytes: Readable,
  layout: CsvLayout,
  columnTypes: CsvColumnTypes,
): AsyncGenerator<unknown> {
  let row = 0;
  let types: CsvCellType[] = [];
  try {
    for await (const cells of parseCsvRows(bytes, layout)) {
      row += 1;
      if (layout.columns === null) {
        layout.columns = requireValidHeader(cells);
        types = listColumnTypes(layout.columns, columnTypes);
        continue;
      }
      const names: string[] = layout.columns;
      if (cells.length > names.length) {
        throw createInvalidFileError(
          `row ${row} of the file has ${cells.length} cells, but the header has only ${names.length}`,
        );
      }
      const label = (index: number) => () => `row ${row} of the file: ${describeValue(names[index])}`;
      yield Object.fromEntries(
        cells.map((cell, index) => [names[index]!, requireCellValue(cell, types[index]!, label(index))]),
      );
    }
  } catch (error) {
    throw error instanceof CsvError ? createInvalidFileError(error.message) : error;
  }
}

/** Types of the columns of a CSV file by column name. A column that is not listed is text. */
export type CsvColumnTypes = Readonly<Record<string, CsvCellType>>;

/** Columns and delimiter of an imported file. `parseImportRows` sets both fields while it reads the file. */
export interface CsvLayout {
  /** Column names in the header of a CSV file; null for other formats. */
  columns: string[] | null;
  /** Character that separates the cells of a CSV file; null for other formats. */
  delimiter: string | null;
}

export const createCsvLayout = (delimiter: string | null = null): CsvLayout => ({ columns: null, delimiter });

/**
 * Parses the query parameter `types` of an import: a JSON object with the types of columns.
 * @throws ActionError REQUEST_INVALID
 */
export function parseCsvColumnTypes(text: string | undefined): CsvColumnTypes {
  const types: Record<string, CsvCellType> = Object.create(null);
  if (text === undefined) return types;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw createInvalidFileError(
      `"types" must be a JSON object with the type of each column (got ${describeValue(text)})`,
    );
  }
  if (!isObject(parsed))
    throw createInvalidFileError(
      `"types" must be a JSON object with the type of each column (got ${describeValue(parsed)})`,
    );
  for (const [name, type] of Object.entries(parsed)) {
    const cellType = CSV_CELL_TYPES.find((cellType) => cellType === type);
    if (!cellType)
      throw createInvalidFileError(
        `types[${describeValue(name)}] must be one of ${CSV_CELL_TYPES.join(", ")} (got ${describeValue(type)})`,
      );
    types[name] = cellType;
  }
  return types;
}

/**
 * Parses the query parameter `delimiter` of an import; null if the parameter is missing.
 * @throws ActionError REQUEST_INVALID
 */
export function parseCsvDelimiter(value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === "string" && isValidDelimiter(value)) return value;
  throw createInvalidFileError(
    `"delimiter" must be one character other than a quote or a line break (got ${describeValue(value)})`,
  );
}

/** Yields the rows unchanged. @throws REQUEST_INVALID if the file has neither rows nor a header */
async function* requireRows(rows: AsyncIterable<unknown>, hasHeader: () => boolean): AsyncGenerator<unknown> {
  let count = 0;
  for await (const row of rows) {
    count += 1;
    yield row;
  }
  if (count === 0 && !hasHeader())
    throw createInvalidFileError("the file is empty; to replace all entries, send a file with rows or a header");
}

/**
 * Yields the rows of a file. Sets the fields of `layout` while the rows are read. If `layout` already contains a delimiter, uses this
 * delimiter instead of detecting it.
 * @param options.mayBeEmpty false to reject a file in the format csv or jsonl that has neither rows nor a header
 * @throws ActionError REQUEST_INVALID if `types` is set for another format than csv, and (while reading) if the file or a row is invalid
 */
export function parseImportRows(
  bytes: Readable,
  format: ImportFormat,
  {
    layout = createCsvLayout(),
    types = {},
    mayBeEmpty = true,
  }: { layout?: CsvLayout; types?: CsvColumnTypes; mayBeEmpty?: boolean } = {},
): AsyncGenerator<unknown> {
  if (format === "csv") {
    const rows = readCsvObjects(bytes, layout, types);
    return mayBeEmpty ? rows : requireRows(rows, () => layout.columns !== null);
  }
  if (Object.keys(types).length > 0)
    throw createInvalidFileError(`"types" is allowed only for CSV files (got the format ${format})`);
  layout.delimiter = null;
  // The format json needs no check for an empty file: `[]` is a valid file without rows, and a file without content is invalid JSON.
  if (format === "json") return readJsonArray(bytes);
  return mayBeEmpty ? readJsonLines(bytes) : requireRows(readJsonLines(bytes), () => false);
}
