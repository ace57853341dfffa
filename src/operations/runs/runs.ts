/** Operations on runs for callers: `run`, `runWithResult` and `cancel` check the caller's rights. */
import { setMaxListeners } from "node:events";
import { runInBackground } from "../../background.js";
import type { Db } from "../../data/database.js";
import { BROWSER_HOLDER_ID } from "../../data/run.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import { OVERLOADED_RETRY_SECONDS, RUN_CHAIN_DEPTH_MAX } from "../../limits.js";
import { type Caller, isPersonCaller } from "../../rules/access.js";
import { JsonText } from "../../rules/json-text.js";
import type { IdOrName } from "../../rules/reference.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import type { ExecutionLogs, RunOutcome } from "../records/execution-logs.js";
import { waitForLogEntry, waitForRunResult } from "../records/log-wait.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import type { Dispatcher } from "./dispatcher.js";
import type { EnqueuedRun, Enqueuer } from "./enqueue.js";
import { createCancelledRunOutcome } from "./outcomes.js";
import { createCallerActionAccess, type FindAppUser } from "./run-access.js";
import type { InsertedRun, NewOnDemandRun } from "./run-inserts.js";
import type { RunRepository } from "./run-repository.js";
import { readRunOutcome, readScriptError, toPayloadText } from "./run-texts.js";
import { AWAITED_RUN_CHANNEL, CANCEL_RUN_CHANNEL, createCancelRunNotice, type RunRecord } from "./run-types.js";

export interface RunRequest {
  appId: number;
  ref: IdOrName;
  payload: unknown;
  idempotencyKey: string | null;
  retryFailed?: boolean;
  /** Returns a signal that aborts when the caller disconnects. */
  disconnectSignal?: (() => AbortSignal) | undefined;
}

export type EnqueuedOnDemandRun = InsertedRun & { waitForOutcome(): Promise<RunOutcome> };

/** Milliseconds in which a runner expects to start a queued run itself. Only afterwards, it reads the run's log entry. */
const OWN_START_WAIT_MS = 100;

interface RunsOptions {
  db: Db;
  repository: RunRepository;
  enqueuer: Enqueuer;
  dispatcher: Dispatcher;
  receivedDataLimiter: ReceivedDataLimiter;
  logs: ExecutionLogs;
  notifications: DatabaseNotifications;
  findAppUser: FindAppUser;
  processId: string;
  isRunner: boolean;
}

function mayCancel(caller: Caller, run: RunRecord | null): boolean {
  if (isPersonCaller(caller)) return true;
  if (run === null) return false;
  return run.credentialId === caller.credentialId || (run.personId !== null && run.personId === caller.personId);
}

export class Runs {
  /** Aborts when this process stops and no other process can execute queued runs. */
  private readonly stopping = new AbortController();

  constructor(private readonly options: RunsOptions) {
    const { notifications, dispatcher } = options;
    setMaxListeners(0, this.stopping.signal);
    notifications.listen(CANCEL_RUN_CHANNEL, (notice) => {
      const [id, displacedBy] = notice.split(":").map(Number) as [number, number | undefined];
      dispatcher.abortCancelledRun(id, displacedBy ?? null);
    });
    notifications.listen(AWAITED_RUN_CHANNEL, (notice) => {
      const [parent, child] = notice.split(":").map(Number) as [number, number];
      dispatcher.onRunAwaited(parent, child);
    });
  }

  async run(caller: Caller, request: RunRequest): Promise<{ runId: number }> {
    return { runId: (await this.enqueue(this.createNamedRun(caller, request), false)).id };
  }

  /** Returns the value of the action's function `execute`. @throws EXECUTION_FAILED with the error of the code; the errors of `run` */
  async runWithResult(caller: Caller, request: RunRequest): Promise<{ runId: number; result: JsonText | undefined }> {
    const enqueued = await this.enqueue(this.createNamedRun(caller, request), true, request.disconnectSignal);
    const outcome = await enqueued.waitForOutcome();
    const runId = enqueued.id;
    if (outcome.ok) return { runId, result: outcome.data === undefined ? undefined : new JsonText(outcome.data) };
    const { name, message } = outcome.error;
    throw new ActionError("EXECUTION_FAILED", name === "Error" ? message : `${name}: ${message}`, { runId });
  }

  /** Inserts the run, and starts it if a slot is free. @param isAwaited true if the caller waits for the outcome */
  async enqueue(
    run: NewOnDemandRun,
    isAwaited: boolean,
    disconnectSignal?: RunRequest["disconnectSignal"],
  ): Promise<EnqueuedOnDemandRun> {
    const awaitedBy = isAwaited ? (run.causeRunId ?? null) : null;
    const enqueued = await this.options.enqueuer.enqueueOnDemand(run, awaitedBy);
    const { id, isRepeated } = enqueued;
    return { id, isRepeated, waitForOutcome: () => this.waitForOutcome(enqueued, run, disconnectSignal) };
  }

  /** Waits until the run ends or one of the signals aborts. @throws OVERLOADED if the service stops; the errors of `waitForRunResult` */
  async waitForEnd(appId: number, runId: number, ...signals: readonly AbortSignal[]): Promise<void> {
    const { repository, notifications } = this.options;
    const findEnd = async () => ((await repository.isUnfinished(runId, appId)) ? null : true);
    await waitForRunResult(findEnd, notifications, runId, ...signals, this.stopping.signal);
  }

  /** @throws FORBIDDEN if the caller may not cancel the run; RUN_NOT_FOUND; RUN_NOT_CANCELLABLE if the run ends without being cancelled */
  async cancel(caller: Caller, appId: number, runId: number): Promise<void> {
    const { repository, db, logs, notifications } = this.options;
    const run = await repository.find(runId, appId);
    if (!mayCancel(caller, run)) throw new ActionError("FORBIDDEN");
    if (!run) throw new ActionError("RUN_NOT_FOUND");
    throwIfUnknownField(caller);
    if (await repository.cancelQueued(runId)) return;
    const { state } = (await repository.find(runId, appId)) ?? run;
    if (state !== "running") throw new ActionError("RUN_NOT_CANCELLABLE");
    // Ends a run in a browser. Its page may still execute the code, but the service ignores the page's later report.
    if (await repository.finishWithoutCode(run, BROWSER_HOLDER_ID, createCancelledRunOutcome(null))) return;
    await db.query("SELECT pg_notify($1, $2)", createCancelRunNotice(runId, null));
    const { data } = await waitForLogEntry({ logs, notifications }, runId);
    if (readScriptError(data).name !== "CancelledError") throw new ActionError("RUN_NOT_CANCELLABLE");
  }

  /** Waits for the runs of this process. If no other runner is alive, callers that wait for queued runs then get OVERLOADED. */
  async drain(forceStop: AbortSignal): Promise<void> {
    const { dispatcher, repository, processId } = this.options;
    await dispatcher.drain(forceStop);
    if (!(await repository.isOnlyRunner(processId).catch(() => true))) return;
    const retryAfter = OVERLOADED_RETRY_SECONDS;
    this.stopping.abort(new ActionError("OVERLOADED", "the service is stopping; the run stays queued", { retryAfter }));
  }

  private createNamedRun(caller: Caller, request: RunRequest): NewOnDemandRun {
    const { receivedDataLimiter, findAppUser } = this.options;
    const { appId, ref, idempotencyKey, retryFailed = false } = request;
    const payload = toPayloadText(request.payload);
    const { copy, personId, credentialId, runId: causeRunId, runDepth } = caller;
    receivedDataLimiter.countPayload(caller, appId, Buffer.byteLength(payload));
    if (runDepth >= RUN_CHAIN_DEPTH_MAX) {
      throw new ActionError(
        "EXECUTION_FAILED",
        `recursion: this chain of runs is too long; each run starts the next, and at most ${RUN_CHAIN_DEPTH_MAX} runs can follow the first`,
      );
    }
    const needsPublishedApp = caller.kind === "live";
    const callerFields = { personId, credentialId, idempotencyKey, retryFailed, causeRunId };
    const access = createCallerActionAccess(caller, findAppUser);
    return { appId, ref, trigger: "manual", needsPublishedApp, access, copy, payload, ...callerFields };
  }

  private waitForOutcome(
    { id, done, isDebounced = false }: EnqueuedRun,
    run: NewOnDemandRun,
    disconnectSignal: RunRequest["disconnectSignal"],
  ): Promise<RunOutcome> {
    if (done) return done;
    const { repository, dispatcher, logs, notifications, isRunner } = this.options;
    const signal = disconnectSignal?.();
    const startSignal = new AbortController();
    const { promise, resolve, reject } = Promise.withResolvers<RunOutcome>();
    const followExecutionLog = () => {
      const entry = waitForLogEntry({ logs, notifications }, id, signal, startSignal.signal, this.stopping.signal);
      runInBackground(entry.then(readRunOutcome).then(resolve, reject));
    };
    const timer = setTimeout(followExecutionLog, isRunner ? OWN_START_WAIT_MS : 0);
    const stopListening = dispatcher.addStartListener(id, (executed) => {
      clearTimeout(timer);
      resolve(executed);
      startSignal.abort("the run has started");
    });
    return promise.finally(() => {
      stopListening();
      // If the caller has disconnected, cancels the queued run. Exception: another request or the run that started it may use its outcome.
      const mayBeUsed = isDebounced || run.idempotencyKey !== null || Boolean(run.eventKey) || Boolean(run.causeRunId);
      if (signal?.aborted && !startSignal.signal.aborted && !mayBeUsed) runInBackground(repository.cancelQueued(id));
    });
  }
}
