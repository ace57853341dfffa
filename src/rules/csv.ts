/** Parses CSV (RFC 4180) that arrives in parts, and detects its delimiter. Imports nothing, because Studio executes this file too. */

/** Number of characters at the start of a CSV file in which the delimiter is searched. Headers are usually shorter. */
export const DELIMITER_SAMPLE_MAX_CHARACTERS = 64 * 1024;

/** Maximum number of cells in a row: the maximum number of columns of an entry. */
export const CSV_CELLS_PER_ROW_MAX = 1_000;

/** Delimiters that are detected, in order of preference. `|` is used only if the header contains none of them. */
const DETECTED_DELIMITERS = [",", ";", "\t"] as const;
const FALLBACK_DELIMITER = "|";
const SAMPLE_ROWS = 50;
/** Number of characters of a sample that are parsed in one step, until SAMPLE_ROWS rows are found. */
const PART_CHARACTERS = 2_048;

const QUOTE_CODE = 34;
const CR = 13;
const LF = 10;
const SPACE_CODE = 32;

/** Error for a text that is not CSV. `row` is the number of the row with the fault, counted from 1 without blank lines. */
export class CsvError extends Error {
  readonly row: number;

  constructor(row: number, problem: string) {
    super(`row ${row} of the file ${problem}`);
    this.row = row;
  }
}

/** True for a character that can separate cells: no quote, line break, byte order mark or surrogate. */
export const isValidDelimiter = (text: string): boolean =>
  text.length === 1 && !/["\r\n\uFEFF\uD800-\uDFFF]/.test(text);

/**
 * State of the parser: "start": before the first character of a cell; "bare": in a cell without quotes; "quoted": in a quoted cell; "closing":
 * after a quote that may end the quoted cell; "closed": after this end.
 */
type ParserState = "start" | "bare" | "quoted" | "closing" | "closed";

/** Parses rows of a text that arrives in parts. A part can end anywhere, even between `\r` and `\n` or inside a quoted cell. */
export class CsvParser {
  private readonly delimiterCode: number;
  private state: ParserState = "start";
  private cells: string[] = [];
  private cell = "";
  private rowCount = 0;
  unfinishedRowCharacters = 0;

  constructor(delimiter: string) {
    this.delimiterCode = delimiter.charCodeAt(0);
  }

  /**
   * Parses the next part of the text, and returns the rows that end in it. Ignores empty lines, so that CRLF works too.
   * @throws CsvError
   */
  write(text: string): string[][] {
    const rows: string[][] = [];
    let fieldStart = 0;
    let rowStart = 0;
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
      if (code === this.delimiterCode || code === CR || code === LF) {
        if (this.state === "start" || this.state === "bare") this.cell += text.slice(fieldStart, at);
        fieldStart = at + 1;
        this.endCell(code === this.delimiterCode);
        if (code === this.delimiterCode) continue;
        this.unfinishedRowCharacters = 0;
        rowStart = fieldStart;
        this.endRow(rows);
      } else if (this.state === "start" && code === QUOTE_CODE) {
        this.state = "quoted";
        fieldStart = at + 1;
      } else if (this.state === "start") this.state = "bare";
      else if (this.state !== "bare") {
        this.handleAfterQuote(code);
        fieldStart = at + 1;
      }
    }
    if (this.state === "start" || this.state === "bare") this.cell += text.slice(fieldStart);
    this.unfinishedRowCharacters += text.length - rowStart;
    return rows;
  }

  /** Must be called at the end of the text. Returns the last row if no line break follows it. @throws CsvError */
  finish(): string[][] {
    const rows: string[][] = [];
    if (this.state === "quoted") throw this.createQuoteError();
    this.endCell(false);
    this.endRow(rows);
    return rows;
  }

  /** Number of the current row, counted from 1. */
  get rowNumber(): number {
    return this.rowCount + 1;
  }

  private createQuoteError(): CsvError {
    return new CsvError(
      this.rowNumber,
      "has a quoted field that lacks its closing quote, or that has text after its closing quote",
    );
  }

  /**
   * Handles the character after a quote in a quoted cell: a second quote stands for a quote; after the closing quote, only spaces may
   * follow.
   */
  private handleAfterQuote(code: number): void {
    if (this.state === "closing" && code === QUOTE_CODE) {
      this.cell += '"';
      this.state = "quoted";
    } else if (code === SPACE_CODE) this.state = "closed";
    else throw this.createQuoteError();
  }

  private endCell(rowContinues: boolean): void {
    const isBlankLine = !rowContinues && this.cells.length === 0 && this.state === "start";
    this.state = "start";
    if (isBlankLine) return;
    if (this.cells.length === CSV_CELLS_PER_ROW_MAX) {
      throw new CsvError(this.rowNumber, `has more than ${CSV_CELLS_PER_ROW_MAX.toLocaleString("en")} fields`);
    }
    this.cells.push(this.cell);
    this.cell = "";
  }

  private endRow(rows: string[][]): void {
    if (this.cells.length === 0) return;
    rows.push(this.cells);
    this.cells = [];
    this.rowCount += 1;
  }
}

/** Returns the first row, even if it is incomplete, and the complete rows after it. Returns null if the text is not CSV. */
function parseSampleRows(text: string, delimiter: string, isWhole: boolean): string[][] | null {
  const parser = new CsvParser(delimiter);
  try {
    const rows: string[][] = [];
    for (let at = 0; at < text.length; at += PART_CHARACTERS) {
      rows.push(...parser.write(text.slice(at, at + PART_CHARACTERS)));
      if (rows.length >= SAMPLE_ROWS) return rows.slice(0, SAMPLE_ROWS);
    }
    if (isWhole || rows.length === 0) rows.push(...parser.finish());
    return rows;
  } catch {
    return null;
  }
}

/**
 * Rates how well rows fit a delimiter. `fit` is 2 if all rows have as many cells as the header, and 1 if no row has more. Otherwise, or if
 * the header has only one cell, it is 0.
 */
function rateRows(rows: string[][] | null): { fit: number; columns: number } {
  const [header, ...rest] = rows ?? [];
  const columns = header?.length ?? 0;
  if (columns < 2) return { fit: 0, columns };
  if (rest.every(({ length }) => length === columns)) return { fit: 2, columns };
  return { fit: rest.every(({ length }) => length <= columns) ? 1 : 0, columns };
}

export interface CsvDetectionResult {
  delimiter: string;
  /** Number of characters of a first line such as `sep=;`, which is not data; 0 if there is no such line. */
  skippedCharacters: number;
}

/**
 * Detects the delimiter: the one in a first line such as `sep=;`; otherwise the one whose rows fit the header best; otherwise one that the
 * header contains; otherwise a comma.
 * @param isWhole true if the sample is the whole text
 */
export function detectDelimiter(sample: string, isWhole: boolean): CsvDetectionResult {
  const separatorLine = /^"?sep=([^"\r\n])"?(?:\r\n?|\n|$)/i.exec(sample);
  if (separatorLine) return { delimiter: separatorLine[1]!, skippedCharacters: separatorLine[0].length };
  let bestFit: { delimiter: string; fit: number; columns: number } = { delimiter: ",", fit: 0, columns: 0 };
  for (const delimiter of DETECTED_DELIMITERS) {
    const delimiterFit = rateRows(parseSampleRows(sample, delimiter, isWhole));
    if (
      delimiterFit.fit > bestFit.fit ||
      (delimiterFit.fit === bestFit.fit && delimiterFit.fit > 0 && delimiterFit.columns > bestFit.columns)
    ) {
      bestFit = { delimiter, ...delimiterFit };
    }
  }
  if (bestFit.fit > 0) return { delimiter: bestFit.delimiter, skippedCharacters: 0 };
  const headerHas = (delimiter: string) => (parseSampleRows(sample, delimiter, isWhole)?.[0]?.length ?? 0) > 1;
  const usesFallback = headerHas(FALLBACK_DELIMITER) && !DETECTED_DELIMITERS.some(headerHas);
  return {
    delimiter: usesFallback ? FALLBACK_DELIMITER : (DETECTED_DELIMITERS.find(headerHas) ?? ","),
    skippedCharacters: 0,
  };
}
