/** All limits that the specification or the contract defines. The name of each constant contains the unit. */

/** Maximum memory of the browser process of a run: heap, buffers, canvases and everything else. */
export const RENDERER_MAX_BYTES = 512 * 1024 * 1024;

/** Server action execution time (specification, Limits). Overridden by SERVER_TIMEOUT_MS. */
export const SERVER_TIMEOUT_MS = 120_000;

/** Client action execution time (specification, Limits). Overridden by CLIENT_TIMEOUT_MS. */
export const CLIENT_TIMEOUT_MS = 30_000;

/** Maximum result of an on-demand action, as JSON in UTF-8 (specification, Limits). */
export const RESULT_MAX_BYTES = 6 * 1024 * 1024;

/** Maximum JSON of an app's private and protected settings, which server actions receive (specification, Limits). */
export const UNDERSCORE_SETTINGS_MAX_BYTES = 100 * 1024;

/**
 * Secrets of one app that are searched for in everything that leaves a run: strings and long numbers of its underscore settings, including
 * parts of structured ones. Settings above these limits are refused. The bytes exceed what a server action can receive as settings.
 */
export const SECRETS_MAX_COUNT = 20_000;
export const SECRETS_MAX_BYTES = 512 * 1024;

export const ACTION_NAME_MAX_CHARACTERS = 255;
export const ACTION_DESCRIPTION_MAX_CHARACTERS = 1000;

/** Maximum stored versions of an action; the oldest are removed (specification, Limits). */
export const VERSIONS_KEPT = 100;
export const VERSION_PAGE_DEFAULT = 50;
export const VERSION_PAGE_MAX = 100;

/** Maximum number of payload presets of an action, and maximum size of one preset. */
export const PRESETS_PER_ACTION = 50;
export const PRESET_MAX_BYTES = 64 * 1024;

/** Page sizes of the lists of actions and logs (specification, Limits). The contract does not set the maximum. */
export const PAGE_DEFAULT = 50;
export const PAGE_MAX = 1000;

/** Length of the rate-limit window. A limit holds over any span of this length. */
export const RATE_WINDOW_MS = 60_000;

/** Maximum requests of an app in a window (specification, Limits). 0 means unlimited. */
export const RATE_LIMIT_MANAGE = 60;
export const RATE_LIMIT_RUN = 30;
export const RATE_LIMIT_PUBLISH = 10;
/** Maximum requests to an app's HTTP triggers in a window (contract, section 8). Overridden by RATE_LIMIT_HTTP. */
export const RATE_LIMIT_HTTP = 600;
/**
 * Maximum requests of one network address to an app's HTTP triggers in one process, including rejected ones, as a
 * multiple of RATE_LIMIT_HTTP.
 */
export const HTTP_ADDRESS_FACTOR = 10;
/**
 * Maximum stored event IDs of an action, by which repeated requests are recognized; the oldest are removed. It is
 * enough for a day at RATE_LIMIT_HTTP.
 */
export const HTTP_EVENTS_KEPT = 864_000;
/** Share of an app's rate limit up to which requests of visitors reduce the limit of the app's own credentials. */
export const VISITORS_SHARE = 2 / 3;

/** Maximum tool calls of agents for an app in a window (docs/reference/agents.md). 0 means unlimited. */
export const RATE_LIMIT_MCP = 120;

/** Maximum requests of an app that send messages, in COMMUNICATE_WINDOW_MS (packages). */
export const RATE_LIMIT_COMMUNICATE = 20;
export const COMMUNICATE_WINDOW_MS = 30_000;

/** Maximum body of a request, including payloads (contract, section 4: 413 above it). */
export const BODY_MAX_BYTES = 1024 * 1024;
/** Maximum report of a run in a browser: a payload, a result of RESULT_MAX_BYTES and the JSON around them. */
export const CLIENT_RUN_MAX_BYTES = RESULT_MAX_BYTES + 2 * BODY_MAX_BYTES;

/** Maximum body of a commit, and of an import of JSON (packages). */
export const LARGE_BODY_MAX_BYTES = 64 * 1024 * 1024;
/**
 * Maximum total size of concurrently received commit bodies that are larger than BODY_MAX_BYTES. One network address
 * may use LARGE_BODY_MAX_BYTES of it.
 */
export const LARGE_BODIES_MAX_BYTES = 3 * LARGE_BODY_MAX_BYTES;

/** Bodies up to this size are read and parsed immediately; larger ones wait for the turn of their sender. */
export const SMALL_BODY_BYTES = 32 * 1024;
/**
 * Maximum total size of concurrently received request bodies: for all callers together, and for one network address.
 */
export const BODIES_MAX_BYTES = 64 * 1024 * 1024;
export const BODIES_OF_ADDRESS_MAX_BYTES = 16 * 1024 * 1024;

/** Maximum nesting of payloads, results and settings. Deeper JSON can be parsed, but may fail in PostgreSQL and in JSON.stringify. */
export const JSON_MAX_DEPTH = 500;

export const SETTING_KEY_MAX_CHARACTERS = 512;
export const SETTINGS_KEYS_PER_REQUEST = 200;

/** Hours for which an Idempotency-Key is remembered (contract, section 3). */
export const IDEMPOTENCY_HOURS = 24;

/** Maximum memory and time of the isolate that compiles an action's `execute` to find syntax errors. */
export const CODE_CHECK_MEMORY_MB = 32;
export const CODE_CHECK_TIMEOUT_MS = 1_000;

/** Maximum memory and time for checking code by the rules. One megabyte of code takes about 150 MB and, on an idle machine, one second. */
export const CODE_READ_MEMORY_MB = 256;
export const CODE_READ_TIMEOUT_MS = 15_000;

/** Maximum queued runs: of all apps together, and of one app. Further runs are rejected with OVERLOADED. */
export const QUEUE_MAX = 1_000_000;
export const QUEUE_MAX_PER_APP = 100_000;
/** Maximum size of all queued payloads. One app may use QUEUE_BYTES_SHARE of it. Overridden by QUEUE_MAX_MB. */
export const QUEUE_MAX_MB = 4_096;
export const QUEUE_BYTES_SHARE = 1 / 10;
/** Number of queued runs that one app may always have, even if other apps fill the queue. */
export const QUEUE_MIN_PER_APP = 20;

/** Value of Retry-After in OVERLOADED responses. */
export const OVERLOADED_RETRY_SECONDS = 5;

/**
 * Limits of an action's settings: concurrent runs of one key, the delay of a debounce, its longest total wait, and the
 * shortest time limit.
 */
export const CONCURRENCY_LIMIT_MAX = 1_000;
export const DEBOUNCE_DELAY_MAX_MS = 3_600_000;
export const DEBOUNCE_WAIT_MAX_MS = 86_400_000;
export const TIMEOUT_MIN_MS = 100;

/** Maximum origins to which one action may send requests. */
export const INTEGRATION_ORIGINS_MAX = 20;

/** Maximum secret bindings of an app. */
export const SECRET_BINDINGS_MAX = 100;

/**
 * Limits of requests from runs to other services (contract, section 9): body of a request, body of a response, all
 * response bodies of a run, concurrent requests of a run, all requests of a run.
 */
export const REQUEST_BODY_MAX_BYTES = 1024 * 1024;
export const RESPONSE_MAX_BYTES = 5 * 1024 * 1024;
export const RUN_RESPONSES_MAX_BYTES = 20 * 1024 * 1024;
export const RUN_REQUESTS_AT_ONCE = 8;
export const RUN_REQUESTS_MAX = 100;
export const REQUEST_TIMEOUT_MS = 10_000;
export const REQUEST_TIMEOUT_MAX_MS = 30_000;
export const REQUEST_REDIRECTS_MAX = 5;

/** Scheduled runs that one core of the runners starts in a minute before further ones are skipped as late. Measured: 13 a second on two cores. */
export const SCHEDULED_RUNS_PER_CORE = 300;

/** Maximum seconds over which an action's ticks may be spread. */
export const JITTER_MAX_SECONDS = 300;

/** Maximum length of a chain of runs of which each has started the next. A longer one counts as a recursion of log triggers. */
export const CHAIN_DEPTH_MAX = 8;
/** Maximum runs that one chain may start in a minute. */
export const CHAIN_RUNS_PER_MINUTE = 100;

/** Maximum number of stored events on which the test of a trigger's filter runs. */
export const BACKTEST_EVENTS = 1_000;

/**
 * Maximum requests in progress in one process. Three separate limits: for a credential, for a visitor session at one
 * network address, and for all visitors and anonymous callers of an address together.
 */
export const REQUESTS_IN_PROGRESS_PER_CREDENTIAL = 512;
export const REQUESTS_IN_PROGRESS_PER_VISITOR = 64;
export const REQUESTS_IN_PROGRESS_PER_ADDRESS = 512;

/**
 * Maximum messages that clients can send on websockets in a burst, and again in each window. The first limit is for one
 * websocket, the second for all websockets of a credential or a network address.
 */
export const SOCKET_MESSAGES_PER_SOCKET = { limit: 400, windowMs: 8_000 };
export const SOCKET_MESSAGES_PER_SENDER = { limit: 2_000, windowMs: 10_000 };
/**
 * Maximum open websockets of a network address in one process, and how many of them may be idle (without an operation).
 */
export const SOCKETS_PER_ADDRESS = 4_096;
export const IDLE_SOCKETS_PER_ADDRESS = 512;

/** Maximum lookups of unknown tokens that one network address may cause in one process in RATE_WINDOW_MS. */
export const UNKNOWN_TOKENS_PER_ADDRESS = 300;

/**
 * Lifetime of a visitor's session until its renewal, and total lifetime with renewals. Afterwards the visitor gets
 * another session.
 */
export const VISIT_MS = 12 * 60 * 60 * 1000;
export const VISIT_RENEWALS_MS = 30 * 24 * 60 * 60 * 1000;

/**
 * Maximum stored visitor sessions of an app: from one network address, and from all addresses. Above it, the oldest
 * sessions without a sign-in are removed.
 */
export const VISITORS_PER_ADDRESS = 1_000;
export const VISITORS_PER_APP = 100_000;

/** Time limit of a call to a language model, and maximum size of the request body with the call's options. */
export const AI_TIMEOUT_MS = 110_000;
export const AI_BODY_MAX_BYTES = 8 * 1024 * 1024;

/** Maximum page origins that an app may list. */
export const PAGE_ORIGINS_MAX = 50;

/** Maximum new visitor sessions for a network address in RATE_WINDOW_MS. */
export const PAGE_SESSIONS_PER_ADDRESS = 120;

/** Maximum alert rules of one app. */
export const ALERT_RULES_PER_APP = 100;

/** Maximum analytics requests and reports of client runs of a credential in one process in RATE_WINDOW_MS. */
export const CLIENT_REQUESTS_PER_CREDENTIAL = 600;

/** Maximum requests of an app for TypeScript declarations of packages in one process in RATE_WINDOW_MS. A response may have a megabyte. */
export const DECLARATIONS_PER_APP = 300;

/** Maximum log or analytics event as JSON in UTF-8 (contract, section 3). */
export const EVENT_MAX_BYTES = 32 * 1024;

/** Maximum data that an app's credentials can store in a minute. Overridden by INTAKE_QUOTA_MB. */
export const INTAKE_QUOTA_MB = 64;
/** Shares of INTAKE_QUOTA_MB: for all visitors of an app together, and for the visitors of one network address. */
export const INTAKE_VISITORS_SHARE = 1 / 2;
export const INTAKE_ADDRESS_SHARE = 1 / 8;
/** Assumed size of a row in addition to its content: other columns and index entries. */
export const INTAKE_ROW_BYTES = 200;

/** Maximum disk space of an app's finished runs and logs, and the same again for its events. Overridden by LOG_MAX_MB. */
export const LOG_MAX_MB = 1_024;
/** Minimum age in days of an npm package's version that is chosen for a range. Overridden by NPM_MIN_AGE_DAYS. */
export const NPM_MIN_AGE_DAYS = 7;
/** Maximum settings of an app, including public ones, as JSON. */
export const SETTINGS_MAX_BYTES = 8 * 1024 * 1024;
/** Maximum size of an app's actions, draft and live versions: code and other fields. */
export const ACTIONS_MAX_BYTES = 256 * 1024 * 1024;
/** Maximum size of the scripts that were built for an app's actions and their versions. */
export const KEPT_SCRIPTS_MAX_BYTES = 256 * 1024 * 1024;
/** Maximum valid tokens of an app, without those of pages and runs. */
export const TOKENS_PER_APP = 1_000;
/** Maximum members of an organization, and of an app. */
export const MEMBERS_MAX = 1_000;
/** Maximum administrators of the service. */
export const ADMINISTRATORS_MAX = 100;
/** Maximum pending invitations of an organization. */
export const INVITATIONS_MAX = 500;
/** Longest and default lifetime of an invitation in hours. */
export const INVITATION_MAX_HOURS = 720;
export const INVITATION_HOURS = 168;
/** Maximum stored snapshots of an app; the oldest are removed. */
export const APP_VERSIONS_KEPT = 100;
/**
 * Maximum size of what is stored for an app: snapshots of its actions, entries of its audit log, sessions of its
 * visitors. The oldest are removed.
 */
export const VERSION_BYTES_KEPT = 1024 * 1024 * 1024;
export const AUDIT_ENTRIES_KEPT = 100_000;
/** Maximum entries about one account in the audit log of access. */
export const ACCOUNT_EVENTS_KEPT = 10_000;
export const PAGE_SESSIONS_KEPT = 100_000;
/**
 * Maximum size of what is stored for an app: finished messages of its outbox, responses to requests with an
 * Idempotency-Key. The oldest are removed.
 */
export const MESSAGE_BYTES_KEPT = 512 * 1024 * 1024;
export const IDEMPOTENCY_BYTES_KEPT = 64 * 1024 * 1024;

/** Free disk space below which events are rejected, and below half of it new runs. Overridden by DISK_FREE_MIN_MB. */
export const DISK_FREE_MIN_MB = 1_024;
/** Value of Retry-After in OVERLOADED responses while the disk is nearly full. */
export const LOW_DISK_RETRY_SECONDS = 60;

/**
 * Maximum page loads that are logged as `app.view` events in RATE_WINDOW_MS: for one network address or editor, and for
 * one app.
 */
export const PAGE_VIEWS_PER_VIEWER_AND_MINUTE = 60;
export const PAGE_VIEWS_PER_APP_AND_MINUTE = 600;

/** Maximum JSON of the names of changed fields and settings in an `app.update` event. */
export const UPDATE_NAMES_MAX_BYTES = 16 * 1024;

/** Maximum devices on which one reader receives notifications by Web Push; the oldest are removed. */
export const PUSH_SUBSCRIPTIONS_PER_READER = 20;
/** Maximum number of notifications of an app, and of devices of all its readers; the oldest are removed. */
export const NOTIFICATIONS_KEPT = 100_000;
export const PUSH_SUBSCRIPTIONS_KEPT = 100_000;

/** Maximum delivery reports from a network address in RATE_WINDOW_MS. */
export const REPORTS_PER_ADDRESS = 600;

/** Maximum events in one analytics request. */
export const ANALYTICS_EVENTS_PER_REQUEST = 100;

/** Maximum size of the values in one page of a list. A page may therefore have fewer than `limit` entries, but has at least one. */
export const PAGE_MAX_BYTES = 8 * 1024 * 1024;

/** Maximum size of the response to one GraphQL request, and of an exported document. */
export const ANSWER_MAX_BYTES = 16 * 1024 * 1024;

/**
 * Limits of data sources: size of an entry as JSON in UTF-8, entries in a commit, entries of a data source, data
 * sources of an app.
 */
export const ENTRY_MAX_BYTES = 1024 * 1024;
export const COMMIT_ENTRIES_MAX = 100_000;
export const ENTRIES_PER_DATA_SOURCE = 5_000_000;
export const DATA_SOURCES_PER_APP = 1_000;
/** Maximum total size of an app's entries. Overridden by DATA_SOURCE_QUOTA_MB. */
export const DATA_SOURCE_QUOTA_MB = 10_240;
/** Time limit of an import. */
export const IMPORT_LIMIT_MS = 15 * 60_000;
/** Maximum stored snapshots of a data source; the oldest are removed. */
export const DATA_SOURCE_VERSIONS_KEPT = 30;
/**
 * A write of more entries is a bulk change. It creates one log event for all entries, and subscribers must read all
 * entries again.
 */
export const BULK_ENTRIES = 1_000;
/**
 * Maximum failed sign-ins of app users in SIGN_IN_WINDOW_SECONDS. Counted separately for each user and for each network
 * address.
 */
export const SIGN_IN_FAILURES = 10;
export const SIGN_IN_WINDOW_SECONDS = 600;
/**
 * Sessions of signed-in people end after the first time without use, and at the latest after the second (contract,
 * section 7).
 */
export const SESSION_IDLE_MS = 12 * 3_600_000;
export const SESSION_LIFETIME_MS = 30 * 24 * 3_600_000;
/** Lifetimes of the one-time links that create the first administrator and that reset a sign-in. */
export const SETUP_LINK_MS = 3_600_000;
export const RESET_LINK_MS = 3_600_000;
/** Time limit of one SQL statement of a query on entries. */
export const QUERY_TIMEOUT_MS = 5_000;

/**
 * Maximum size of one media file, and of all media files of an app together. Overridden by MEDIA_MAX_MB and
 * MEDIA_QUOTA_MB.
 */
export const MEDIA_MAX_MB = 100;
export const MEDIA_QUOTA_MB = 10_240;
/**
 * Minimum size with which a file or a thumbnail counts for the quota, because its database row and disk block take
 * about as much.
 */
export const MEDIA_BLOB_MIN_BYTES = 4_096;
/** Maximum size of a picture from which thumbnails or other sizes are made; larger ones are rejected. */
export const PICTURE_MAX_BYTES = 100 * 1024 * 1024;
/** Thumbnails: longer edge in pixels, quality, and maximum size. */
export const THUMBNAIL_LIMITS = { edge: 320, quality: 75, maxBytes: 512 * 1024 } as const;
/** Maximum size of a picture that was converted to another size or format. */
export const RESIZED_MAX_BYTES = 32 * 1024 * 1024;
/** Maximum total size of converted pictures in the memory cache. They are not stored elsewhere. */
export const RESIZED_KEPT_BYTES = 32 * 1024 * 1024;
/** Maximum pictures that wait for their conversion in one process. Above it, requests are rejected with OVERLOADED. */
export const PICTURES_WAITING_MAX = 300;
/**
 * Maximum concurrent uploads in one process: of all callers, and of all callers without a role. One app can use at most
 * half of the uploads that other apps leave free.
 */
export const UPLOADS_MAX = 256;
export const UPLOADS_OF_VISITORS_MAX = 64;
/** Maximum files in one upload. */
export const FILES_PER_UPLOAD = 20;
/** Maximum number of media folders of an app, and maximum depth of nested folders. */
export const FOLDERS_MAX = 10_000;
export const FOLDER_DEPTH_MAX = 50;

/** Maximum rows that a list counts exactly; above it, the number is an estimate. */
export const COUNT_EXACT_MAX = 10_000;

/** Characters of a run's log entry that a search covers, and the same number of its console output. */
export const SEARCH_CHARACTERS = 32 * 1024;
/** Time limit of one search. */
export const SEARCH_LIMIT_MS = 5_000;

/** Maximum size of a manifest, in a request and in a response. */
export const MANIFEST_MAX_BYTES = 32 * 1024 * 1024;
