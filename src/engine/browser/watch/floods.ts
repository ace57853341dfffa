/**
 * Notices that a browser's own process, which serves all runs, is kept so busy that it does not answer, and names the renderer
 * that keeps it so: the one whose processor time goes into the system calls by which it sends. Knows pids, not pages.
 */
import type { Chromium } from "../browser-source.js";
import { askProcesses, type BrowserProcess, type MeasuredProcess, measure, signal } from "./processes.js";

/** Unanswered for so long: processor times are noted. */
const LATE_MS = 100;
/** Unanswered for so long after that: they are compared. */
const WINDOW_MS = 150;
/** Of the window, in the kernel: code that computes spends next to none there, code that sends a fifth and more. */
const SENDING_SHARE = 0.08;
/** Of the renderer's own time. */
const SENDING_OF_OWN = 0.1;
/** Of the window, spent by the browser's own processes: less, and it is the machine that has no time for them. */
const SERVING_SHARE = 0.25;
/** One that was paused lets the browser catch up; one that does it again so soon is ended. */
const FORGIVEN_AFTER_MS = 10_000;
/** A browser that is silent for so long is replaced. */
const HUNG_MS = 5_000;
const BLAME_MS = 2_000;

export interface FloodWatch {
  /** To be called ten times a second. Asks while `active` says that something runs, and judges what has not been answered. */
  look(active: boolean): Promise<void>;
  /** The browser's processes, as old as its last answer. */
  processes(): readonly BrowserProcess[];
  /** Whether a crash that is reported now is this watch's doing. */
  toBlame(): boolean;
}

/** What the browser's processes had spent at a moment, by pid. */
export interface Noted {
  at: number;
  usages: Map<number, MeasuredProcess>;
}

/** A question that the browser has not answered yet, and what its processes had spent when that was last looked at. */
interface Question {
  at: number;
  noted: Noted | null;
}

/** The renderer that sends most between the two; null when none sends much, or the browser does not work on it. */
export function senderOf(before: Noted, after: Noted): number | null {
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
    question = { at: Date.now(), noted: null };
    // The second is answered by the process through which the requests of all runs go.
    Promise.all([askProcesses(connection, 0), connection.send("Storage.getCookies", undefined, { timeout: 0 })])
      .then(([answer]) => {
        processes = answer;
      })
      .catch(() => {})
      .finally(() => {
        question = null;
        // Word of the kill may wait behind all that had been sent before.
        if (blameUntil === Number.POSITIVE_INFINITY) blameUntil = Date.now() + BLAME_MS;
        for (const pid of paused) signal(pid, "SIGCONT");
        paused.clear();
      });
  }

  async function note(): Promise<Noted> {
    const at = Date.now();
    const measured = await measure(processes, group);
    return { at, usages: new Map(measured.map((one) => [one.pid, one])) };
  }

  function hold(pid: number): void {
    if (Date.now() - (warnedAt.get(pid) ?? 0) < FORGIVEN_AFTER_MS) {
      blameUntil = Number.POSITIVE_INFINITY;
      signal(pid, "SIGKILL");
      return;
    }
    warnedAt.set(pid, Date.now());
    paused.add(pid);
    signal(pid, "SIGSTOP");
  }

  /** @param asked a question that was not answered while this process read its messages at least once */
  async function judge(asked: Question): Promise<void> {
    const now = Date.now();
    if (now - asked.at > HUNG_MS) await stop();
    if (now - asked.at < LATE_MS || (asked.noted !== null && now - asked.noted.at < WINDOW_MS)) return;
    const before = asked.noted;
    asked.noted = await note();
    if (before === null || question !== asked) return;
    const sender = senderOf(before, asked.noted);
    if (sender !== null && !paused.has(sender)) hold(sender);
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
