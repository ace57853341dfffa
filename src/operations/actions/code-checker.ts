/**
 * Checks the code of actions with the service's rules and with V8's compiler. Long code is checked in a separate thread, one action per app
 * at a time. Results are cached.
 */
import { createHash } from "node:crypto";
import { createBoundedCache } from "../../engine/bounded-cache.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { createThreadPool } from "../../engine/threads.js";
import { ActionError } from "../../errors.js";
import { CODE_RULES_CHECK_MEMORY_MB, CODE_RULES_CHECK_TIMEOUT_MS } from "../../limits.js";
import type * as codeRules from "../../rules/code.js";
import { type CodeParseResult, parseCode } from "../../rules/code.js";
import { ACTIONS_PER_MANIFEST_MAX } from "../../rules/manifest.js";

export interface CodeCheckResult {
  parseResult: CodeParseResult;
  /** Error of V8's compiler. Null if V8 compiled the code, or did not compile it because the service's rules had already rejected it. */
  compileError: ActionError | null;
}

/** Maximum number of concurrent checks. Each app has at most one of them, so that an app with long code does not block others. */
const MAX_CONCURRENT_CHECKS = 4;
/** Code up to this length is checked on the main thread. The check takes a few milliseconds, less than the start of a thread. */
const MAIN_THREAD_MAX_CHARACTERS = 4_096;
/**
 * Maximum number of cached results. While an import holds locks, it must find the results of all its actions here, although other apps also
 * save code. An entry takes 0.3 KB, or 4 KB if the code uses all packages, so the cache takes at most 80 MB. Results with an error are not
 * cached: an import of such code fails, and V8 can keep all of the code in memory for a short error text that was cut out of it.
 */
const CACHED_CHECKS_MAX = 2 * ACTIONS_PER_MANIFEST_MAX;

/** Checks code, and caches the results. */
export class CodeChecker {
  private readonly checkSlots = new FairSemaphore(MAX_CONCURRENT_CHECKS, 1);
  private readonly threadPool = createThreadPool<string, CodeParseResult>({
    module: new URL("../../rules/code.js", import.meta.url),
    name: "parseCode" satisfies keyof typeof codeRules,
    memoryMb: CODE_RULES_CHECK_MEMORY_MB,
    timeoutMs: CODE_RULES_CHECK_TIMEOUT_MS,
  });
  private readonly resultsByHash = createBoundedCache<string, CodeCheckResult>(CACHED_CHECKS_MAX);

  /** @param compile compiles code with V8; throws CODE_VALIDATION_FAILED if V8 cannot compile it, OVERLOADED if the service is stopping */
  constructor(private readonly compile: (code: string) => Promise<void>) {}

  private async parseWithinLimits(code: string): Promise<CodeParseResult> {
    if (code.length <= MAIN_THREAD_MAX_CHARACTERS) return parseCode(code);
    const threadResult = await this.threadPool.call(code);
    if (threadResult.ok) return threadResult.value;
    const limitTexts = {
      time: `took longer than ${CODE_RULES_CHECK_TIMEOUT_MS} ms`,
      memory: `needed more than ${CODE_RULES_CHECK_MEMORY_MB} MB of memory`,
    };
    throw new ActionError(
      "CODE_VALIDATION_FAILED",
      `checking the code ${limitTexts[threadResult.limit]}; shorten the code`,
    );
  }

  private async findCompileError(code: string): Promise<ActionError | null> {
    try {
      await this.compile(code);
      return null;
    } catch (error) {
      if (error instanceof ActionError && error.status === "CODE_VALIDATION_FAILED") return error;
      throw error;
    }
  }

  private async checkCode(code: string): Promise<CodeCheckResult> {
    const parseResult = await this.parseWithinLimits(code);
    return { parseResult, compileError: parseResult.fault === null ? await this.findCompileError(code) : null };
  }

  /**
   * Checks the code of an action. Errors in the code are in the result, not thrown.
   * @param appId app of the action; the service checks the code of an app's actions one after the other
   * @throws ActionError CODE_VALIDATION_FAILED if the check exceeds its time or memory limit, OVERLOADED if the service is stopping
   */
  async check(appId: number, code: string): Promise<CodeCheckResult> {
    // The code is hashed as UTF-16, because it may contain lone surrogates, which UTF-8 cannot represent.
    const key = createHash("sha256").update(Buffer.from(code, "utf16le")).digest("base64");
    const cachedResult = this.resultsByHash.get(key);
    if (cachedResult) return cachedResult;
    const releaseCheckSlot = await this.checkSlots.enter(appId);
    try {
      const result = this.resultsByHash.get(key) ?? (await this.checkCode(code));
      if (result.compileError === null && result.parseResult.fault === null) this.resultsByHash.set(key, result);
      return result;
    } finally {
      releaseCheckSlot();
    }
  }
}
