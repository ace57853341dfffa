/** Rows out of a file as it comes in: CSV, a JSON array, or JSON a line. Holds one chunk at a time; knows no data source. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import Papa from "papaparse";
import streamArray from "stream-json/streamers/stream-array.js";
import { ActionError } from "../../errors.js";
import { ENTRY_MAX_BYTES } from "../../limits.js";

export const ROW_FORMATS = ["csv", "json", "jsonl"] as const;
export type RowFormat = (typeof ROW_FORMATS)[number];

/** Without a row's end within so many characters it is no row that an entry could hold. */
const ROW_MAX_CHARACTERS = 4 * ENTRY_MAX_BYTES;

const invalid = (message: string): ActionError => new ActionError("REQUEST_INVALID", message);
const tooLong = (): ActionError => invalid(`a row of the file is longer than ${ROW_MAX_CHARACTERS} characters`);

/** Refuses what goes on without a row's end: it would be held whole. */
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

/** The bytes as text; a mark of its order at the beginning is none of it. @throws REQUEST_INVALID for what is not UTF-8 */
async function* textOf(bytes: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    for await (const chunk of bytes) yield decoder.decode(chunk as Buffer, { stream: true });
    yield decoder.decode();
  } catch (error) {
    if (error instanceof TypeError) throw invalid("the file must be UTF-8");
    throw error;
  }
}

function* jsonLines(text: string): Generator<unknown> {
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    try {
      yield JSON.parse(line);
    } catch {
      throw invalid("each line of the file must be JSON");
    }
  }
}

async function* rowsOfJsonLines(bytes: Readable): AsyncGenerator<unknown> {
  let rest = "";
  for await (const text of textOf(bytes)) {
    rest += text;
    const cut = rest.lastIndexOf("\n") + 1;
    yield* jsonLines(rest.slice(0, cut));
    rest = rest.slice(cut);
    if (rest.length > ROW_MAX_CHARACTERS) throw tooLong();
  }
  yield* jsonLines(rest);
}

async function* rowsOfJson(bytes: Readable): AsyncGenerator<unknown> {
  const rows = streamArray.withParserAsStream({ streamValues: false });
  const bound = new RowBound();
  const fed = pipeline(bound.watch(textOf(bytes)), rows);
  // It is heard of where the rows are read.
  fed.catch(() => undefined);
  try {
    for await (const { value } of rows as AsyncIterable<{ value: unknown }>) {
      bound.rowEnded();
      yield value;
    }
    await fed;
  } catch (error) {
    if (error instanceof ActionError) throw error;
    if ((error as { code?: string }).code !== undefined && !/JSON|Parser|Top-level/i.test((error as Error).message))
      throw error;
    throw invalid("the file must be a JSON array of entries");
  }
}

type CsvChunk = Papa.ParseResult<string[]>;

/**
 * Papa Parse's chunks, the next one parsed when the one before has been taken. A parser that is paused goes on gathering what its input
 * brings: the input waits with it.
 */
async function* csvChunks(text: AsyncIterable<string>): AsyncGenerator<CsvChunk> {
  const input = Readable.from(text, { highWaterMark: 1 });
  let parser: Papa.Parser | null = null;
  let next = Promise.withResolvers<CsvChunk | null>();
  Papa.parse<string[]>(input, {
    skipEmptyLines: "greedy",
    chunk(chunk, own) {
      parser = own;
      own.pause();
      input.pause();
      next.resolve(chunk);
    },
    complete: () => next.resolve(null),
    error: (error) => next.reject(error),
  });
  try {
    for (let chunk = await next.promise; chunk !== null; chunk = await next.promise) {
      yield chunk;
      next = Promise.withResolvers();
      parser!.resume();
      input.resume();
    }
  } finally {
    input.destroy();
  }
}

function headerOf(cells: string[]): string[] {
  const twice = cells.find((name, at) => cells.indexOf(name) !== at);
  if (twice !== undefined) throw invalid(`the header of the file names ${JSON.stringify(twice.slice(0, 60))} twice`);
  return cells;
}

/** The first row of all names the columns. */
async function* rowsOfCsv(bytes: Readable): AsyncGenerator<unknown> {
  const bound = new RowBound();
  let header: string[] | null = null;
  let row = 0;
  for await (const { data, errors } of csvChunks(bound.watch(textOf(bytes)))) {
    if (data.length > 0) bound.rowEnded();
    const fault = errors.find(({ type }) => type === "Quotes");
    if (fault)
      throw invalid(`row ${row + (fault.row ?? 0) + 1} of the file has a quote that does not end, or ends too early`);
    for (const cells of data) {
      row += 1;
      if (header === null) {
        header = headerOf(cells);
        continue;
      }
      const names: string[] = header;
      if (cells.length > names.length) {
        throw invalid(`row ${row} of the file has ${cells.length} fields, its header ${names.length}`);
      }
      yield Object.fromEntries(cells.map((cell, at) => [names[at]!, cell]));
    }
  }
}

/** @throws (as it is read) REQUEST_INVALID naming the row, where there is one */
export function readRows(bytes: Readable, format: RowFormat): AsyncGenerator<unknown> {
  if (format === "csv") return rowsOfCsv(bytes);
  return format === "json" ? rowsOfJson(bytes) : rowsOfJsonLines(bytes);
}
