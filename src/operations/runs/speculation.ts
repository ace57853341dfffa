/**
 * Evaluates what may become a run while its row is being written, by what its action was at its last run: that takes as long as the row
 * does. Only where nothing can leave meanwhile, and nobody hears of it before the row stands and says the same; else it is dropped, as if
 * it had never been. Knows neither the ledger nor what a run's end is.
 */
import { isDeepStrictEqual } from "node:util";
import { LRUCache } from "lru-cache";
import type { BegunRun, PageRun, PageScript } from "../../engine/browser/run.js";
import type { AcceptedTarget, AskedRun } from "./acceptance.js";
import type { Evaluated, HeldRun, RunCode, Speculation } from "./run-facts.js";
import type { RunScripts } from "./run-scripts.js";
import type { Secrecy } from "./secrecy.js";

/** Actions that ran last, and what their code may take together in characters. */
const KNOWN_MAX = 1_000;
const KNOWN_MAX_CHARACTERS = 16 * 1024 * 1024;

/** How long the action may run, by its own limit and the service's. */
export const timeLimitOf = ({ timeoutMs }: RunCode, serviceMs: number): number =>
  Math.min(serviceMs, timeoutMs ?? serviceMs);

/** @param settings JSON text of `context.settings` @param serviceMs the service's time limit */
export function evaluatedOf(
  { appId, copy, payload }: Pick<HeldRun, "appId" | "copy" | "payload">,
  action: RunCode,
  packages: readonly PageScript[],
  settings: string,
  serviceMs: number,
): Evaluated {
  const { name, code } = action;
  return {
    isolationKey: `${appId}:${copy}`,
    origin: `https://app-${appId}.actions.internal`,
    source: code,
    sourceName: `${name}.js`,
    packages,
    payload,
    settings,
    timeoutMs: timeLimitOf(action, serviceMs),
  };
}

/** Stands for the judge of a run that has none yet. */
const NOBODY = () => false;

type Known = Pick<AcceptedTarget, "target" | "secretsVersion">;

interface Given {
  evaluated: Evaluated;
  isJudged: boolean;
}

export type Speculations = ReturnType<typeof createSpeculations>;

export function createSpeculations(options: {
  beginAhead: (request: PageRun) => BegunRun | null;
  secrecy: Secrecy;
  scripts: Pick<RunScripts, "shared">;
  /** Whether what runs ask for is followed, by their traces. */
  isFollowed: boolean;
  timeoutMs: number;
}) {
  const { beginAhead, secrecy, scripts, isFollowed, timeoutMs } = options;
  const known = new LRUCache<string, Known>({
    max: KNOWN_MAX,
    maxSize: KNOWN_MAX_CHARACTERS,
    sizeCalculation: ({ target: { code } }) => code.length + 1,
  });

  const keyOf = ({ appId, copy, nameOrId }: AskedRun) => `${appId}:${copy}:${nameOrId}`;

  async function given(asked: AskedRun, { target, secretsVersion }: Known): Promise<Given | null> {
    const packages = await scripts.shared(target);
    if (packages === null) return null;
    const kept = await secrecy.begin(asked.appId, secretsVersion);
    const evaluated = evaluatedOf(asked, target, packages, kept.contextSettings(target.environment), timeoutMs);
    return { evaluated, isJudged: kept.needed };
  }

  function begin(asked: AskedRun, its: Known): Speculation {
    const begunAt = performance.now();
    let isWanted = true;
    const begun = given(asked, its)
      .then((what) => {
        if (!what || !isWanted) return null;
        const { evaluated, isJudged } = what;
        const run = beginAhead(isJudged || isFollowed ? { ...evaluated, mayRequest: NOBODY } : evaluated);
        return run && { what, run };
      })
      // The run meets the same, and says so.
      .catch(() => null);
    const drop = async () => {
      if (!isWanted) return;
      isWanted = false;
      await (await begun)?.run.drop();
    };
    return {
      begunAt,
      async begunOf(evaluated, isJudged) {
        const one = await begun;
        // Its page is nearer than a new one.
        if (!one || !isDeepStrictEqual(one.what, { evaluated, isJudged })) await drop();
        if (!isWanted) return null;
        isWanted = false;
        return one!.run;
      },
      drop: () => void drop(),
    };
  }

  return {
    /**
     * Begins what that request may become while `accepting` writes its row, where its action is known here and would start at once.
     * `speculation` is there where it has become a run.
     * @param startsAtOnce whether it is accepted to start here now
     * @throws what `accepting` throws
     */
    async beside(
      asked: AskedRun,
      accepting: Promise<AcceptedTarget>,
      startsAtOnce: boolean,
    ): Promise<{ accepted: AcceptedTarget; speculation: Speculation | null }> {
      const key = keyOf(asked);
      const its = startsAtOnce && asked.idempotencyKey === null ? known.get(key) : undefined;
      const speculation = its && its.target.waitsFor === null ? begin(asked, its) : null;
      const accepted = await accepting.catch((error: unknown) => {
        known.delete(key);
        speculation?.drop();
        throw error;
      });
      const { id, repeated, target, secretsVersion } = accepted;
      known.set(key, { target, secretsVersion });
      if (id !== null && !repeated) return { accepted, speculation };
      speculation?.drop();
      return { accepted, speculation: null };
    },
  };
}
