/**
 * Stores the console lines of runs with secrets masked, lists the lines in order, and streams them while the run is in
 * progress.
 */
import { type Db, rows } from "../../data/database.js";
import type { ConsoleLine } from "../../engine/browser/run.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import type { ScannedText } from "../../engine/secret-scan.js";
import { ActionError } from "../../errors.js";
import { createAbortableGenerator } from "../records/abortable-generator.js";
import { LOG_CHANNEL } from "../records/execution-logs.js";

/** PostgreSQL channel. A message contains the ID of a run that has printed console lines. */
export const CONSOLE_CHANNEL = "svc_console";

/** Interval in milliseconds at which a running action's new console lines are stored. */
const FLUSH_INTERVAL_MS = 200;
/**
 * Interval in milliseconds at which a live stream reads new console lines even without a notification. A notification
 * can be lost, and the deletion of a run causes no notification.
 */
const POLL_INTERVAL_MS = 500;
/** Maximum number of console lines that one read returns. This limits the memory that a slow reader needs. */
const LINES_PER_READ_MAX = 500;

/** A console line of a run. `at` is its time as ISO 8601 text; `seq` is its number in the run, from 0. */
export interface RunConsoleLine {
  seq: number;
  level: string;
  at: string;
  text: string;
}

const INSERT_LINES = `
  WITH stored AS (
    INSERT INTO console_line (run_id, seq, level, at, text)
    SELECT $1, * FROM unnest($2::int[], $3::text[], $4::timestamptz[], $5::text[])
    ON CONFLICT DO NOTHING RETURNING 1)
  SELECT pg_notify('${CONSOLE_CHANNEL}', $1::text) FROM stored LIMIT 1`;

/** Replaces characters that a text column of PostgreSQL cannot store, such as NUL. */
const storableText = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD");

/** Collects the console lines of one run and stores them in batches. */
export class ConsoleWriter {
  private lines: (ConsoleLine & { seq: number })[] = [];
  private seq = 0;
  private timer: NodeJS.Timeout | undefined;
  private lastWrite: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly db: Db,
    private readonly runId: number,
    private readonly mask: (lines: readonly ScannedText[]) => Promise<string[]>,
  ) {}

  readonly print = (line: ConsoleLine): void => {
    this.lines.push({ ...line, seq: this.seq });
    this.seq += 1;
    this.timer ??= setTimeout(() => this.flush(), FLUSH_INTERVAL_MS);
  };

  /** Stores the lines that are not stored yet. Call this method before the run ends. */
  readonly finish = async (): Promise<void> => {
    this.flush();
    await this.lastWrite;
  };

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const { lines } = this;
    this.lines = [];
    if (lines.length === 0) return;
    // Ignores an error: these console lines are lost, but the run does not fail.
    this.lastWrite = this.lastWrite.then(() => this.store(lines)).catch(() => undefined);
  }

  private async store(lines: readonly (ConsoleLine & { seq: number })[]): Promise<void> {
    const texts = await this.mask(lines);
    const columns = [lines.map(({ seq }) => seq), lines.map(({ level }) => level), lines.map(({ at }) => new Date(at))];
    await this.db.query(INSERT_LINES, [this.runId, ...columns, texts.map(storableText)]);
  }
}

export class RunConsole {
  constructor(
    private readonly db: Db,
    private readonly notifications: DatabaseNotifications,
  ) {}

  /** Returns the writer for the console lines of a run. @param mask replaces the app's secrets in lines */
  writer(runId: number, mask: (lines: readonly ScannedText[]) => Promise<string[]>): ConsoleWriter {
    return new ConsoleWriter(this.db, runId, mask);
  }

  private async readLines(runId: number, after: number, limit: number | null = null): Promise<RunConsoleLine[]> {
    const lines = await rows<RunConsoleLine & { at: Date }>(
      this.db,
      "SELECT seq, level, at, text FROM console_line WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
      [runId, after, limit],
    );
    return lines.map((line) => ({ ...line, at: line.at.toISOString() }));
  }

  /** True if the run has ended. @throws RUN_NOT_FOUND if the run does not belong to the app */
  private async hasEnded(appId: number, runId: number): Promise<boolean> {
    const sql = "SELECT finished_at IS NOT NULL AS ended FROM run WHERE id = $1 AND app_id = $2";
    const [run] = await rows<{ ended: boolean }>(this.db, sql, [runId, appId]);
    if (!run) throw new ActionError("RUN_NOT_FOUND");
    return run.ended;
  }

  /** Resolves at the next notification about the run, after POLL_INTERVAL_MS, or when the reader stops reading. */
  private nextNotice(runId: number, readerLeft: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const stopWaiting = () => resolve();
    readerLeft.addEventListener("abort", stopWaiting);
    const unfollow = [
      this.notifications.follow(CONSOLE_CHANNEL, (notice) => notice === String(runId) && resolve(), resolve),
      this.notifications.follow(LOG_CHANNEL, (notice) => notice.endsWith(`:${runId}`) && resolve(), resolve),
    ];
    const timer = setTimeout(resolve, POLL_INTERVAL_MS);
    return promise.finally(() => {
      clearTimeout(timer);
      readerLeft.removeEventListener("abort", stopWaiting);
      for (const stopFollowing of unfollow) stopFollowing();
    });
  }

  private async *lines(
    appId: number,
    runId: number,
    readerLeft: AbortSignal,
  ): AsyncGenerator<RunConsoleLine[], void, void> {
    // Throws if the run does not belong to the app, because the query of the lines does not check this.
    await this.hasEnded(appId, runId);
    for (let last = -1, isOver = false; ; ) {
      const lines = await this.readLines(runId, last, LINES_PER_READ_MAX);
      if (lines.length > 0) yield lines;
      last = lines.at(-1)?.seq ?? last;
      if (lines.length === LINES_PER_READ_MAX) continue;
      if (isOver || readerLeft.aborted) return;
      // Starts listening before it reads the state of the run, so that the end of the run in between is not missed.
      const next = this.nextNotice(runId, readerLeft);
      isOver = await this.hasEnded(appId, runId);
      if (!isOver) await next;
    }
  }

  /** Returns all console lines that the run has printed so far. @throws ActionError RUN_NOT_FOUND */
  async list(appId: number, runId: number): Promise<RunConsoleLine[]> {
    await this.hasEnded(appId, runId);
    return this.readLines(runId, -1);
  }

  /**
   * Yields all console lines of the run in batches, from the first line, until the run ends.
   * @throws ActionError RUN_NOT_FOUND
   */
  follow(appId: number, runId: number): AsyncGenerator<RunConsoleLine[], void, void> {
    return createAbortableGenerator((readerLeft) => this.lines(appId, runId, readerLeft));
  }
}
