/** What runs print: kept with the run, read in order, followed live. Secrets are masked before a line is kept. */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import type { ConsoleLine } from "../../engine/browser/run.js";
import type { Notifications } from "../../engine/notifications.js";
import type { ScannedText } from "../../engine/secret-scan.js";
import { ActionError } from "../../errors.js";
import { LOG_CHANNEL } from "../records/execution-logs.js";
import { leavable } from "../records/leavable.js";

/** Channel of the notice that the run of that id has printed more. */
export const CONSOLE_CHANNEL = "svc_console";

/** Lines are kept in batches this far apart. */
const FLUSH_MS = 200;
/** A removed run sends no notice, and its followers are to learn of it within a second. */
const LOOK_MS = 500;
/** As many lines as a follower is given from one reading: a slow one must not hold all that a run printed. */
const READ_AT_ONCE = 500;

/** One line; `at` is ISO 8601, `seq` counts from 0 within the run. */
export interface PrintedLine {
  seq: number;
  level: string;
  at: string;
  text: string;
}

/** Takes a run's lines as they come. */
export interface Printer {
  print(line: ConsoleLine): void;
  /** Keeps what has not been kept yet; to be called before the run ends. */
  finish(): Promise<void>;
}

const KEEP = `
  WITH kept AS (
    INSERT INTO console_line (run_id, seq, level, at, text)
    SELECT $1, * FROM unnest($2::int[], $3::text[], $4::timestamptz[], $5::text[])
    ON CONFLICT DO NOTHING RETURNING 1)
  SELECT pg_notify('${CONSOLE_CHANNEL}', $1::text) FROM kept LIMIT 1`;

/** What a text column can hold. */
const storable = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD");

export type RunConsole = ReturnType<typeof createRunConsole>;

export function createRunConsole({ db, notifications }: { db: DataSource; notifications: Notifications }) {
  async function read(runId: number, after: number, limit: number | null = null): Promise<PrintedLine[]> {
    const found = await rows<PrintedLine & { at: Date }>(
      db,
      "SELECT seq, level, at, text FROM console_line WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
      [runId, after, limit],
    );
    return found.map((line) => ({ ...line, at: line.at.toISOString() }));
  }

  /** Whether the run has ended. @throws RUN_NOT_FOUND */
  async function ended(appId: number, runId: number): Promise<boolean> {
    const [run] = await rows<{ ended: boolean }>(
      db,
      "SELECT finished_at IS NOT NULL AS ended FROM run WHERE id = $1 AND app_id = $2",
      [runId, appId],
    );
    if (!run) throw new ActionError("RUN_NOT_FOUND");
    return run.ended;
  }

  /**
   * Resolves at the next notice about the run, where one may have been missed, where nobody reads any more, or after LOOK_MS: notices can
   * be lost.
   */
  function news(runId: number, left: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const leave = () => resolve();
    left.addEventListener("abort", leave);
    const unfollow = [
      notifications.follow(CONSOLE_CHANNEL, (notice) => notice === String(runId) && resolve(), resolve),
      notifications.follow(LOG_CHANNEL, (notice) => notice.endsWith(`:${runId}`) && resolve(), resolve),
    ];
    const timer = setTimeout(resolve, LOOK_MS);
    return promise.finally(() => {
      clearTimeout(timer);
      left.removeEventListener("abort", leave);
      for (const end of unfollow) end();
    });
  }

  async function* lines(appId: number, runId: number, left: AbortSignal): AsyncGenerator<PrintedLine[], void, void> {
    // Lines are read by the run's number alone: it has to be the app's before any is.
    await ended(appId, runId);
    for (let last = -1, over = false; ; ) {
      const some = await read(runId, last, READ_AT_ONCE);
      if (some.length > 0) yield some;
      last = some.at(-1)?.seq ?? last;
      if (some.length === READ_AT_ONCE) continue;
      if (over || left.aborted) return;
      // Listening starts before the state is read, so that no end falls in between.
      const next = news(runId, left);
      over = await ended(appId, runId);
      if (!over) await next;
    }
  }

  return {
    /** Where one run prints. `mask` takes its app's secrets out. */
    printer(runId: number, mask: (lines: readonly ScannedText[]) => Promise<string[]>): Printer {
      let waiting: (ConsoleLine & { seq: number })[] = [];
      let seq = 0;
      let timer: NodeJS.Timeout | undefined;
      let kept: Promise<void> = Promise.resolve();

      function flush(): void {
        clearTimeout(timer);
        timer = undefined;
        const lines = waiting;
        waiting = [];
        if (lines.length === 0) return;
        // What a run prints is worth less than the run: a failure here ends nothing.
        kept = kept
          .then(() => mask(lines))
          .then((texts) =>
            db.query(KEEP, [
              runId,
              lines.map((line) => line.seq),
              lines.map(({ level }) => level),
              lines.map(({ at }) => new Date(at)),
              texts.map(storable),
            ]),
          )
          .catch(() => undefined);
      }

      return {
        print(line) {
          waiting.push({ ...line, seq });
          seq += 1;
          timer ??= setTimeout(flush, FLUSH_MS);
        },
        async finish() {
          flush();
          await kept;
        },
      };
    },

    /** All that the run has printed so far. @throws RUN_NOT_FOUND */
    async list(appId: number, runId: number): Promise<PrintedLine[]> {
      await ended(appId, runId);
      return read(runId, -1);
    },

    /** The run's lines from the first on, some at once, then those that it prints, until it has ended. @throws RUN_NOT_FOUND */
    follow: (appId: number, runId: number): AsyncGenerator<PrintedLine[], void, void> =>
      leavable((left) => lines(appId, runId, left)),
  };
}
