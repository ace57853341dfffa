/**
 * Types of the fields of an action (specification, Resources). The server, Studio and the client library share this file, so it must not
 * contain code.
 */

export type Environment = "server" | "client" | "any";

/** A version of an action: the draft (`master`) or the live version (`production`). */
export type DraftOrLive = "master" | "production";

/** The API specification defines all of these types except `http`, which only this service has. */
export type TriggerType = "manual" | "schedule" | "log" | "analytics" | "http";

/** Filter of a `log` trigger. Without `dataSourceId`, events of every data source match. */
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
 * Ways in which an `http` trigger authenticates requests. `setting` is the key of a private or protected setting that contains the secret,
 * password or public key.
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
      /** Maximum difference in seconds between the server's clock and the time of signing. Default: 300. */
      toleranceSeconds?: number;
      /** Header that contains the signature. This field and the following fields exist only for the scheme `hmac`. */
      header?: string;
      algorithm?: "sha1" | "sha256" | "sha512";
      /** Encoding of the signature in the header. */
      encoding?: "hex" | "base64";
      /** Text that precedes the signature in the header, such as `sha256=`. */
      prefix?: string;
      /** Header with the time of signing. If this field is set, the signature covers the time and the body. */
      timestampHeader?: string;
    };

/**
 * Requests that an `http` trigger accepts. An accepted request starts the action, unless it repeats an event and gets the response of the
 * earlier run.
 */
export interface HttpWhere {
  method?: HttpMethod;
  /** Path of one to eight segments. A segment such as `:name` matches any segment of a request's path. */
  path: string;
  auth: HttpAuth;
  /** Origins whose pages may read the response (CORS). */
  cors?: { origins: string[] };
  /** `immediately`: the response is 202 as soon as the run is stored. `result` (the default): the response has the result of the run. */
  respond?: "immediately" | "result";
  /** Name of the request header with the sender's event ID, by which the service recognizes repeated requests. */
  idempotencyHeader?: string;
}

/** One way to start an action. The specification of the API defines all kinds except `http`. */
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
  /** Source map of the built code as JSON text. Responses of the API do not contain it. */
  map?: string;
}

/** Conditions on one column of an app user's entry in the data source of users. All conditions must be met. */
export interface ActionAccessTest {
  equals?: string | number | boolean;
  notequals?: string | number | boolean;
  contains?: string;
}

/**
 * Callers who can run an action by its `manual` trigger. `{ user }` contains conditions by column: a signed-in app user can run the action
 * if the user's entry meets all of them.
 */
export type ActionAccess = "everyone" | "signedIn" | "editors" | { user: Record<string, ActionAccessTest> };

export type ConcurrencyPolicy = "skip" | "queue" | "cancel";

/** Limit of concurrent runs of an action. */
export interface Concurrency {
  /** If the limit is reached: `skip` does not start the new run, `queue` lets it wait, `cancel` cancels the oldest run for the new one. */
  policy: ConcurrencyPolicy;
  limit: number;
  /** Path in the payload, such as `order.id`. Each value at this path has a separate limit. null: one limit for all runs of the action. */
  key: string | null;
}

/** Debouncing of an action: requests that start it within a short time become one run with the last payload. */
export interface Debounce {
  /** Milliseconds without a further request after which the run starts. */
  delayMs: number;
  /** Maximum milliseconds by which further requests delay the run. */
  maxWaitMs: number;
  /** True if the debounce also applies to calls of `run` and `runWithResult`, separately for each caller. */
  manual: boolean;
}

/** Optional execution settings of an action. */
export interface RunLimits {
  concurrency?: Concurrency;
  debounce?: Debounce;
  /** Time limit of a run in milliseconds. */
  timeoutMs?: number;
  /** Maximum delay in seconds of the action's scheduled runs. All runs of one action have the same delay. */
  jitterSeconds?: number;
}

/** `RunLimits` in a request that saves an action. null removes a limit. */
export interface LimitData {
  concurrency?: (Pick<Concurrency, "policy"> & Partial<Concurrency>) | null;
  debounce?: (Pick<Debounce, "delayMs"> & Partial<Debounce>) | null;
  timeoutMs?: number | null;
  jitterSeconds?: number | null;
}

/** Reason why a queued run must wait although a slot may be free: the concurrency limit or the debounce of its action. */
export type RunWaitReason = "concurrency" | "debounce";

/**
 * Script of a dependency of an action. The service stores the scripts of npm packages and of URLs on other hosts. A script that the service
 * could not store has the field `unreached`. Only stored scripts have the other optional fields.
 */
export interface Asset {
  name: string;
  url: string;
  path: string;
  /** Exact version of an npm package. */
  version?: string;
  /** Licence that the package states, usually an SPDX name. */
  licence?: string;
  /** Value for the HTML attribute `integrity`: `sha256-` and the hash of the script in base64. */
  integrity?: string;
  bytes?: number;
  global?: string;
  /** True if the script needs `eval` or a similar function. Pages that run client actions forbid these functions. */
  usesEval?: boolean;
  /** True if the URL's content differed from the stored script when a save last downloaded it. Runs still use the stored script. */
  changed?: boolean;
  /** True if the host did not respond, so that the script is not stored. Runs and pages load the script from the host. */
  unreached?: boolean;
}

/**
 * Asset as the database stores it. `url` is absent if this service serves the script, because the service's URL may change. `sha256` is the
 * hash of the stored script in hexadecimal.
 */
export type StoredAsset = Omit<Asset, "url"> & { url?: string; sha256?: string };
