/** The words in which the browser mechanism is asked for a run and answers. Knows no app and no action: keys are opaque. */

export interface ConsoleLine {
  /** debug, info, log, warn, error, trace, dir or table. */
  level: string;
  /** Unix time in milliseconds. */
  at: number;
  text: string;
  /** Its end was cut off. */
  cut?: boolean;
}

/**
 * A script as text, or as the address from which a document loads it. `mode`: the cheapest mode that has all that the script names; default
 * `document`. `defines`: the global that later scripts use. `content`: identifies the text, so that a page that stores it is not sent it
 * again. `mayDoWithLess`: runs with it may be tried in `isolate` first (trials.ts). `network`: false if it makes no requests.
 */
export type PageScript =
  | {
      name: string;
      source: string;
      mode?: Mode;
      network?: boolean;
      defines?: string;
      content?: string;
      mayDoWithLess?: boolean;
    }
  | { name: string; url: string };

/**
 * Where a script is evaluated, the cheapest first (globals.ts). `isolate`: the language and `console`. `network-isolate`: also timers,
 * `fetch`, crypto, URLs and events, at the app's origin. `document`: all that a page has.
 */
export const MODES = ["isolate", "network-isolate", "document"] as const;
export type Mode = (typeof MODES)[number];

/** True if code in this mode can make requests. */
export const hasNetwork = (mode: Mode): boolean => mode !== "isolate";

/** A request that a page makes. */
export interface PageRequest {
  method: string;
  url: string;
}

/** What the library in a run asks of the service that performs it. */
export interface ServiceRequest extends PageRequest {
  headers: Readonly<Record<string, string>>;
  body: string | null;
}

/** `headers`: those that a page may read; `text` comes by parts of 64 Ki to 320 Ki characters, the last of them shorter, read as it is asked for. */
export interface ServiceAnswer {
  status: number;
  headers: Readonly<Record<string, string>>;
  text: AsyncIterable<string>;
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

/** Where scripts find the way to the service, `{base, call}`, before the author's code: the first that knows it takes it away. */
export const SERVICE_GLOBAL = "__svcService";
/** Stands for the service's address where scripts reach other services only: no address begins with it. */
export const NO_SERVICE = "-";

/** The way to that service without the browser's network between. */
export interface ServiceWay {
  /** With what its addresses begin: origin and path, with a closing slash. */
  readonly base: string;
  /** Sends what a page's `fetch` might have sent. @throws where there is no answer, or none that a page may read; when `signal` is aborted */
  send(request: ServiceRequest, signal: AbortSignal): Promise<ServiceAnswer>;
}

export const DEFAULT_SOURCE_NAME = "action.js";

/** One script to run to its end. */
export interface PageRun {
  /** Default: the cheapest mode that has all that the source and the packages name. */
  mode?: Mode;
  /** Set in a trial in `isolate`: the mode whose other globals have stand-ins there. Using a stand-in ends the run with the cause `retry`. */
  trialOf?: Mode;
  /** false: the run makes no requests. Default true; `isolate` never has a network. */
  network?: boolean;
  /** What may share a browser context over time; two keys never do. */
  isolationKey: string;
  /** The https origin of the page; it exists nowhere, its document is answered over the protocol. */
  origin: string;
  /** The author's source; defines `execute`. */
  source: string;
  /** Name of the author's source in stacks; default {@link DEFAULT_SOURCE_NAME}. */
  sourceName?: string;
  /** Evaluated before it, in order. A failing one fails the run, naming it. */
  packages: readonly PageScript[];
  /** JSON text of `context.payload`. */
  payload: string;
  /** JSON text of `context.settings`. */
  settings: string;
  /** Counted from the moment the page is ready, so that waiting for a place costs the run nothing. */
  timeoutMs: number;
  /** Cancels the run, waiting or running. */
  signal?: AbortSignal;
  /** Called with the mode before code is evaluated, or after a successful trial. Called again if the run is repeated in a document. */
  onMode?(mode: Mode): void;
  onConsole?(line: ConsoleLine): void;
  /** Called once for each host that the run contacts, with its port. */
  onHost?(host: string): void;
  /**
   * Judges the address of every request of the page, its frames and its workers, and the one that it gives as where it comes from,
   * before anything of it is sent; false blocks the request. Costs a networked run some milliseconds, so give it only where there is something to keep in.
   */
  mayRequest?(url: string): boolean | Promise<boolean>;
  /**
   * Told of each request that `mayRequest` let through, and heeded only beside it: headers to send along, and whom to tell how it ended,
   * by its status, or null where there was no answer. null: it is nobody's concern.
   */
  onRequest?(request: PageRequest): { headers: Record<string, string>; end(status: number | null): void } | null;
  /** Given to the scripts of a network isolate, under SERVICE_GLOBAL: their requests are judged, followed and counted as any other. */
  service?: ServiceWay;
  /** Given to the scripts of a network isolate and of a document, under SERVICE_GLOBAL, for requests to other services. */
  outgoing?: SendOutgoing;
}

/**
 * Why a run failed: the author's code, a limit, or the machinery. `Browsers.run` never returns the last two. `retry`: the isolate lacks
 * something, and the run can be repeated in another mode. `unready`: no code of the run was evaluated.
 */
export type FailureCause = "script" | "timeout" | "memory" | "result" | "browser" | "cancelled" | "retry" | "unready";

export interface RunError {
  name: string;
  message: string;
  stack: string;
  /** The end of one of them was cut off. */
  cut?: boolean;
}

/**
 * `data` is the JSON text of what `execute` returned, as JSON.stringify gives it (a Date is its ISO text); undefined for
 * undefined, a function or a symbol. Cyclic values, BigInt and more than RESULT_MAX_BYTES fail with the cause `result`.
 */
export type PageOutcome = { ok: true; data: string | undefined } | { ok: false; error: RunError; cause: FailureCause };

/** True if the run failed because its calls were too deep: the thread of an isolate has half the stack of a document. */
export const hasOverflowed = (outcome: PageOutcome): boolean =>
  !outcome.ok && outcome.error.message.includes("Maximum call stack size exceeded");

export function failed(cause: FailureCause, name: string, message: string): PageOutcome {
  return { ok: false, cause, error: { name, message, stack: `${name}: ${message}` } };
}
