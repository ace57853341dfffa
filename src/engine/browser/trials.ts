/** Trial: first attempt of a run in an isolate, the fastest mode. It often succeeds: libraries rarely use all globals that they name. */
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import {
  type ConsoleLine,
  type EvaluationMode,
  hasOverflowedStack,
  type PageRunOutcome,
  type PageRunRequest,
  type PageScript,
} from "./run.js";

const FAILURES_APPS_MAX = 1_000;
const FAILURES_PER_APP_MAX = 100;
const FAILURES_EXPIRY_MS = 600_000;
const REPEAT_CAUSES: readonly string[] = ["retry", "memory", "timeout"];

/** Maximum duration of a trial. */
const TRIAL_MAX_MS = 3_000;
/** Maximum duration of a trial, as a share of the run's time limit. */
const TRIAL_MAX_SHARE_OF_TIMEOUT = 1 / 4;
/** Maximum number of console lines in a trial. A trial prints them at its end. A run with more is repeated, and prints each at once. */
const TRIAL_LINES_MAX = 500;

function createCodeKey({ packages, source }: PageRunRequest): string {
  const contents = packages.map((script) => ("content" in script && script.content) || script.name);
  return hash("sha256", [...contents, source].join("\n"));
}

const mayBeTried = (script: PageScript): boolean =>
  "source" in script && (script.mode === "isolate" || script.canBeTried === true);

/** Maximum total length of packages for a trial that replaces a document. The search for globals in longer ones would block the process. */
const SEARCHED_PACKAGES_MAX_CHARACTERS = 512 * 1024;

function areSearchable(packages: readonly PageScript[]): boolean {
  const lengths = packages.map((script) => ("source" in script ? script.source.length : 0));
  return lengths.reduce((sum, length) => sum + length, 0) <= SEARCHED_PACKAGES_MAX_CHARACTERS;
}

/** True if failed code may succeed in a document. A trial has no stand-in for a global whose name the code builds at run time. */
const isDocumentTrialFailure = (outcome: PageRunOutcome, trialForMode: EvaluationMode): boolean =>
  trialForMode === "document" && !outcome.ok && outcome.cause === "script";

/** Code that failed in an isolate, for each app. Entries expire, because code may also fail if the machine is busy. */
export class RecentTrialFailures {
  private readonly failuresByApp = new LRUCache<string, LRUCache<string, true>>({ max: FAILURES_APPS_MAX });

  constructor(private readonly maxPerApp = FAILURES_PER_APP_MAX) {}

  has(request: PageRunRequest): boolean {
    return this.failuresByApp.get(request.origin)?.has(createCodeKey(request)) ?? false;
  }

  add(request: PageRunRequest): void {
    const failuresOfApp =
      this.failuresByApp.get(request.origin) ?? new LRUCache({ max: this.maxPerApp, ttl: FAILURES_EXPIRY_MS });
    this.failuresByApp.set(request.origin, failuresOfApp.set(createCodeKey(request), true));
  }
}

export class TrialRunner {
  private readonly codeWithFailedTrial = new RecentTrialFailures();

  /**
   * Returns `mode` if the run gets a trial, which replaces the globals of this mode; otherwise null.
   * @param mode mode that the code and its packages need
   * @param modeOfSource mode that the code needs without its packages
   */
  selectTrialMode(request: PageRunRequest, mode: EvaluationMode, modeOfSource = mode): EvaluationMode | null {
    if (modeOfSource !== "isolate" || this.codeWithFailedTrial.has(request)) return null;
    const mayTryPackages = mode === "isolate" || request.packages.every(mayBeTried);
    return mayTryPackages && (mode !== "document" || areSearchable(request.packages)) ? mode : null;
  }

  /** Prints the run's console lines only if the trial succeeds. Resolves with null if the run must be repeated in another mode. */
  async run(
    request: PageRunRequest,
    trialForMode: EvaluationMode,
    runInIsolate: (request: PageRunRequest) => Promise<PageRunOutcome>,
  ): Promise<PageRunOutcome | null> {
    const lines: ConsoleLine[] = [];
    const tooManyLines = new AbortController();
    const onConsole = (line: ConsoleLine) => {
      if (lines.length < TRIAL_LINES_MAX) lines.push(line);
      else tooManyLines.abort();
    };
    const signal = AbortSignal.any([tooManyLines.signal, ...(request.signal ? [request.signal] : [])]);
    const timeoutMs = Math.min(TRIAL_MAX_MS, request.timeoutMs * TRIAL_MAX_SHARE_OF_TIMEOUT);
    const outcome = await runInIsolate({ ...request, onConsole, signal, timeoutMs, trialForMode });
    const needsOtherMode =
      tooManyLines.signal.aborted ||
      hasOverflowedStack(outcome) ||
      (!outcome.ok && REPEAT_CAUSES.includes(outcome.cause));
    if (needsOtherMode) this.codeWithFailedTrial.add(request);
    if (needsOtherMode || isDocumentTrialFailure(outcome, trialForMode)) return null;
    for (const line of lines) request.onConsole?.(line);
    return outcome;
  }
}
