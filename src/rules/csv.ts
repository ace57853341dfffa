/**
 * Parses CSV (RFC 4180) that arrives in parts, and detects its delimiter. Reads each character once. The service's
 * imports and Studio's preview both run this file, so it imports nothing.
 */

/** Number of characters at the start of a file from which the delimiter is detected. Every usual header is shorter. */
export const SAMPLE_CHARACTERS = 64 * 1024;

/** Maximum number of cells in a row. An entry can have no more columns. */
export const CSV_CELLS_MAX = 1_000;

/** Delimiters in order of preference. A vertical bar is used only if the header has none of the others. */
const DETECTED_DELIMITERS = [",", ";", "\t"] as const;
const LAST_RESORT = "|";
const SAMPLE_ROWS = 50;
/** Characters of a sample that are parsed at a time. Parsing stops after SAMPLE_ROWS rows. */
const PART_CHARACTERS = 2_048;

const QUOTE_CODE = 34;
const CR = 13;
const LF = 10;
const SPACE_CODE = 32;

/** Error for a text that is not CSV. `row` counts from 1, without blank lines. */
export class CsvError extends Error {
  readonly row: number;

  constructor(row: number, problem: string) {
    super(`row ${row} of the file ${problem}`);
    this.row = row;
  }
}

/** True for one character that can separate cells. */
export const isDelimiter = (text: string): boolean => text.length === 1 && !/["\r\n\uFEFF\uD800-\uDFFF]/.test(text);

/** State of the parser. "bare": the cell is not quoted. "closing": the previous character was a quote inside a quoted cell. */
type State = "start" | "bare" | "quoted" | "closing" | "closed";

/** Parses rows of a text that arrives in parts. A part can end anywhere, even between `\r` and `\n` or inside a quote. */
export class CsvParser {
  private readonly delimiter: number;
  private state: State = "start";
  private cells: string[] = [];
  private cell = "";
  private rows = 0;
  /** Number of characters received since the end of the last row. */
  heldCharacters = 0;

  /** @param delimiter one character, see `isDelimiter` */
  constructor(delimiter: string) {
    this.delimiter = delimiter.charCodeAt(0);
  }

  /**
   * Returns the rows that end in this part. Empty lines are ignored, so CRLF needs no special case. A line `""` is a row
   * with one empty cell.
   * @throws CsvError
   */
  write(text: string): string[][] {
    const rows: string[][] = [];
    let fieldStart = 0;
    let rowFrom = 0;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (this.state === "quoted") {
        const quote = code === QUOTE_CODE ? at : text.indexOf('"', at);
        at = quote < 0 ? text.length : quote;
        this.cell += text.slice(fieldStart, at);
        fieldStart = at + 1;
        if (quote >= 0) this.state = "closing";
        continue;
      }
      if (code === this.delimiter || code === CR || code === LF) {
        if (this.state === "start" || this.state === "bare") this.cell += text.slice(fieldStart, at);
        fieldStart = at + 1;
        this.endCell(code === this.delimiter);
        if (code === this.delimiter) continue;
        this.heldCharacters = 0;
        rowFrom = fieldStart;
        this.endRow(rows);
      } else if (this.state === "start" && code === QUOTE_CODE) {
        this.state = "quoted";
        fieldStart = at + 1;
      } else if (this.state === "start") this.state = "bare";
      else if (this.state !== "bare") {
        this.afterQuote(code);
        fieldStart = at + 1;
      }
    }
    if (this.state === "start" || this.state === "bare") this.cell += text.slice(fieldStart);
    this.heldCharacters += text.length - rowFrom;
    return rows;
  }

  /** Returns the last row if the text does not end with a line break. @throws CsvError */
  end(): string[][] {
    const rows: string[][] = [];
    if (this.state === "quoted") throw this.quoteFault();
    this.endCell(false);
    this.endRow(rows);
    return rows;
  }

  /** Number of the current row. */
  get row(): number {
    return this.rows + 1;
  }

  private quoteFault(): CsvError {
    return new CsvError(this.row, "has a quoted cell without an end, or with text after its closing quote");
  }

  /** Handles the character after a quote: another quote stands for one quote, and spaces may follow a closing one. */
  private afterQuote(code: number): void {
    if (this.state === "closing" && code === QUOTE_CODE) {
      this.cell += '"';
      this.state = "quoted";
    } else if (code === SPACE_CODE) this.state = "closed";
    else throw this.quoteFault();
  }

  private endCell(rowContinues: boolean): void {
    const isBlankLine = !rowContinues && this.cells.length === 0 && this.state === "start";
    this.state = "start";
    if (isBlankLine) return;
    if (this.cells.length === CSV_CELLS_MAX) {
      throw new CsvError(this.row, `has more than ${CSV_CELLS_MAX.toLocaleString("en")} fields`);
    }
    this.cells.push(this.cell);
    this.cell = "";
  }

  private endRow(rows: string[][]): void {
    if (this.cells.length === 0) return;
    rows.push(this.cells);
    this.cells = [];
    this.rows += 1;
  }
}

/** Returns the first row, complete or not, and the complete rows after it; null if the text is not CSV with that delimiter. */
function sampleRows(text: string, delimiter: string, isWhole: boolean): string[][] | null {
  const parser = new CsvParser(delimiter);
  try {
    const rows: string[][] = [];
    for (let at = 0; at < text.length; at += PART_CHARACTERS) {
      rows.push(...parser.write(text.slice(at, at + PART_CHARACTERS)));
      if (rows.length >= SAMPLE_ROWS) return rows.slice(0, SAMPLE_ROWS);
    }
    if (isWhole || rows.length === 0) rows.push(...parser.end());
    return rows;
  } catch {
    return null;
  }
}

/**
 * Rates how well a delimiter fits. `fit` is 2 if all rows have the same length, 1 if no row is longer than the header,
 * and 0 otherwise.
 */
function rateLayout(rows: string[][] | null): { fit: number; columns: number } {
  const [header, ...rest] = rows ?? [];
  const columns = header?.length ?? 0;
  if (columns < 2) return { fit: 0, columns };
  if (rest.every(({ length }) => length === columns)) return { fit: 2, columns };
  return { fit: rest.every(({ length }) => length <= columns) ? 1 : 0, columns };
}

export interface CsvStart {
  delimiter: string;
  /** Length of a first line such as `sep=;`, which is not data. */
  skippedCharacters: number;
}

/**
 * Detects the delimiter. A first line such as `sep=;` decides. Otherwise the delimiter is chosen that gives all rows the
 * same number of fields, and the most fields. If none fits, it is a comma.
 * @param isWhole true if the sample is the whole text
 */
export function detectDelimiter(sample: string, isWhole: boolean): CsvStart {
  const separatorLine = /^"?sep=([^"\r\n])"?(?:\r\n?|\n|$)/i.exec(sample);
  if (separatorLine) return { delimiter: separatorLine[1]!, skippedCharacters: separatorLine[0].length };
  let bestFit: { delimiter: string; fit: number; columns: number } = { delimiter: ",", fit: 0, columns: 0 };
  for (const delimiter of DETECTED_DELIMITERS) {
    const delimiterFit = rateLayout(sampleRows(sample, delimiter, isWhole));
    if (
      delimiterFit.fit > bestFit.fit ||
      (delimiterFit.fit === bestFit.fit && delimiterFit.fit > 0 && delimiterFit.columns > bestFit.columns)
    ) {
      bestFit = { delimiter, ...delimiterFit };
    }
  }
  if (bestFit.fit > 0) return { delimiter: bestFit.delimiter, skippedCharacters: 0 };
  const headerHas = (delimiter: string) => (sampleRows(sample, delimiter, isWhole)?.[0]?.length ?? 0) > 1;
  const isBar = headerHas(LAST_RESORT) && !DETECTED_DELIMITERS.some(headerHas);
  return { delimiter: isBar ? LAST_RESORT : (DETECTED_DELIMITERS.find(headerHas) ?? ","), skippedCharacters: 0 };
}
