/**
 * Claims queued runs while slots are free, and executes each run that this process holds until its end. Read this file
 * for the order in which runs start.
 */
import { runInBackground } from "../../background.js";
import type { RunOutcome } from "../records/execution-logs.js";
import type { Cancellation, RunExecutor } from "./executor.js";
import { LostClaims, type SettledCounts } from "./lost-claims.js";
import type { ClaimedRun, RunRepository } from "./run-repository.js";
import type { RunRecord } from "./run-types.js";
import { type Slot, Slots } from "./slots.js";

/** A run that this process executes. */
interface ActiveRun {
  appId: number;
  controller: AbortController;
  done: Promise<RunOutcome>;
  slot: Slot;
}

/**
 * Milliseconds per megabyte of a result for which the run's slot stays in use after the run. A large result occupies
 * the main thread, so this delays only later runs of the same app.
 */
const COOL_DOWN_MS_PER_MB = 150;
const COOL_DOWN_FROM_BYTES = 1024 * 1024;

/** Returns the milliseconds for which the slot of a run stays in use after its end. */
export function coolDownMs(outcome: RunOutcome): number {
  const bytes = outcome.ok ? (outcome.data?.length ?? 0) : 0;
  return bytes < COOL_DOWN_FROM_BYTES ? 0 : (bytes / 2 ** 20) * COOL_DOWN_MS_PER_MB;
}

function releaseAfter(slot: Slot, ms: number): void {
  if (ms === 0) slot.free();
  else setTimeout(() => slot.free(), ms);
}

interface DispatcherOptions {
  repository: RunRepository;
  executor: Pick<RunExecutor, "execute">;
  /** ID under which this process holds runs. */
  holder: string;
  /** RUNNER_CONCURRENCY, from which `Slots` computes its limits; 0 if this process is not a runner. */
  concurrency: number;
}

export class Dispatcher {
  private readonly slots: Slots;
  private readonly active = new Map<number, ActiveRun>();
  private readonly lostClaims: LostClaims;
  /** IDs of queued runs that wait for a nested slot, because an active run waits for them. */
  private readonly awaitedRuns = new Set<number>();
  /** Callers in this process that wait for the start of a queued run. */
  private readonly startListeners = new Map<number, Set<(done: Promise<RunOutcome>) => void>>();
  /** Set when this process stops claiming queued runs. The active runs are ended when the signal aborts. */
  private stopping: AbortSignal | null = null;
  /**
   * True if queued runs may exist whose notification was not used: when it arrived, no slot was free or the app had
   * used its share.
   */
  private mustCheckQueue = false;
  /** Apps whose runs were queued during the current claim. The claim may have missed these runs. */
  private readonly queuedDuringClaim = new Set<number>();
  private claiming: Promise<void> | null = null;
  private isClaimRequested = false;

  constructor(private readonly options: DispatcherOptions) {
    this.slots = new Slots(options.concurrency, () => this.claimIfBehind());
    this.lostClaims = new LostClaims(options.repository, options.holder, this.active);
  }

  /** Executes a run that this process holds. */
  execute(run: RunRecord, slot: Slot): Promise<RunOutcome> {
    const controller = new AbortController();
    if (this.stopping?.aborted) controller.abort("shutdown");
    const { executor, holder } = this.options;
    const executed = executor.execute(run, holder, controller.signal).catch((error: unknown) => {
      this.lostClaims.addUnwrittenEnd(run.id);
      throw error;
    });
    const done = executed.finally(() => this.active.delete(run.id));
    done.then(
      (outcome) => releaseAfter(slot, coolDownMs(outcome)),
      () => slot.free(),
    );
    this.active.set(run.id, { appId: run.appId, controller, done, slot });
    for (const listener of this.startListeners.get(run.id) ?? []) listener(done);
    return done;
  }

  /**
   * Calls `listener` with a promise for the outcome when this process starts the run. The returned function
   * unsubscribes.
   */
  onStart(runId: number, listener: (done: Promise<RunOutcome>) => void): () => void {
    const active = this.active.get(runId);
    if (active) listener(active.done);
    const listeners = this.startListeners.get(runId) ?? new Set();
    this.startListeners.set(runId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.startListeners.delete(runId);
    };
  }

  private claimIfBehind(): void {
    // If the claim fails, the next call of `claimQueued` claims the runs.
    if (this.mustCheckQueue) this.claimAll().catch(() => undefined);
  }

  /** Claims and starts the next queued run. Returns true if another run can be claimed. */
  private async claimNext(): Promise<boolean> {
    this.queuedDuringClaim.clear();
    if (this.stopping) return false;
    const { repository, holder } = this.options;
    const reserved = this.slots.reserve();
    if (!reserved) {
      this.mustCheckQueue = true;
      return false;
    }
    const claimed = repository.claim(holder, this.slots.perApp(), reserved.share);
    const start = (next: ClaimedRun | null) => {
      if (next) runInBackground(this.execute(next, reserved.assign(next.appId)));
      else reserved.free();
      return next;
    };
    const run = await this.lostClaims.track(claimed, start).catch((error: unknown) => {
      reserved.free();
      throw error;
    });
    if (run) {
      this.mustCheckQueue = true;
      return run.isMoreClaimable;
    }
    const isAnyLeft =
      this.queuedDuringClaim.size > 0 || (this.slots.isAnyAppAtLimit() && (await repository.isAnyQueued()));
    this.mustCheckQueue = isAnyLeft || this.queuedDuringClaim.size > 0;
    return false;
  }

  /** True if the last claim may have missed a run of an app that can get a slot. */
  private mayHaveMissedRun(): boolean {
    return [...this.queuedDuringClaim].some((appId) => this.slots.canAcquire(appId));
  }

  /**
   * Claims runs until none is left. Claims run one at a time, so that each claim counts the slot of the previous claim.
   * A request during a claim causes another claim.
   */
  private claimAll(): Promise<void> {
    const all = async () => {
      try {
        do {
          this.isClaimRequested = false;
          while (await this.claimNext());
        } while (this.isClaimRequested || this.mayHaveMissedRun());
      } finally {
        this.claiming = null;
      }
    };
    this.isClaimRequested = true;
    this.claiming ??= all();
    return this.claiming;
  }

  /**
   * Starts a queued run that an active run waits for, as soon as a nested slot is free. The waiting run keeps its own
   * slot, so neither blocks the other.
   */
  onRunAwaited(parentId: number, childId: number): void {
    const parent = this.active.get(parentId);
    if (!parent || this.awaitedRuns.has(childId)) return;
    this.awaitedRuns.add(childId);
    runInBackground(this.startNested(parent, childId).finally(() => this.awaitedRuns.delete(childId)));
  }

  private async startNested({ appId, slot: parentSlot }: ActiveRun, childId: number): Promise<void> {
    const { repository, holder } = this.options;
    const slot = await this.slots.acquireNested(appId, parentSlot);
    // This also happens while the process stops, because active runs can end only after the runs for which they wait.
    if (this.stopping?.aborted) return slot.free();
    // Another process may have claimed the run, or its caller may have cancelled it.
    await this.lostClaims.track(
      repository.claimById(holder, childId).catch(() => null),
      (run) => {
        if (run) runInBackground(this.execute(run, slot));
        else slot.free();
      },
    );
  }

  /**
   * Returns a slot in which a run of the app can start now: a free slot, or a nested slot if the active run `parentId`
   * waits for the run.
   */
  tryAcquireSlot(appId: number, parentId: number | null): Slot | null {
    if (this.stopping?.aborted) return null;
    const parent = parentId === null ? undefined : this.active.get(parentId);
    const free = this.stopping ? null : this.slots.tryAcquire(appId);
    return free ?? (parent ? this.slots.tryAcquireNested(appId, parent.slot) : null);
  }

  /**
   * Handles a run of the app that was queued here or by another process. Claims the run now if the app can get a slot,
   * otherwise when a slot becomes free.
   */
  onRunQueued(appId: number): void {
    this.mustCheckQueue = true;
    this.queuedDuringClaim.add(appId);
    if (!this.claiming && this.slots.canAcquire(appId)) this.claimIfBehind();
  }

  /** Ends the run early, if this process executes it. */
  cancel(id: number, reason: Cancellation): void {
    this.active.get(id)?.controller.abort(reason);
  }

  /** Awaits a statement that may assign a run to this process, and passes its result to `use`, which starts the run. */
  trackClaim<T, R>(answer: Promise<T>, use: (answer: T) => R): Promise<R> {
    return this.lostClaims.track(answer, use);
  }

  /** Settles runs that this process holds by their rows but does not execute. Call it at intervals. */
  settleLostClaims(): Promise<SettledCounts> {
    return this.lostClaims.settle();
  }

  isActive(id: number): boolean {
    return this.active.has(id);
  }

  /**
   * Starts queued runs while slots are free, without a notification. Returns the longest time in milliseconds that a
   * run has waited although it could be claimed; above a few seconds something is wrong.
   * @throws errors of the database
   */
  async claimQueued(): Promise<number> {
    if (this.stopping) return 0;
    await this.claimAll();
    if (this.slots.freeCount() === 0) return 0;
    return this.options.repository.longestWait(this.slots.perApp(), this.slots.currentShare());
  }

  /**
   * Returns the slots of this process, the free ones, and the number of callers of this process that wait for a queued
   * run.
   */
  usage(): { total: number; free: number; waiting: number } {
    return { total: this.slots.total, free: this.slots.freeCount(), waiting: this.startListeners.size };
  }

  /** Finds queued runs for which active runs may wait and whose notification was lost. Call it at intervals. */
  async findAwaitedRuns(): Promise<void> {
    if (this.stopping?.aborted || this.active.size === 0) return;
    for (const { id, causeRunId } of await this.options.repository.queuedByCause([...this.active.keys()])) {
      this.onRunAwaited(causeRunId, id);
    }
  }

  /** Aborts the runs that another process has ended because the lease of this process had expired. */
  async abortLostRuns(): Promise<void> {
    const { repository, holder } = this.options;
    for (const id of await repository.findNoLongerHeld(holder, [...this.active.keys()]))
      this.active.get(id)?.controller.abort("lost");
  }

  /** Claims no more runs, and waits until the active runs end. When `forceStop` aborts, ends the active runs. */
  async drain(forceStop: AbortSignal): Promise<void> {
    this.stopping = forceStop;
    const abortAll = () => {
      for (const { controller } of this.active.values()) controller.abort("shutdown");
    };
    forceStop.addEventListener("abort", abortAll);
    if (forceStop.aborted) abortAll();
    // Counts slots instead of active runs, because a run may be claimed and not active yet.
    await this.slots.whenEmpty();
    forceStop.removeEventListener("abort", abortAll);
  }
}
