/** One held run from its row to its end: loads what it needs, performs it in a page, keeps secrets in, ends it in the ledger. Knows no caller. */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import { isRefusedData, preparedRows, rows } from "../../data/database.js";
import { hasNetwork, type Mode, type PageOutcome, type PageRun } from "../../engine/browser/run.js";
import type { ServiceRequests } from "../../engine/service-requests.js";
import { ActionError } from "../../errors.js";
import type { ActionInput } from "../../rules/action-input.js";
import { entryData, type RunOutcome } from "../records/execution-logs.js";
import type { RequestRecord, Requests } from "../requests/run-requests.js";
import type { Measures, RunOutcomeLabel } from "../watch/measures.js";
import type { Printer, RunConsole } from "./console.js";
import type { Ending } from "./endings.js";
import type { Ledger } from "./ledger.js";
import { throughOutage } from "./outage.js";
import { createOutgoingWay } from "./outgoing-way.js";
import { completed, failed } from "./results.js";
import type { HeldRun, RunCode } from "./run-facts.js";
import type { RunScripts } from "./run-scripts.js";
import type { RunTrace, RunTraces } from "./run-traces.js";
import { CHANGED_TOO_OFTEN, type RunExit, type RunSecrecy, type Secrecy } from "./secrecy.js";
import { placesInSource } from "./source-places.js";

const LOAD_ACTION = `SELECT name, code, environment, dependencies, assets, timeout_ms AS "timeoutMs",
          integration_origins AS "integrationOrigins", source->>'map' AS map FROM action WHERE id = $1`;
/* Taken apart here and not by PostgreSQL, whose ->> refuses JSON that holds \u0000 anywhere. */
const LOAD_VERSION = "SELECT data FROM action_version WHERE id = $1";

/** An end that was outdated so often, each time it had been judged, says nothing of what the run came to. */
const OUTDATED_MAX = 20;
/** The ledger is asked again after this when it was out of reach as a run ended. */
const LEDGER_RETRY_MS = 500;

const EMPTY = "{}";

/** Time limit of a run in milliseconds: the smaller of the action's own and the service's. */
const timeLimitOf = ({ timeoutMs }: RunCode, serviceMs: number): number => Math.min(serviceMs, timeoutMs ?? serviceMs);

/** A run's end as the ledger keeps it; `durationMs` is wall time. `payload`: what the entry says instead of the run's own. */
function endingOf(
  run: HeldRun,
  outcome: RunOutcome,
  durationMs: number,
  // A payload of nothing is shorter than where to find it.
  {
    state,
    payload = run.payload === EMPTY ? EMPTY : null,
  }: { state?: Ending["state"]; payload?: string | null | undefined } = {},
): Ending {
  const { trigger, actionId: taskId, replayOf } = run;
  return {
    state: state ?? (outcome.ok ? "completed" : "failed"),
    type: outcome.ok ? "app.task.completed" : "app.task.failed",
    data: entryData({ trigger, runOn: "server", taskId, payload, durationMs, replayOf, outcome }),
  };
}

const LOST = failed("RunLostError", "the process that ran this action died before the action ended");
const HELD_UP = failed(
  "ConcurrencyError",
  "the run waited, by its action's concurrency, for the run that waited for it",
);
const UNSTORABLE = failed("ResultError", "what the action returned or threw cannot be stored");
const STOPPED = failed("ShutdownError", "the service was stopped before the action ended");

/** The end of a run whose holder died. */
export const lostEnding = (run: HeldRun): Ending =>
  endingOf(run, LOST, run.startedAt ? Date.now() - run.startedAt.getTime() : 0);

/** Why a run is to end early: somebody cancelled it, or it makes way for another. */
export class Cancellation {
  constructor(readonly displacedBy: number | null) {}
}

/** Outcomes of cancelled runs: a script may throw an error of the same name. */
const cancellations = new WeakSet<RunOutcome>();

/** By whomever: nothing in it is the author's. */
const isCancelled = (outcome: RunOutcome): boolean => outcome === STOPPED || cancellations.has(outcome);

function cancelled(displacedBy: number | null): RunOutcome {
  const why = displacedBy === null ? "" : `: by its action's concurrency it made way for run ${displacedBy}`;
  const outcome = failed("CancelledError", `the run was cancelled${why}`);
  cancellations.add(outcome);
  return outcome;
}

/** The end of a run that was cancelled before it started. */
export const cancelledEnding = (run: HeldRun): Ending => endingOf(run, cancelled(null), 0, { state: "cancelled" });

/** The end of a run that made way for another before it started. */
export const displacedEnding = (run: HeldRun, by: number): Ending =>
  endingOf(run, cancelled(by), 0, { state: "cancelled" });

/** The end of a run that would have waited for the one that waits for it. */
export const heldUpEnding = (run: HeldRun): Ending => endingOf(run, HELD_UP, 0);

/** The outcome, unless it would carry a secret out (contract, section 6). */
async function judged(outcome: RunOutcome, cut: boolean, exit: RunExit): Promise<RunOutcome> {
  const judgement = outcome.ok
    ? outcome.data !== undefined && (await exit.judgeResult(outcome.data))
    : await exit.judgeError(
        [outcome.error.name, outcome.error.message, outcome.error.stack].map((text) => ({ text, cut })),
      );
  return judgement ? failed(judgement.error.name, judgement.error.message) : outcome;
}

/** Blocked addresses that the console tells of, a line each: a run can ask for hundreds in a second. */
const BLOCKED_LINES_MAX = 100;

/** Lets an address pass unless it would carry a secret out: then the console names the key (contract, section 6). */
function judgeOf(secrecy: RunSecrecy, { print }: Printer, signal: AbortSignal): (url: string) => Promise<boolean> {
  let blocked = 0;
  return async (url) => {
    const key = await throughOutage(signal, () => secrecy.findInUrl(url));
    if (key !== null && blocked < BLOCKED_LINES_MAX) {
      blocked += 1;
      const text = `A request was blocked: its URL holds the value of the setting ${key}`;
      print({ level: "error", at: Date.now(), text });
    }
    return key === null;
  };
}

/** What a run leaves to its log entry beside its outcome. */
interface EntryDetails {
  hosts: Set<string>;
  /** JSON text of the payload as it may be told; undefined for the run's own. */
  payload: string | undefined;
  /** null until code is evaluated. */
  mode: Mode | null;
  /** `performance.now()` of its beginning. */
  begunAt: number;
  durationMs: number;
  trace: RunTrace;
  /** To other services. */
  requests: readonly RequestRecord[];
}

/** An outcome as the figures have it. */
function labelOf(outcome: RunOutcome): RunOutcomeLabel {
  if (outcome.ok) return "completed";
  if (isCancelled(outcome)) return "cancelled";
  return outcome.timedOut ? "timeout" : "failed";
}

/** What became of a page, in the words of a log entry. */
async function outcomeOf(outcome: PageOutcome, signal: AbortSignal): Promise<RunOutcome> {
  if (outcome.ok) return completed(outcome.data);
  const { reason } = signal;
  if (outcome.cause === "cancelled") return reason instanceof Cancellation ? cancelled(reason.displacedBy) : STOPPED;
  const { name, message, stack } = outcome.error;
  const error = { name, message, stack };
  return outcome.cause === "timeout" ? { ok: false, error, timedOut: true } : { ok: false, error };
}

/** Takes the mark off the result of `Svc.App.V3.Actions.response`: `{"mark":options}` becomes the options. */
function unmarked(outcome: RunOutcome, mark: string | null): RunOutcome {
  const start = `{${JSON.stringify(mark)}:`;
  if (mark === null || !outcome.ok || !outcome.data?.startsWith(start)) return outcome;
  return { ok: true, data: outcome.data.slice(start.length, -1), isResponse: true };
}

/** What a run came to. `kept`: by what is judged how much of it may leave; null where it holds no word of the author's. */
interface Result {
  outcome: RunOutcome;
  /** The end of an error's text was cut off. */
  cut: boolean;
  kept: RunSecrecy | null;
}

const ours = (outcome: RunOutcome): Result => ({ outcome, cut: false, kept: null });

const changedPayload = (run: HeldRun, masked: string): string | undefined =>
  masked === run.payload ? undefined : masked;

export type Execution = ReturnType<typeof createExecution>;

export function createExecution(options: {
  db: DataSource;
  ledger: Ledger;
  runPage: (request: PageRun) => Promise<PageOutcome>;
  secrecy: Secrecy;
  scripts: RunScripts;
  console: RunConsole;
  timeoutMs: number;
  measures: Pick<Measures, "runEnded" | "requestEnded">;
  traces: Pick<RunTraces, "begin">;
  serviceRequests: ServiceRequests;
  requests: Requests;
  log: Logger;
}) {
  const {
    db,
    ledger,
    runPage,
    secrecy,
    scripts,
    console,
    timeoutMs,
    measures,
    traces,
    serviceRequests,
    requests,
    log,
  } = options;
  const outgoing = createOutgoingWay({ db, requests, measures });

  /** The library's way past the browser's network, for a page of that origin. */
  const serviceWay = (origin: string): Pick<PageRun, "service"> =>
    serviceRequests === null
      ? {}
      : {
          service: {
            base: serviceRequests.base,
            send: (request, signal) => serviceRequests.send(request, origin, signal),
          },
        };

  async function load({ actionId, versionId, code }: HeldRun): Promise<RunCode | undefined> {
    if (code) return code;
    if (versionId === null) return (await preparedRows<RunCode>(db, "load-action", LOAD_ACTION, [actionId]))[0];
    const [version] = await rows<{ data: RunCode & Pick<ActionInput, "source"> }>(db, LOAD_VERSION, [versionId]);
    return version && { ...version.data, map: version.data.source?.map ?? null };
  }

  /** What is left to do once a run has its outcome: a failure here is logged, and changes nothing. The token dies by its expiry then. */
  async function afterwards({ id: runId }: HeldRun, what: string, step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      log.warn({ err: error, runId, failed: what }, "something after the end of a run failed");
    }
  }

  async function evaluate(run: HeldRun, signal: AbortSignal, details: EntryDetails): Promise<Result> {
    const [action, kept] = await throughOutage(signal, () =>
      Promise.all([load(run), secrecy.begin(run.appId, run.secretsVersion)]),
    ).catch((error: unknown) => {
      // The payload has not been searched for secrets.
      details.payload = EMPTY;
      throw error;
    });
    if (!action) return ours(failed("ActionNotFoundError", "the action was removed before it ran"));
    details.payload = changedPayload(run, await kept.maskPayload(run.payload));
    const settings = kept.contextSettings(action.environment);
    const limitMs = timeLimitOf(action, timeoutMs);
    const prepared = await throughOutage(signal, () => scripts.prepare(run, action, limitMs));
    const { packages, hasToken, sendsRequests, responseMark, revoke } = prepared;
    const printer = console.printer(run.id, kept.mask);
    const sourceName = `${action.name}.js`;
    const inSource = placesInSource(sourceName, action.map ?? null);
    const origin = `https://app-${run.appId}.actions.internal`;
    // Judging costs: a run of an app without secrets that reads no settings itself is spared it.
    const isJudged = kept.needed || hasToken;
    const page: PageRun = {
      isolationKey: `${run.appId}:${run.copy}`,
      origin,
      source: action.code,
      sourceName,
      packages,
      payload: run.payload,
      settings,
      timeoutMs: limitMs,
      signal,
      onMode: (mode) => {
        details.mode = mode;
        if (!hasNetwork(mode)) kept.cutOff();
      },
      onConsole: (line) => printer.print({ ...line, text: inSource(line.text) }),
      onHost: (host) => details.hosts.add(host),
      ...(isJudged && { mayRequest: judgeOf(kept, printer, signal) }),
      ...(hasToken && serviceWay(origin)),
      ...(sendsRequests && outgoing.begin({ run, action, kept, printer, details })),
    };
    let came: PageOutcome;
    try {
      came = await details.trace.page(runPage, page);
    } finally {
      await Promise.all([
        afterwards(run, "end its token", revoke),
        afterwards(run, "keep its console", printer.finish),
      ]);
    }
    if (!came.ok) came.error.stack = inSource(came.error.stack);
    const outcome = unmarked(await outcomeOf(came, signal), responseMark);
    if (isCancelled(outcome)) return ours(outcome);
    return { outcome, cut: !came.ok && came.error.cut === true, kept };
  }

  function failureOf(run: HeldRun, error: unknown): RunOutcome {
    if (error instanceof ActionError) return failed("Error", error.message);
    log.error({ err: error, runId: run.id }, "a run could not be performed");
    return failed("InternalError", "the service could not run this action");
  }

  /** Writes the end of what may leave of it. @returns what that is; null where the app's secrets have changed, and it is to be judged anew */
  async function endOnce(
    run: HeldRun,
    holder: string,
    result: Result,
    details: EntryDetails,
  ): Promise<RunOutcome | null> {
    const { cut, kept } = result;
    const exit = kept?.exit();
    const outcome = exit ? await judged(result.outcome, cut, exit) : result.outcome;
    const state = cancellations.has(outcome) ? "cancelled" : undefined;
    if (exit) details.payload = changedPayload(run, await exit.maskPayload(run.payload));
    const ending = endingOf(run, outcome, details.durationMs, { state, payload: details.payload });
    const secretsVersion = exit?.version ?? null;
    if (
      await ledger.end(run.id, holder, { ...ending, hosts: [...details.hosts], secretsVersion, sandbox: details.mode })
    )
      return outcome;
    if (exit && (await kept?.outdated(exit))) return null;
    log.warn({ runId: run.id }, "a run had been taken away before it ended here");
    return outcome;
  }

  /**
   * The same, however long the database is away: until then the run counts as running. An end that the database refuses to store
   * becomes a failure that says so.
   */
  async function end(
    run: HeldRun,
    holder: string,
    result: Result,
    details: EntryDetails,
    signal: AbortSignal,
  ): Promise<RunOutcome> {
    let outdated = 0;
    for (let next = result; ; ) {
      try {
        const outcome = await endOnce(run, holder, next, details);
        if (outcome) return outcome;
        outdated += 1;
        if (outdated === OUTDATED_MAX) next = ours(failed("Error", CHANGED_TOO_OFTEN));
      } catch (error) {
        if (error instanceof ActionError) {
          next = ours(failureOf(run, error));
          continue;
        }
        log.warn({ err: error, runId: run.id }, "the end of a run could not be written");
        if (!db.isInitialized || signal.reason === "lost" || signal.reason === "shutdown") throw error;
        if (isRefusedData(error) && next.outcome !== UNSTORABLE) {
          next = ours(UNSTORABLE);
          details.payload = EMPTY;
        } else await delay(LEDGER_RETRY_MS);
      }
    }
  }

  return {
    /**
     * Performs a run that `holder` holds, and ends it. Never rejects for what the script did; rejects when the ledger is out of
     * reach and the run given up: whoever finds its lapsed lease ends it.
     */
    async execute(run: HeldRun, holder: string, signal: AbortSignal): Promise<RunOutcome> {
      const trace = await traces.begin(run);
      const details: EntryDetails = {
        hosts: new Set(),
        payload: undefined,
        mode: null,
        begunAt: performance.now(),
        durationMs: 0,
        trace,
        requests: [],
      };
      const result = await evaluate(run, signal, details).catch((error: unknown) => ours(failureOf(run, error)));
      details.durationMs = performance.now() - details.begunAt;
      await afterwards(run, "keep its requests", () => outgoing.keep(run, details));
      const tell = (outcome: RunOutcome) => {
        const { appId, trigger } = run;
        const ended = { mode: details.mode ?? ("none" as const), outcome: labelOf(outcome) };
        measures.runEnded({ appId, trigger, ...ended, durationMs: details.durationMs });
        trace.end(ended);
      };
      try {
        const outcome = await end(run, holder, result, details, signal);
        tell(outcome);
        return outcome;
      } catch (error) {
        tell(result.outcome);
        throw error;
      }
    },
  };
}
