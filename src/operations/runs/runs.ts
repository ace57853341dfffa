/** The verbs of running: run, runWithResult, cancel, and the taking of queued runs. Knows places and holders, not pages. */
import type { DataSource } from "typeorm";
import type { Notifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import { CHAIN_DEPTH_MAX, JSON_MAX_DEPTH, OVERLOADED_RETRY_SECONDS } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { nestsDeeperThan } from "../../rules/described.js";
import { memberText } from "../../rules/json-scan.js";
import { JsonText } from "../../rules/json-text.js";
import type { LogEntry, Logs, RunOutcome, ScriptError } from "../records/execution-logs.js";
import type { Intake } from "../records/intake.js";
import { entryOfRun } from "../records/log-wait.js";
import type { QueueRoom } from "../records/queue-room.js";
import { cancelledEnding, type Execution } from "./execution.js";
import type { HeldRun, Ledger, NewRun } from "./ledger.js";
import { createOrphans, type Settlement } from "./orphans.js";
import { createPlaces, type Place } from "./places.js";
import { findTarget } from "./targets.js";

/** Channel of the notice that the run of that id is to be cancelled, whoever holds it. */
export const CANCEL_CHANNEL = "svc_cancel";

/** Channel of the notice `parent:child` that the run `parent`, wherever it is performed, waits for the queued run `child`. */
export const AWAITED_CHANNEL = "svc_awaited";

/** A request to run on demand. */
export interface RunRequest {
  appId: number;
  nameOrId: string | number;
  /** The payload object; undefined stands for `{}`. */
  payload: unknown;
  idempotencyKey: string | null;
}

/** A run that this process performs. */
interface UnderWay {
  controller: AbortController;
  done: Promise<RunOutcome>;
  place: Place;
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

function outcomeIn({ type, data }: LogEntry): RunOutcome {
  return type === "app.task.completed"
    ? { ok: true, data: memberText(memberText(data.text, "result") ?? "", "data") }
    : { ok: false, error: errorIn(data) };
}

export type Runs = ReturnType<typeof createRuns>;

export function createRuns(options: {
  db: DataSource;
  ledger: Ledger;
  queueRoom: QueueRoom;
  intake: Intake;
  logs: Logs;
  execution: Execution;
  notifications: Notifications;
  /** The fence of this process. */
  holder: string;
  /** How many runs this process performs at once while few apps run; 0 where it is no runner. */
  concurrency: number;
}) {
  const { db, ledger, queueRoom, intake, logs, execution, notifications, holder, concurrency } = options;
  const places = createPlaces(concurrency, () => {
    // What is not begun here is found by the next look.
    if (behind) takeTurns().catch(() => undefined);
    takeAwaited();
  });
  const underWay = new Map<number, UnderWay>();
  const orphans = createOrphans({ ledger, holder, underWay });
  /** Of runs under way, the queued runs that they wait for. */
  const awaited = new Map<number, Set<number>>();
  /** Set once this process takes no more; its abort ends what still runs. */
  let stopping: AbortSignal | null = null;
  /** A run may be queued that nothing will wake this process for: no place was free, or its app had its share. */
  let behind = false;
  let turns: Promise<void> | null = null;
  let asked = false;

  notifications.listen(CANCEL_CHANNEL, (id) => underWay.get(Number(id))?.controller.abort("cancelled"));
  notifications.listen(AWAITED_CHANNEL, (notice) => {
    const [parent, child] = notice.split(":").map(Number) as [number, number];
    expectRun(parent, child);
  });

  function perform(run: HeldRun, place: Place): Promise<RunOutcome> {
    const controller = new AbortController();
    if (stopping?.aborted) controller.abort("shutdown");
    const executed = execution.execute(run, holder, controller.signal).catch((error: unknown) => {
      orphans.unwritten(run.id);
      throw error;
    });
    const done = executed.finally(() => {
      underWay.delete(run.id);
      awaited.delete(run.id);
      place.free();
    });
    done.catch(() => undefined);
    underWay.set(run.id, { controller, done, place });
    return done;
  }

  /** Starts the queued run whose turn it is. @returns false when no place is free, or nobody who waits may have it */
  async function takeTurn(): Promise<boolean> {
    const open = stopping ? null : places.open();
    if (!open) {
      behind = true;
      return false;
    }
    const begin = (run: HeldRun | null) => {
      if (run) void perform(run, open.give(run.appId));
      else {
        open.free();
        behind = places.somebodyHasShare();
      }
      return run !== null;
    };
    return orphans.taking(ledger.claim(holder, places.taken(), open.share), begin).catch((error: unknown) => {
      open.free();
      throw error;
    });
  }

  /** One claim at a time: the next one knows what the last one took. Who asks meanwhile has the ledger looked at once more. */
  function takeTurns(): Promise<void> {
    const all = async () => {
      try {
        while (asked) {
          asked = false;
          while (await takeTurn());
        }
      } finally {
        // At once: who asks from now on begins anew.
        turns = null;
      }
    };
    asked = true;
    turns ??= all();
    return turns;
  }

  /** A run under way waits for that queued run. */
  function expectRun(parent: number, child: number): void {
    if (!underWay.has(parent)) return;
    awaited.set(parent, (awaited.get(parent) ?? new Set()).add(child));
    takeAwaited();
  }

  /** Starts runs that runs under way wait for, beside those: else both might wait for ever. */
  function takeAwaited(): void {
    if (stopping) return;
    for (const [parent, children] of awaited) {
      const place = places.beside(underWay.get(parent)!.place);
      if (!place) continue;
      const [child] = children;
      children.delete(child!);
      if (children.size === 0) awaited.delete(parent);
      // Another process may have taken it, or its caller cancelled it.
      const claimed = ledger.claimOne(holder, child!).catch(() => null);
      void orphans.taking(claimed, (run) => (run ? void perform(run, place) : place.free()));
    }
  }

  /** Where the run may start at once: a free place, or one beside the run that waits for it. */
  function placeFor({ appId }: NewRun, parent: UnderWay | undefined): Place | null {
    if (stopping) return null;
    return places.take(appId) ?? (parent ? places.beside(parent.place) : null);
  }

  async function queue(run: NewRun, awaitedBy: number | null): Promise<{ id: number }> {
    if (!(await queueRoom.take(run.appId))) {
      const retryAfter = OVERLOADED_RETRY_SECONDS;
      throw new ActionError("OVERLOADED", `too many runs wait already; try again in ${retryAfter} s`, { retryAfter });
    }
    const { id } = await ledger.accept(run, null);
    if (awaitedBy === null) return { id };
    if (underWay.has(awaitedBy)) expectRun(awaitedBy, id);
    else await db.query(`SELECT pg_notify('${AWAITED_CHANNEL}', $1)`, [`${awaitedBy}:${id}`]);
    return { id };
  }

  /** Writes the run, and starts it here when there is a place. `done` is there only in that case. */
  async function start(run: NewRun, awaited = false): Promise<{ id: number; done?: Promise<RunOutcome> }> {
    const awaitedBy = awaited ? (run.causeRunId ?? null) : null;
    const place = placeFor(run, awaitedBy === null ? undefined : underWay.get(awaitedBy));
    if (!place) return queue(run, awaitedBy);
    try {
      return await orphans.taking(ledger.accept(run, holder), ({ id, repeated }) => {
        const accepted: HeldRun = { replayOf: null, versionId: null, ...run, id, startedAt: new Date() };
        if (!repeated) return { id, done: perform(accepted, place) };
        place.free();
        return { id };
      });
    } catch (error) {
      place.free();
      throw error;
    }
  }

  /** The run that is asked for, if it may be. */
  async function judged(caller: Caller, request: RunRequest): Promise<NewRun> {
    const { appId, nameOrId, idempotencyKey } = request;
    const payload = payloadText(request.payload);
    const { id: actionId, ...code } = await findTarget(db, appId, caller.copy, nameOrId);
    const { copy, personId, credentialId, runId: causeRunId } = caller;
    intake.takePayload(caller, appId, Buffer.byteLength(payload));
    if (causeRunId !== null && (await ledger.depthOf(causeRunId)) >= CHAIN_DEPTH_MAX) {
      throw new ActionError(
        "EXECUTION_FAILED",
        `recursion: runs that cause runs are more than ${CHAIN_DEPTH_MAX} deep`,
      );
    }
    const asked = { appId, actionId, copy, trigger: "manual" as const, payload, personId, credentialId };
    return { ...asked, code, idempotencyKey, causeRunId };
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
      const { id } = await start(await judged(caller, request));
      return { runId: id };
    },

    /**
     * Runs and answers with exactly what `execute` returned (specification, `runWithResult`).
     * @throws EXECUTION_FAILED with the script's message, and all that `run` throws
     */
    async runWithResult(caller: Caller, request: RunRequest): Promise<{ runId: number; result: JsonText | undefined }> {
      const { id: runId, done } = await start(await judged(caller, request), true);
      const outcome = done ? await done : outcomeIn(await entryOfRun({ logs, notifications }, runId));
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

    /** Settles runs that this process holds and does not perform. To be called from time to time. */
    settleOrphans: (): Promise<Settlement> => orphans.settle(),

    /**
     * Starts queued runs, each in its turn, while places are free; waits for the first such place. Resolves when no more can be had:
     * what is left is looked at again whenever a run ends. To be called whenever runs were queued, and from time to time.
     */
    async takeQueued(): Promise<void> {
      await places.vacancy();
      // What is not begun here is found by the next look.
      await takeTurns().catch(() => undefined);
    },

    /**
     * Begins queued runs while places are free, whether or not anything woke this process for them. Answers how long the longest
     * waits, in milliseconds, of those that it could take and did not: above a few seconds something is wrong.
     * @throws what the database throws
     */
    async look(): Promise<number> {
      if (stopping) return 0;
      await takeTurns();
      return places.free() > 0 ? ledger.longestWait(places.taken(), places.share()) : 0;
    },

    /** The places of this process, and how many are free. */
    places: (): { total: number; free: number } => ({ total: places.total, free: places.free() }),

    /** Looks for runs that those under way may wait for, whose notice was lost: to be called from time to time. */
    async lookForAwaited(): Promise<void> {
      if (stopping || underWay.size === 0) return;
      for (const { id, causeRunId } of await ledger.queuedBy([...underWay.keys()])) expectRun(causeRunId, id);
    },

    /** Aborts what this process holds: it cannot be sure any longer that the runs are its own. */
    abandon(): void {
      for (const { controller } of underWay.values()) controller.abort("lost");
    },

    /** Takes no more, lets what runs end, and aborts what is left when `impatience` aborts. */
    async drain(impatience: AbortSignal): Promise<void> {
      stopping = impatience;
      const abort = () => {
        for (const { controller } of underWay.values()) controller.abort("shutdown");
      };
      impatience.addEventListener("abort", abort);
      if (impatience.aborted) abort();
      // Places, not held runs: one may be between its row and its page.
      await places.empty();
      impatience.removeEventListener("abort", abort);
    },
  };
}
