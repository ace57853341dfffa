/**
 * Trials save time: libraries name many globals that most runs never use. A run whose own code needs only the language
 * is first tried in an isolate, where other globals are replaced (in-page/stand-ins.ts). The replacements detect a use.
 * Nothing leaves the isolate until the trial has ended, so a run that needs more globals, time or memory can be
 * repeated in its own mode.
 */
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { type ConsoleLine, hasOverflowed, type Mode, type PageOutcome, type PageRun, type PageScript } from "./run.js";

/**
 * Maximum number of apps whose failed trials are remembered, each with its own entries. Entries expire, because the
 * machine may only have been busy.
 */
const REMEMBERED_APPS = 1_000;
const REMEMBERED_PER_APP = 100;
const REMEMBERED_MS = 600_000;
/** Outcomes of a trial after which the run is repeated. */
const NEEDS_MORE: readonly string[] = ["retry", "memory", "timeout"];

/** Time limit of a trial in milliseconds, and as a share of the run's own: a longer run would delay the others of its thread. */
const TRIAL_MAX_MS = 1_000;
const TRIAL_MAX_SHARE = 1 / 4;
/**
 * Maximum number of console lines that are held back during a trial. A run that prints more is repeated outside of a
 * trial, so that its lines can be followed live.
 */
const LINES_MAX = 500;

export type TrialOf = NonNullable<PageRun["trialOf"]>;

/** Identifies code and packages by their contents. */
function keyOf({ packages, source }: PageRun): string {
  const contents = packages.map((script) => ("content" in script && script.content) || script.name);
  return hash("sha256", [...contents, source].join("\n"));
}

const isTriable = (script: PageScript): boolean =>
  "source" in script && (script.mode === "isolate" || script.canBeTried === true);

/** Maximum length of the scripts in a trial of a document. They are searched for names (stored-texts.ts), which blocks the process. */
const LOOKED_THROUGH_CHARACTERS = 512 * 1024;

function areSearchable(packages: readonly PageScript[]): boolean {
  const lengths = packages.map((script) => ("source" in script ? script.source.length : 0));
  return lengths.reduce((sum, length) => sum + length, 0) <= LOOKED_THROUGH_CHARACTERS;
}

/** True for a failure in the trial of a document that may not be the code's fault: a name that is built at run time is not replaced. */
const failedInDocumentTrial = (ended: PageOutcome, trialOf: TrialOf): boolean =>
  trialOf === "document" && !ended.ok && ended.cause === "script";

/** Remembers code, by app. */
export class RememberedCode {
  private readonly byApp = new LRUCache<string, LRUCache<string, true>>({ max: REMEMBERED_APPS });

  constructor(private readonly perApp = REMEMBERED_PER_APP) {}

  has(request: PageRun): boolean {
    return this.byApp.get(request.origin)?.has(keyOf(request)) ?? false;
  }

  add(request: PageRun): void {
    const appTrials = this.byApp.get(request.origin) ?? new LRUCache({ max: this.perApp, ttl: REMEMBERED_MS });
    this.byApp.set(request.origin, appTrials.set(keyOf(request), true));
  }
}

export class Trials {
  private readonly needMore: RememberedCode;

  constructor(rememberedPerApp = REMEMBERED_PER_APP) {
    this.needMore = new RememberedCode(rememberedPerApp);
  }

  /** Returns `mode` if the run should be tried in `isolate` first, otherwise null. @param modeOfSource mode that the source needs */
  modeToTry(request: PageRun, mode: Mode, modeOfSource = mode): TrialOf | null {
    if (modeOfSource !== "isolate" || this.needMore.has(request)) return null;
    const mayBe = mode === "isolate" || request.packages.every(isTriable);
    return mayBe && (mode !== "document" || areSearchable(request.packages)) ? mode : null;
  }

  /**
   * Runs the trial, and holds its console lines back until the outcome is final.
   * @param run runs a request in `isolate`
   * @returns null if the run needs more; its code is remembered, and the caller repeats the run
   */
  async run(
    request: PageRun,
    trialOf: TrialOf,
    run: (request: PageRun) => Promise<PageOutcome>,
  ): Promise<PageOutcome | null> {
    const lines: ConsoleLine[] = [];
    const tooManyLines = new AbortController();
    const onConsole = (line: ConsoleLine) => {
      if (lines.length < LINES_MAX) lines.push(line);
      else tooManyLines.abort();
    };
    const signal = AbortSignal.any([tooManyLines.signal, ...(request.signal ? [request.signal] : [])]);
    const timeoutMs = Math.min(TRIAL_MAX_MS, request.timeoutMs * TRIAL_MAX_SHARE);
    const outcome = await run({ ...request, onConsole, signal, timeoutMs, trialOf });
    const needsMore =
      tooManyLines.signal.aborted || hasOverflowed(outcome) || (!outcome.ok && NEEDS_MORE.includes(outcome.cause));
    if (needsMore) this.needMore.add(request);
    if (needsMore || failedInDocumentTrial(outcome, trialOf)) return null;
    for (const line of lines) request.onConsole?.(line);
    return outcome;
  }
}
