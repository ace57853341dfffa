/** The verbs of running: run, runWithResult, cancel, and the taking of queued runs. Knows slots and holders, not pages. */
import type { DataSource } from "typeorm";
import type { Notifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import { CHAIN_DEPTH_MAX, JSON_MAX_DEPTH, OVERLOADED_RETRY_SECONDS } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { nestsDeeperThan } from "../../rules/described.js";
import { memberText } from "../../rules/json-scan.js";
import { JsonText } from "../../rules/json-text.js";
import { entryOfRun } from "../logs/log-wait.js";
import type { LogEntry, Logs, ScriptError } from "../logs/logs.js";
import { cancelledEnding, type Execution, type RunOutcome } from "./execution.js";
import type { HeldRun, Ledger, NewRun } from "./ledger.js";
import { createPlaces, type Place } from "./places.js";
import { findTarget } from "./targets.js";

/** Channel of the notice that the run of that id is to be cancelled, whoever holds it. */
export const CANCEL_CHANNEL = "svc_cancel";

/** A request to run on demand. */
export interface RunRequest {
  appId: number;
  nameOrId: string | number;
  /** The payload object; undefined stands for `{}`. */
  payload: unknown;
  idempotencyKey: string | null;
}

/** As `RunOutcome`: `data` is JSON text, undefined for undefined. */
type Settled = { ok: true; data: string | undefined } | { ok: false; error: ScriptError };

interface Held {
  controller: AbortController;
  done: Promise<RunOutcome>;
}

function payloadText(payload: unknown): string {
  if (payload === undefined || payload === null) return "{}";
  if (nestsDeeperThan(payload, JSON_MAX_DEPTH)) {
    throw new ActionError("PAYLOAD_INVALID", `payload must not nest deeper than ${JSON_MAX_DEPTH} levels`);
  }
  if (typeof payload === "object" && !Array.isArray(payload)) return JSON.stringify(payload);
  const came = Array.isArray(payload) ? "an array" : `a ${typeof payload}`;
  throw new ActionError("PAYLOAD_INVALID", `payload must be a JSON object, ${came} came`);
}

const errorIn = (data: JsonText): ScriptError => JSON.parse(memberText(data.text, "error") ?? "{}") as ScriptError;

function settledAs({ type, data }: LogEntry): Settled {
  return type === "app.task.completed"
    ? { ok: true, data: memberText(memberText(data.text, "result") ?? "", "data") }
    : { ok: false, error: errorIn(data) };
}

export type Runs = ReturnType<typeof createRuns>;

export function createRuns(options: {
  db: DataSource;
  ledger: Ledger;
  logs: Logs;
  execution: Execution;
  notifications: Notifications;
  /** The fence of this process. */
  holder: string;
  /** How many runs this process performs at once; 0 where it is no runner. */
  slots: number;
}) {
  const { db, ledger, logs, execution, notifications, holder, slots } = options;
  const places = createPlaces(slots);
  const held = new Map<number, Held>();
  /** Set once this process takes no more; its abort ends what still runs. */
  let stopping: AbortSignal | null = null;
  /** A run may be queued that no job will wake this process for: its app had its share when the job came. */
  let behind = false;

  notifications.listen(CANCEL_CHANNEL, (id) => held.get(Number(id))?.controller.abort("cancelled"));

  function perform(run: HeldRun, place: Place): Promise<RunOutcome> {
    const controller = new AbortController();
    if (stopping?.aborted) controller.abort("shutdown");
    const done = execution.perform(run, holder, controller.signal).finally(() => {
      held.delete(run.id);
      place.free();
      const spare = behind ? places.spare() : null;
      if (spare) void performNext(spare);
    });
    done.catch(() => undefined);
    held.set(run.id, { controller, done });
    return done;
  }

  /** Begins the queued run whose turn it is; frees the place and answers null when there is none. */
  async function beginNext(place: Place): Promise<{ done: Promise<RunOutcome> } | null> {
    try {
      const run = stopping ? null : await ledger.claim(holder, places.share);
      if (run) {
        place.give(run.appId);
        return { done: perform(run, place) };
      }
      behind = places.somebodyHasShare();
    } catch (error) {
      place.free();
      throw error;
    }
    place.free();
    return null;
  }

  /** The same to its end, come what may: what is not begun here is found by the next look. */
  const performNext = (place: Place): Promise<unknown> =>
    beginNext(place)
      .then((begun) => begun?.done)
      .catch(() => undefined);

  /** Where the run may start at once: a free place, or beside the run that waits for it, which this process performs. */
  function placeFor({ appId, causeRunId }: NewRun, awaited: boolean): Place | null {
    if (stopping) return null;
    const waitedFor = awaited && causeRunId != null && held.has(causeRunId);
    return waitedFor ? places.extra(appId) : places.take(appId);
  }

  async function queue(run: NewRun): Promise<{ id: number }> {
    if (await ledger.isFull(run.appId)) {
      const retryAfter = OVERLOADED_RETRY_SECONDS;
      throw new ActionError("OVERLOADED", `too many runs wait already; try again in ${retryAfter} s`, { retryAfter });
    }
    return ledger.accept(run, null);
  }

  /** Writes the run, and starts it here when there is a place. `done` is there only in that case. */
  async function start(run: NewRun, awaited = false): Promise<{ id: number; done?: Promise<RunOutcome> }> {
    const place = placeFor(run, awaited);
    if (!place) return queue(run);
    try {
      const { id, repeated } = await ledger.accept(run, holder);
      if (!repeated) {
        const accepted: HeldRun = { replayOf: null, versionId: null, ...run, id, startedAt: new Date() };
        return { id, done: perform(accepted, place) };
      }
      place.free();
      return { id };
    } catch (error) {
      place.free();
      throw error;
    }
  }

  async function accept(caller: Caller, request: RunRequest, awaited: boolean): ReturnType<typeof start> {
    const { appId, nameOrId, idempotencyKey } = request;
    const payload = payloadText(request.payload);
    const { id: actionId, ...code } = await findTarget(db, appId, caller.copy, nameOrId);
    const { copy, personId, credentialId, runId: causeRunId } = caller;
    if (causeRunId !== null && (await ledger.depthOf(causeRunId)) >= CHAIN_DEPTH_MAX) {
      throw new ActionError(
        "EXECUTION_FAILED",
        `recursion: runs that cause runs are more than ${CHAIN_DEPTH_MAX} deep`,
      );
    }
    const asked = { appId, actionId, copy, trigger: "manual" as const, payload, personId, credentialId };
    return start({ ...asked, code, idempotencyKey, causeRunId }, awaited);
  }

  function mayCancel(caller: Caller, run: HeldRun | null): boolean {
    if (caller.kind === "editor" || caller.kind === "admin") return true;
    return (
      run !== null &&
      (run.credentialId === caller.credentialId || (run.personId !== null && run.personId === caller.personId))
    );
  }

  return {
    /** Accepts the run and answers at once (specification, `run`). */
    async run(caller: Caller, request: RunRequest): Promise<{ runId: number }> {
      const { id } = await accept(caller, request, false);
      return { runId: id };
    },

    /**
     * Runs and answers with exactly what `execute` returned (specification, `runWithResult`).
     * @throws EXECUTION_FAILED with the script's message, and all that `run` throws
     */
    async runWithResult(caller: Caller, request: RunRequest): Promise<{ runId: number; result: JsonText | undefined }> {
      const { id: runId, done } = await accept(caller, request, true);
      const settled: Settled = done ? await done : settledAs(await entryOfRun({ logs, notifications }, runId));
      if (settled.ok) return { runId, result: settled.data === undefined ? undefined : new JsonText(settled.data) };
      const { name, message } = settled.error;
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
      await db.query(`SELECT pg_notify('${CANCEL_CHANNEL}', $1)`, [String(runId)]);
      const { data } = await entryOfRun({ logs, notifications }, runId);
      const { name } = errorIn(data);
      if (name !== "CancelledError") throw new ActionError("RUN_NOT_CANCELLABLE");
    },

    /** Starts a run that was found to be startable already. */
    async submit(run: NewRun): Promise<{ runId: number }> {
      const { id } = await start(run);
      return { runId: id };
    },

    /** The runs that this process performs. */
    known: (): number[] => [...held.keys()],

    /**
     * Performs the queued run whose turn it is, when a slot is free: what the queue calls, once for each run that was queued.
     * What no call takes is woken again.
     */
    async take(): Promise<void> {
      await performNext(await places.next());
    },

    /**
     * Begins queued runs while places are free, whether or not anything woke this process for them. Answers how long the longest
     * waits, in milliseconds, of those that it could take and did not: above a few seconds something is wrong.
     * @throws what the database throws
     */
    async look(): Promise<number> {
      if (stopping) return 0;
      for (let place = places.spare(); place; place = places.spare()) {
        if (!(await beginNext(place))) return ledger.longestWait(holder, places.share);
      }
      return 0;
    },

    /** The places of this process, and how many are free. */
    places: (): { total: number; free: number } => ({ total: slots, free: places.free() }),

    /**
     * Performs queued runs that this process's own runs asked for in another process and may wait for, when no place is free: called
     * from time to time.
     */
    async takeCaused(): Promise<void> {
      while (!stopping && held.size >= places.share && places.extras() < slots * CHAIN_DEPTH_MAX) {
        const run = await ledger.claimCaused(holder);
        if (!run) return;
        void perform(run, places.extra(run.appId));
      }
    },

    /** Aborts what this process holds: it cannot be sure any longer that the runs are its own. */
    abandon(): void {
      for (const { controller } of held.values()) controller.abort("lost");
    },

    /** Takes no more, lets what runs end, and aborts what is left when `impatience` aborts. */
    async drain(impatience: AbortSignal): Promise<void> {
      stopping = impatience;
      const abort = () => {
        for (const { controller } of held.values()) controller.abort("shutdown");
      };
      impatience.addEventListener("abort", abort);
      if (impatience.aborted) abort();
      // Places, not held runs: one may be between its row and its page.
      await places.empty();
      impatience.removeEventListener("abort", abort);
    },
  };
}
