/**
 * Detects that a browser's own process, which serves all runs, is too busy to answer. Finds the renderer that floods it with messages by its
 * time in system calls, and pauses or kills it.
 */
import type { Chromium } from "../browser-source.js";
import { type BrowserProcess, listProcesses, type MeasuredProcess, measure, signal } from "./processes.js";

/** Time without an answer after which processor times are measured. */
const LATE_MS = 100;
/** Further time without an answer after which they are compared. */
const WINDOW_MS = 150;
/** Minimum share of the window in the kernel. Code that computes has almost none, code that sends has a fifth or more. */
const SENDING_SHARE = 0.08;
/** Minimum share of the renderer's own time. */
const SENDING_OF_OWN = 0.1;
/** Minimum share of the window for the browser's own processes. With less, the machine is too busy to serve them. */
const SERVING_SHARE = 0.25;
/** A renderer is paused the first time, so that the browser can catch up. It is killed if it repeats the flood within this time. */
const FORGIVEN_AFTER_MS = 10_000;
/** A browser that does not answer for this long is replaced. */
const HUNG_MS = 5_000;
const BLAME_MS = 2_000;

export interface FloodWatch {
  /** Call it ten times a second. Sends a question while a run is active, and judges a question without an answer. */
  look(active: boolean): Promise<void>;
  /** The browser's processes at the time of its last answer. */
  processes(): readonly BrowserProcess[];
  /** True if a crash that is reported now was caused by this watch. */
  toBlame(): boolean;
}

/** Usage of the browser's processes at a time, by pid. */
export interface UsageSample {
  at: number;
  usages: Map<number, MeasuredProcess>;
}

/** A question without an answer, and the last usage measured since. */
interface Question {
  at: number;
  sample: UsageSample | null;
}

/** The renderer that sent most between two samples; null if none sent much, or the browser did not process it. */
export function senderOf(before: UsageSample, after: UsageSample): number | null {
  const window = after.at - before.at;
  let serving = 0;
  let most = SENDING_SHARE * window;
  let sender: number | null = null;
  for (const [pid, { spent, kernel, renderer }] of after.usages) {
    const was = before.usages.get(pid);
    if (was === undefined) continue;
    const sending = kernel - was.kernel;
    if (!renderer) serving += spent - was.spent;
    else if (sending >= most && sending >= SENDING_OF_OWN * (spent - was.spent)) {
      most = sending;
      sender = pid;
    }
  }
  return serving >= SERVING_SHARE * window ? sender : null;
}

/** `group`: the browser's process group. */
export function watchFloods({ connection, stop }: Chromium, group: number): FloodWatch {
  const paused = new Set<number>();
  const warnedAt = new Map<number, number>();
  let processes: BrowserProcess[] = [];
  let question: Question | null = null;
  let blameUntil = 0;

  function ask(): void {
    question = { at: Date.now(), sample: null };
    // The network service, which sends the requests of all runs, answers the second command.
    Promise.all([listProcesses(connection, 0), connection.send("Storage.getCookies", undefined, { timeout: 0 })])
      .then(([answer]) => {
        processes = answer;
      })
      // The browser has ended.
      .catch(() => {})
      .finally(() => {
        question = null;
        // The report of the kill may be queued behind the flood.
        if (blameUntil === Number.POSITIVE_INFINITY) blameUntil = Date.now() + BLAME_MS;
        for (const pid of paused) signal(pid, "SIGCONT");
        paused.clear();
      });
  }

  async function sample(): Promise<UsageSample> {
    const at = Date.now();
    const measured = await measure(processes, group);
    return { at, usages: new Map(measured.map((one) => [one.pid, one])) };
  }

  function pauseOrKill(pid: number): void {
    if (Date.now() - (warnedAt.get(pid) ?? 0) < FORGIVEN_AFTER_MS) {
      blameUntil = Number.POSITIVE_INFINITY;
      signal(pid, "SIGKILL");
      return;
    }
    warnedAt.set(pid, Date.now());
    paused.add(pid);
    signal(pid, "SIGSTOP");
  }

  /** @param late a question without an answer, although this process has read its messages since */
  async function judge(late: Question): Promise<void> {
    const now = Date.now();
    if (now - late.at > HUNG_MS) await stop();
    if (now - late.at < LATE_MS || (late.sample !== null && now - late.sample.at < WINDOW_MS)) return;
    const before = late.sample;
    late.sample = await sample();
    if (before === null || question !== late) return;
    const sender = senderOf(before, late.sample);
    if (sender !== null && !paused.has(sender)) pauseOrKill(sender);
  }

  return {
    async look(active) {
      if (question !== null) await judge(question);
      else if (active) ask();
    },
    processes: () => processes,
    toBlame: () => Date.now() < blameUntil,
  };
}
