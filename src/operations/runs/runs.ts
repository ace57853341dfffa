/**
 * Operations on runs for callers: run, runWithResult, cancel. They check the caller's access, enqueue the run and wait
 * for its outcome.
 */
import { setMaxListeners } from "node:events";
import type { DataSource } from "typeorm";
import { runInBackground } from "../../background.js";
import type { Notifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import { CHAIN_DEPTH_MAX, OVERLOADED_RETRY_SECONDS } from "../../limits.js";
import { type Caller, isPersonCaller } from "../../rules/access.js";
import { JsonText } from "../../rules/json-text.js";
import type { EntityReference } from "../../rules/reference.js";
import type { ExecutionLogs, RunOutcome } from "../records/execution-logs.js";
import type { IntakeLimiter } from "../records/intake.js";
import { waitForLogEntry } from "../records/log-wait.js";
import { ANNOUNCE_AFTER_MS, type QueueLimits } from "../records/queue-limits.js";
import type { Dispatcher } from "./dispatcher.js";
import type { EnqueuedRun, Enqueuer } from "./enqueue.js";
import { Cancellation } from "./executor.js";
import { explainMissing } from "./find-action.js";
import { cancelledBrowserEnding, cancelledEnding } from "./outcomes.js";
import { runAccessOf, type UserOf } from "./run-access.js";
import type { NamedRun } from "./run-inserts.js";
import { BROWSER_HOLDER, type RunRepository } from "./run-repository.js";
import { errorIn, outcomeIn, payloadText } from "./run-texts.js";
import { AWAITED_CHANNEL, CANCEL_CHANNEL, cancelNotice, type NewRun, type RunRecord } from "./run-types.js";

/** A call of `run` or `runWithResult`. */
export interface RunRequest {
  appId: number;
  ref: EntityReference;
  /** Payload of the run; undefined stands for `{}`. */
  payload: unknown;
  idempotencyKey: string | null;
  /** True if a repeated idempotency key may start another run after the first one has failed or was cancelled. */
  retryFailed?: boolean;
  /** Returns a signal that aborts when the caller disconnects. */
  gone?: (() => AbortSignal) | undefined;
}

/** A run on demand whose row is written. */
export interface OnDemandRun {
  id: number;
  /** True if an earlier request with the same key has written the row. */
  isRepeated: boolean;
  outcome(): Promise<RunOutcome>;
}

interface RunsOptions {
  db: DataSource;
  repository: RunRepository;
  enqueuer: Enqueuer;
  dispatcher: Dispatcher;
  queueLimits: QueueLimits;
  intake: IntakeLimiter;
  logs: ExecutionLogs;
  notifications: Notifications;
  /** Reads the app user who is signed in to the caller's page. */
  userOf: UserOf;
  holder: string;
  /** True if this process executes runs. */
  isRunner: boolean;
}

/** True if a later request may repeat this request, because it has an idempotency key or an event. */
const isRepeatable = ({ idempotencyKey, eventKey = null }: NamedRun): boolean =>
  idempotencyKey !== null || eventKey !== null;

function mayCancel(caller: Caller, run: RunRecord | null): boolean {
  if (isPersonCaller(caller)) return true;
  if (run === null) return false;
  return run.credentialId === caller.credentialId || (run.personId !== null && run.personId === caller.personId);
}

export class Runs {
  /** Aborts when the service stops and no other process can execute queued runs. */
  private readonly stopping = new AbortController();

  constructor(private readonly options: RunsOptions) {
    const { notifications, dispatcher } = options;
    setMaxListeners(0, this.stopping.signal);
    notifications.listen(CANCEL_CHANNEL, (notice) => {
      const [id, by] = notice.split(":").map(Number) as [number, number | undefined];
      dispatcher.cancel(id, new Cancellation(by ?? null));
    });
    notifications.listen(AWAITED_CHANNEL, (notice) => {
      const [parent, child] = notice.split(":").map(Number) as [number, number];
      dispatcher.onRunAwaited(parent, child);
    });
  }

  /** Enqueues a run and returns at once (specification, `run`). */
  async run(caller: Caller, request: RunRequest): Promise<{ runId: number }> {
    const enqueued = this.options.enqueuer.enqueueNamed(this.namedRun(caller, request));
    const { id } = await enqueued.catch((error: unknown) => explainMissing(this.options.db, caller, request, error));
    return { runId: id };
  }

  /**
   * Runs the action, waits for the end, and returns exactly what `execute` returned (specification, `runWithResult`).
   * @throws EXECUTION_FAILED with the message of the code's error, and as `run`
   */
  async runWithResult(caller: Caller, request: RunRequest): Promise<{ runId: number; result: JsonText | undefined }> {
    const run = this.namedRun(caller, request);
    const enqueued = await this.enqueueAwaited(run).catch((error: unknown) =>
      explainMissing(this.options.db, caller, request, error),
    );
    const outcome = await this.outcomeOf(enqueued, run, request.gone);
    const runId = enqueued.id;
    if (outcome.ok) return { runId, result: outcome.data === undefined ? undefined : new JsonText(outcome.data) };
    const { name, message } = outcome.error;
    throw new ActionError("EXECUTION_FAILED", name === "Error" ? message : `${name}: ${message}`, { runId });
  }

  /**
   * Enqueues the run of a request to an HTTP trigger.
   * @param isAwaited true if the caller waits for the outcome
   */
  async accept(run: NamedRun, isAwaited: boolean, gone?: RunRequest["gone"]): Promise<OnDemandRun> {
    const enqueued = await (isAwaited ? this.enqueueAwaited(run) : this.options.enqueuer.enqueueNamed(run));
    const { id, isRepeated } = enqueued;
    return { id, isRepeated, outcome: () => this.outcomeOf(enqueued, run, gone) };
  }

  /** Enqueues a run of an action whose ID is known. The caller of this method must have checked access. */
  async submit(run: NewRun): Promise<{ runId: number }> {
    return { runId: (await this.options.enqueuer.enqueueKnown(run)).id };
  }

  /**
   * Ends a queued or running run.
   * @throws FORBIDDEN unless the caller started it or edits the app, RUN_NOT_FOUND, RUN_NOT_CANCELLABLE
   */
  async cancel(caller: Caller, appId: number, runId: number): Promise<void> {
    const { repository, db, logs, notifications } = this.options;
    const run = await repository.find(runId, appId);
    if (!mayCancel(caller, run)) throw new ActionError("FORBIDDEN");
    if (!run) throw new ActionError("RUN_NOT_FOUND");
    if (run.state === "queued") {
      const ending = cancelledEnding(run, await repository.maskedPayload(run));
      if (await repository.finish(runId, null, ending)) return;
    }
    const { state } = (await repository.find(runId, appId)) ?? run;
    if (state !== "running") throw new ActionError("RUN_NOT_CANCELLABLE");
    if (await repository.finish(runId, BROWSER_HOLDER, cancelledBrowserEnding(run))) return;
    await db.query("SELECT pg_notify($1, $2)", cancelNotice(runId, null));
    const { data } = await waitForLogEntry({ logs, notifications }, runId);
    if (errorIn(data).name !== "CancelledError") throw new ActionError("RUN_NOT_CANCELLABLE");
  }

  /**
   * Starts no more runs, and waits for active ones until `forceStop` aborts. Then rejects callers that wait for queued
   * runs, unless another runner is alive.
   */
  async drain(forceStop: AbortSignal): Promise<void> {
    const { dispatcher, repository, holder } = this.options;
    await dispatcher.drain(forceStop);
    if (!(await repository.isOnlyRunner(holder).catch(() => true))) return;
    const retryAfter = OVERLOADED_RETRY_SECONDS;
    this.stopping.abort(new ActionError("OVERLOADED", "the service is stopping; the run stays queued", { retryAfter }));
  }

  /**
   * Validates the caller's request and returns the run that it describes.
   * @throws EXECUTION_FAILED, PAYLOAD_INVALID, RATE_LIMIT_EXCEEDED
   */
  private namedRun(caller: Caller, request: RunRequest): NamedRun {
    const { intake, userOf } = this.options;
    const { appId, ref, idempotencyKey, retryFailed = false } = request;
    const payload = payloadText(request.payload);
    const { copy, personId, credentialId, runId: causeRunId, runDepth } = caller;
    intake.takePayload(caller, appId, Buffer.byteLength(payload));
    if (runDepth >= CHAIN_DEPTH_MAX) {
      throw new ActionError(
        "EXECUTION_FAILED",
        `recursion: a chain of runs that start each other has at most ${CHAIN_DEPTH_MAX} runs`,
      );
    }
    const needsPublishedApp = caller.kind === "live";
    const by = { personId, credentialId, idempotencyKey, retryFailed, causeRunId };
    const access = runAccessOf(caller, userOf);
    return { appId, ref, trigger: "manual", needsPublishedApp, access, copy, payload, ...by };
  }

  /**
   * Enqueues a run whose caller waits for the outcome. If this process is a runner, it notifies other runners only if
   * the run cannot start soon.
   */
  private enqueueAwaited(run: NamedRun): Promise<EnqueuedRun> {
    const { enqueuer, isRunner } = this.options;
    return enqueuer.enqueueNamed({ ...run, isAnnounced: !isRunner }, run.causeRunId ?? null);
  }

  /** Returns the outcome of a run: from this process if it executes the run, otherwise from the run's log entry. */
  private outcomeOf({ id, done }: EnqueuedRun, run: NamedRun, gone: RunRequest["gone"]): Promise<RunOutcome> {
    if (done) return done;
    const { dispatcher, queueLimits, logs, notifications, isRunner } = this.options;
    const signal = gone?.();
    const started = new AbortController();
    const { promise, resolve, reject } = Promise.withResolvers<RunOutcome>();
    const followLog = () => {
      const entry = waitForLogEntry({ logs, notifications }, id, signal, started.signal, this.stopping.signal);
      runInBackground(entry.then(outcomeIn).then(resolve, reject));
      // Without the notification, other runners find the run when they next read the queue.
      if (isRunner) queueLimits.announce(run.appId).catch(() => undefined);
    };
    const timer = setTimeout(followLog, isRunner ? ANNOUNCE_AFTER_MS : 0);
    const stopListening = dispatcher.onStart(id, (executed) => {
      clearTimeout(timer);
      resolve(executed);
      started.abort();
    });
    return promise.finally(() => {
      stopListening();
      // Keeps a run that the caller can find again by its key, and a run that another run has started.
      const isAbandoned = signal?.aborted && !started.signal.aborted && !isRepeatable(run) && !run.causeRunId;
      if (isAbandoned) runInBackground(this.cancelAbandoned(id));
    });
  }

  /** Cancels a run whose caller has disconnected, if it is still queued. */
  private async cancelAbandoned(id: number): Promise<void> {
    const { repository } = this.options;
    const run = await repository.find(id);
    if (run?.state !== "queued") return;
    await repository.finish(id, null, cancelledEnding(run, await repository.maskedPayload(run)));
  }
}
