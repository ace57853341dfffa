/** Compiles source code in a new V8 isolate with limits for memory and time, without running the code. */
import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import ivm from "isolated-vm";
import { ActionError } from "../errors.js";
import { OVERLOADED_RETRY_SECONDS, SYNTAX_CHECK_MEMORY_MB, SYNTAX_CHECK_TIMEOUT_MS } from "../limits.js";

interface CompileChecker {
  /**
   * Checks that V8 can compile `source`.
   * @throws ActionError CODE_VALIDATION_FAILED with V8's message, line and column, or the exceeded limit; OVERLOADED after `close`
   */
  check(source: string): Promise<void>;
  /**
   * Resolves when no isolate exists any more. Rejects waiting and later checks with OVERLOADED. Call it before the process exits: V8 cannot
   * interrupt a compilation, and an exit during one causes a segmentation fault.
   */
  close(): Promise<void>;
}

interface IsolateLimits {
  concurrency: number;
  /** Memory limit of an isolate in megabytes. V8 does not start with less than 8 MB. */
  memoryMb: number;
  timeoutMs: number;
}

// To collect unused WebAssembly code, V8 holds a lock of the whole process while it queries each isolate. If isolated-vm frees an isolate
// during this query, the thread waits for a lock that it holds itself: a deadlock. The service's only WebAssembly code is that of its HTTP
// client, and needs no collection.
setFlagsFromString("--no-wasm-code-gc");

/** isolated-vm frees an isolate in another thread, and does not report when it has finished. So `close` waits for this time. */
const ISOLATE_RELEASE_MS = 500;

const CODE_POSITION_PATTERN = / \[code:(\d+):(\d+)\]$/;
const MESSAGE_MAX_CHARACTERS = 200;

/**
 * Creates a checker that compiles each source in a new isolate, so that sources of different actions never share one. A new isolate costs a
 * millisecond.
 */
export function createCompileChecker({
  concurrency = 2,
  memoryMb = SYNTAX_CHECK_MEMORY_MB,
  timeoutMs = SYNTAX_CHECK_TIMEOUT_MS,
}: Partial<IsolateLimits> = {}): CompileChecker {
  let freeSlots = concurrency;
  let closePromise: Promise<void> | null = null;
  let lastReleasedAt = Number.NEGATIVE_INFINITY;
  const waitingSlots: PromiseWithResolvers<void>[] = [];

  async function acquireSlot(): Promise<void> {
    if (freeSlots > 0) {
      freeSlots -= 1;
      return;
    }
    const slot = Promise.withResolvers<void>();
    waitingSlots.push(slot);
    await slot.promise;
  }

  function releaseSlot(): void {
    lastReleasedAt = performance.now();
    const next = waitingSlots.shift();
    if (next === undefined) freeSlots += 1;
    else next.resolve();
  }

  async function check(source: string): Promise<void> {
    if (closePromise !== null) throw createStoppingError();
    await acquireSlot();
    const compilation = compileInIsolate(source, memoryMb);
    // V8 cannot interrupt a compilation. So after the time limit, the slot stays taken until V8 has finished.
    const ended = compilation.catch(() => {}).finally(releaseSlot);
    await waitWithLimit(timeoutMs, ended);
    await compilation;
  }

  async function endChecks(): Promise<void> {
    for (const slot of waitingSlots.splice(0)) slot.reject(createStoppingError());
    // Takes all slots, and so waits until the running checks have ended.
    for (let slot = 0; slot < concurrency; slot += 1) await acquireSlot();
    await delay(Math.max(0, lastReleasedAt + ISOLATE_RELEASE_MS - performance.now()));
  }

  return { check, close: () => (closePromise ??= endChecks()) };
}

/** Waits until `ended` resolves. @throws ActionError CODE_VALIDATION_FAILED if that takes longer than `timeoutMs` */
async function waitWithLimit(timeoutMs: number, ended: Promise<void>): Promise<void> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => timeout.reject(createCodeError(`code takes longer than ${timeoutMs} ms to compile`)),
    timeoutMs,
  );
  try {
    await Promise.race([ended, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function compileInIsolate(source: string, memoryMb: number): Promise<void> {
  const isolate = new ivm.Isolate({ memoryLimit: memoryMb });
  try {
    await isolate.compileScript(source, { filename: "code" });
  } catch (error) {
    throw isolate.isDisposed
      ? createCodeError(`code needs more than ${memoryMb} MB to compile`)
      : toCompileError(error);
  } finally {
    if (!isolate.isDisposed) isolate.dispose();
  }
}

function toCompileError(error: unknown): ActionError {
  const message = error instanceof Error ? error.message : String(error);
  const [, line, column] = CODE_POSITION_PATTERN.exec(message) ?? [];
  const reason = message.replace(CODE_POSITION_PATTERN, "").slice(0, MESSAGE_MAX_CHARACTERS).toWellFormed();
  // V8 reports the line number 0 if its own stack overflowed during the compilation.
  if (line === undefined || line === "0") return createCodeError(`code does not compile: ${reason}`);
  return createCodeError(`code, line ${line}, column ${column}: ${reason}`);
}

function createStoppingError(): ActionError {
  return new ActionError("OVERLOADED", "the service is stopping", { retryAfter: OVERLOADED_RETRY_SECONDS });
}

function createCodeError(message: string): ActionError {
  return new ActionError("CODE_VALIDATION_FAILED", message);
}
