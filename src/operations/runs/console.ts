/** Stores the console lines of runs with secrets masked, lists them in order, and streams them live. */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import type { ConsoleLine } from "../../engine/browser/run.js";
import type { Notifications } from "../../engine/notifications.js";
import type { ScannedText } from "../../engine/secret-scan.js";
import { ActionError } from "../../errors.js";
import { LOG_CHANNEL } from "../records/execution-logs.js";
import { createAbortableGenerator } from "../records/leavable.js";

/** Notification channel with the run's ID: a message means that the run has printed lines. */
export const CONSOLE_CHANNEL = "svc_console";

/** Interval at which new lines are stored. */
const FLUSH_MS = 200;
/**
 * Interval at which a live stream reads new lines without a notification. A notification can be lost, and a deleted run
 * sends none.
 */
const POLL_MS = 500;
/** Maximum number of lines in one read, which limits the memory that a slow reader needs. */
const READ_MAX = 500;

/** One line; `at` is ISO 8601, `seq` counts from 0 within the run. */
export interface PrintedLine {
  seq: number;
  level: string;
  at: string;
  text: string;
}

const STORE = `
  WITH stored AS (
    INSERT INTO console_line (run_id, seq, level, at, text)
    SELECT $1, * FROM unnest($2::int[], $3::text[], $4::timestamptz[], $5::text[])
    ON CONFLICT DO NOTHING RETURNING 1)
  SELECT pg_notify('${CONSOLE_CHANNEL}', $1::text) FROM stored LIMIT 1`;

/** Replaces characters that a text column of PostgreSQL cannot store. */
const storableText = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD");

/** Collects the lines of one run, and stores them in batches. */
export class ConsoleWriter {
  private lines: (ConsoleLine & { seq: number })[] = [];
  private seq = 0;
  private timer: NodeJS.Timeout | undefined;
  private stored: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly db: DataSource,
    private readonly runId: number,
    private readonly mask: (lines: readonly ScannedText[]) => Promise<string[]>,
  ) {}

  readonly print = (line: ConsoleLine): void => {
    this.lines.push({ ...line, seq: this.seq });
    this.seq += 1;
    this.timer ??= setTimeout(() => this.flush(), FLUSH_MS);
  };

  /** Stores the remaining lines. Call it before the run ends. */
  readonly finish = async (): Promise<void> => {
    this.flush();
    await this.stored;
  };

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const { lines } = this;
    this.lines = [];
    if (lines.length === 0) return;
    // Lines that cannot be stored are lost: they must not fail the run.
    this.stored = this.stored.then(() => this.store(lines)).catch(() => undefined);
  }

  private async store(lines: readonly (ConsoleLine & { seq: number })[]): Promise<void> {
    const texts = await this.mask(lines);
    const columns = [lines.map(({ seq }) => seq), lines.map(({ level }) => level), lines.map(({ at }) => new Date(at))];
    await this.db.query(STORE, [this.runId, ...columns, texts.map(storableText)]);
  }
}

export class RunConsole {
  constructor(
    private readonly db: DataSource,
    private readonly notifications: Notifications,
  ) {}

  /** @param mask masks the secrets of the run's app in lines */
  writer(runId: number, mask: (lines: readonly ScannedText[]) => Promise<string[]>): ConsoleWriter {
    return new ConsoleWriter(this.db, runId, mask);
  }

  private async read(runId: number, after: number, limit: number | null = null): Promise<PrintedLine[]> {
    const lines = await rows<PrintedLine & { at: Date }>(
      this.db,
      "SELECT seq, level, at, text FROM console_line WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
      [runId, after, limit],
    );
    return lines.map((line) => ({ ...line, at: line.at.toISOString() }));
  }

  /** True if the run has ended. @throws RUN_NOT_FOUND unless it belongs to the app */
  private async hasEnded(appId: number, runId: number): Promise<boolean> {
    const sql = "SELECT finished_at IS NOT NULL AS ended FROM run WHERE id = $1 AND app_id = $2";
    const [run] = await rows<{ ended: boolean }>(this.db, sql, [runId, appId]);
    if (!run) throw new ActionError("RUN_NOT_FOUND");
    return run.ended;
  }

  /** Resolves at the next notification about the run, after POLL_MS milliseconds, or when the reader leaves. */
  private nextNotice(runId: number, readerLeft: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const stopWaiting = () => resolve();
    readerLeft.addEventListener("abort", stopWaiting);
    const unfollow = [
      this.notifications.follow(CONSOLE_CHANNEL, (notice) => notice === String(runId) && resolve(), resolve),
      this.notifications.follow(LOG_CHANNEL, (notice) => notice.endsWith(`:${runId}`) && resolve(), resolve),
    ];
    const timer = setTimeout(resolve, POLL_MS);
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
  ): AsyncGenerator<PrintedLine[], void, void> {
    // Throws unless the run belongs to the app. The query of the lines does not check this.
    await this.hasEnded(appId, runId);
    for (let last = -1, isOver = false; ; ) {
      const lines = await this.read(runId, last, READ_MAX);
      if (lines.length > 0) yield lines;
      last = lines.at(-1)?.seq ?? last;
      if (lines.length === READ_MAX) continue;
      if (isOver || readerLeft.aborted) return;
      // Listening starts before the state is read, so that an end in between is not missed.
      const next = this.nextNotice(runId, readerLeft);
      isOver = await this.hasEnded(appId, runId);
      if (!isOver) await next;
    }
  }

  /** Returns all lines so far. @throws ActionError RUN_NOT_FOUND */
  async list(appId: number, runId: number): Promise<PrintedLine[]> {
    await this.hasEnded(appId, runId);
    return this.read(runId, -1);
  }

  /** Yields all lines from the first on, in batches, until the run ends. @throws ActionError RUN_NOT_FOUND */
  follow(appId: number, runId: number): AsyncGenerator<PrintedLine[], void, void> {
    return createAbortableGenerator((readerLeft) => this.lines(appId, runId, readerLeft));
  }
}
