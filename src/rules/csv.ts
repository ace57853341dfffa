/**
 * CSV as RFC 4180 describes it: a parser for text that arrives in parts, and the detection of the delimiter. Reads each character once.
 * The service's imports and Studio's preview both run it, so it imports nothing.
 */

/** Characters from which the delimiter is detected: more than any header has, and little to hold. */
export const SAMPLE_CHARACTERS = 64 * 1024;

/** Most cells of a row: an entry has no more columns. */
export const CSV_CELLS_MAX = 1_000;

/** In the order of preference. A bar counts only where the header has none of the others. */
const DETECTED = [",", ";", "\t"] as const;
const LAST_RESORT = "|";
const SAMPLE_ROWS = 50;
/** A sample is read only as far as its rows are needed. */
const PART_CHARACTERS = 2_048;

const QUOTE = 34;
const CR = 13;
const LF = 10;
const SPACE = 32;

/** Text that is not CSV. `row` counts from 1, blank lines left out. */
export class CsvError extends Error {
  readonly row: number;

  constructor(row: number, problem: string) {
    super(`row ${row} of the file ${problem}`);
    this.row = row;
  }
}

/** True for one character that can separate cells. */
export const isDelimiter = (text: string): boolean => text.length === 1 && !/["\r\n\uFEFF\uD800-\uDFFF]/.test(text);

/** "bare": no quote opened the cell. "closing": the character before was a quote inside a quoted cell. */
type State = "start" | "bare" | "quoted" | "closing" | "closed";

/** Rows of a text that arrives in parts. Every part may end anywhere, between `\r` and `\n` or inside a quote too. */
export class CsvParser {
  private readonly delimiter: number;
  private state: State = "start";
  private cells: string[] = [];
  private cell = "";
  private rows = 0;
  /** Characters since the last row ended. */
  held = 0;

  /** @param delimiter one character, see `isDelimiter` */
  constructor(delimiter: string) {
    this.delimiter = delimiter.charCodeAt(0);
  }

  /**
   * The rows that end in this part. A line without a character is no row, so CRLF needs no care; `""` is a row of one empty cell.
   * @throws CsvError
   */
  write(text: string): string[][] {
    const found: string[][] = [];
    let from = 0;
    let rowFrom = 0;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (this.state === "quoted") {
        const quote = code === QUOTE ? at : text.indexOf('"', at);
        at = quote < 0 ? text.length : quote;
        this.cell += text.slice(from, at);
        from = at + 1;
        if (quote >= 0) this.state = "closing";
        continue;
      }
      if (code === this.delimiter || code === CR || code === LF) {
        if (this.state === "start" || this.state === "bare") this.cell += text.slice(from, at);
        from = at + 1;
        this.endCell(code === this.delimiter);
        if (code === this.delimiter) continue;
        this.held = 0;
        rowFrom = from;
        this.endRow(found);
      } else if (this.state === "start" && code === QUOTE) {
        this.state = "quoted";
        from = at + 1;
      } else if (this.state === "start") this.state = "bare";
      else if (this.state !== "bare") {
        this.afterQuote(code);
        from = at + 1;
      }
    }
    if (this.state === "start" || this.state === "bare") this.cell += text.slice(from);
    this.held += text.length - rowFrom;
    return found;
  }

  /** The last row, where the text does not end with a line break. @throws CsvError */
  end(): string[][] {
    const found: string[][] = [];
    if (this.state === "quoted") throw this.quoteFault();
    this.endCell(false);
    this.endRow(found);
    return found;
  }

  /** The number of the row that is being read. */
  get row(): number {
    return this.rows + 1;
  }

  private quoteFault(): CsvError {
    return new CsvError(this.row, "has a quote that does not end, or ends too early");
  }

  /** A second quote stands for one; spaces may follow the last. */
  private afterQuote(code: number): void {
    if (this.state === "closing" && code === QUOTE) {
      this.cell += '"';
      this.state = "quoted";
    } else if (code === SPACE) this.state = "closed";
    else throw this.quoteFault();
  }

  private endCell(more: boolean): void {
    const isBlankLine = !more && this.cells.length === 0 && this.state === "start";
    this.state = "start";
    if (isBlankLine) return;
    if (this.cells.length === CSV_CELLS_MAX) {
      throw new CsvError(this.row, `has more than ${CSV_CELLS_MAX.toLocaleString("en")} fields`);
    }
    this.cells.push(this.cell);
    this.cell = "";
  }

  private endRow(found: string[][]): void {
    if (this.cells.length === 0) return;
    found.push(this.cells);
    this.cells = [];
    this.rows += 1;
  }
}

/** The first row, complete or not, and the rows after it that are complete; null where the text is not CSV with that delimiter. */
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

/** How well a delimiter fits: 0 not at all, 1 where no row is longer than the header, 2 where all rows have the same length. */
function fitOf(rows: string[][] | null): { fit: number; columns: number } {
  const [header, ...rest] = rows ?? [];
  const columns = header?.length ?? 0;
  if (columns < 2) return { fit: 0, columns };
  if (rest.every(({ length }) => length === columns)) return { fit: 2, columns };
  return { fit: rest.every(({ length }) => length <= columns) ? 1 : 0, columns };
}

export interface CsvStart {
  delimiter: string;
  /** Characters of a first line `sep=;`, which is not data. */
  skip: number;
}

/**
 * The delimiter of a text, from its first characters: `sep=` on the first line says it; else the one by which the rows have the same
 * number of fields, and more of them than by others; else a comma.
 * @param isWhole the sample is the whole text
 */
export function detectDelimiter(sample: string, isWhole: boolean): CsvStart {
  const named = /^"?sep=([^"\r\n])"?(?:\r\n?|\n|$)/i.exec(sample);
  if (named) return { delimiter: named[1]!, skip: named[0].length };
  let best: { delimiter: string; fit: number; columns: number } = { delimiter: ",", fit: 0, columns: 0 };
  for (const delimiter of DETECTED) {
    const found = fitOf(sampleRows(sample, delimiter, isWhole));
    if (found.fit > best.fit || (found.fit === best.fit && found.fit > 0 && found.columns > best.columns)) {
      best = { delimiter, ...found };
    }
  }
  if (best.fit > 0) return { delimiter: best.delimiter, skip: 0 };
  const headerHas = (delimiter: string) => (sampleRows(sample, delimiter, isWhole)?.[0]?.length ?? 0) > 1;
  const isBar = headerHas(LAST_RESORT) && !DETECTED.some(headerHas);
  return { delimiter: isBar ? LAST_RESORT : (DETECTED.find(headerHas) ?? ","), skip: 0 };
}
