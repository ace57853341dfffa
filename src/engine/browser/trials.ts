/**
 * A trial is a first attempt of a run in an isolate, the fastest sandbox mode. It is made if the run's own code needs
 * only the language, because libraries contain names of many globals that most runs never use. Stand-ins replace other
 * globals, and detect if code uses them (in-page/stand-ins.ts). A trial has no effect outside of the isolate, so the
 * run can be repeated in another mode.
 */
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { type ConsoleLine, hasOverflowed, type Mode, type PageOutcome, type PageRun, type PageScript } from "./run.js";

/**
 * Maximum number of apps whose failed trials (first attempts of runs in an isolate) are stored. Entries expire after
 * REMEMBERED_MS, because a trial may also fail if the machine is busy.
 */
const REMEMBERED_APPS = 1_000;
const REMEMBERED_PER_APP = 100;
const REMEMBERED_MS = 600_000;
/** Causes of a failed trial after which the run is repeated in the mode that its code needs. */
const REPEAT_CAUSES: readonly string[] = ["retry", "memory", "timeout"];

/** Time limit of a trial, absolute and as a share of the run's time limit. A long trial would only delay the run. */
const TRIAL_MAX_MS = 1_000;
const TRIAL_MAX_SHARE = 1 / 4;
/**
 * Maximum number of console lines that are held back during a trial. A run that prints more is repeated without a trial,
 * so that people can follow its lines live.
 */
const TRIAL_LINES_MAX = 500;

export type TrialOf = NonNullable<PageRun["trialOf"]>;

/** Returns a key that is equal for runs with the same code and packages. */
function keyOf({ packages, source }: PageRun): string {
  const contents = packages.map((script) => ("content" in script && script.content) || script.name);
  return hash("sha256", [...contents, source].join("\n"));
}

const isTriable = (script: PageScript): boolean =>
  "source" in script && (script.mode === "isolate" || script.canBeTried === true);

/**
 * Maximum total length of the scripts of a run that needs a document and is tried in an isolate first. The process is
 * blocked while it searches the scripts for names.
 */
const SEARCHED_MAX_CHARACTERS = 512 * 1024;

function areSearchable(packages: readonly PageScript[]): boolean {
  const lengths = packages.map((script) => ("source" in script ? script.source.length : 0));
  return lengths.reduce((sum, length) => sum + length, 0) <= SEARCHED_MAX_CHARACTERS;
}

/**
 * True if a trial failed with an error that may not occur in a document: globals whose names the code builds at run
 * time have no stand-in.
 */
const isDocumentTrialFailure = (ended: PageOutcome, trialOf: TrialOf): boolean =>
  trialOf === "document" && !ended.ok && ended.cause === "script";

/** Set of code, by app, that failed in a trial (a first attempt in an isolate). Entries expire. */
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

  /**
   * Returns `mode` if the run should first be tried in `isolate`; otherwise null.
   * @param modeOfSource mode that the action's own code needs
   */
  modeToTry(request: PageRun, mode: Mode, modeOfSource = mode): TrialOf | null {
    if (modeOfSource !== "isolate" || this.needMore.has(request)) return null;
    const mayBe = mode === "isolate" || request.packages.every(isTriable);
    return mayBe && (mode !== "document" || areSearchable(request.packages)) ? mode : null;
  }

  /**
   * Runs a trial. Prints the console lines of the run only if the trial succeeds.
   * @param run runs a request in `isolate`
   * @returns the outcome; null if the caller must repeat the run in the mode that its code needs
   */
  async run(
    request: PageRun,
    trialOf: TrialOf,
    run: (request: PageRun) => Promise<PageOutcome>,
  ): Promise<PageOutcome | null> {
    const lines: ConsoleLine[] = [];
    const tooManyLines = new AbortController();
    const onConsole = (line: ConsoleLine) => {
      if (lines.length < TRIAL_LINES_MAX) lines.push(line);
      else tooManyLines.abort();
    };
    const signal = AbortSignal.any([tooManyLines.signal, ...(request.signal ? [request.signal] : [])]);
    const timeoutMs = Math.min(TRIAL_MAX_MS, request.timeoutMs * TRIAL_MAX_SHARE);
    const outcome = await run({ ...request, onConsole, signal, timeoutMs, trialOf });
    const needsMore =
      tooManyLines.signal.aborted || hasOverflowed(outcome) || (!outcome.ok && REPEAT_CAUSES.includes(outcome.cause));
    if (needsMore) this.needMore.add(request);
    if (needsMore || isDocumentTrialFailure(outcome, trialOf)) return null;
    for (const line of lines) request.onConsole?.(line);
    return outcome;
  }
}
