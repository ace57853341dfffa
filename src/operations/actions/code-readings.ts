/** Checks authors' code by the rules and by V8's compiler, outside of the main thread; apps take turns. Caches the results. */
import { createHash } from "node:crypto";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { createThreads } from "../../engine/threads.js";
import { ActionError } from "../../errors.js";
import { CODE_READ_MEMORY_MB, CODE_READ_TIMEOUT_MS } from "../../limits.js";
import { type CodeReading, readCode } from "../../rules/code.js";

export interface CodeVerdict {
  reading: CodeReading;
  /** Error of V8's compiler, or null. */
  compileFault: ActionError | null;
}

/** Maximum number of checks at a time. If three apps have megabytes checked, a slot is left for a fourth app. */
const READ_AT_ONCE = 4;
/** Length up to which code is checked on the main thread. That takes a few milliseconds; starting a thread takes longer. */
const INLINE_MAX_CHARACTERS = 4_096;
/** Maximum number of cached results of some hundred bytes each: more than the actions of one import. */
const REMEMBERED_READINGS = 5_000;

export type CodeReadings = ReturnType<typeof createCodeReadings>;

/** @param compile throws CODE_VALIDATION_FAILED */
export function createCodeReadings(compile: (code: string) => Promise<void>) {
  const line = new FairSemaphore(READ_AT_ONCE, 1);
  const threads = createThreads<string, CodeReading>({
    module: new URL("../../rules/code.js", import.meta.url),
    name: "readCode",
    memoryMb: CODE_READ_MEMORY_MB,
    timeoutMs: CODE_READ_TIMEOUT_MS,
  });
  const verdictsByHash = new Map<string, CodeVerdict>();

  async function readInThread(code: string): Promise<CodeReading> {
    if (code.length <= INLINE_MAX_CHARACTERS) return readCode(code);
    const threadResult = await threads.call(code);
    if (threadResult.ok) return threadResult.value;
    const limitTexts = {
      time: `longer than ${CODE_READ_TIMEOUT_MS} ms`,
      memory: `more than ${CODE_READ_MEMORY_MB} MB`,
    };
    throw new ActionError("CODE_VALIDATION_FAILED", `code takes ${limitTexts[threadResult.limit]} to read`);
  }

  async function compileFaultOf(code: string): Promise<ActionError | null> {
    try {
      await compile(code);
      return null;
    } catch (error) {
      if (error instanceof ActionError) return error;
      throw error;
    }
  }

  async function judgeCode(code: string): Promise<CodeVerdict> {
    const reading = await readInThread(code);
    return { reading, compileFault: reading.fault === null ? await compileFaultOf(code) : null };
  }

  return {
    /**
     * Checks code.
     * @param appId app whose queue is used: each app has one code checked at a time
     * @throws ActionError CODE_VALIDATION_FAILED if the check exceeds a limit; the result contains any other fault
     */
    async read(appId: number, code: string): Promise<CodeVerdict> {
      // The hash covers UTF-16, because code may contain a lone surrogate.
      const key = createHash("sha256").update(Buffer.from(code, "utf16le")).digest("base64");
      const cachedVerdict = verdictsByHash.get(key);
      if (cachedVerdict) return cachedVerdict;
      const leaveQueue = await line.enter(appId);
      try {
        const verdict = verdictsByHash.get(key) ?? (await judgeCode(code));
        // V8's refusal is not cached if it may be temporary: a timeout on a busy machine.
        if (verdict.compileFault !== null) return verdict;
        if (verdictsByHash.size >= REMEMBERED_READINGS) verdictsByHash.delete(verdictsByHash.keys().next().value!);
        verdictsByHash.set(key, verdict);
        return verdict;
      } finally {
        leaveQueue();
      }
    },
  };
}
