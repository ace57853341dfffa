/** Reads the answer of the harness (the service's script in a page). Checks each field, because the run may control the page. */
import { RESULT_MAX_BYTES } from "../../../limits.js";
import { createFailedPageRunOutcome, DEFAULT_SOURCE_NAME, type PageRunOutcome } from "../run.js";
import { correctFirstLineStackColumns } from "./action-script.js";
import type { HarnessFailure } from "./in-page/core.js";

/** Maximum length of an error text or console line that the page sends. The page truncates longer texts. */
export const ERROR_OR_CONSOLE_TEXT_MAX_CHARACTERS = 16_384;

/** Answer of an isolate when the code of the run uses a global that the isolate does not have. */
export const NEEDS_OTHER_MODE_ANSWER = "needs-more";
const UNREADABLE_MESSAGE = "The result of the page could not be read";
const MISSING_GLOBAL_MESSAGE = "The run needs a global or function that its isolate does not have";
const ERROR_PREFIX = "error ";
const DATA_PREFIX = "data ";

/** Source name of the harness (the service's script in a page). Its stack frames are removed from stack traces. */
export const HARNESS_SOURCE_NAME = "svc-harness.js";

/** In patterns for the frames of a stack, white space excludes line breaks. Otherwise, a text of line breaks would take quadratic time. */
const HARNESS_FRAME_PATTERN = /\n[ \t]+at [^\n]*svc-harness\.js:\d+:\d+\)?/g;
const EVAL_FRAME_PATTERN = /\n[ \t]+at eval \(<anonymous>\)/g;
const FRAME_IN_EVAL_PATTERN = /^([ \t]+at )eval \(([^()\n]+:\d+:\d+)\)$/gm;
const FRAME_START_PATTERN = /^[ \t]+at /m;

const APPEND_CHILD_PREFIX_PATTERN = /^Failed to execute 'appendChild' on 'Node': /;

function readStringOrFallback(value: unknown, fallback: string): string {
  return typeof value === "string" ? value.slice(0, ERROR_OR_CONSOLE_TEXT_MAX_CHARACTERS).toWellFormed() : fallback;
}

export const isProbablyTruncated = (value: unknown): boolean =>
  typeof value === "string" && value.length >= ERROR_OR_CONSOLE_TEXT_MAX_CHARACTERS;

export const removeHarnessFrames = (stack: string): string => stack.replace(HARNESS_FRAME_PATTERN, "");

/** Removes frames of the harness. If no frame is left, as for a syntax error of a package, adds a frame with the position `at`. */
function cleanStack(stack: string, at: string): string {
  const frames = removeHarnessFrames(stack).replace(EVAL_FRAME_PATTERN, "").replace(FRAME_IN_EVAL_PATTERN, "$1$2");
  return at === "" || FRAME_START_PATTERN.test(frames) ? frames : `${frames}\n    at ${at}`;
}

function readFailure(json: string, sourceName: string): PageRunOutcome {
  const failure = JSON.parse(json) as Partial<HarnessFailure>;
  const name = readStringOrFallback(failure.name, "Error");
  const message = readStringOrFallback(failure.message, "").replace(APPEND_CHILD_PREFIX_PATTERN, "");
  const isCut = [failure.name, failure.message, failure.stack].some(isProbablyTruncated);
  // If the page truncated the stack, its end is missing, so the position of the error is not added.
  const stack = correctFirstLineStackColumns(
    cleanStack(readStringOrFallback(failure.stack, name), isCut ? "" : readStringOrFallback(failure.at, "")),
    sourceName,
  );
  const error = { name, message, stack, ...(isCut && { cut: isCut }) };
  return { ok: false, cause: failure.cause === "result" ? "result" : "script", error };
}

export function parsePageAnswer(answer: unknown, name = DEFAULT_SOURCE_NAME): PageRunOutcome {
  const isLong = Buffer.isBuffer(answer);
  if (!isLong && typeof answer !== "string")
    return createFailedPageRunOutcome("browser", "Error", "The page returned no result of the run");
  const start = isLong ? answer.toString("latin1", 0, ERROR_PREFIX.length) : answer;
  try {
    if (answer === "undefined") return { ok: true, data: undefined };
    if (answer === NEEDS_OTHER_MODE_ANSWER) return createFailedPageRunOutcome("retry", "Error", MISSING_GLOBAL_MESSAGE);
    if (start.startsWith(ERROR_PREFIX)) return readFailure(String(answer).slice(ERROR_PREFIX.length), name);
  } catch {
    return createFailedPageRunOutcome("browser", "Error", UNREADABLE_MESSAGE);
  }
  if (!start.startsWith(DATA_PREFIX)) return createFailedPageRunOutcome("browser", "Error", UNREADABLE_MESSAGE);
  const data = isLong ? answer.subarray(DATA_PREFIX.length) : answer.slice(DATA_PREFIX.length);
  if (Buffer.byteLength(data) <= RESULT_MAX_BYTES) return { ok: true, data };
  const mb = RESULT_MAX_BYTES / 1024 / 1024;
  return createFailedPageRunOutcome("result", "RangeError", `The result of execute is larger than ${mb} MB`);
}
