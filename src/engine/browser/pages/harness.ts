/** Source texts of the scripts that are evaluated in pages and workers before a run, built from the functions of `in-page/`. */
import { RESULT_MAX_BYTES } from "../../../limits.js";
import { ISOLATE_GLOBALS, LENT_CLASSES, LENT_UNNAMED, NAVIGATOR_MEMBERS, NETWORK_ISOLATE_GLOBALS } from "../globals.js";
import {
  AT_ONCE_MAX,
  BODY_MAX_CHARACTERS,
  CALL_MAX_CHARACTERS,
  OUTGOING_AT_ONCE_MAX,
} from "../network/service-calls.js";
import { SERVICE_GLOBAL } from "../run.js";
import { HARNESS_NAME, TEXT_MAX_CHARACTERS } from "./answer.js";
import { FORBIDDEN_MEMBERS } from "./document-policy.js";
import { CONSOLE_BINDING, MESSAGE_CHARACTERS } from "./fresh-document.js";
import { borrowedPlatform } from "./in-page/borrowed-platform.js";
import { boundScope } from "./in-page/bounds.js";
import { childConsole } from "./in-page/child-console.js";
import { codeOfText } from "./in-page/code-of-text.js";
import { harnessCore } from "./in-page/core.js";
import { documentHarness } from "./in-page/document-harness.js";
import { type HarnessLimits, harnessConsole } from "./in-page/harness-console.js";
import { lentPlatform } from "./in-page/lent-platform.js";
import { lentRows } from "./in-page/lent-rows.js";
import { lentTimers } from "./in-page/lent-timers.js";
import { pageTexts } from "./in-page/page-texts.js";
import { realmFaults } from "./in-page/realm-faults.js";
import { realmHarness } from "./in-page/realm-harness.js";
import { realmRows } from "./in-page/realm-rows.js";
import { realmSignals } from "./in-page/realm-signals.js";
import { realmTimers } from "./in-page/realm-timers.js";
import { realmWorker, type ThreadBounds } from "./in-page/realm-worker.js";
import { hostCalls, runCalls } from "./in-page/service-calls.js";
import { shownValues } from "./in-page/shown-values.js";
import { standIns } from "./in-page/stand-ins.js";
import { threadHost } from "./in-page/thread-host.js";
import { visibleAlways } from "./in-page/visible-always.js";

export const CONSOLE_MAX_LINES = 10_000;
export const CONSOLE_MAX_CHARACTERS = 262_144;
export const CONSOLE_FULL = "The console is full: what follows is not kept";

/** Limits of each document and worker. A run can only communicate with its own frames and workers. */
const CHANNELS_MAX = 8;
const CHANNEL_MESSAGES_MAX = 1_000;
const LOCKS_MAX = 1_000;

/** The next run's isolate must exist this long after a run's end, or its page is discarded. In milliseconds. */
export const READY_WITHIN_MS = 500;
/** Storing a run's end and answering its caller take less, also on two slow cores. */
export const PAUSE_MS = 8;

/** The memory of ended realms is only freed with their thread. */
const THREAD_BOUNDS: ThreadBounds = {
  pauseMs: PAUSE_MS,
  readyWithinMs: READY_WITHIN_MS,
  threadRuns: 100,
  lookAfter: 10,
  messageCharacters: MESSAGE_CHARACTERS,
};

/** Maximum size of the platform's objects of all runs of a thread. They are freed with the thread too, and no measurement includes them. */
const LENT_MAX_CHARACTERS = 16 * 1024 * 1024;

const LIMITS: HarnessLimits = {
  resultMaxBytes: RESULT_MAX_BYTES,
  textMaxCharacters: TEXT_MAX_CHARACTERS,
  consoleMaxLines: CONSOLE_MAX_LINES,
  consoleMaxCharacters: CONSOLE_MAX_CHARACTERS,
  consoleFull: CONSOLE_FULL,
};

// biome-ignore lint/suspicious/noExplicitAny: whatever the functions take
function calling(run: (...args: any[]) => unknown, ...args: string[]): string {
  return `(${run.toString()})(${args.join(", ")})`;
}

/**
 * Strict, since `Error.prepareStackTrace` exposes the functions of sloppy code. The directive is inside a function: V8 compiles a text that starts
 * with one again each time.
 */
const named = (source: string): string => `(() => { "use strict"; return ${source} })()\n//# sourceURL=${HARNESS_NAME}`;
const SHOWN = calling(shownValues, String(TEXT_MAX_CHARACTERS));
const CORE = `((shown) => ${calling(harnessCore, JSON.stringify(LIMITS), "shown", calling(harnessConsole, JSON.stringify(LIMITS), "shown"))})(${SHOWN})`;
const TEXTS = calling(pageTexts);
const HOST_CALLS = calling(hostCalls, String(AT_ONCE_MAX), String(OUTGOING_AT_ONCE_MAX));
const RUN_CALLS = calling(runCalls, String(BODY_MAX_CHARACTERS), String(CALL_MAX_CHARACTERS));
const NAVIGATOR = JSON.stringify(NAVIGATOR_MEMBERS);

/** Evaluates to the object whose methods the service calls. No other code in the page has access to it. */
export const DOCUMENT_HARNESS = named(
  calling(documentHarness, CORE, HOST_CALLS, RUN_CALLS, JSON.stringify(SERVICE_GLOBAL)),
);

const BOUND_SCOPE = calling(
  boundScope,
  String(CHANNELS_MAX),
  String(CHANNEL_MESSAGES_MAX),
  String(LOCKS_MAX),
  JSON.stringify(FORBIDDEN_MEMBERS),
);

/** Evaluated in every document and frame of a run before its first line. */
export const DOCUMENT_BOUNDS = named(`[${BOUND_SCOPE}, ${calling(visibleAlways)}]`);

/** Evaluated in every worker that a run starts before its first line. */
export const WORKER_BOUNDS = named(BOUND_SCOPE);

/** Replaces the console of a worker that a run starts. Evaluated before the worker's first line. */
export const CHILD_CONSOLE = named(calling(childConsole, CORE, JSON.stringify(CONSOLE_BINDING)));

/** Harnesses of an isolate's page and of its worker. */
function realmThread(globals: readonly string[], borrows: boolean): { page: string; worker: string } {
  const borrow = borrows
    ? calling(borrowedPlatform, calling(realmSignals), realmRows.toString(), calling(realmTimers), calling(realmFaults))
    : "null";
  const lent = [
    JSON.stringify(LENT_CLASSES),
    JSON.stringify(LENT_UNNAMED),
    calling(lentRows),
    calling(lentTimers),
    String(LENT_MAX_CHARACTERS),
  ];
  const lend = borrows ? calling(lentPlatform, ...lent) : "null";
  const before = [CORE, calling(codeOfText), calling(standIns), borrow, borrows ? RUN_CALLS : "null"];
  const given = [JSON.stringify(SERVICE_GLOBAL), JSON.stringify(globals)];
  const inRealm = named(calling(realmHarness, ...before, ...given));
  const told = [NAVIGATOR, JSON.stringify(THREAD_BOUNDS)];
  return {
    page: named(calling(threadHost, String(borrows))),
    worker: named(calling(realmWorker, JSON.stringify(inRealm), TEXTS, lend, borrows ? HOST_CALLS : "null", ...told)),
  };
}

/** Harnesses of a page that runs its scripts in isolates on one thread. */
export const ISOLATE_THREAD = realmThread(ISOLATE_GLOBALS, false);
export const NETWORK_ISOLATE_THREAD = realmThread(NETWORK_ISOLATE_GLOBALS, true);
