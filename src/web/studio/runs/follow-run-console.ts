/** Subscribes to the console of a run. Passes new lines to the caller in groups, and each line only once. */

import { FollowRunConsole } from "../documents.js";
import type { ApiClient } from "../shared/api.js";
import type { ConsoleLine } from "../shared/model.js";

/** Period in which lines are collected before the caller receives them in one group. */
const COLLECT_PERIOD_MS = 100;

interface ConsoleReader {
  addLines(lines: ConsoleLine[]): void;
  /** Called once, when the run has ended or when the subscription has failed. */
  endConsole(): void;
}

/** Returns a function that ends the subscription. After that, neither `addLines` nor `endConsole` is called. */
export function followRunConsole(
  api: ApiClient,
  run: { appId: number; runId: number },
  { addLines, endConsole }: ConsoleReader,
): () => void {
  let bufferedLines: ConsoleLine[] = [];
  let nextSequence = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isStopped = false;
  const deliverLines = () => {
    clearTimeout(timer);
    timer = undefined;
    if (bufferedLines.length > 0) addLines(bufferedLines);
    bufferedLines = [];
  };
  const finish = () => {
    if (isStopped) return;
    deliverLines();
    endConsole();
  };
  const collectLines = (lines: ConsoleLine[]) => {
    // After a reconnect, the service sends all lines again from the first line. The lines that were already passed on are dropped.
    const newLines = lines.filter(({ seq }) => seq >= nextSequence);
    nextSequence = (newLines.at(-1)?.seq ?? nextSequence - 1) + 1;
    bufferedLines = bufferedLines.concat(newLines);
    timer ??= setTimeout(deliverLines, COLLECT_PERIOD_MS);
  };
  const unsubscribe = api.subscribe(FollowRunConsole, run, {
    next: ({ lines }) => collectLines(lines),
    onFailure: finish,
    complete: finish,
  });
  return () => {
    isStopped = true;
    clearTimeout(timer);
    unsubscribe();
  };
}
