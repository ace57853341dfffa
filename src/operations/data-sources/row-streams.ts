/** Parses rows from a file while it arrives: CSV, a JSON array, or JSON lines. Holds one chunk at a time. */
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import streamArray from "stream-json/streamers/stream-array.js";
import { ActionError } from "../../errors.js";
import { ENTRY_MAX_BYTES } from "../../limits.js";
import { CsvError, CsvParser, detectDelimiter, isDelimiter, SAMPLE_CHARACTERS } from "../../rules/csv.js";
import { CELL_FORMS, CELL_TYPES, type CellType, cellValue } from "../../rules/csv-types.js";
import { describeValue, isObject } from "../../rules/described.js";
import { checkColumnName } from "../../rules/entries/columns.js";

export const ROW_FORMATS = ["csv", "json", "jsonl"] as const;
export type RowFormat = (typeof ROW_FORMATS)[number];

/** Maximum length of a row in characters. A longer one cannot become an entry. */
const ROW_MAX_CHARACTERS = 4 * ENTRY_MAX_BYTES;

const invalidRows = (message: string): ActionError => new ActionError("REQUEST_INVALID", message);
const tooLong = (): ActionError => invalidRows(`a row of the file is longer than ${ROW_MAX_CHARACTERS} characters`);

/** Rejects input in which a row does not end, because it would fill the memory. */
class RowBound {
  private since = 0;

  rowEnded(): void {
    this.since = 0;
  }

  async *watch(text: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const part of text) {
      this.since += part.length;
      if (this.since > ROW_MAX_CHARACTERS) throw tooLong();
      yield part;
    }
  }
}

/** Decodes the bytes as UTF-8 without a byte order mark. @throws ActionError REQUEST_INVALID if they are not UTF-8 */
async function* textOf(bytes: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    for await (const chunk of bytes) yield decoder.decode(chunk as Buffer, { stream: true });
    yield decoder.decode();
  } catch (error) {
    if (error instanceof TypeError) throw invalidRows("the file must be UTF-8");
    throw error;
  }
}

function* jsonLines(text: string): Generator<unknown> {
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    try {
      yield JSON.parse(line);
    } catch {
      throw invalidRows("each line of the file must be JSON");
    }
  }
}

async function* rowsOfJsonLines(bytes: Readable): AsyncGenerator<unknown> {
  let restOfText = "";
  for await (const text of textOf(bytes)) {
    // Only new text is searched. Otherwise a long line in small parts would be searched again with each part.
    const lineEnd = text.lastIndexOf("\n") + 1;
    if (lineEnd > 0) yield* jsonLines(restOfText + text.slice(0, lineEnd));
    restOfText = lineEnd > 0 ? text.slice(lineEnd) : restOfText + text;
    if (restOfText.length > ROW_MAX_CHARACTERS) throw tooLong();
  }
  yield* jsonLines(restOfText);
}

async function* rowsOfJson(bytes: Readable): AsyncGenerator<unknown> {
  const rows = streamArray.withParserAsStream({ streamValues: false });
  const rowBound = new RowBound();
  const fed = pipeline(rowBound.watch(textOf(bytes)), rows);
  // The reader of the rows handles this error.
  fed.catch(() => undefined);
  try {
    for await (const { value } of rows as AsyncIterable<{ value: unknown }>) {
      rowBound.rowEnded();
      yield value;
    }
    await fed;
  } catch (error) {
    if (error instanceof ActionError) throw error;
    if ((error as { code?: string }).code !== undefined && !/JSON|Parser|Top-level/i.test((error as Error).message))
      throw error;
    throw invalidRows("the file must be a JSON array of entries");
  }
}

/** Yields the first part of a CSV file, from which the delimiter is detected, as one text; then the rest. */
async function* readWithSample(text: AsyncIterable<string>): AsyncGenerator<{ part: string; isWhole: boolean }> {
  let formatSample: string | null = "";
  for await (const part of text) {
    if (formatSample === null) {
      yield { part, isWhole: false };
      continue;
    }
    formatSample += part;
    if (formatSample.length < SAMPLE_CHARACTERS) continue;
    yield { part: formatSample.slice(0, SAMPLE_CHARACTERS), isWhole: false };
    if (formatSample.length > SAMPLE_CHARACTERS) yield { part: formatSample.slice(SAMPLE_CHARACTERS), isWhole: false };
    formatSample = null;
  }
  if (formatSample !== null) yield { part: formatSample, isWhole: true };
}

/** @throws CsvError, REQUEST_INVALID */
async function* csvRows(bytes: Readable, layout: CsvLayout): AsyncGenerator<string[]> {
  let csvParser: CsvParser | null = null;
  for await (const { part, isWhole } of readWithSample(textOf(bytes))) {
    let text = part;
    if (!csvParser) {
      const { delimiter, skip } = detectDelimiter(part, isWhole);
      layout.delimiter ??= delimiter;
      csvParser = new CsvParser(layout.delimiter);
      text = part.slice(skip);
    }
    yield* csvParser.write(text);
    if (csvParser.heldCharacters > ROW_MAX_CHARACTERS) throw tooLong();
  }
  if (csvParser) yield* csvParser.end();
}

/** Returns the names of the columns. @throws ActionError REQUEST_INVALID */
function headerOf(cells: string[]): string[] {
  const names = new Set<string>();
  for (const name of cells) {
    checkColumnName(name, "the header of the file");
    if (names.has(name)) throw invalidRows(`the header of the file names ${describeValue(name)} twice`);
    names.add(name);
  }
  return cells;
}

/** Returns the types of the columns in their order. @throws ActionError REQUEST_INVALID */
function columnTypes(columns: readonly string[], types: ColumnTypes): CellType[] {
  const unknown = Object.keys(types).find((name) => !columns.includes(name));
  if (unknown !== undefined)
    throw invalidRows(`types names a column that the header of the file does not have (got ${describeValue(unknown)})`);
  return columns.map((name) => types[name] ?? "text");
}

/** @throws REQUEST_INVALID */
function typedCell(cell: string, type: CellType, place: () => string): unknown {
  const value = cellValue(cell, type);
  if (value === undefined) throw invalidRows(`${place()} must be ${CELL_FORMS[type]} (got ${describeValue(cell)})`);
  return value;
}

/** Yields the rows of a CSV file as objects. The file's first row has the column names. */
async function* rowsOfCsv(bytes: Readable, layout: CsvLayout, typed: ColumnTypes): AsyncGenerator<unknown> {
  let row = 0;
  let types: CellType[] = [];
  try {
    for await (const cells of csvRows(bytes, layout)) {
      row += 1;
      if (layout.columns === null) {
        layout.columns = headerOf(cells);
        types = columnTypes(layout.columns, typed);
        continue;
      }
      const names: string[] = layout.columns;
      if (cells.length > names.length) {
        throw invalidRows(`row ${row} of the file has ${cells.length} fields, its header ${names.length}`);
      }
      const place = (index: number) => () => `row ${row} of the file: ${describeValue(names[index])}`;
      yield Object.fromEntries(
        cells.map((cell, index) => [names[index]!, typedCell(cell, types[index]!, place(index))]),
      );
    }
  } catch (error) {
    throw error instanceof CsvError ? invalidRows(error.message) : error;
  }
}

/** Types of columns by name; a column that is not listed is text. */
export type ColumnTypes = Readonly<Record<string, CellType>>;

/** Layout of a file of rows. Its fields are filled in while the file is read. */
export interface CsvLayout {
  /** Header of a CSV; null for other formats. */
  columns: string[] | null;
  /** Separator between the cells of a CSV; null for other formats. */
  delimiter: string | null;
}

export const newLayout = (delimiter: string | null = null): CsvLayout => ({ columns: null, delimiter });

/** Parses `types=` of an import: a JSON object of column names and types. @throws ActionError REQUEST_INVALID */
export function columnTypesOf(text: string | undefined): ColumnTypes {
  const types: Record<string, CellType> = Object.create(null);
  if (text === undefined) return types;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw invalidRows(`types must be JSON (got ${describeValue(text)})`);
  }
  if (!isObject(parsed))
    throw invalidRows(`types must be an object of columns and their types (got ${describeValue(parsed)})`);
  for (const [name, type] of Object.entries(parsed)) {
    const cellKind = CELL_TYPES.find((cellType) => cellType === type);
    if (!cellKind)
      throw invalidRows(`types[${describeValue(name)}] must be ${CELL_TYPES.join(", ")} (got ${describeValue(type)})`);
    types[name] = cellKind;
  }
  return types;
}

/** Parses `delimiter=` of an import. @throws ActionError REQUEST_INVALID */
export function delimiterOf(value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === "string" && isDelimiter(value)) return value;
  throw invalidRows(`delimiter must be one character other than a quote or a line break (got ${describeValue(value)})`);
}

/** Yields the rows unchanged. @throws REQUEST_INVALID if there are none */
async function* streamWhilePresent(rows: AsyncIterable<unknown>, isThere: () => boolean): AsyncGenerator<unknown> {
  let count = 0;
  for await (const row of rows) {
    count += 1;
    yield row;
  }
  if (count === 0 && !isThere())
    throw invalidRows("the file is empty; an import that replaces entries must have rows or a header");
}

/**
 * Yields the rows of a file.
 * @param wish.layout set while the rows are read; a delimiter that is already set is not detected
 * @param wish.types types of the columns of a CSV
 * @param wish.mayBeEmpty false to reject a file without rows and header
 * @throws (while reading) ActionError REQUEST_INVALID that names the row, if there is one
 */
export function readRows(
  bytes: Readable,
  format: RowFormat,
  {
    layout = newLayout(),
    types = {},
    mayBeEmpty = true,
  }: { layout?: CsvLayout; types?: ColumnTypes; mayBeEmpty?: boolean } = {},
): AsyncGenerator<unknown> {
  if (format === "csv") {
    const rows = rowsOfCsv(bytes, layout, types);
    return mayBeEmpty ? rows : streamWhilePresent(rows, () => layout.columns !== null);
  }
  if (Object.keys(types).length > 0) throw invalidRows(`types is only for CSV (got a file of ${format})`);
  layout.delimiter = null;
  // `[]` means that there are no entries. An empty file means nothing.
  if (format === "json") return rowsOfJson(bytes);
  return mayBeEmpty ? rowsOfJsonLines(bytes) : streamWhilePresent(rowsOfJsonLines(bytes), () => false);
}
