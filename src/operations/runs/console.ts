/** Stores the console lines of runs with secrets masked, lists them, and streams them during the run. */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { type Db, isDatabaseUnavailable, queryPreparedRows } from "../../data/database.js";
import type { ConsoleLine } from "../../engine/browser/run.js";
import type { ScannedText } from "../../engine/secret-scan.js";
import { ActionError } from "../../errors.js";
import { createAbortableGenerator } from "../records/abortable-generator.js";

const FLUSH_INTERVAL_MS = 200;
/** A live stream reads new lines at this interval. The lines of a run are stored every FLUSH_INTERVAL_MS. */
const POLL_INTERVAL_MS = 250;
/** Maximum number of lines that one read returns, so that a slow reader needs little memory. */
const LINES_PER_READ_MAX = 500;

/** `at` is the time as ISO 8601 text; `seq` is the number of the line in the run, from 0. */
export interface RunConsoleLine {
  seq: number;
  level: string;
  at: string;
  text: string;
}

const INSERT_LINES = `
  INSERT INTO console_line (run_id, seq, level, at, text)
  SELECT $1, * FROM unnest($2::int[], $3::text[], $4::timestamptz[], $5::text[]) ON CONFLICT DO NOTHING`;

/** Returns one row without a line if the run has no lines after $3. The lines of a run are stored before its end. */
const SELECT_LINES = `
  SELECT run.finished_at IS NOT NULL AS "hasEnded", seq, level, at, text
    FROM run LEFT JOIN console_line ON run_id = run.id AND seq > $3
   WHERE run.id = $1 AND app_id = $2 ORDER BY seq LIMIT $4`;

/** Replaces characters that a text column of PostgreSQL cannot store, such as NUL. */
const toStorableText = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD");

export class ConsoleWriter {
  private lines: (ConsoleLine & { seq: number })[] = [];
  private seq = 0;
  private timer: NodeJS.Timeout | undefined;
  private lastWrite: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly options: {
      db: Db;
      runId: number;
      mask: (lines: readonly ScannedText[]) => Promise<string[]>;
      log: Logger;
    },
  ) {}

  readonly print = (line: ConsoleLine): void => {
    this.lines.push({ ...line, seq: this.seq });
    this.seq += 1;
    this.timer ??= setTimeout(() => this.storeInBackground(), FLUSH_INTERVAL_MS);
  };

  /** Stores the remaining lines. Call this method before the run ends, and again if it rejects because the database is unavailable. */
  readonly flush = (): Promise<void> => {
    clearTimeout(this.timer);
    this.timer = undefined;
    const write = this.lastWrite.then(() => this.storeLines());
    this.lastWrite = write.catch(() => undefined);
    return write;
  };

  private storeInBackground(): void {
    // If the database is unavailable, the next call of `flush` stores the lines. `storeLines` logs other errors.
    this.flush().catch(() => undefined);
  }

  private async insertLines(lines: readonly (ConsoleLine & { seq: number })[]): Promise<void> {
    const columns = [
      lines.map(({ seq }) => seq),
      lines.map(({ level }) => level),
      lines.map(({ at }) => new Date(at)),
      lines.map(({ text }) => toStorableText(text)),
    ];
    await this.options.db.query(INSERT_LINES, [this.options.runId, ...columns]);
  }

  private async storeLines(): Promise<void> {
    const { lines } = this;
    if (lines.length === 0) return;
    this.lines = [];
    try {
      const texts = await this.options.mask(lines);
      await this.insertLines(lines.map((line, index) => ({ ...line, text: texts[index]! })));
    } catch (error) {
      if (isDatabaseUnavailable(error)) {
        this.lines = [...lines, ...this.lines];
        throw error;
      }
      const { log, runId } = this.options;
      log.error({ err: error, runId, lines: lines.length }, "console lines of a run are lost: storing them failed");
      const text = `console lines could not be stored because of an internal error (lost lines: ${lines.length})`;
      await this.insertLines([{ ...lines[0]!, level: "warn", text }]);
    }
  }
}

export class RunConsole {
  constructor(private readonly db: Db) {}

  /** @throws ActionError RUN_NOT_FOUND if the app has no run with this ID */
  private async readLines(
    appId: number,
    runId: number,
    after: number,
    limit: number | null,
  ): Promise<{ lines: RunConsoleLine[]; hasEnded: boolean }> {
    type Row = Omit<RunConsoleLine, "at"> & { at: Date | null; hasEnded: boolean };
    const lineRows = await queryPreparedRows<Row>(this.db, "console-lines", SELECT_LINES, [runId, appId, after, limit]);
    if (lineRows.length === 0) throw new ActionError("RUN_NOT_FOUND");
    const lines = lineRows.flatMap(({ at, hasEnded: _, ...line }) => (at ? { ...line, at: at.toISOString() } : []));
    return { lines, hasEnded: lineRows[0]!.hasEnded };
  }

  private async *streamLines(
    appId: number,
    runId: number,
    readerLeft: AbortSignal,
  ): AsyncGenerator<RunConsoleLine[], void, void> {
    for (let lastSeq = -1; ; ) {
      const { lines, hasEnded } = await this.readLines(appId, runId, lastSeq, LINES_PER_READ_MAX);
      if (lines.length > 0) yield lines;
      lastSeq = lines.at(-1)?.seq ?? lastSeq;
      if (lines.length === LINES_PER_READ_MAX) continue;
      if (hasEnded || readerLeft.aborted) return;
      // An abort ends this delay.
      await delay(POLL_INTERVAL_MS, undefined, { signal: readerLeft }).catch(() => undefined);
    }
  }

  /** Returns all stored lines of the run. @throws ActionError RUN_NOT_FOUND */
  async list(appId: number, runId: number): Promise<RunConsoleLine[]> {
    return (await this.readLines(appId, runId, -1, null)).lines;
  }

  /** Yields the lines of the run in batches, until the run ends. @throws ActionError RUN_NOT_FOUND */
  follow(appId: number, runId: number): AsyncGenerator<RunConsoleLine[], void, void> {
    return createAbortableGenerator((readerLeft) => this.streamLines(appId, runId, readerLeft));
  }
}
