/** Follows the console of a run. Passes new lines on in groups, and each line once. */

import { FollowConsole } from "../documents.js";
import type { Api } from "../shared/api.js";
import type { ConsoleLine } from "../shared/model.js";

/** Period in which lines are collected before they are passed on. */
const DRAW_MS = 100;

interface ConsoleReader {
  add(lines: ConsoleLine[]): void;
  /** Called when the run has ended, or when its console cannot be followed. */
  end(): void;
}

/** @returns function that stops following, without a call of `end` */
export function followConsole(
  api: Api,
  run: { appId: number; runId: number },
  { add, end }: ConsoleReader,
): () => void {
  let waiting: ConsoleLine[] = [];
  let next = 0;
  let due: ReturnType<typeof setTimeout> | undefined;
  let isLeft = false;
  const flush = () => {
    clearTimeout(due);
    due = undefined;
    if (waiting.length > 0) add(waiting);
    waiting = [];
  };
  const over = () => {
    if (isLeft) return;
    flush();
    end();
  };
  const take = (lines: ConsoleLine[]) => {
    // After a lost connection, the service sends all lines again from the first one.
    const fresh = lines.filter(({ seq }) => seq >= next);
    next = (fresh.at(-1)?.seq ?? next - 1) + 1;
    waiting = waiting.concat(fresh);
    due ??= setTimeout(flush, DRAW_MS);
  };
  const unfollow = api.follow(FollowConsole, run, { next: ({ lines }) => take(lines), failed: over, complete: over });
  return () => {
    isLeft = true;
    clearTimeout(due);
    unfollow();
  };
}
