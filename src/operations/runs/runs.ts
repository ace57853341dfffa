/** The verbs of running: run, runWithResult, cancel. Knows what a caller may, and how a run is accepted; not when it is performed. */
import { setMaxListeners } from "node:events";
import { LRUCache } from "lru-cache";
import type { DataSource } from "typeorm";
import { runInBackground } from "../../background.js";
import type { RunWait } from "../../data/action-types.js";
import type { Executor } from "../../data/database.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import type { Notifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import { CHAIN_DEPTH_MAX, OVERLOADED_RETRY_SECONDS } from "../../limits.js";
import { type Caller, isPerson } from "../../rules/access.js";
import { JsonText } from "../../rules/json-text.js";
import { type Reference, referenceKey } from "../../rules/reference.js";
import type { Logs, RunOutcome } from "../records/execution-logs.js";
import type { Intake } from "../records/intake.js";
import { entryOfRun } from "../records/log-wait.js";
import { ANNOUNCE_AFTER_MS, type QueueRoom } from "../records/queue-room.js";
import type { AskedRun } from "./acceptance.js";
import { cancelledInBrowser } from "./browser-endings.js";
import { Dispatcher } from "./dispatcher.js";
import { Cancellation, cancelledEnding, type Execution, heldUpEnding } from "./execution.js";
import { BROWSER_HOLDER, type Ledger } from "./ledger.js";
import { runAccessOf, type UserOf } from "./run-access.js";
import { AWAITED_CHANNEL, CANCEL_CHANNEL, cancelNotice, type HeldRun, type NewRun } from "./run-facts.js";
import { errorIn, outcomeIn, payloadText } from "./run-texts.js";
import type { RunTraces } from "./run-traces.js";
import type { Slot } from "./slots.js";
import { explainMissing, findTarget } from "./targets.js";
import type { Waits } from "./waits.js";

/** A request to run on demand. */
export interface RunRequest {
  appId: number;
  ref: Reference;
  /** The payload object; undefined stands for `{}`. */
  payload: unknown;
  idempotencyKey: string | null;
  /** Whether a run of that key that failed or was cancelled is to be run again. */
  retryFailed?: boolean;
  /** Aborts when nobody waits for the result any more. */
  gone?: (() => AbortSignal) | undefined;
}

/** What was accepted: `run` is what starts at once; null where it is queued, or an earlier request wrote it. */
interface AcceptedRun {
  id: number;
  isRepeated?: boolean;
  run: HeldRun | null;
  waitsFor?: RunWait | null;
}

/**
 * Writes a run's row, running under `holder` or queued when that is null. null: nothing was written, for the run has to wait for something
 * else than a place, and is to be queued.
 * @throws what says that it may not run
 */
type Accept = (holder: string | null, executor?: Executor) => Promise<AcceptedRun | null>;

const skippedError = (runId: number, reason: string) =>
  new ActionError("RUN_SKIPPED", `the run did not start, ${reason}`, { runId });

const stoppingError = (): ActionError =>
  new ActionError("OVERLOADED", "the service is stopping; the run stays queued", {
    retryAfter: OVERLOADED_RETRY_SECONDS,
  });

/** A run whose row is written. */
interface Started {
  id: number;
  /** Present if this process executes the run. */
  done?: Promise<RunOutcome>;
  /** True if an earlier request wrote the run. */
  isRepeated?: boolean;
}

/** A run whose row is written. */
export interface OnDemandRun {
  id: number;
  /** True if an earlier request has written it. */
  isRepeated: boolean;
  outcome(): Promise<RunOutcome>;
}

/** What a queued run takes room for. */
type Queued = Pick<NewRun, "appId" | "payload">;

/** An action that runs at a moment is taken to do so for that long, by those who are to wait: it is asked again as they start. */
const FOUND_MS = 1_000;
const FOUND_MAX = 1_000;

/** Rows for the queue that are written at once, in all and of one app: who sends hundreds together waits behind himself. */
const QUEUED_AT_ONCE = 8;
const QUEUED_AT_ONCE_PER_APP = 2;

/** True if a later request can ask for the same run. */
const isKeyed = ({ idempotencyKey, eventKey = null }: AskedRun): boolean =>
  idempotencyKey !== null || eventKey !== null;

export type Runs = ReturnType<typeof createRuns>;

export function createRuns(options: {
  db: DataSource;
  ledger: Ledger;
  queueRoom: QueueRoom;
  intake: Intake;
  logs: Logs;
  execution: Execution;
  traces: RunTraces;
  waits: Waits;
  notifications: Notifications;
  /** Reads the app user who is signed in to the caller's page. */
  userOf: UserOf;
  /** The fence of this process. */
  holder: string;
  /** How many runs this process performs at once while few apps run; 0 where it is no dispatcher. */
  concurrency: number;
}) {
  const { db, ledger, queueRoom, intake, logs, execution, traces, waits, notifications } = options;
  const { userOf, holder, concurrency } = options;
  /** Actions that were found a moment ago. */
  const found = new LRUCache<string, true>({ max: FOUND_MAX, ttl: FOUND_MS });
  const queueing = new FairSemaphore(QUEUED_AT_ONCE, QUEUED_AT_ONCE_PER_APP);
  const dispatcher = new Dispatcher({ ledger, execute: execution.execute, holder, concurrency });
  /** Aborts when no process is left to perform queued runs. */
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal);
  const entryOf = (runId: number, ...signals: (AbortSignal | undefined)[]) =>
    entryOfRun({ logs, notifications }, runId, ...signals, stopping.signal);

  notifications.listen(CANCEL_CHANNEL, (notice) => {
    const [id, by] = notice.split(":").map(Number) as [number, number | undefined];
    dispatcher.cancel(id, new Cancellation(by ?? null));
  });
  notifications.listen(AWAITED_CHANNEL, (notice) => {
    const [parent, child] = notice.split(":").map(Number) as [number, number];
    dispatcher.expectRun(parent, child);
  });

  /** The row of a run that may not start here and now. @throws OVERLOADED */
  async function queue(asked: Queued, accept: Accept, awaitedBy: number | null = null): Promise<Started> {
    const leave = await queueing.enter(asked.appId);
    const { id, waitsFor, isRepeated } = await queueInTurn(asked, accept).finally(leave);
    if (waitsFor === null) dispatcher.expectQueued(asked.appId);
    if (waitsFor === "concurrency") await judged(id, awaitedBy);
    if (awaitedBy !== null) {
      if (dispatcher.isActive(awaitedBy)) dispatcher.expectRun(awaitedBy, id);
      else await db.query(`SELECT pg_notify('${AWAITED_CHANNEL}', $1)`, [`${awaitedBy}:${id}`]);
    }
    return { id, ...(isRepeated && { isRepeated }) };
  }

  async function queueInTurn({ appId, payload }: Queued, accept: Accept): Promise<AcceptedRun> {
    if (!(await queueRoom.take(appId, Buffer.byteLength(payload)))) {
      const retryAfter = OVERLOADED_RETRY_SECONDS;
      throw new ActionError("OVERLOADED", `too many runs wait already; try again in ${retryAfter} s`, { retryAfter });
    }
    return traces.queue(async (executor) => (await accept(null, executor))!);
  }

  /** Has a run that was queued judged by its action's limit. @throws RUN_SKIPPED */
  async function judged(id: number, awaitedBy: number | null): Promise<void> {
    await waits.judgeRun(id);
    const reason = await ledger.skipReason(id);
    if (reason !== null) throw skippedError(id, reason);
    if (awaitedBy === null || !(await waits.isHeldUpBy(id, awaitedBy))) return;
    const run = await ledger.findAny(id);
    if (run) await ledger.end(id, null, heldUpEnding(run));
  }

  /** Writes the run as running and starts it in that slot. Queues it first if it has to wait for more than a slot. */
  async function startIn(slot: Slot, asked: Queued, accept: Accept, awaitedBy: number | null = null): Promise<Started> {
    try {
      const started = await dispatcher.taking(accept(holder), (accepted): Started | null => {
        if (!accepted) return null;
        const { id, run, isRepeated } = accepted;
        if (run) return { id, done: dispatcher.execute(run, slot) };
        slot.free();
        return { id, ...(isRepeated && { isRepeated }) };
      });
      return started ?? (await startQueued(slot, await queue(asked, accept, awaitedBy)));
    } catch (error) {
      slot.free();
      throw error;
    }
  }

  /** Starts a run that was just queued in that slot, unless it waits for something or another process has claimed it. */
  function startQueued(slot: Slot, queued: Started): Promise<Started> {
    return dispatcher.taking(ledger.claimOne(holder, queued.id), (run) => {
      if (run) return { ...queued, done: dispatcher.execute(run, slot) };
      slot.free();
      return queued;
    });
  }

  async function acceptDebounced(run: NewRun, executor: Executor | undefined): Promise<AcceptedRun> {
    const { id } = await (executor && executor !== db
      ? ledger.acceptDebounced(run, executor)
      : db.transaction((manager) => ledger.acceptDebounced(run, manager)));
    return { id, run: null, waitsFor: "debounce" };
  }

  /** Of a run that is asked for by its action's name or id. */
  function acceptAsked(asked: AskedRun): Accept {
    const traceparent = traces.current();
    return async (by, executor) => {
      const { id, repeated, skipped, target, secretsVersion } = await ledger.acceptTarget(asked, by, executor);
      const { id: actionId, waitsFor, ...code } = target;
      if (id === null) return by === null ? acceptDebounced({ ...asked, actionId }, executor) : null;
      if (skipped) throw skippedError(id, skipped);
      if (repeated) return { id, run: null, isRepeated: true };
      if (by === null) return { id, run: null, waitsFor };
      const facts = { replayOf: null, versionId: null, startedAt: new Date(), secretsVersion };
      return { id, run: { ...asked, ...facts, id, actionId, code, traceparent } };
    };
  }

  /** Who does not start at once hears at once that there is nothing to start. @throws as `findTarget` */
  async function checkTarget(asked: AskedRun): Promise<void> {
    const { appId, copy, ref, needsApp, trigger } = asked;
    const key = `${appId}:${copy}:${needsApp}:${trigger}:${referenceKey(ref)}`;
    if (found.has(key)) return;
    const target = await findTarget(db, asked);
    // An action that only some callers may run is judged for each of them, before the run takes a place in a line.
    if (target.access === null) found.set(key, true);
  }

  /**
   * Starts the run if this process has a free slot, else queues it.
   * @param awaitedBy the active run that waits for this one
   */
  async function start(asked: AskedRun, awaitedBy: number | null = null): Promise<Started> {
    const slot = dispatcher.slotFor(asked.appId, awaitedBy);
    if (slot) return startIn(slot, asked, acceptAsked(asked), awaitedBy);
    await checkTarget(asked);
    return queue(asked, acceptAsked(asked), awaitedBy);
  }

  /** The same for a caller that waits for the result. A runner announces the run only if it cannot start it soon. */
  const startAwaited = (asked: AskedRun): Promise<Started> =>
    start({ ...asked, isAnnounced: concurrency === 0 }, asked.causeRunId ?? null);

  /** Cancels a run that is still queued after its caller disconnected. */
  async function cancelAbandoned(id: number): Promise<void> {
    const run = await ledger.findAny(id);
    if (run?.state === "queued") await ledger.end(id, null, cancelledEnding(run));
  }

  /** The run that is asked for, as far as it can be judged without its action. */
  function askedBy(caller: Caller, request: RunRequest): AskedRun {
    const { appId, ref, idempotencyKey, retryFailed = false } = request;
    const payload = payloadText(request.payload);
    const { copy, personId, credentialId, runId: causeRunId, runDepth } = caller;
    intake.takePayload(caller, appId, Buffer.byteLength(payload));
    if (runDepth >= CHAIN_DEPTH_MAX) {
      throw new ActionError(
        "EXECUTION_FAILED",
        `recursion: runs that cause runs are more than ${CHAIN_DEPTH_MAX} deep`,
      );
    }
    const needsApp = caller.kind === "live";
    const by = { personId, credentialId, idempotencyKey, retryFailed, causeRunId };
    const access = runAccessOf(caller, userOf);
    return { appId, ref, trigger: "manual", needsApp, access, copy, payload, ...by };
  }

  /** The outcome of a run: directly if this process executes it, else from its log entry. */
  function outcomeOf({ id, done }: Started, asked: AskedRun, gone: RunRequest["gone"]): Promise<RunOutcome> {
    if (done) return done;
    const signal = gone?.();
    const started = new AbortController();
    const { promise, resolve, reject } = Promise.withResolvers<RunOutcome>();
    const follow = () => entryOf(id, signal, started.signal).then(outcomeIn).then(resolve, reject);
    const share = () => {
      runInBackground(follow());
      // Without the notice, other runners find the run by their next look at the queue.
      if (concurrency > 0) queueRoom.announce(asked.appId).catch(() => undefined);
    };
    const sharing = setTimeout(share, concurrency > 0 ? ANNOUNCE_AFTER_MS : 0);
    const forget = dispatcher.onStart(id, (executed) => {
      clearTimeout(sharing);
      resolve(executed);
      started.abort();
    });
    // A key can bring the caller back to the run, and a run that another one caused belongs to that one.
    const isAbandoned = () => signal?.aborted && !started.signal.aborted && !isKeyed(asked) && !asked.causeRunId;
    return promise.finally(() => {
      forget();
      if (isAbandoned()) runInBackground(cancelAbandoned(id));
    });
  }

  const explained =
    (caller: Caller, { appId, ref }: RunRequest) =>
    (error: unknown) =>
      explainMissing(db, caller, appId, ref, error);

  function mayCancel(caller: Caller, run: HeldRun | null): boolean {
    if (isPerson(caller)) return true;
    return (
      run !== null &&
      (run.credentialId === caller.credentialId || (run.personId !== null && run.personId === caller.personId))
    );
  }

  return {
    /** Accepts the run and answers at once (specification, `run`). */
    async run(caller: Caller, request: RunRequest): Promise<{ runId: number }> {
      const { id } = await start(askedBy(caller, request)).catch(explained(caller, request));
      return { runId: id };
    },

    /**
     * Runs and answers with exactly what `execute` returned (specification, `runWithResult`).
     * @throws EXECUTION_FAILED with the script's message, and all that `run` throws
     */
    async runWithResult(caller: Caller, request: RunRequest): Promise<{ runId: number; result: JsonText | undefined }> {
      const asked = askedBy(caller, request);
      const started = await startAwaited(asked).catch(explained(caller, request));
      const outcome = await outcomeOf(started, asked, request.gone);
      const runId = started.id;
      if (outcome.ok) return { runId, result: outcome.data === undefined ? undefined : new JsonText(outcome.data) };
      const { name, message } = outcome.error;
      throw new ActionError("EXECUTION_FAILED", name === "Error" ? message : `${name}: ${message}`, { runId });
    },

    /**
     * Ends a queued or running run; one log entry says so.
     * @throws FORBIDDEN unless the caller started it or edits the app, RUN_NOT_FOUND, RUN_NOT_CANCELLABLE
     */
    async cancel(caller: Caller, appId: number, runId: number): Promise<void> {
      const run = await ledger.find(appId, runId);
      if (!mayCancel(caller, run)) throw new ActionError("FORBIDDEN");
      if (!run) throw new ActionError("RUN_NOT_FOUND");
      if (run.state === "queued" && (await ledger.end(runId, null, cancelledEnding(run)))) return;
      const { state } = (await ledger.find(appId, runId)) ?? run;
      if (state !== "running") throw new ActionError("RUN_NOT_CANCELLABLE");
      if (await ledger.end(runId, BROWSER_HOLDER, cancelledInBrowser(run))) return;
      await db.query("SELECT pg_notify($1, $2)", cancelNotice(runId, null));
      const { data } = await entryOfRun({ logs, notifications }, runId);
      const { name } = errorIn(data);
      if (name !== "CancelledError") throw new ActionError("RUN_NOT_CANCELLABLE");
    },

    /**
     * Accepts the run of a request to an HTTP trigger. Its row is written when this resolves.
     * @param isAwaited true if the caller waits for the outcome
     */
    async accept(asked: AskedRun, isAwaited: boolean, gone?: RunRequest["gone"]): Promise<OnDemandRun> {
      const started = await (isAwaited ? startAwaited(asked) : start(asked));
      const { id, isRepeated = false } = started;
      return { id, isRepeated, outcome: () => outcomeOf(started, asked, gone) };
    },

    /** Starts a run that was found to be startable already. */
    async submit(run: NewRun): Promise<{ runId: number }> {
      const traceparent = traces.current();
      const accept: Accept = async (by, executor) => {
        const { waitsFor = null } = run;
        if (by !== null && waitsFor !== null) return null;
        const { id, repeated } = await ledger.accept(run, by, executor);
        if (by === null) return { id, run: null, waitsFor };
        const facts = { replayOf: null, versionId: null, startedAt: new Date(), traceparent };
        return { id, run: repeated ? null : { ...facts, ...run, id } };
      };
      const slot = dispatcher.slotFor(run.appId, null);
      const { id } = slot ? await startIn(slot, run, accept) : await queue(run, accept);
      return { runId: id };
    },

    settleOrphans: () => dispatcher.settleOrphans(),
    expectQueued: (appId: number) => dispatcher.expectQueued(appId),
    look: () => dispatcher.look(),
    places: () => dispatcher.usage(),
    lookForAwaited: () => dispatcher.lookForAwaited(),
    abandonTaken: () => dispatcher.abandonTaken(),

    /**
     * Stops taking runs and lets those under way finish until `impatience` aborts. Then callers that wait for runs of other processes are
     * refused, unless another runner is alive to perform them.
     */
    async drain(impatience: AbortSignal): Promise<void> {
      await dispatcher.drain(impatience);
      const isAlone = await ledger.isOnlyRunner(holder).catch(() => true);
      if (isAlone) stopping.abort(stoppingError());
    },
  };
}
