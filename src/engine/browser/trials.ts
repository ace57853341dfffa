/**
 * Which runs are tried in a realm of the language: those of the language, which may need more memory or time than a shared thread gives, and
 * those whose packages name more, for libraries name much that most of their uses never touch. Nothing of such a run leaves that realm until
 * it has ended, so that one which needs more begins anew in a worker, or in what its packages name, as if for the first time.
 */
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { ConsoleLine, PageOutcome, PageRun, PageScript, RealmKind } from "./run.js";

/** What is remembered to need more, by app, so that none drives out another's, and for how long: then it is found out again, for the machine may only have been busy. */
const REMEMBERED_APPS = 1_000;
const REMEMBERED_PER_APP = 100;
const REMEMBERED_MS = 600_000;
/** What a run fills its memory with shows in the worker that has it next. */
const NEEDS_MORE: readonly string[] = ["realm", "memory", "timeout"];

/** Time limit of a trial in milliseconds, and as a share of the run's own: a longer run would delay the others of its thread. */
const TRIAL_MAX_MS = 1_000;
const TRIAL_MAX_SHARE = 1 / 4;
/** Console lines that are held during a trial. A run that prints more is repeated, so that its lines can be followed live. */
const LINES_MAX = 500;

export type TrialOf = NonNullable<PageRun["trialOf"]>;

/** What names code and packages by their contents. */
function keyOf({ packages, source }: PageRun): string {
  const contents = packages.map((script) => ("content" in script && script.content) || script.name);
  return hash("sha256", [...contents, source].join("\n"));
}

const mayBeTried = (script: PageScript): boolean =>
  "source" in script && (script.realm === "language" || script.mayDoWithLess === true);

/** In so much text of a run's a document's names are looked for (kept-texts.ts), once for each, while every other run waits. */
const LOOKED_THROUGH_CHARACTERS = 512 * 1024;

function areLookedThrough(packages: readonly PageScript[]): boolean {
  const lengths = packages.map((script) => ("source" in script ? script.source.length : 0));
  return lengths.reduce((sum, length) => sum + length, 0) <= LOOKED_THROUGH_CHARACTERS;
}

/** A name that was made of parts is not stood in for, and a document has twice the stack: what fails may be for want of either. */
const failedThere = (ended: PageOutcome, trialOf: TrialOf): boolean =>
  trialOf === "document" && !ended.ok && ended.cause === "script";

/** What showed of code, by app. */
export function createRememberedCode(perApp = REMEMBERED_PER_APP) {
  const byApp = new LRUCache<string, LRUCache<string, true>>({ max: REMEMBERED_APPS });
  return {
    has: (request: PageRun): boolean => byApp.get(request.origin)?.has(keyOf(request)) ?? false,
    add(request: PageRun): void {
      const own = byApp.get(request.origin) ?? new LRUCache({ max: perApp, ttl: REMEMBERED_MS });
      byApp.set(request.origin, own.set(keyOf(request), true));
    },
  };
}

/** Holds the console lines of a trial until its outcome counts. @param end called if there are too many */
function createHeldLines(end: () => void) {
  const lines: ConsoleLine[] = [];
  return {
    print(line: ConsoleLine): void {
      if (lines.length <= LINES_MAX && lines.push(line) > LINES_MAX) end();
    },
    areTooMany: (): boolean => lines.length > LINES_MAX,
    passTo(onConsole: PageRun["onConsole"]): void {
      if (onConsole) for (const line of lines) onConsole(line);
    },
  };
}

export type Trials = ReturnType<typeof createTrials>;

export function createTrials(rememberedPerApp = REMEMBERED_PER_APP) {
  const needMore = createRememberedCode(rememberedPerApp);

  return {
    /** `realm` where the run is to be tried in a realm of the language first, and its source needs no more than that has; null where not. */
    of(request: PageRun, realm: RealmKind, ofSource = realm): TrialOf | null {
      if (ofSource !== "language" || needMore.has(request)) return null;
      const mayBe = realm === "language" || request.packages.every(mayBeTried);
      return mayBe && (realm !== "document" || areLookedThrough(request.packages)) ? realm : null;
    },

    /**
     * Runs the trial.
     * @param run runs a request in the language isolate
     * @returns null if the run needs more than the language isolate has; its code is remembered, and the caller repeats the run
     */
    async run(
      request: PageRun,
      trialOf: TrialOf,
      run: (request: PageRun) => Promise<PageOutcome>,
    ): Promise<PageOutcome | null> {
      const ending = new AbortController();
      const end = () => ending.abort();
      const lines = createHeldLines(end);
      if (request.signal?.aborted) end();
      request.signal?.addEventListener("abort", end, { once: true });
      const timeoutMs = Math.min(TRIAL_MAX_MS, request.timeoutMs * TRIAL_MAX_SHARE);
      const { signal } = ending;
      const outcome = await run({ ...request, onConsole: lines.print, signal, timeoutMs, trialOf });
      request.signal?.removeEventListener("abort", end);
      const needsMore = lines.areTooMany() || (!outcome.ok && NEEDS_MORE.includes(outcome.cause));
      if (needsMore) needMore.add(request);
      if (needsMore || failedThere(outcome, trialOf)) return null;
      lines.passTo(request.onConsole);
      return outcome;
    },
  };
}
