/**
 * Which runs are tried in a realm of the language: those of the language, which may need more memory or time than a shared thread gives, and
 * those whose packages name more, for libraries name much that most of their uses never touch. Nothing of such a run leaves that realm until
 * it has ended, so that one which needs more begins anew in a worker, or in what its packages name, as if for the first time.
 */
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { ConsoleLine, PageOutcome, PageRun, PageScript, RealmKind, Trial } from "./run.js";

/** What is remembered to need more, by app, so that none drives out another's, and for how long: then it is found out again, for the machine may only have been busy. */
const REMEMBERED_APPS = 1_000;
const REMEMBERED_PER_APP = 100;
const REMEMBERED_MS = 600_000;
/** A trial lasts so long at most, or such a part of the run's limit: a longer run has a thread of its own, and all of its time. */
const TRIAL_MAX_MS = 1_000;
const TRIAL_MAX_PART = 1 / 4;
/** Nobody sees what a trial prints before its end: who prints more is watched, in a worker. */
const LINES_MAX = 500;
/** What a run fills its memory with shows in the worker that has it next. */
const NEEDS_MORE: readonly string[] = ["realm", "memory", "timeout"];

export type TrialOf = NonNullable<PageRun["trialOf"]>;

/** What names code and packages by their contents. */
function keyOf({ packages, source }: PageRun): string {
  const contents = packages.map((script) => ("content" in script && script.content) || script.name);
  return hash("sha256", [...contents, source].join("\n"));
}

const mayBeTried = (script: PageScript): boolean =>
  "source" in script && (script.realm === "language" || script.mayDoWithLess === true);

export type Trials = ReturnType<typeof createTrials>;

export function createTrials(rememberedPerApp = REMEMBERED_PER_APP) {
  const needMore = new LRUCache<string, LRUCache<string, true>>({ max: REMEMBERED_APPS });

  return {
    /** Whether the app's same code needed more of late. */
    neededMore: (request: PageRun): boolean => needMore.get(request.origin)?.has(keyOf(request)) ?? false,
    /** Remembers that it did. */
    remember(request: PageRun): void {
      const own = needMore.get(request.origin) ?? new LRUCache({ max: rememberedPerApp, ttl: REMEMBERED_MS });
      needMore.set(request.origin, own.set(keyOf(request), true));
    },

    /** `realm` where the run is to be tried in a realm of the language first, and its source needs no more than that has; null where not. */
    of(request: PageRun, realm: RealmKind, ofSource = realm): TrialOf | null {
      if (ofSource !== "language" || realm === "document") return null;
      const mayBe = realm === "language" || request.packages.every(mayBeTried);
      return mayBe && !this.neededMore(request) ? realm : null;
    },

    /**
     * Begins its trial there.
     * @param run what runs it there
     */
    begin(request: PageRun, trialOf: TrialOf, run: (request: PageRun) => Promise<PageOutcome>): Trial {
      const { onConsole: _console, signal: _signal, trial: _trial, ...rest } = request;
      const lines: ConsoleLine[] = [];
      const ending = new AbortController();
      let talkative = false;
      const keep = (line: ConsoleLine) => {
        talkative = lines.push(line) > LINES_MAX;
        if (talkative) ending.abort();
      };
      const outcome = run({
        ...rest,
        onConsole: keep,
        signal: ending.signal,
        timeoutMs: Math.min(TRIAL_MAX_MS, request.timeoutMs * TRIAL_MAX_PART),
        trialOf,
      }).then((ended) => {
        const needsMore = talkative || (!ended.ok && NEEDS_MORE.includes(ended.cause));
        if (needsMore) this.remember(request);
        return needsMore ? null : ended;
      });
      return { outcome, lines, end: () => ending.abort() };
    },

    /**
     * What came of its trial, as what comes of it.
     * @returns null when it needs more, which is remembered: nobody has heard of it
     */
    async outcomeOf({ outcome, lines, end }: Trial, { onConsole, signal }: PageRun): Promise<PageOutcome | null> {
      if (signal?.aborted) end();
      signal?.addEventListener("abort", end, { once: true });
      const ended = await outcome;
      signal?.removeEventListener("abort", end);
      if (ended !== null && onConsole) for (const line of lines) onConsole(line);
      return ended;
    },
  };
}
