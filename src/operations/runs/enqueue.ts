/** Inserts a run: running if this process has a free slot, otherwise queued. Schedules and log events insert runs elsewhere. */
import type { Db } from "../../data/database.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { OVERLOADED_RETRY_SECONDS } from "../../limits.js";
import type { RunOutcome } from "../records/execution-logs.js";
import type { QueueLimits } from "../records/queue-limits.js";
import type { RequestTracing } from "../watch/tracing.js";
import type { Dispatcher } from "./dispatcher.js";
import { DEADLOCK_OUTCOME } from "./outcomes.js";
import type { RunAdmission } from "./run-admission.js";
import {
  createSkippedError,
  type EnqueuedRow,
  type InsertedRun,
  insertOnDemandRun,
  insertRunByActionId,
  type NewOnDemandRun,
} from "./run-inserts.js";
import type { RunRepository } from "./run-repository.js";
import { AWAITED_RUN_CHANNEL, type NewRun } from "./run-types.js";
import type { Slot } from "./slots.js";

/** Maximum number of concurrent inserts of queued rows, of all apps together. */
const CONCURRENT_INSERTS_MAX = 8;
/** Maximum number of concurrent inserts of one app, so that a burst of one app delays only this app. */
const CONCURRENT_INSERTS_PER_APP_MAX = 2;

export interface EnqueuedRun extends InsertedRun {
  /** Present if this process executes the run. */
  done?: Promise<RunOutcome>;
  /** True if other callers may wait for the same run. */
  isDebounced?: boolean;
}

/**
 * If `holder` is null, inserts a queued run. Otherwise inserts a running run of this process; returns null if the run must wait. If
 * `mayInsert` is false, inserts nothing: throws an error if the action cannot run, and otherwise returns null.
 */
type InsertRun = (holder: string | null, mayInsert: boolean) => Promise<EnqueuedRow | null>;

interface EnqueuerOptions {
  db: Db;
  repository: RunRepository;
  queueLimits: QueueLimits;
  admission: RunAdmission;
  dispatcher: Dispatcher;
  tracing: Pick<RequestTracing, "getCurrentTraceparent">;
  processId: string;
}

export class Enqueuer {
  private readonly insertSemaphore = new FairSemaphore(CONCURRENT_INSERTS_MAX, CONCURRENT_INSERTS_PER_APP_MAX);

  constructor(private readonly options: EnqueuerOptions) {}

  /** @param awaitedBy ID of the run that waits for the new run @throws OVERLOADED, the errors of `insertOnDemandRun` */
  async enqueueOnDemand(requested: NewOnDemandRun, awaitedBy: number | null = null): Promise<EnqueuedRun> {
    const { db, dispatcher, tracing, processId } = this.options;
    const newRun = { ...requested, traceparent: tracing.getCurrentTraceparent() };
    const insert: InsertRun = (...mode) => insertOnDemandRun(db, newRun, processId, ...mode);
    const slot = dispatcher.tryAcquireSlot(newRun.appId);
    const started = slot && (await this.startInSlot(slot, insert));
    return started ?? this.queueRun(newRun, insert, awaitedBy);
  }

  /** Queues a run of an action whose ID is known. */
  queueByActionId(run: NewRun): Promise<EnqueuedRun> {
    const { db, tracing } = this.options;
    const insert: InsertRun = async (_holder, mayInsert) => {
      if (!mayInsert) return null;
      const inserted = await insertRunByActionId(db, { ...run, traceparent: tracing.getCurrentTraceparent() }, null);
      return { ...inserted, run: null, waitsFor: run.waitsFor ?? null };
    };
    return this.queueRun(run, insert, null);
  }

  /** Inserts and executes the run. Returns the first run for a repeated key, and null if the run must be queued instead. */
  private async startInSlot(slot: Slot, insert: InsertRun): Promise<EnqueuedRun | null> {
    const { dispatcher, processId } = this.options;
    try {
      return await dispatcher.trackClaim(insert(processId, true), (row) => {
        if (row?.run) return { id: row.id, isRepeated: false, done: dispatcher.execute(row.run, slot) };
        slot.free();
        return row;
      });
    } catch (error) {
      slot.free();
      throw error;
    }
  }

  private async queueRun(
    { appId, payload }: Pick<NewRun, "appId" | "payload">,
    insert: InsertRun,
    awaitedBy: number | null,
  ): Promise<EnqueuedRun> {
    const { dispatcher, db } = this.options;
    const releaseInsertSlot = await this.insertSemaphore.enter(appId);
    const { id, isRepeated, waitsFor } = await this.insertQueued(appId, Buffer.byteLength(payload), insert).finally(
      releaseInsertSlot,
    );
    if (waitsFor === "concurrency") await this.applyConcurrencyLimit(id, awaitedBy);
    if (!isRepeated && waitsFor !== "debounce") dispatcher.onRunQueued(appId);
    if (awaitedBy !== null && !dispatcher.onRunAwaited(awaitedBy, id))
      await db.query(`SELECT pg_notify('${AWAITED_RUN_CHANNEL}', $1)`, [`${awaitedBy}:${id}`]);
    return { id, isRepeated, isDebounced: waitsFor === "debounce" };
  }

  private async insertQueued(appId: number, bytes: number, insert: InsertRun): Promise<EnqueuedRow> {
    const { queueLimits } = this.options;
    const hasCapacity = await queueLimits.reserveCapacity(appId, bytes);
    let isWritten = false;
    try {
      const row = await insert(null, hasCapacity);
      if (!row) {
        const retryAfter = OVERLOADED_RETRY_SECONDS;
        const message = `the queue has no capacity for another run of this app; try again in ${retryAfter} s`;
        throw new ActionError("OVERLOADED", message, { retryAfter });
      }
      isWritten = !row.isRepeated;
      return row;
    } finally {
      if (hasCapacity && !isWritten) queueLimits.releaseCapacity(appId, bytes);
    }
  }

  /** Applies the concurrency limit to a queued run. Ends the run if it and the run `awaitedBy` wait for each other. @throws RUN_SKIPPED */
  private async applyConcurrencyLimit(id: number, awaitedBy: number | null): Promise<void> {
    const { admission, repository } = this.options;
    const checkedRun = await admission.checkRun(id, awaitedBy);
    if (checkedRun?.skipReason) throw createSkippedError(id, checkedRun.skipReason);
    const run = checkedRun?.isBlocked && (await repository.find(id));
    if (run) await repository.finishWithoutCode(run, null, DEADLOCK_OUTCOME);
  }
}
