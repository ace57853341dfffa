/** Compiles source in an isolate of its own, under a memory and time limit. Never runs it; knows not what it is for. */
import ivm from "isolated-vm";
import { ActionError } from "../errors.js";
import { CODE_CHECK_MEMORY_MB, CODE_CHECK_TIMEOUT_MS } from "../limits.js";

export interface IsolateCheck {
  /** @throws ActionError CODE_VALIDATION_FAILED with V8's message, line and column, or the limit that was passed */
  check(source: string): Promise<void>;
}

export interface IsolateLimits {
  /** Isolates at once. */
  concurrency: number;
  /** At least 8, or V8 does not start. */
  memoryMb: number;
  timeoutMs: number;
}

/** V8's own place, at the end of its message. */
const PLACE = / \[code:(\d+):(\d+)\]$/;
const MESSAGE_MAX_CHARACTERS = 200;

/**
 * At most `concurrency` isolates at once, each fresh: making one costs a millisecond, and nothing of one action's source
 * is ever near another's.
 */
export function createIsolateCheck({
  concurrency = 2,
  memoryMb = CODE_CHECK_MEMORY_MB,
  timeoutMs = CODE_CHECK_TIMEOUT_MS,
}: Partial<IsolateLimits> = {}): IsolateCheck {
  let free = concurrency;
  const waiting: (() => void)[] = [];

  async function acquire(): Promise<void> {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
  }

  function release(): void {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  }

  async function check(source: string): Promise<void> {
    await acquire();
    const compiled = compile(source, memoryMb);
    // A compilation cannot be interrupted, only abandoned: its place stays taken until V8 is through with it.
    const ended = compiled.catch(() => {}).finally(release);
    await within(timeoutMs, ended);
    await compiled;
  }

  return { check };
}

/** @throws ActionError CODE_VALIDATION_FAILED when `ended` takes longer than that */
async function within(timeoutMs: number, ended: Promise<void>): Promise<void> {
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => deadline.reject(failed(`code takes longer than ${timeoutMs} ms to compile`)),
    timeoutMs,
  );
  try {
    await Promise.race([ended, deadline.promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function compile(source: string, memoryMb: number): Promise<void> {
  const isolate = new ivm.Isolate({ memoryLimit: memoryMb });
  try {
    await isolate.compileScript(source, { filename: "code" });
  } catch (error) {
    throw isolate.isDisposed ? failed(`code needs more than ${memoryMb} MB to compile`) : refusal(error);
  } finally {
    if (!isolate.isDisposed) isolate.dispose();
  }
}

function refusal(error: unknown): ActionError {
  const message = error instanceof Error ? error.message : String(error);
  const [, line, column] = PLACE.exec(message) ?? [];
  const reason = message.replace(PLACE, "").slice(0, MESSAGE_MAX_CHARACTERS).toWellFormed();
  // Line 0 is V8's way to say that its own stack ended, not the author's line.
  if (line === undefined || line === "0") return failed(`code does not compile: ${reason}`);
  return failed(`code, line ${line}, column ${column}: ${reason}`);
}

function failed(message: string): ActionError {
  return new ActionError("CODE_VALIDATION_FAILED", message);
}
