/** One held run from its row to its end: loads what it needs, performs it in a page, ends it in the ledger. Knows no caller. */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { ActionRow, Environment } from "../data/action.js";
import { rows } from "../data/database.js";
import { ActionError } from "../errors.js";
import type { Ending, HeldRun, Ledger } from "./ledger.js";
import { entryData, type ScriptError } from "./logs.js";

/** What a page is asked to run; `payload` and `settings` are JSON texts. */
export interface PageRequest {
  isolationKey: string;
  origin: string;
  source: string;
  packages: readonly { name: string; source: string }[];
  payload: string;
  settings: string;
  timeoutMs: number;
  signal: AbortSignal;
}

/** A script's failure is a value. `data` is the JSON text of what `execute` returned, undefined for undefined. */
export type PageOutcome = { ok: true; data: string | undefined } | { ok: false; error: ScriptError };

export type RunPage = (request: PageRequest) => Promise<PageOutcome>;

/** JSON text of what `context.settings` holds for an action of that environment. */
export type ReadRunSettings = (appId: number, environment: Environment) => Promise<string>;

type Loaded = Pick<ActionRow, "code" | "environment" | "dependencies">;

const failed = (name: string, message: string): PageOutcome => ({
  ok: false,
  error: { name, message, stack: `${name}: ${message}` },
});

/** A run's end as the ledger keeps it; `durationMs` is wall time. */
function endingOf(run: HeldRun, outcome: PageOutcome, durationMs: number, state?: Ending["state"]): Ending {
  const { trigger, actionId: taskId, payload } = run;
  return {
    state: state ?? (outcome.ok ? "completed" : "failed"),
    type: outcome.ok ? "app.task.completed" : "app.task.failed",
    data: entryData({ trigger, runOn: "server", taskId, payload, durationMs, outcome }),
  };
}

const LOST = failed("RunLostError", "the process that ran this action died before the action ended");
const CANCELLED = failed("CancelledError", "the run was cancelled");

/** The end of a run whose holder died. */
export const lostEnding = (run: HeldRun): Ending =>
  endingOf(run, LOST, run.startedAt ? Date.now() - run.startedAt.getTime() : 0);

/** The end of a run that was cancelled before it started. */
export const cancelledEnding = (run: HeldRun): Ending => endingOf(run, CANCELLED, 0, "cancelled");

export type Execution = ReturnType<typeof createExecution>;

export function createExecution(options: {
  db: DataSource;
  ledger: Ledger;
  runPage: RunPage;
  readSettings: ReadRunSettings;
  timeoutMs: number;
  log: Logger;
}) {
  const { db, ledger, runPage, readSettings, timeoutMs, log } = options;

  async function attempt(run: HeldRun, signal: AbortSignal): Promise<PageOutcome> {
    const [action] = await rows<Loaded>(db, "SELECT code, environment, dependencies FROM action WHERE id = $1", [
      run.actionId,
    ]);
    if (!action) return failed("ActionNotFoundError", "the action was removed before it ran");
    return runPage({
      isolationKey: `${run.appId}:${run.copy}`,
      origin: `https://app-${run.appId}.actions.internal`,
      source: action.code,
      packages: [],
      payload: run.payload,
      settings: await readSettings(run.appId, action.environment),
      timeoutMs,
      signal,
    });
  }

  return {
    /** Performs a run that `holder` holds, and ends it. Never rejects for what the script did; rejects when the ledger is out of reach. */
    async perform(run: HeldRun, holder: string, signal: AbortSignal): Promise<PageOutcome> {
      const begun = performance.now();
      const outcome = await attempt(run, signal).catch((error: unknown) => {
        if (error instanceof ActionError) return failed("Error", error.message);
        log.error({ err: error, runId: run.id }, "a run could not be performed");
        return failed("InternalError", "the service could not run this action");
      });
      const cancelled = !outcome.ok && signal.reason === "cancelled";
      const ending = endingOf(run, outcome, performance.now() - begun, cancelled ? "cancelled" : undefined);
      const kept = await ledger.end(run.id, holder, ending);
      if (!kept) log.warn({ runId: run.id }, "a run had been taken away before it ended here");
      return outcome;
    },
  };
}
