/**
 * Detects that a browser's own process, which serves all runs, is too busy to answer. Finds the renderer that floods it with messages by its
 * time in system calls, and pauses or kills it.
 */
import type { Chromium } from "../browser-source.js";
import {
  type BrowserProcess,
  listProcesses,
  type MeasuredProcess,
  measureProcesses,
  readServingThreads,
  type ServingThreads,
  signalProcess,
} from "./processes.js";

/** Milliseconds without a response after which processor times are measured. */
const LATE_MS = 100;
/** Further milliseconds without a response after which processor times are compared. */
const WINDOW_MS = 150;
/**
 * Minimum share of the window that a flooding renderer spends in the kernel. Code that computes has almost none; code
 * that sends messages has a fifth or more.
 */
const SENDING_SHARE = 0.08;
/** Minimum share of its own processor time that a flooding renderer spends in the kernel. */
const SENDING_OF_OWN = 0.1;
/**
 * Minimum share of the window that the browser's own processes get. With less, the machine is too busy to serve them,
 * and no renderer is to blame.
 */
const SERVING_SHARE = 0.25;
/** Milliseconds within which a renderer that floods again is killed. The first time it is only paused, so that the browser can catch up. */
const FORGIVEN_AFTER_MS = 10_000;
/** A browser that does not answer for this long is replaced. */
const HUNG_MS = 5_000;
/** The same for a starved browser: it waits for a processor, because the machine is overloaded. */
const STARVED_MS = 60_000;
/** A crash within this time after the browser's first response since a kill counts as the effect of the kill. */
const CAUSED_WITHIN_MS = 2_000;

/** Usage of the browser's processes at one time, by process ID. */
export interface UsageSample {
  at: number;
  usages: Map<number, MeasuredProcess>;
}

/** A request that the browser has not answered. */
interface Question {
  at: number;
  /** Last usage that was measured since. */
  sample: UsageSample | null;
  /** The browser's own threads at the first measurement. */
  threads: ServingThreads | null;
}

/**
 * True if the browser could not answer for lack of processor time since `before`, `ms` ago. A stopped browser has no thread that could run,
 * and a flooded one runs most of the time.
 */
export function isStarved(before: ServingThreads, after: ServingThreads, ms: number): boolean {
  return after.isAnyRunnable && after.ran - before.ran < SERVING_SHARE * ms;
}

/** Returns the renderer that sent most between two samples; null if none sent much, or the browser did not process it. */
export function senderOf(before: UsageSample, after: UsageSample): number | null {
  const window = after.at - before.at;
  let serving = 0;
  let most = SENDING_SHARE * window;
  let sender: number | null = null;
  for (const [pid, { spent, kernel, renderer }] of after.usages) {
    const earlier = before.usages.get(pid);
    if (earlier === undefined) continue;
    const sending = kernel - earlier.kernel;
    if (!renderer) serving += spent - earlier.spent;
    else if (sending >= most && sending >= SENDING_OF_OWN * (spent - earlier.spent)) {
      most = sending;
      sender = pid;
    }
  }
  return serving >= SERVING_SHARE * window ? sender : null;
}

export class FloodWatch {
  /** The browser's processes at the time of its last answer. */
  processes: readonly BrowserProcess[] = [];
  private readonly paused = new Set<number>();
  private readonly pausedAt = new Map<number, number>();
  private question: Question | null = null;
  /** Time until which crashes count as the effect of a kill by this class. */
  private causedUntil = 0;

  /** @param group the browser's process group */
  constructor(
    private readonly chromium: Chromium,
    private readonly group: number,
  ) {}

  /**
   * Sends a request while a run is active, and compares processor times if the previous one has no response. Call it ten times a second.
   */
  async check(isActive: boolean): Promise<void> {
    if (this.question !== null) await this.checkLate(this.question);
    else if (isActive) this.sendQuestion();
  }

  /** True if a crash that is reported now is the effect of a kill by this class. */
  causedCrash(): boolean {
    return Date.now() < this.causedUntil;
  }

  private sendQuestion(): void {
    const { connection } = this.chromium;
    this.question = { at: Date.now(), sample: null, threads: null };
    // The network service, which sends the requests of all runs, answers the second command.
    Promise.all([listProcesses(connection, 0), connection.send("Storage.getCookies", undefined, { timeout: 0 })])
      .then(([processes]) => {
        this.processes = processes;
      })
      // The browser has ended.
      .catch(() => {})
      .finally(() => this.onAnswer());
  }

  private onAnswer(): void {
    this.question = null;
    // The event about the killed renderer may wait in the queue behind the flood's messages.
    if (this.causedUntil === Number.POSITIVE_INFINITY) this.causedUntil = Date.now() + CAUSED_WITHIN_MS;
    for (const pid of this.paused) signalProcess(pid, "SIGCONT");
    this.paused.clear();
  }

  private isStarvedFor({ threads }: Question, ms: number): boolean {
    return threads !== null && isStarved(threads, readServingThreads(this.group), ms);
  }

  private async sample(): Promise<UsageSample> {
    const at = Date.now();
    const measured = await measureProcesses(this.processes, this.group);
    return { at, usages: new Map(measured.map((usage) => [usage.pid, usage])) };
  }

  private pauseOrKill(pid: number): void {
    if (Date.now() - (this.pausedAt.get(pid) ?? 0) < FORGIVEN_AFTER_MS) {
      this.causedUntil = Number.POSITIVE_INFINITY;
      signalProcess(pid, "SIGKILL");
      return;
    }
    this.pausedAt.set(pid, Date.now());
    this.paused.add(pid);
    signalProcess(pid, "SIGSTOP");
  }

  /**
   * Compares processor times while a request is unanswered.
   * @param late the request; this process has read all messages that arrived since
   */
  private async checkLate(late: Question): Promise<void> {
    const now = Date.now();
    const lateMs = now - late.at;
    if (lateMs > HUNG_MS && (lateMs > STARVED_MS || !this.isStarvedFor(late, lateMs))) await this.chromium.stop();
    if (lateMs < LATE_MS || (late.sample !== null && now - late.sample.at < WINDOW_MS)) return;
    const before = late.sample;
    late.threads ??= readServingThreads(this.group);
    late.sample = await this.sample();
    if (before === null || this.question !== late) return;
    const sender = senderOf(before, late.sample);
    if (sender !== null && !this.paused.has(sender)) this.pauseOrKill(sender);
  }
}
