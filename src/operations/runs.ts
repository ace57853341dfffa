/** The verbs of running: run, runWithResult, cancel, and the taking of queued runs. Knows slots and holders, not pages. */
import type { DataSource } from "typeorm";
import type { Notifications } from "../engine/notifications.js";
import { ActionError } from "../errors.js";
import { JSON_MAX_DEPTH, OVERLOADED_RETRY_SECONDS } from "../limits.js";
import type { Caller } from "../rules/access.js";
import { nestsDeeperThan } from "../rules/described.js";
import { cancelledEnding, type Execution, type RunOutcome } from "./execution.js";
import type { HeldRun, Ledger, NewRun } from "./ledger.js";
import { LOG_CHANNEL, type LogEntry, type Logs, type ScriptError } from "./logs.js";
import { findTarget } from "./targets.js";

/** Channel of the notice that the run of that id is to be cancelled, whoever holds it. */
export const CANCEL_CHANNEL = "svc_cancel";

/** How often a waiting caller looks in the table, should a notice be lost. */
const LOOK_MS = 1_000;

/** A request to run on demand. */
export interface RunRequest {
  appId: number;
  nameOrId: string | number;
  /** The payload object; undefined stands for `{}`. */
  payload: unknown;
  idempotencyKey: string | null;
}

type Settled = { ok: true; data: unknown } | { ok: false; error: ScriptError };

interface Held {
  appId: number;
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

const parsed = (outcome: RunOutcome): Settled => (outcome.ok ? { ok: true, data: outcome.value } : outcome);

function settledAs({ type, data }: LogEntry): Settled {
  return type === "app.task.completed"
    ? { ok: true, data: (data["result"] as { data?: unknown } | undefined)?.data }
    : { ok: false, error: data["error"] as ScriptError };
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
  /** One app leaves a place for others, so that its long runs do not keep them out. */
  const share = Math.max(1, slots - 1);
  const held = new Map<number, Held>();
  const waiting: (() => void)[] = [];
  let taken = 0;
  let emptied = () => {};
  /** Set once this process takes no more; its abort ends what still runs. */
  let stopping: AbortSignal | null = null;
  /** A run may be queued that no job will wake this process for: its app had its share when the job came. */
  let behind = false;

  notifications.listen(CANCEL_CHANNEL, (id) => held.get(Number(id))?.controller.abort("cancelled"));

  // A freed slot goes to the next in line without being free in between.
  function free(): void {
    const next = waiting.shift();
    if (next) next();
    else taken -= 1;
    if (taken === 0) emptied();
  }

  async function slot(): Promise<void> {
    if (taken < slots) taken += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
  }

  const runsOf = (appId: number) => [...held.values()].filter((one) => one.appId === appId).length;

  /** A free slot that nobody in the queue waits for, and the app below its share. */
  function mayStartHere(appId: number): boolean {
    return !stopping && taken < slots && waiting.length === 0 && runsOf(appId) < share;
  }

  /** Performs the queued run whose turn it is, in a slot that is taken already; frees the slot when there is none. */
  async function performNext(): Promise<void> {
    const run = stopping ? null : await ledger.claim(holder, share).catch(() => null);
    if (run) return void (await perform(run).catch(() => undefined));
    behind = [...held.values()].some(({ appId }) => runsOf(appId) >= share);
    free();
  }

  /** Performs a run in a slot that is taken already. */
  function perform(run: HeldRun): Promise<RunOutcome> {
    const controller = new AbortController();
    if (stopping?.aborted) controller.abort("shutdown");
    const done = execution.perform(run, holder, controller.signal).finally(() => {
      held.delete(run.id);
      free();
      if (behind && taken < slots) {
        taken += 1;
        void performNext();
      }
    });
    done.catch(() => undefined);
    held.set(run.id, { appId: run.appId, controller, done });
    return done;
  }

  /** Writes the run, and starts it here when a slot is free. `done` is there only in that case. */
  async function start(run: NewRun): Promise<{ id: number; done?: Promise<RunOutcome> }> {
    if (!mayStartHere(run.appId)) {
      if (await ledger.isFull(run.appId)) {
        const seconds = OVERLOADED_RETRY_SECONDS;
        throw new ActionError("OVERLOADED", `too many runs wait already; try again in ${seconds} s`, {
          retryAfter: seconds,
        });
      }
      return ledger.accept(run, null);
    }
    taken += 1;
    try {
      const { id, repeated } = await ledger.accept(run, holder);
      if (!repeated)
        return { id, done: perform({ replayOf: null, versionId: null, ...run, id, startedAt: new Date() }) };
      free();
      return { id };
    } catch (error) {
      free();
      throw error;
    }
  }

  async function accept(caller: Caller, request: RunRequest): ReturnType<typeof start> {
    const { appId, nameOrId, idempotencyKey } = request;
    const payload = payloadText(request.payload);
    const { id: actionId } = await findTarget(db, appId, caller.copy, nameOrId);
    const { copy, personId, credentialId } = caller;
    const asked = { appId, actionId, copy, trigger: "manual" as const, payload, personId, credentialId };
    return start({ ...asked, idempotencyKey, causeRunId: caller.runId });
  }

  /** Waits for the run's one log entry, by notice or by looking. */
  async function entryOf(runId: number): Promise<LogEntry> {
    return new Promise((resolve, reject) => {
      const look = () =>
        logs.ofRun(runId).then((entry) => {
          if (!entry) return;
          leave();
          resolve(entry);
        }, fail);
      const unlisten = notifications.listen(LOG_CHANNEL, (notice) => {
        if (notice.endsWith(`:${runId}`)) void look();
      });
      const timer = setInterval(look, LOOK_MS);
      function leave(): void {
        unlisten();
        clearInterval(timer);
      }
      function fail(error: unknown): void {
        leave();
        reject(error);
      }
      void look();
    });
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
      const { id } = await accept(caller, request);
      return { runId: id };
    },

    /**
     * Runs and answers with exactly what `execute` returned (specification, `runWithResult`).
     * @throws EXECUTION_FAILED with the script's message, and all that `run` throws
     */
    async runWithResult(caller: Caller, request: RunRequest): Promise<{ runId: number; result: unknown }> {
      const { id: runId, done } = await accept(caller, request);
      const settled = done ? parsed(await done) : settledAs(await entryOf(runId));
      if (settled.ok) return { runId, result: settled.data };
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
      const { data } = await entryOf(runId);
      const { name } = (data["error"] ?? {}) as Partial<ScriptError>;
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
      await slot();
      await performNext();
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
      // Slots, not held runs: one may be between its row and its page.
      if (taken > 0) await new Promise<void>((resolve) => (emptied = resolve));
      impatience.removeEventListener("abort", abort);
    },
  };
}
