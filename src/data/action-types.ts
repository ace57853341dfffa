/** Fields of an action (specification, Resources): one definition for the server, Studio and the client library. Only types. */

export type Environment = "server" | "client" | "any";

/** The draft, and what live apps run. */
export type Copy = "master" | "production";

/** `http` is this service's own; the other four are the specification's. */
export type TriggerType = "manual" | "schedule" | "log" | "analytics" | "http";

/** Filter of a `log` trigger. Without `dataSourceId` every data source matches. */
export interface LogWhere {
  type: string;
  dataSourceId?: number;
}

export type AnalyticsEventType = "analytics.pageView" | "analytics.event";

/** Filter of an `analytics` trigger. Without `data` every event of the type matches. */
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

/** How a request to an `http` trigger proves itself. `setting` names a `_` or `__` setting of the app. */
export type HttpAuth =
  | { type: "none" }
  | { type: "secret" }
  | { type: "bearer" }
  | { type: "basic"; setting: string }
  | {
      type: "signature";
      scheme: SignatureScheme;
      setting: string;
      /** Maximum difference to the time in the signature; 300 by default. */
      toleranceSeconds?: number;
      /** Of `hmac`: the header with the signature, the digest, its text form, text before it, and the header with a signed time. */
      header?: string;
      algorithm?: "sha1" | "sha256" | "sha512";
      encoding?: "hex" | "base64";
      prefix?: string;
      timestampHeader?: string;
    };

/** Requests that an `http` trigger answers. */
export interface HttpWhere {
  /** Absent: all methods. */
  method?: HttpMethod;
  /** One to eight segments; `:name` matches any one segment. */
  path: string;
  auth: HttpAuth;
  /** Origins whose pages may read the answer. */
  cors?: { origins: string[] };
  /** `immediately`: 202 once the run is stored. Absent: the result of the run. */
  respond?: "immediately" | "result";
  /** Header with the ID of the event, by which repeats are found. */
  idempotencyHeader?: string;
}

/** One way to start an action. */
export type Trigger =
  | { trigger: "manual" | "schedule" }
  | { trigger: "log"; where: LogWhere }
  | { trigger: "analytics"; where: AnalyticsWhere }
  | { trigger: "http"; where: HttpWhere };

export type SourceLanguage = "typescript" | "javascript";

/** Files of an action, from which the service builds its code. */
export interface ActionSource {
  language: SourceLanguage;
  /** Texts by relative path. */
  files: Record<string, string>;
  /** Source map of the built code, JSON. Callers never see it. */
  map?: string;
}

/** Tests of one column of an app user's entry, all of which must hold. */
export interface ActionAccessTest {
  equals?: string | number | boolean;
  notequals?: string | number | boolean;
  contains?: string;
}

/** Who may run an action on demand with a runtime token (contract, section 7). `user`: app users whose columns meet every test. */
export type ActionAccess = "everyone" | "signedIn" | "editors" | { user: Record<string, ActionAccessTest> };

/** What becomes of a run for which there is no place under its action's limit. */
export type ConcurrencyPolicy = "skip" | "queue" | "cancel";

/** How many runs of an action there may be at once. */
export interface Concurrency {
  /** `skip`: the new run does not start; `queue`: it waits; `cancel`: the oldest one is cancelled for it. */
  policy: ConcurrencyPolicy;
  limit: number;
  /** Path of a property of the payload, such as `order.id`: runs count with those of the same value. null: with all. */
  key: string | null;
}

/** Starts that follow each other closely become one run, with the payload of the last. */
export interface Debounce {
  /** Milliseconds without another start. */
  delayMs: number;
  /** The longest wait in milliseconds, however many follow. */
  maxWaitMs: number;
  /** Also runs on demand, those of one caller each. */
  manual: boolean;
}

/** What an author may set of how an action runs, each only where it is set. */
export interface RunLimits {
  concurrency?: Concurrency;
  debounce?: Debounce;
  /** Milliseconds that a run may take. */
  timeoutMs?: number;
  /** Scheduled runs start up to so many seconds after their tick, always at the same offset. */
  jitterSeconds?: number;
}

/** The same as it is given: null for none. */
export interface LimitData {
  concurrency?: (Pick<Concurrency, "policy"> & Partial<Concurrency>) | null;
  debounce?: (Pick<Debounce, "delayMs"> & Partial<Debounce>) | null;
  timeoutMs?: number | null;
  jitterSeconds?: number | null;
}

/** What a run waits for before it waits for a place. */
export type RunWait = "concurrency" | "debounce";

/** What a dependency loads. Beyond `path` it is of scripts that the service keeps by their content: packages from npm, addresses elsewhere. */
export interface Asset {
  name: string;
  url: string;
  path: string;
  /** Of an npm package: the exact one. */
  version?: string;
  /** As the package states it, SPDX as a rule. */
  licence?: string;
  /** Of the script as it is served: `sha256-` and the hash in base64 (Subresource Integrity). */
  integrity?: string;
  bytes?: number;
  /** The global name under which code finds an npm package. */
  global?: string;
  /** It makes code of text, which pages of client actions forbid; absent where it does not, or does without. */
  usesEval?: boolean;
  /** An address served something else when the action was saved last; the script is the one that was kept before. */
  changed?: boolean;
  /** Not stored yet, because the host did not answer: runs and pages load it from there, until a save or a publish that reaches it. */
  unreached?: boolean;
}

/**
 * An asset as a row stores it: without `url` if this service serves it, because its address may change. Older rows have a `url` there too.
 * `sha256`: of the stored content, in hexadecimal.
 */
export type StoredAsset = Omit<Asset, "url"> & { url?: string; sha256?: string };
