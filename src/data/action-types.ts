/**
 * Types of the fields of an action (specification, Resources). The
 * server, Studio and the client library share them, so this file must not contain code.
 */

export type Environment = "server" | "client" | "any";

/** A version of an action: the draft (`master`) or the live version (`production`). */
export type DraftOrLive = "master" | "production";

/** Types of triggers. The API specification defines all of them except `http`, which only this service has. */
export type TriggerType = "manual" | "schedule" | "log" | "analytics" | "http";

/** Filter of a `log` trigger. Without `dataSourceId` every data source matches. */
export interface LogWhere {
  type: string;
  dataSourceId?: number;
}

export type AnalyticsEventType = "analytics.pageView" | "analytics.event";

/** Filter of an `analytics` trigger. Without `data`, every event of the type matches. */
export interface AnalyticsWhere {
  type: AnalyticsEventType;
  data?: Record<string, unknown>;
}

export type HttpMethod = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";

export type SignatureScheme =
  | "standard-webhooks"
  | "stripe"
  | "github"
  | "slack"
  | "shopify"
  | "twilio"
  | "sendgrid"
  | "hmac";

/**
 * Ways in which an `http` trigger checks the caller of a request. `setting` is the key of a private or protected setting that
 * contains the secret, the password or the public key.
 */
export type HttpAuth =
  | { type: "none" }
  | { type: "secret" }
  | { type: "bearer" }
  | { type: "basic"; setting: string }
  | {
      type: "signature";
      scheme: SignatureScheme;
      setting: string;
      /** Maximum difference in seconds between the server's clock and the time in the signature. Default: 300. */
      toleranceSeconds?: number;
      /** Header that contains the signature. This field and the following ones are only for the scheme `hmac`. */
      header?: string;
      algorithm?: "sha1" | "sha256" | "sha512";
      /** Encoding of the signature in the header. */
      encoding?: "hex" | "base64";
      /** Text that precedes the signature in the header, such as `sha256=`. */
      prefix?: string;
      /** Header with the time of signing. If set, the signature covers this time and the body. */
      timestampHeader?: string;
    };

/** Requests that an `http` trigger accepts: each one starts the action. */
export interface HttpWhere {
  /** HTTP method that the trigger accepts. If absent, it accepts all methods. */
  method?: HttpMethod;
  /** Path of one to eight segments. A segment such as `:name` matches any segment of a request's path. */
  path: string;
  auth: HttpAuth;
  /** CORS: origins whose pages may read the response. */
  cors?: { origins: string[] };
  /** `immediately`: responds with 202 once the run is stored. `result` (the default): responds with the result of the run. */
  respond?: "immediately" | "result";
  /**
   * Request header in which the sender sends the ID of its event. The service recognizes repeated requests by this ID.
   */
  idempotencyHeader?: string;
}

/** Trigger: one way to start an action. The specification of the API defines all kinds of triggers except `http`. */
export type Trigger =
  | { trigger: "manual" | "schedule" }
  | { trigger: "log"; where: LogWhere }
  | { trigger: "analytics"; where: AnalyticsWhere }
  | { trigger: "http"; where: HttpWhere };

export type SourceLanguage = "typescript" | "javascript";

/** Source files of an action, from which the service builds the action's code. */
export interface ActionSource {
  language: SourceLanguage;
  /** Contents of the source files, by relative path. */
  files: Record<string, string>;
  /** Source map of the built code as JSON text. Callers never see it. */
  map?: string;
}

/**
 * Conditions on one column of an app user's entry in the data source. The user can run the action only if all
 * conditions hold.
 */
export interface ActionAccessTest {
  equals?: string | number | boolean;
  notequals?: string | number | boolean;
  contains?: string;
}

/**
 * Callers who can run an action by its `manual` trigger. `{ user }` contains conditions for columns: an app user can
 * run the action if the user's entry meets all of them.
 */
export type ActionAccess = "everyone" | "signedIn" | "editors" | { user: Record<string, ActionAccessTest> };

/** Treatment of a new run when the concurrency limit of its action is reached. */
export type ConcurrencyPolicy = "skip" | "queue" | "cancel";

/** Limit of concurrent runs of an action. */
export interface Concurrency {
  /**
   * `skip`: the new run does not start. `queue`: the new run waits. `cancel`: the service cancels the oldest run and
   * starts the new one.
   */
  policy: ConcurrencyPolicy;
  limit: number;
  /**
   * Path of a property of the payload, such as `order.id`. Runs are then limited separately for each value of the
   * property. null: one limit for all runs of the action.
   */
  key: string | null;
}

/** Debouncing of an action: several requests that start it within a short time become one run, which gets the last payload. */
export interface Debounce {
  /** Milliseconds without a further request after which the run starts. */
  delayMs: number;
  /** Maximum total delay of the run by further requests, in milliseconds. */
  maxWaitMs: number;
  /** True to also merge calls of `run` and `runWithResult`, separately for each caller. */
  manual: boolean;
}

/** Optional execution settings of an action. */
export interface RunLimits {
  concurrency?: Concurrency;
  debounce?: Debounce;
  /** Time limit of a run in milliseconds. */
  timeoutMs?: number;
  /**
   * Longest possible delay of the action's scheduled runs, in seconds. The delay is the same for all runs of an action.
   */
  jitterSeconds?: number;
}

/** Run limits in a request that saves an action. null removes a limit. */
export interface LimitData {
  concurrency?: (Pick<Concurrency, "policy"> & Partial<Concurrency>) | null;
  debounce?: (Pick<Debounce, "delayMs"> & Partial<Debounce>) | null;
  timeoutMs?: number | null;
  jitterSeconds?: number | null;
}

/**
 * Reason why a queued run may not start yet: the concurrency limit or the debounce of its action. A run without this
 * reason waits only for an execution slot.
 */
export type RunWait = "concurrency" | "debounce";

/**
 * Script of a dependency of an action. The service sets the optional fields only for scripts that it stores:
 * npm packages, and scripts of other hosts.
 */
export interface Asset {
  name: string;
  url: string;
  path: string;
  /** Exact version of an npm package. */
  version?: string;
  /** Licence as the package states it, usually in SPDX. */
  licence?: string;
  /** Subresource integrity of the served script: `sha256-` and the hash in base64. */
  integrity?: string;
  bytes?: number;
  /** Name of the global variable that the script of an npm package defines. */
  global?: string;
  /**
   * True if the script needs `eval` or a similar function. Pages that run client actions forbid these functions.
   * Otherwise absent.
   */
  usesEval?: boolean;
  /** True if the URL returned other content at the last save. Runs still use the script that was stored before. */
  changed?: boolean;
  /**
   * True if the script is not stored yet because the host did not respond. Runs and pages load it from the host until a later save or
   * publish can store it.
   */
  unreached?: boolean;
}

/**
 * Asset as the database stores it. `url` is absent if this service serves the script, because the service's address may
 * change; rows of older releases may still have a `url`. `sha256` is the hash of the stored script in hexadecimal.
 */
export type StoredAsset = Omit<Asset, "url"> & { url?: string; sha256?: string };
