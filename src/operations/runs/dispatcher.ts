/** Claims queued runs while slots are free, and executes each until it ends. Read this file to learn in which order runs start. */
import { runInBackground } from "../../background.js";
import type { RunOutcome } from "../records/execution-logs.js";
import type { RunCancellation, RunExecutor } from "./executor.js";
import { LostClaimRecovery } from "./lost-claims.js";
import type { ClaimedRun, RunRepository } from "./run-repository.js";
import type { RunRecord } from "./run-types.js";
import { type Slot, Slots } from "./slots.js";

interface ActiveRun {
  appId: number;
  controller: AbortController;
  done: Promise<RunOutcome>;
  slot: Slot;
}

/** An ended run keeps its slot for this long per MB of result, so that large results, which block the main thread, delay only their app. */
const COOL_DOWN_MS_PER_MB = 150;
const COOL_DOWN_MIN_BYTES = 1024 * 1024;

/** Returns for how many milliseconds the slot of a run stays occupied after the run's end. */
export function computeSlotCoolDownMs(outcome: RunOutcome): number {
  const bytes = outcome.ok ? (outcome.data?.length ?? 0) : 0;
  return bytes < COOL_DOWN_MIN_BYTES ? 0 : (bytes / 2 ** 20) * COOL_DOWN_MS_PER_MB;
}

function releaseSlotAfter(slot: Slot, ms: number): void {
  if (ms === 0) slot.free();
  else setTimeout(() => slot.free(), ms);
}

interface DispatcherOptions {
  repository: RunRepository;
  executor: Pick<RunExecutor, "execute">;
  processId: string;
  /** Value of RUNNER_CONCURRENCY; 0 if this process does not have the role runner. */
  concurrency: number;
}

export class Dispatcher {
  private readonly slots: Slots;
  private readonly active = new Map<number, ActiveRun>();
  readonly lostClaims: LostClaimRecovery;
  /** IDs of queued runs for which active runs wait. Each starts as soon as a nested slot is free. */
  private readonly awaitedRuns = new Set<number>();
  /** Callers that wait until this process starts a queued run, by the run's ID. */
  private readonly startListeners = new Map<number, Set<(done: Promise<RunOutcome>) => void>>();
  /** Signal that ends the active runs while the process stops; null while it claims queued runs. */
  private stopping: AbortSignal | null = null;
  /** True if runs may be queued whose notifications were handled while no slot was free or the app used its share of the slots. */
  private mustCheckQueue = false;
  /** Apps for which runs were queued during the current claim, which may have missed these runs. */
  private readonly queuedDuringClaim = new Set<number>();
  private claimInProgress: Promise<void> | null = null;
  private isClaimRequested = false;

  constructor(private readonly options: DispatcherOptions) {
    this.slots = new Slots(options.concurrency, () => this.claimMissedRuns());
    this.lostClaims = new LostClaimRecovery(options.repository, options.processId, this.active);
  }

  execute(run: RunRecord, slot: Slot): Promise<RunOutcome> {
    const controller = new AbortController();
    if (this.stopping?.aborted) controller.abort("shutdown");
    const { executor, processId } = this.options;
    const executed = executor.execute(run, processId, controller.signal).catch((error: unknown) => {
      this.lostClaims.addUnwrittenEnd(run.id);
      throw error;
    });
    const done = executed.finally(() => this.active.delete(run.id));
    done.then(
      (outcome) => releaseSlotAfter(slot, computeSlotCoolDownMs(outcome)),
      () => slot.free(),
    );
    this.active.set(run.id, { appId: run.appId, controller, done, slot });
    for (const listener of this.startListeners.get(run.id) ?? []) listener(done);
    return done;
  }

  /** Calls `listener` when this process starts the run, with a promise for its outcome. The returned function removes the listener. */
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

  private claimMissedRuns(): void {
    // Ignores a failure, because the next call of `claimQueued` tries again.
    if (this.mustCheckQueue) this.claimAll().catch(() => undefined);
  }

  /** Starts the next queued run. Returns true if this process may be able to claim another run. */
  private async claimNext(): Promise<boolean> {
    this.queuedDuringClaim.clear();
    if (this.stopping) return false;
    const { repository, processId } = this.options;
    const reserved = this.slots.reserve();
    if (!reserved) {
      this.mustCheckQueue = true;
      return false;
    }
    const claimed = repository.claim(processId, this.slots.perApp(), reserved.slotLimitOfApp);
    const start = (next: ClaimedRun | null) => {
      if (next) runInBackground(this.execute(next, reserved.assignToApp(next.appId)));
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

  /** True if the last claim may have missed a run of an app that can still get a slot. */
  private mayHaveMissedRun(): boolean {
    return [...this.queuedDuringClaim].some((appId) => this.slots.canAcquire(appId));
  }

  /** Claims runs one by one, so that each claim counts the slot of the previous one. A call during a claim causes another claim. */
  private claimAll(): Promise<void> {
    const all = async () => {
      try {
        do {
          this.isClaimRequested = false;
          while (await this.claimNext());
        } while (this.isClaimRequested || this.mayHaveMissedRun());
      } finally {
        this.claimInProgress = null;
      }
    };
    this.isClaimRequested = true;
    this.claimInProgress ??= all();
    return this.claimInProgress;
  }

  /** Starts a queued run for which an active run waits, as soon as a nested slot is free. The active run keeps its slot. */
  onRunAwaited(parentId: number, childId: number): void {
    const parent = this.active.get(parentId);
    if (!parent || this.awaitedRuns.has(childId)) return;
    this.awaitedRuns.add(childId);
    runInBackground(this.startNested(parent, childId).finally(() => this.awaitedRuns.delete(childId)));
  }

  private async startNested({ appId, slot: parentSlot }: ActiveRun, childId: number): Promise<void> {
    const { repository, processId } = this.options;
    const slot = await this.slots.acquireNested(appId, parentSlot);
    // A stopping process still starts this run, because an active run waits for it. After a forced stop, it starts no run.
    if (this.stopping?.aborted) return slot.free();
    // Another process may have claimed the run, or its caller may have cancelled it.
    await this.lostClaims.track(
      repository.claimById(processId, childId).catch(() => null),
      (run) => {
        if (run) runInBackground(this.execute(run, slot));
        else slot.free();
      },
    );
  }

  /** Returns a slot for a run of the app, or null. If the active run `parentId` waits for the new run, also tries a nested slot. */
  tryAcquireSlot(appId: number, parentId: number | null): Slot | null {
    if (this.stopping?.aborted) return null;
    const parent = parentId === null ? undefined : this.active.get(parentId);
    const free = this.stopping ? null : this.slots.tryAcquire(appId);
    return free ?? (parent ? this.slots.tryAcquireNested(appId, parent.slot) : null);
  }

  /** Call this method when any process has queued a run of the app. Claims the run as soon as the app can get a slot. */
  onRunQueued(appId: number): void {
    this.mustCheckQueue = true;
    this.queuedDuringClaim.add(appId);
    if (!this.claimInProgress && this.slots.canAcquire(appId)) this.claimMissedRuns();
  }

  /** Ends a run early if this process executes it. */
  cancel(id: number, reason: RunCancellation): void {
    this.active.get(id)?.controller.abort(reason);
  }

  isRunActive(id: number): boolean {
    return this.active.has(id);
  }

  /**
   * Starts queued runs while slots are free, also those whose notification was lost. Returns for how many milliseconds a run has waited
   * although it could start; more than a few seconds mean a fault in the service. Rejects with errors of the database.
   */
  async claimQueued(): Promise<number> {
    if (this.stopping) return 0;
    await this.claimAll();
    if (this.slots.freeCount() === 0) return 0;
    return this.options.repository.longestWait(this.slots.perApp(), this.slots.currentShare());
  }

  /** Returns the slots of this process, its free slots, and the number of queued runs for which callers in this process wait. */
  usage(): { total: number; free: number; waiting: number } {
    return { total: this.slots.totalSlots, free: this.slots.freeCount(), waiting: this.startListeners.size };
  }

  /** Starts queued runs for which active runs wait, also if a notification was lost. Call this method at intervals. */
  async findAwaitedRuns(): Promise<void> {
    if (this.stopping?.aborted || this.active.size === 0) return;
    for (const { id, causeRunId } of await this.options.repository.queuedByCause([...this.active.keys()])) {
      this.onRunAwaited(causeRunId, id);
    }
  }

  /** Aborts the runs that another process has ended because the lease of this process had expired. */
  async abortLostRuns(): Promise<void> {
    const { repository, processId } = this.options;
    for (const id of await repository.findNoLongerHeld(processId, [...this.active.keys()]))
      this.active.get(id)?.controller.abort("lost");
  }

  /** Claims no more runs, and waits until the active runs have ended. When `forceStop` aborts, ends the active runs. */
  async drain(forceStop: AbortSignal): Promise<void> {
    this.stopping = forceStop;
    const abortAll = () => {
      for (const { controller } of this.active.values()) controller.abort("shutdown");
    };
    forceStop.addEventListener("abort", abortAll);
    if (forceStop.aborted) abortAll();
    // Waits for slots and not for active runs: a claimed run gets its slot before it is active.
    await this.slots.whenEmpty();
    forceStop.removeEventListener("abort", abortAll);
  }
}
