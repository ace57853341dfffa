/**
 * Notices that a browser's own process, which serves all runs, is kept so busy that it does not answer, and names the renderer
 * that keeps it so: the one whose processor time goes into the system calls by which it sends. Knows pids, not pages.
 */
import { readFile } from "node:fs/promises";
import type { Chromium } from "../processes/chromium.js";

const INTERVAL_MS = 100;
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
/** A browser that says nothing for so long comes back no more. */
const HUNG_MS = 20_000;
const TICK_MS = 10;
const BLAME_MS = 2_000;

export interface FloodWatch {
  /** Whether a crash that is reported now is this watch's kill. */
  toBlame(): boolean;
  stop(): void;
}

interface Spent {
  all: number;
  kernel: number;
  renderer: boolean;
}

interface Watched {
  pid: number;
  renderer: boolean;
}

/** Processor time in milliseconds; null when the process is gone or there is no /proc. */
async function spentBy({ pid, renderer }: Watched, group: number | null): Promise<Spent | null> {
  try {
    const fields = (await readFile(`/proc/${pid}/stat`, "latin1")).replace(/^.*\) /s, "").split(" ");
    // The list is as old as the last answer: the id may be another's by now.
    if (Number(fields[2]) !== group) return null;
    const kernel = Number(fields[12]) * TICK_MS;
    return { kernel, all: Number(fields[11]) * TICK_MS + kernel, renderer };
  } catch {
    return null;
  }
}

function signal(pid: number, name: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void {
  try {
    process.kill(pid, name);
  } catch {
    // It went by itself.
  }
}

interface Noted {
  at: number;
  spent: Map<number, Spent>;
}

/** A question that the browser has not answered yet, and what its processes had spent when that was last looked at. */
interface Question {
  at: number;
  noted: Noted | null;
}

/** The renderer that sends most between the two; null when none sends much, or the browser does not work on it. */
function senderOf(before: Noted, after: Noted): number | null {
  const window = after.at - before.at;
  let serving = 0;
  let most = SENDING_SHARE * window;
  let sender: number | null = null;
  for (const [pid, { all, kernel, renderer }] of after.spent) {
    const was = before.spent.get(pid);
    if (was === undefined) continue;
    const sending = kernel - was.kernel;
    if (!renderer) serving += all - was.all;
    else if (sending >= most && sending >= SENDING_OF_OWN * (all - was.all)) {
      most = sending;
      sender = pid;
    }
  }
  return serving >= SERVING_SHARE * window ? sender : null;
}

/** Asks while `active` says that something runs. Ends nothing where there is no /proc. */
export function watchFloods(chromium: Chromium, active: () => boolean): FloodWatch {
  const paused = new Set<number>();
  const warnedAt = new Map<number, number>();
  let watched: Watched[] = [];
  let question: Question | null = null;
  let looking = false;
  let blameUntil = 0;

  function ask(): void {
    const asked: Question = { at: Date.now(), noted: null };
    question = asked;
    const { connection } = chromium;
    const unhurried = { timeout: 0 };
    Promise.all([
      connection.send("SystemInfo.getProcessInfo", undefined, unhurried),
      // Answered by the process through which the requests of all runs go.
      connection.send("Storage.getCookies", undefined, unhurried),
    ])
      .then(([{ processInfo }]) => {
        watched = processInfo.map(({ id, type }) => ({ pid: id, renderer: type === "renderer" }));
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
    const spent = new Map<number, Spent>();
    const at = Date.now();
    await Promise.all(
      watched.map(async (one) => {
        const found = await spentBy(one, chromium.pid);
        if (found !== null) spent.set(one.pid, found);
      }),
    );
    return { at, spent };
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
    if (now - asked.at > HUNG_MS) await chromium.stop();
    if (now - asked.at < LATE_MS || (asked.noted !== null && now - asked.noted.at < WINDOW_MS)) return;
    const before = asked.noted;
    asked.noted = await note();
    if (before === null || question !== asked) return;
    const sender = senderOf(before, asked.noted);
    if (sender !== null && !paused.has(sender)) hold(sender);
  }

  const timer = setInterval(() => {
    if (looking || (question === null && !active())) return;
    if (question === null) return ask();
    looking = true;
    void judge(question).finally(() => {
      looking = false;
    });
  }, INTERVAL_MS);

  return {
    toBlame: () => Date.now() < blameUntil,
    stop: () => clearInterval(timer),
  };
}
