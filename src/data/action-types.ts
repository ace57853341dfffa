/** Fields of an action (specification, Resources): one definition for the server, Studio and the client library. Only types. */

export type Environment = "server" | "client" | "any";

/** The draft version (`master`) and the live version (`production`). */
export type Copy = "master" | "production";

/** `http` is an addition of this service; the other four are in the specification. */
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

/** How an `http` trigger authorizes requests. `setting` names a private or protected setting of the app. */
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
      /** For `hmac`: the header with the signature, the digest, its encoding, a prefix, and the header with a signed time. */
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
  /** Origins whose pages may read the response. */
  cors?: { origins: string[] };
  /** `immediately` responds with 202 when the run is stored. If absent, the response is the result of the run. */
  respond?: "immediately" | "result";
  /** Header with the ID of the event, by which repeated requests are recognized. */
  idempotencyHeader?: string;
}

/** One way to start an action. The specification has no `http` triggers. */
export type Trigger =
  | { trigger: "manual" | "schedule" }
  | { trigger: "log"; where: LogWhere }
  | { trigger: "analytics"; where: AnalyticsWhere }
  | { trigger: "http"; where: HttpWhere };

export type SourceLanguage = "typescript" | "javascript";

/** Source files of an action, from which the service builds its code. */
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

/** Who can run an action on demand from a page. `user`: app users whose columns meet every test. */
export type ActionAccess = "everyone" | "signedIn" | "editors" | { user: Record<string, ActionAccessTest> };

/** What happens to a run when the concurrency limit of its action is reached. */
export type ConcurrencyPolicy = "skip" | "queue" | "cancel";

/** Limit of concurrent runs of an action. */
export interface Concurrency {
  /** `skip`: the new run does not start; `queue`: it waits; `cancel`: the oldest one is cancelled for it. */
  policy: ConcurrencyPolicy;
  limit: number;
  /** Path of a property of the payload, such as `order.id`: only runs with the same value count together. null: all runs count together. */
  key: string | null;
}

/** Starts in quick succession become one run, with the payload of the last one. */
export interface Debounce {
  /** Milliseconds without another start after which the run starts. */
  delayMs: number;
  /** Longest wait in milliseconds, however many starts follow. */
  maxWaitMs: number;
  /** True if it also applies to runs on demand, separately for each caller. */
  manual: boolean;
}

/** Optional execution settings of an action. */
export interface RunLimits {
  concurrency?: Concurrency;
  debounce?: Debounce;
  /** Time limit of a run in milliseconds. */
  timeoutMs?: number;
  /** Scheduled runs start up to this many seconds after their tick, always with the same offset. */
  jitterSeconds?: number;
}

/** Run limits in requests. Null removes a setting. */
export interface LimitData {
  concurrency?: (Pick<Concurrency, "policy"> & Partial<Concurrency>) | null;
  debounce?: (Pick<Debounce, "delayMs"> & Partial<Debounce>) | null;
  timeoutMs?: number | null;
  jitterSeconds?: number | null;
}

/** Condition for which a run waits before it waits for a slot. */
export type RunWait = "concurrency" | "debounce";

/** Script that a dependency loads. Fields other than `path` belong to scripts that the service stores: npm packages and other addresses. */
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
  /** Global name of an npm package. */
  global?: string;
  /** True if the script evaluates text as code, which pages of client actions forbid. Absent if it does not, or works without. */
  usesEval?: boolean;
  /** True if the address served other content at the last save; the script is the one that was stored before. */
  changed?: boolean;
  /**
   * True if the script is not stored yet because the host did not respond. Runs and pages load it from the host until a save or publish
   * succeeds.
   */
  unreached?: boolean;
}

/**
 * An asset as stored in a row: without `url` if this service serves it, because its address may change. Older rows may have one.
 * `sha256` is the hash of the stored content in hexadecimal.
 */
export type StoredAsset = Omit<Asset, "url"> & { url?: string; sha256?: string };
