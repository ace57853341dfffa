/** Builds the scripts that pages and workers evaluate before a run, from the source text of the functions in `in-page/`. */
import { CONCURRENT_OUTGOING_REQUESTS_PER_RUN, RESULT_MAX_BYTES } from "../../../limits.js";
import {
  ISOLATE_GLOBALS,
  NETWORK_ISOLATE_CLASSES,
  NETWORK_ISOLATE_GLOBALS,
  NETWORK_ISOLATE_NON_GLOBAL_CLASSES,
  TRIAL_NAVIGATOR_MEMBERS,
} from "../globals.js";
import {
  CONCURRENT_SERVICE_REQUESTS_MAX,
  SERVICE_CALL_MAX_CHARACTERS,
  SERVICE_REQUEST_BODY_MAX_CHARACTERS,
} from "../network/service-calls.js";
import { SERVICE_CLIENT_GLOBAL } from "../run.js";
import { ERROR_OR_CONSOLE_TEXT_MAX_CHARACTERS, HARNESS_SOURCE_NAME } from "./answer.js";
import { FORBIDDEN_GLOBAL_MEMBERS } from "./document-policy.js";
import { CONSOLE_BINDING_NAME, DEVTOOLS_MESSAGE_MAX_CHARACTERS } from "./fresh-document.js";
import { limitGlobalScope } from "./in-page/bounds.js";
import { createHarnessCore } from "./in-page/core.js";
import { createDocumentHarness } from "./in-page/document-harness.js";
import { createConsoleInstaller, type HarnessLimits, replaceWorkerConsole } from "./in-page/harness-console.js";
import { createWorkerPlatform } from "./in-page/host-platform.js";
import { createRealmHarness } from "./in-page/realm-harness.js";
import { createRealmPlatformInstaller } from "./in-page/realm-platform.js";
import { createRealmWorker, type ThreadLimits } from "./in-page/realm-worker.js";
import { replaceThread } from "./in-page/replace-thread.js";
import { createRowCodecFactory } from "./in-page/rows.js";
import { createHostServiceCalls, createServiceOpener } from "./in-page/service-calls.js";
import { createStandInDefiner } from "./in-page/stand-ins.js";
import { createValueFormatter } from "./in-page/value-formatter.js";
import { makeDocumentAlwaysVisible } from "./in-page/visible-always.js";

export const CONSOLE_MAX_LINES = 10_000;
export const CONSOLE_MAX_CHARACTERS = 262_144;
export const CONSOLE_FULL_MESSAGE = "The console is full: further lines are not stored";

const BROADCAST_CHANNELS_MAX = 8;
const BROADCAST_MESSAGES_MAX = 1_000;
/** Maximum number of locks that a document may request. Workers have no limit (bounds.ts). */
const LOCKS_MAX = 1_000;

/** Limits of a worker thread. The memory of its ended ShadowRealms (one per run) is freed only when the thread ends. */
export const THREAD_LIMITS: ThreadLimits = {
  runsMax: 200,
  measureAtCost: 10,
  messageMaxCharacters: DEVTOOLS_MESSAGE_MAX_CHARACTERS,
};

/** Maximum size of a thread's platform objects, such as blobs. Heap measurements omit them, and only the thread's end frees them. */
const HOST_OBJECTS_MAX_CHARACTERS = 16 * 1024 * 1024;

const HARNESS_LIMITS: HarnessLimits = {
  resultMaxBytes: RESULT_MAX_BYTES,
  consoleMaxLines: CONSOLE_MAX_LINES,
  consoleMaxCharacters: CONSOLE_MAX_CHARACTERS,
  consoleFullMessage: CONSOLE_FULL_MESSAGE,
};

/** Returns the source text of a call of `callee`. The arguments are source texts too. */
// biome-ignore lint/suspicious/noExplicitAny: the functions have different parameters
function createCallCode(callee: (...args: any[]) => unknown, ...args: string[]): string {
  return `(${callee.toString()})(${args.join(", ")})`;
}

/** Strict mode hides the script's functions from `Error.prepareStackTrace`. Only a function is strict, so that V8 can cache the script. */
const createStrictScript = (source: string): string =>
  `(() => { "use strict"; return ${source} })()\n//# sourceURL=${HARNESS_SOURCE_NAME}`;
const FORMATTER_CODE = createCallCode(createValueFormatter, String(ERROR_OR_CONSOLE_TEXT_MAX_CHARACTERS));
const HARNESS_CORE_CODE = `((formatter) => ${createCallCode(createHarnessCore, JSON.stringify(HARNESS_LIMITS), "formatter", createCallCode(createConsoleInstaller, JSON.stringify(HARNESS_LIMITS), "formatter"))})(${FORMATTER_CODE})`;
const HOST_SERVICE_CALLS_CODE = createCallCode(
  createHostServiceCalls,
  String(CONCURRENT_SERVICE_REQUESTS_MAX),
  String(CONCURRENT_OUTGOING_REQUESTS_PER_RUN),
);
const SERVICE_OPENER_CODE = createCallCode(
  createServiceOpener,
  String(SERVICE_REQUEST_BODY_MAX_CHARACTERS),
  String(SERVICE_CALL_MAX_CHARACTERS),
  JSON.stringify(SERVICE_CLIENT_GLOBAL),
);
const ROW_CODEC_CODE = createCallCode(createRowCodecFactory);
const NAVIGATOR_MEMBERS_JSON = JSON.stringify(TRIAL_NAVIGATOR_MEMBERS);

/** The script returns an object whose methods the service calls, and to which no other code in the page has access. */
export const DOCUMENT_HARNESS_SCRIPT = createStrictScript(
  createCallCode(
    createDocumentHarness,
    HARNESS_CORE_CODE,
    HOST_SERVICE_CALLS_CODE,
    SERVICE_OPENER_CODE,
    String(DEVTOOLS_MESSAGE_MAX_CHARACTERS),
  ),
);

const LIMIT_SCOPE_CODE = createCallCode(
  limitGlobalScope,
  String(BROADCAST_CHANNELS_MAX),
  String(BROADCAST_MESSAGES_MAX),
  String(LOCKS_MAX),
  JSON.stringify(FORBIDDEN_GLOBAL_MEMBERS),
);

export const DOCUMENT_LIMITS_SCRIPT = createStrictScript(
  `[${LIMIT_SCOPE_CODE}, ${createCallCode(makeDocumentAlwaysVisible)}]`,
);

export const WORKER_LIMITS_SCRIPT = createStrictScript(LIMIT_SCOPE_CODE);

export const WORKER_CONSOLE_SCRIPT = createStrictScript(
  createCallCode(replaceWorkerConsole, HARNESS_CORE_CODE, JSON.stringify(CONSOLE_BINDING_NAME)),
);

function createIsolateHarnessScripts(
  keptGlobals: readonly string[],
  { hasNetwork }: { hasNetwork: boolean },
): { page: string; worker: string } {
  const sourceIfNetwork = (source: string) => (hasNetwork ? source : "null");
  const realmPlatformSource = createCallCode(createRealmPlatformInstaller, ROW_CODEC_CODE);
  const hostPlatformSource = createCallCode(
    createWorkerPlatform,
    JSON.stringify(NETWORK_ISOLATE_CLASSES),
    JSON.stringify(NETWORK_ISOLATE_NON_GLOBAL_CLASSES),
    ROW_CODEC_CODE,
    String(HOST_OBJECTS_MAX_CHARACTERS),
  );
  const realmSource = createCallCode(
    createRealmHarness,
    HARNESS_CORE_CODE,
    createCallCode(createStandInDefiner),
    sourceIfNetwork(realmPlatformSource),
    sourceIfNetwork(SERVICE_OPENER_CODE),
    JSON.stringify(keptGlobals),
  );
  const workerSource = createCallCode(
    createRealmWorker,
    JSON.stringify(createStrictScript(realmSource)),
    sourceIfNetwork(hostPlatformSource),
    sourceIfNetwork(HOST_SERVICE_CALLS_CODE),
    NAVIGATOR_MEMBERS_JSON,
    JSON.stringify(THREAD_LIMITS),
  );
  return {
    page: createStrictScript(createCallCode(replaceThread, String(hasNetwork))),
    worker: createStrictScript(workerSource),
  };
}

export const ISOLATE_HARNESS_SCRIPTS = createIsolateHarnessScripts(ISOLATE_GLOBALS, { hasNetwork: false });
export const NETWORK_ISOLATE_HARNESS_SCRIPTS = createIsolateHarnessScripts(NETWORK_ISOLATE_GLOBALS, {
  hasNetwork: true,
});
