/** Stores the console lines of runs with secrets masked, lists them, and streams them during the run. */
import { setTimeout as delay } from "node:timers/promises";
import { type Db, isDatabaseUnavailable, rows } from "../../data/database.js";
import type { ConsoleLine } from "../../engine/browser/run.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import type { ScannedText } from "../../engine/secret-scan.js";
import { ActionError } from "../../errors.js";
import { createAbortableGenerator } from "../records/abortable-generator.js";
import { LOG_CHANNEL } from "../records/execution-logs.js";

export const CONSOLE_CHANNEL = "svc_console";

const FLUSH_INTERVAL_MS = 200;
/** Maximum time until a live stream reads again without a notification: notifications can be lost, and a deleted run sends none. */
const POLL_INTERVAL_MS = 500;
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
  WITH stored AS (
    INSERT INTO console_line (run_id, seq, level, at, text)
    SELECT $1, * FROM unnest($2::int[], $3::text[], $4::timestamptz[], $5::text[])
    ON CONFLICT DO NOTHING RETURNING 1)
  SELECT pg_notify('${CONSOLE_CHANNEL}', $1::text) FROM stored LIMIT 1`;

/** Replaces characters that a text column of PostgreSQL cannot store, such as NUL. */
const toStorableText = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD");

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
    // The next call of `finish` writes the lines that the database could not store.
    this.flush().catch(() => undefined);
  }

  private async storeLines(): Promise<void> {
    const { lines } = this;
    if (lines.length === 0) return;
    this.lines = [];
    try {
      const texts = await this.mask(lines);
      const columns = [
        lines.map(({ seq }) => seq),
        lines.map(({ level }) => level),
        lines.map(({ at }) => new Date(at)),
      ];
      await this.db.query(INSERT_LINES, [this.runId, ...columns, texts.map(toStorableText)]);
    } catch (error) {
      if (isDatabaseUnavailable(error)) this.lines = [...lines, ...this.lines];
      throw error;
    }
  }
}

export class RunConsole {
  constructor(
    private readonly db: Db,
    private readonly notifications: DatabaseNotifications,
  ) {}

  private async readLines(runId: number, after: number, limit: number | null = null): Promise<RunConsoleLine[]> {
    const lines = await rows<RunConsoleLine & { at: Date }>(
      this.db,
      "SELECT seq, level, at, text FROM console_line WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
      [runId, after, limit],
    );
    return lines.map((line) => ({ ...line, at: line.at.toISOString() }));
  }

  /** @throws ActionError RUN_NOT_FOUND if the app has no run with this ID */
  private async hasEnded(appId: number, runId: number): Promise<boolean> {
    const sql = "SELECT finished_at IS NOT NULL AS ended FROM run WHERE id = $1 AND app_id = $2";
    const [run] = await rows<{ ended: boolean }>(this.db, sql, [runId, appId]);
    if (!run) throw new ActionError("RUN_NOT_FOUND");
    return run.ended;
  }

  /** Waits until a line is stored, the run ends, or POLL_INTERVAL_MS is over. */
  private async waitForNextNotice(runId: number, readerLeft: AbortSignal): Promise<void> {
    const noticed = new AbortController();
    const onNotice = () => noticed.abort();
    const stopFunctions = [
      this.notifications.follow(CONSOLE_CHANNEL, (notice) => notice === String(runId) && onNotice(), onNotice),
      this.notifications.follow(LOG_CHANNEL, (notice) => notice.endsWith(`:${runId}`) && onNotice(), onNotice),
    ];
    // An abort ends this delay.
    const signal = AbortSignal.any([readerLeft, noticed.signal]);
    await delay(POLL_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
    for (const stopFollowing of stopFunctions) stopFollowing();
  }

  private async *streamLines(
    appId: number,
    runId: number,
    readerLeft: AbortSignal,
  ): AsyncGenerator<RunConsoleLine[], void, void> {
    // Throws if the run belongs to another app. The query of the lines does not check the app.
    await this.hasEnded(appId, runId);
    for (let lastSeq = -1, isOver = false; ; ) {
      const lines = await this.readLines(runId, lastSeq, LINES_PER_READ_MAX);
      if (lines.length > 0) yield lines;
      lastSeq = lines.at(-1)?.seq ?? lastSeq;
      if (lines.length === LINES_PER_READ_MAX) continue;
      if (isOver || readerLeft.aborted) return;
      // Listens before it reads the state of the run. Otherwise, it could miss a run's end between these two steps.
      const nextNotice = this.waitForNextNotice(runId, readerLeft);
      isOver = await this.hasEnded(appId, runId);
      if (!isOver) await nextNotice;
    }
  }

  /** Returns all stored lines of the run. @throws ActionError RUN_NOT_FOUND */
  async list(appId: number, runId: number): Promise<RunConsoleLine[]> {
    await this.hasEnded(appId, runId);
    return this.readLines(runId, -1);
  }

  /** Yields the lines of the run in batches, until the run ends. @throws ActionError RUN_NOT_FOUND */
  follow(appId: number, runId: number): AsyncGenerator<RunConsoleLine[], void, void> {
    return createAbortableGenerator((readerLeft) => this.streamLines(appId, runId, readerLeft));
  }
}
