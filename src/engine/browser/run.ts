/** Types of the request and the outcome of a run in a browser. Isolation keys have no meaning here. */

export interface ConsoleLine {
  /** debug, info, log, warn, error, trace, dir or table. */
  level: string;
  /** Unix time in milliseconds. */
  at: number;
  text: string;
  /** True if the end of the text was cut off. */
  cut?: boolean;
}

/**
 * Script as text, or as the address from which a document loads it. `mode` is the cheapest mode that has everything that the script names;
 * default `document`. `defines` is the global that later scripts use. `content` identifies the text, so that a page that stores it does not
 * receive it again. `canBeTried` is true if runs with it may be tried in `isolate` first (trials.ts). `network` is false if it makes no
 * requests.
 */
export type PageScript =
  | {
      name: string;
      source: string;
      mode?: Mode;
      network?: boolean;
      defines?: string;
      content?: string;
      canBeTried?: boolean;
    }
  | { name: string; url: string };

/**
 * Modes in which a script can be evaluated, the cheapest first (globals.ts). `isolate`: the language and `console`.
 * `network-isolate`: also timers, `fetch`, crypto, URLs and events, at the app's origin. `document`: all that a page
 * has.
 */
export const SANDBOX_MODES = ["isolate", "network-isolate", "document"] as const;
export type Mode = (typeof SANDBOX_MODES)[number];

/** True if code in this mode can make requests. */
export const hasNetwork = (mode: Mode): boolean => mode !== "isolate";

/** A request that a page makes. */
export interface PageRequest {
  method: string;
  url: string;
}

/** A request that the library in a run sends to the service. */
export interface ServiceRequest extends PageRequest {
  headers: Readonly<Record<string, string>>;
  body: string | null;
}

/**
 * Response to such a request. `headers` are those that a page may read. `text` yields parts of 64 Ki to 320 Ki
 * characters (the last one may be shorter), which are read on demand.
 */
export interface ServiceAnswer {
  status: number;
  headers: Readonly<Record<string, string>>;
  text: AsyncIterable<string>;
  /** True if the page receives each part as soon as it arrives. */
  isLive?: boolean;
}

/**
 * Result of a request that code sends to another service: `head` is JSON for the library in the run, `text` the body as text or base64.
 */
export interface OutgoingAnswer {
  head: string;
  text: string;
}

/** Sends a request to another service. `options` is JSON text from the run, unchecked. Rejects only when `signal` is aborted. */
export type SendOutgoing = (options: string, signal: AbortSignal) => Promise<OutgoingAnswer>;

/** Global with the functions that send requests to the service. The client library removes it before the action's code runs. */
export const SERVICE_GLOBAL = "__svcService";
/** Service address for scripts that can only reach other services. No URL starts with it. */
export const NO_SERVICE = "-";

/** Sends requests to the service without the browser's network. */
export interface ServiceClient {
  /** Prefix of the service's addresses: origin and path, with a slash at the end. */
  readonly base: string;
  /** Sends a request as a page's `fetch` would. @throws Error if there is no answer that a page may read, or if `signal` is aborted */
  send(request: ServiceRequest, signal: AbortSignal): Promise<ServiceAnswer>;
}

export const DEFAULT_SOURCE_NAME = "action.js";

/** Request for one run. */
export interface PageRun {
  /** Mode of the run; by default the cheapest mode that has everything which the source and the packages name. */
  mode?: Mode;
  /**
   * Set in a trial in `isolate`: the mode whose other globals are replaced there. If the run uses a replaced one, it
   * ends with the cause `retry`.
   */
  trialOf?: Mode;
  /** False if the run makes no requests. Default true. `isolate` never has a network. */
  network?: boolean;
  /** Runs with the same key may use one browser context in turn. Two keys never share one. */
  isolationKey: string;
  /** The https origin of the page. No server has it, because the service answers the request for the document. */
  origin: string;
  /** Source of the action, which defines `execute`. */
  source: string;
  /** Name of the source in stacks; by default {@link DEFAULT_SOURCE_NAME}. */
  sourceName?: string;
  /** Scripts that are evaluated before the source, in this order. If one fails, the run fails with an error that names it. */
  packages: readonly PageScript[];
  /** JSON text of `context.payload`. */
  payload: string;
  /** JSON text of `context.settings`. */
  settings: string;
  /** Time limit from the moment when the page is ready. Waiting for a page does not count. */
  timeoutMs: number;
  /** Cancels the run, waiting or running. */
  signal?: AbortSignal;
  /** Called with the mode before code is evaluated, or after a successful trial. Called again if the run is repeated in a document. */
  onMode?(mode: Mode): void;
  onConsole?(line: ConsoleLine): void;
  /** Called once for each host that the run contacts, with its port. */
  onHost?(host: string): void;
  /**
   * Checks the address and the referrer of every request of the page, its frames and its workers before it is sent. false blocks the request.
   * Takes some milliseconds of a run with a network, so pass it only if there are secrets.
   */
  mayRequest?(url: string): boolean | Promise<boolean>;
  /**
   * Called for each request that `mayRequest` accepted; ignored without `mayRequest`. Returns further headers, and a callback that receives the
   * status at the end, or null if there was no answer. Returns null if the request is not followed.
   */
  onRequest?(request: PageRequest): { headers: Record<string, string>; endTrace(status: number | null): void } | null;
  /**
   * Client for requests to the service, which scripts in a network isolate get as SERVICE_GLOBAL. Its requests are
   * checked, reported and counted like all others.
   */
  service?: ServiceClient;
  /** Sends requests to other services, for scripts in a network isolate or a document, which get it as SERVICE_GLOBAL. */
  outgoing?: SendOutgoing;
}

/**
 * Cause of a failure: the action's code, a limit, or the engine. `Browsers.run` never returns the last two. `retry`:
 * the isolate lacks something, and the run can be repeated in another mode. `unready`: no code of the run was
 * evaluated.
 */
export type FailureCause = "script" | "timeout" | "memory" | "result" | "browser" | "cancelled" | "retry" | "unready";

export interface RunError {
  name: string;
  message: string;
  stack: string;
  /** True if the end of one of the texts was cut off. */
  cut?: boolean;
}

/**
 * `data` is the JSON text of what `execute` returned, as JSON.stringify gives it (a Date is its ISO text); undefined for
 * undefined, a function or a symbol. A long text is its UTF-8 bytes (pages/long-text.ts). Cyclic values, BigInt and more than
 * RESULT_MAX_BYTES fail with the cause `result`.
 */
export type PageOutcome =
  | { ok: true; data: string | Buffer | undefined }
  | { ok: false; error: RunError; cause: FailureCause };

/** True if the run failed because its calls were too deep: the thread of an isolate has half the stack of a document. */
export const hasOverflowed = (outcome: PageOutcome): boolean =>
  !outcome.ok && outcome.error.message.includes("Maximum call stack size exceeded");

export function failedPageOutcome(cause: FailureCause, name: string, message: string): PageOutcome {
  return { ok: false, cause, error: { name, message, stack: `${name}: ${message}` } };
}
