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
 * A script by its text, or by the address from which a document loads it. `realm`: the least that holds it; default a document. `defines`:
 * the global that later scripts find it under. `content`: names the text for good, so that a page which has it is not sent it again.
 * `mayDoWithLess`: that realm has all that it names, of which it may have no need (trials.ts). `fitsFetch`: a realm with FETCH_GLOBALS holds it as well.
 */
export type PageScript =
  | {
      name: string;
      source: string;
      realm?: RealmKind;
      defines?: string;
      content?: string;
      mayDoWithLess?: boolean;
      fitsFetch?: boolean;
    }
  | { name: string; url: string };

/**
 * Where a script is evaluated, by what that costs: in a realm with LANGUAGE_GLOBALS, in one with FETCH_GLOBALS that has the app's origin and
 * its way out, in a worker with WORKER_GLOBALS and no way out, in one with NETWORK_GLOBALS and with both, in a document with all that a page
 * has, storage too. Each has what those before it have, but for the worker, which cannot ask for anything.
 */
export const REALM_KINDS = ["language", "fetch", "worker", "network", "document"] as const;
export type RealmKind = (typeof REALM_KINDS)[number];

/** Whether a run there can reach anything. */
export const hasNetwork = (realm: RealmKind): boolean => ["fetch", "network", "document"].includes(realm);

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

/** Where scripts find the way to the service, `{base, call}`, before the author's code: the first that knows it takes it away. */
export const SERVICE_GLOBAL = "__svcService";

/** The way to that service without the browser's network between. */
export interface ServiceWay {
  /** With what its addresses begin: origin and path, with a closing slash. */
  readonly base: string;
  /** Sends what a page's `fetch` might have sent. @throws where there is no answer, or none that a page may read; when `signal` is aborted */
  send(request: ServiceRequest, signal: AbortSignal): Promise<ServiceAnswer>;
}

/** One script to run to its end in a realm of its own. */
export interface PageRun {
  /** Default: the least that holds the source and the packages. Where `language` does not hold it, a worker does. `mayRequest` and `onHost` have something to do only where there is a network. */
  realm?: RealmKind;
  /** In a realm of the language: the one whose other names are stood in for there. Touched, one ends the run with the cause `realm`. */
  trialOf?: RealmKind;
  /** Asked whenever the run asks for something, which leaves its page when that says so; false: it does not. Heeded where it has a way out of its own. */
  mayLeave?(): Promise<boolean>;
  /** What may share a browser context over time; two keys never do. */
  isolationKey: string;
  /** The https origin of the page; it exists nowhere, its document is answered over the protocol. */
  origin: string;
  /** The author's source; defines `execute`. */
  source: string;
  /** The author's source in stacks; default `action.js`. */
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
  /**
   * Called before anything of the run is evaluated, or when its trial in a realm of the language has held; and again where what began in a
   * realm with `fetch` begins anew in a worker, since its page ended before anybody had heard of it.
   */
  onRealm?(realm: RealmKind): void;
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
  /** Given to the scripts of a worker with a network, under SERVICE_GLOBAL: their requests are judged, followed and counted as any other. */
  service?: ServiceWay;
}

/**
 * Why a run failed: the author's code, a limit, or the machinery. Of two nobody else hears. `realm`: one that needs more than a realm of the
 * language, or whose page was ended there; `unready`: nothing of it was evaluated.
 */
export type FailureCause = "script" | "timeout" | "memory" | "result" | "browser" | "cancelled" | "realm" | "unready";

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

export function failed(cause: FailureCause, name: string, message: string): PageOutcome {
  return { ok: false, cause, error: { name, message, stack: `${name}: ${message}` } };
}
