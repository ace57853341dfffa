/** Types of the request for a run in a browser, and of its outcome. */

export interface ConsoleLine {
  level: string;
  /** Time of the call in Unix milliseconds. */
  at: number;
  text: string;
  /** True if the end of the text is missing, because the text was too long. */
  cut?: boolean;
}

/**
 * `mode`: the cheapest mode that has all globals of the script; default `document`. `defines`: name of the global that the script defines.
 * `content`: key of the text in a page's cache. `canBeTried`: true if runs with the script may be tried in `isolate` first (trials.ts).
 */
export type PageScript =
  | {
      name: string;
      source: string;
      mode?: EvaluationMode;
      network?: boolean;
      defines?: string;
      content?: string;
      canBeTried?: boolean;
    }
  | { name: string; url: string };

/** Modes in which a script can be evaluated, the cheapest first (docs/internals/execution.md). */
export const EVALUATION_MODES = ["isolate", "network-isolate", "document"] as const;
export type EvaluationMode = (typeof EVALUATION_MODES)[number];

export const modeHasNetwork = (mode: EvaluationMode): boolean => mode !== "isolate";

export interface HttpRequestOfRun {
  method: string;
  url: string;
}

export interface ServiceRequest extends HttpRequestOfRun {
  headers: Readonly<Record<string, string>>;
  body: string | null;
}

/** `headers` contains only headers that a page may read. `text` reads the next part of the body only when the consumer requests it. */
interface ServiceResponse {
  status: number;
  headers: Readonly<Record<string, string>>;
  text: AsyncIterable<string>;
  /** True if the page must get each part as soon as it arrives, as for an event stream. */
  isLive?: boolean;
}

/** Response of another service. `head` is JSON for the client library; `text` is the body as text or base64. */
export interface EncodedOutgoingResponse {
  head: string;
  text: string;
}

/** Sends a request to another service. `options` is unchecked JSON text of the run. Rejects only if `signal` is aborted. */
export type SendOutgoingRequest = (options: string, signal: AbortSignal) => Promise<EncodedOutgoingResponse>;

/** Global whose functions send requests to this or other services. The client library removes it before the action's code runs. */
export const SERVICE_CLIENT_GLOBAL = "__svcService";
/** Replaces the service's URL in runs that can send requests only to other services. No URL starts with this text. */
export const NO_SERVICE_BASE_URL = "-";

export interface ServiceClient {
  /** Common start of all URLs of the service, with a slash at the end. */
  readonly base: string;
  /** @throws Error if `signal` is aborted, or if a page would not be allowed to read the response */
  send(request: ServiceRequest, signal: AbortSignal): Promise<ServiceResponse>;
}

export const DEFAULT_SOURCE_NAME = "action.js";

export interface PageRunRequest {
  /** By default the cheapest mode that has all globals which the source and the packages use. */
  mode?: EvaluationMode;
  /** Set in a trial in `isolate`: stand-ins replace the globals of this mode. If code needs such a global, the run ends with `retry`. */
  trialForMode?: EvaluationMode;
  /** False if the run sends no requests; default true. The mode `isolate` has no network, even if this is true. */
  network?: boolean;
  /** Runs with the same key may use the same browser context, one after another. Runs with other keys never use it. */
  isolationKey: string;
  /** Origin of the page, with https. No server has this origin: the service itself answers the request for the document. */
  origin: string;
  source: string;
  sourceName?: string;
  /** Scripts that are evaluated before `source`, in this order. If one of them fails, the run fails. */
  packages: readonly PageScript[];
  /** JSON text of `context.payload`. */
  payload: string;
  /** JSON text of `context.settings`. */
  settings: string;
  /**
   * Time limit in milliseconds. A trial and the wait for a page do not count. If a network isolate cannot complete the run, its repetition
   * in a document gets only the remaining time.
   */
  timeoutMs: number;
  signal?: AbortSignal;
  /** Called with the mode before each evaluation of the code; for a trial, after it, and only if the run is not repeated in a document. */
  onMode?(mode: EvaluationMode): void;
  onConsole?(line: ConsoleLine): void;
  /** Called once for each host that the run contacts, as `host:port`. */
  onHost?(host: string): void;
  /** Gets the URL and the referrer of each request; false blocks it. Slow, so pass it only if the run has secrets, a token or traces. */
  mayRequest?(url: string): boolean | Promise<boolean>;
  /**
   * Starts the trace of a request. Called only if `mayRequest` exists and accepts the request. Returns null for no trace. `endTrace` gets
   * the status of the response; null if there was none.
   */
  onRequest?(
    request: HttpRequestOfRun,
  ): { headers: Record<string, string>; endTrace(status: number | null): void } | null;
  /** Sends a network isolate's requests to this service. `mayRequest` and `onRequest` also get these requests. */
  service?: ServiceClient;
  /** Sends requests to other services, for scripts in a network isolate or document (SERVICE_CLIENT_GLOBAL). */
  outgoing?: SendOutgoingRequest;
}

/** `retry`: the run can be repeated in another mode. Callers of `Browsers.run` never get this cause. */
export type RunFailureCause = "script" | "timeout" | "memory" | "result" | "browser" | "cancelled" | "retry";

export interface RunError {
  name: string;
  message: string;
  stack: string;
  /** True if the end of one of these texts is missing, because the text was too long. */
  cut?: boolean;
}

/** `data` is JSON text, or its UTF-8 bytes if it is long; undefined if `execute` returned undefined, a function or a symbol. */
export type PageRunOutcome =
  | { ok: true; data: string | Buffer | undefined }
  | { ok: false; error: RunError; cause: RunFailureCause };

/** True if the code used too much stack. It may succeed in a document, because an isolate has only half the stack of a document. */
export const hasOverflowedStack = (outcome: PageRunOutcome): boolean =>
  !outcome.ok && outcome.error.message.includes("Maximum call stack size exceeded");

export function createFailedPageRunOutcome(cause: RunFailureCause, name: string, message: string): PageRunOutcome {
  return { ok: false, cause, error: { name, message, stack: `${name}: ${message}` } };
}
