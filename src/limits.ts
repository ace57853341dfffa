/** Every number that the specification or the contract fixes, once. Units are in the names. */

/** Memory of the browser process in which a run is executed: heap, buffers, canvases and everything else. */
export const RENDERER_MAX_BYTES = 512 * 1024 * 1024;

/** Server action execution time (specification, Limits). Overridden by SERVER_TIMEOUT_MS. */
export const SERVER_TIMEOUT_MS = 120_000;

/** Client action execution time (specification, Limits). Overridden by CLIENT_TIMEOUT_MS. */
export const CLIENT_TIMEOUT_MS = 30_000;

/** Result of an on-demand action, as JSON in UTF-8 (specification, Limits). */
export const RESULT_MAX_BYTES = 6 * 1024 * 1024;

/** Underscore settings of one app, JSON-serialized, for server actions (specification, Limits). */
export const UNDERSCORE_SETTINGS_MAX_BYTES = 100 * 1024;

/**
 * Secrets of one app that are searched for in everything that leaves a run: strings and long numbers of its underscore settings, including
 * parts of structured ones. Settings above these limits are refused. The bytes exceed what a server action can receive as settings.
 */
export const SECRETS_MAX_COUNT = 20_000;
export const SECRETS_MAX_BYTES = 512 * 1024;

export const ACTION_NAME_MAX_CHARACTERS = 255;
export const ACTION_DESCRIPTION_MAX_CHARACTERS = 1000;

/** Stored versions per action; the oldest are removed (specification, Limits). */
export const VERSIONS_KEPT = 100;
export const VERSION_PAGE_DEFAULT = 50;
export const VERSION_PAGE_MAX = 100;

/** Test payloads that are stored with one action, and the size of one. */
export const PRESETS_PER_ACTION = 50;
export const PRESET_MAX_BYTES = 64 * 1024;

/** Page sizes of the lists of actions and logs (specification, Limits). The contract does not set the maximum. */
export const PAGE_DEFAULT = 50;
export const PAGE_MAX = 1000;

/** Width of the rate-limit window: a limit holds over any span of this length. */
export const RATE_WINDOW_MS = 60_000;

/** Requests per window and app (specification, Limits). 0 means unlimited. */
export const RATE_LIMIT_MANAGE = 60;
export const RATE_LIMIT_RUN = 30;
export const RATE_LIMIT_PUBLISH = 10;
/** Requests to HTTP triggers per window and app (contract, section 8). Overridden by RATE_LIMIT_HTTP. */
export const RATE_LIMIT_HTTP = 600;
/** Requests of one network address to the HTTP triggers of one app in one process, including refused ones, as a multiple of RATE_LIMIT_HTTP. */
export const HTTP_ADDRESS_FACTOR = 10;
/** Stored event ids of one action, by which repeated requests are recognized; the oldest are removed. A day's worth at RATE_LIMIT_HTTP. */
export const HTTP_EVENTS_KEPT = 864_000;
/** Share of a rate limit beyond which the requests of visitors no longer count against the app's own credentials. */
export const VISITORS_SHARE = 2 / 3;

/** Tool calls of agents per window and app (docs/reference/agents.md). 0 means unlimited. */
export const RATE_LIMIT_MCP = 120;

/** Requests that send messages per COMMUNICATE_WINDOW_MS and app (packages). */
export const RATE_LIMIT_COMMUNICATE = 20;
export const COMMUNICATE_WINDOW_MS = 30_000;

/** Body of a request, including payloads (contract, section 4: 413 above it). */
export const BODY_MAX_BYTES = 1024 * 1024;
/** Report of a run in the user's browser: a payload, a result of RESULT_MAX_BYTES and the JSON around them. */
export const CLIENT_RUN_MAX_BYTES = RESULT_MAX_BYTES + 2 * BODY_MAX_BYTES;

/** Body of a commit, and of an import of JSON (packages). */
export const LARGE_BODY_MAX_BYTES = 64 * 1024 * 1024;
/** Commit bodies above BODY_MAX_BYTES that are received at the same time, in total; LARGE_BODY_MAX_BYTES per network address. */
export const LARGE_BODIES_MAX_BYTES = 3 * LARGE_BODY_MAX_BYTES;

/** Bodies up to this size are read and parsed immediately; larger ones wait for the turn of their sender. */
export const SMALL_BODY_BYTES = 32 * 1024;
/** Declared sizes of the request bodies that are received at the same time, in total and per network address. */
export const BODIES_MAX_BYTES = 64 * 1024 * 1024;
export const BODIES_OF_ADDRESS_MAX_BYTES = 16 * 1024 * 1024;

/** Nesting of payloads, results and settings. Deeper JSON can be parsed, but may fail in PostgreSQL and in JSON.stringify. */
export const JSON_MAX_DEPTH = 500;

export const SETTING_KEY_MAX_CHARACTERS = 512;
export const SETTINGS_KEYS_PER_REQUEST = 200;

/** How long an Idempotency-Key is remembered (contract, section 3). */
export const IDEMPOTENCY_HOURS = 24;

/** Memory and time of the compile check of `execute` in an isolate. */
export const CODE_CHECK_MEMORY_MB = 32;
export const CODE_CHECK_TIMEOUT_MS = 1_000;

/** Memory and time for the analysis of code by the rules. One megabyte of code takes about 150 MB and, on an idle machine, one second. */
export const CODE_READ_MEMORY_MB = 256;
export const CODE_READ_TIMEOUT_MS = 15_000;

/** Runs that wait for a slot, in total and per app. More are refused with OVERLOADED. */
export const QUEUE_MAX = 1_000_000;
export const QUEUE_MAX_PER_APP = 100_000;
/** Total size of their payloads; one app may have QUEUE_BYTES_SHARE of it. Overridden by QUEUE_MAX_MB. */
export const QUEUE_MAX_MB = 4_096;
export const QUEUE_BYTES_SHARE = 1 / 10;
/** Runs of one app that may always wait, even if the queue is full of others. */
export const QUEUE_MIN_PER_APP = 20;

/** Retry-After of OVERLOADED. */
export const OVERLOADED_RETRY_SECONDS = 5;

/** Settings of one action: concurrent runs of one key, the delay of a debounce, its longest total wait, and the shortest time limit. */
export const CONCURRENCY_LIMIT_MAX = 1_000;
export const DEBOUNCE_DELAY_MAX_MS = 3_600_000;
export const DEBOUNCE_WAIT_MAX_MS = 86_400_000;
export const TIMEOUT_MIN_MS = 100;

/** Origins that one action may send requests to. */
export const INTEGRATION_ORIGINS_MAX = 20;

/** Secret bindings of one app. */
export const SECRET_BINDINGS_MAX = 100;

/** Outgoing requests (contract, section 9): bodies, and what one run may send and receive. */
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

/** Seconds over which the ticks of one action may be spread. */
export const JITTER_MAX_SECONDS = 300;

/** Runs in a row that each caused the next before the log triggers count as a recursion. */
export const CHAIN_DEPTH_MAX = 8;
/** Runs that one such chain may start in a minute. */
export const CHAIN_RUNS_PER_MINUTE = 100;

/** Stored events on which a filter is tried. */
export const BACKTEST_EVENTS = 1_000;

/** Requests in progress in one process: per credential, per visitor and address, and per address (visitors and anonymous callers together). */
export const REQUESTS_IN_PROGRESS_PER_CREDENTIAL = 512;
export const REQUESTS_IN_PROGRESS_PER_VISITOR = 64;
export const REQUESTS_IN_PROGRESS_PER_ADDRESS = 512;

/** Messages on websockets in a burst, and as many again over each window: per socket, and per credential or address. */
export const SOCKET_MESSAGES_PER_SOCKET = { limit: 400, windowMs: 8_000 };
export const SOCKET_MESSAGES_PER_SENDER = { limit: 2_000, windowMs: 10_000 };
/** Open websockets of one address in one process, and those without an operation in progress. */
export const SOCKETS_PER_ADDRESS = 4_096;
export const IDLE_SOCKETS_PER_ADDRESS = 512;

/** Lookups of unknown tokens that one network address may cause in one process, per RATE_WINDOW_MS. */
export const UNKNOWN_TOKENS_PER_ADDRESS = 300;

/** Lifetime of a visitor's session, and the total time over which it can be renewed. Then the visitor gets another session. */
export const VISIT_MS = 12 * 60 * 60 * 1000;
export const VISIT_RENEWALS_MS = 30 * 24 * 60 * 60 * 1000;

/** Stored sessions of visitors of one app: per network address, and in total. The oldest ones without a sign-in are removed. */
export const VISITORS_PER_ADDRESS = 1_000;
export const VISITORS_PER_APP = 100_000;

/** Time limit of a call of a language model, and size of its options. */
export const AI_TIMEOUT_MS = 110_000;
export const AI_BODY_MAX_BYTES = 8 * 1024 * 1024;

/** Origins of pages that one app may list. */
export const PAGE_ORIGINS_MAX = 50;

/** New sessions for visitors of one network address, per RATE_WINDOW_MS. */
export const PAGE_SESSIONS_PER_ADDRESS = 120;

/** Alert rules of one app. */
export const ALERT_RULES_PER_APP = 100;

/** Analytics requests and reports of client runs of one credential in one process, per RATE_WINDOW_MS. */
export const CLIENT_REQUESTS_PER_CREDENTIAL = 600;

/** Requests for the TypeScript declarations of packages, of up to a megabyte each, of one app in one process, per RATE_WINDOW_MS. */
export const DECLARATIONS_PER_APP = 300;

/** A log or analytics event as JSON in UTF-8 (contract, section 3). */
export const EVENT_MAX_BYTES = 32 * 1024;

/** Data that the credentials of one app can store in a minute. Overridden by INTAKE_QUOTA_MB. */
export const INTAKE_QUOTA_MB = 64;
/** Shares of it for all visitors together, and for one network address. */
export const INTAKE_VISITORS_SHARE = 1 / 2;
export const INTAKE_ADDRESS_SHARE = 1 / 8;
/** Size of a row in addition to its content: other columns and index entries. */
export const INTAKE_ROW_BYTES = 200;

/** Disk space for the finished runs and logs of an app, and as much again for its events. Overridden by LOG_MAX_MB. */
export const LOG_MAX_MB = 1_024;
/** Days before a new version of an npm package is chosen without being named. Overridden by NPM_MIN_AGE_DAYS. */
export const NPM_MIN_AGE_DAYS = 7;
/** Settings of one app, including public ones, as JSON. */
export const SETTINGS_MAX_BYTES = 8 * 1024 * 1024;
/** Actions of one app, draft and live versions: code and other fields. */
export const ACTIONS_MAX_BYTES = 256 * 1024 * 1024;
/** Scripts that were built from the dependencies of one app's actions and their versions. */
export const KEPT_SCRIPTS_MAX_BYTES = 256 * 1024 * 1024;
/** Valid tokens of one app, without those of pages and runs. */
export const TOKENS_PER_APP = 1_000;
/** Members of an organization, and of an app. */
export const MEMBERS_MAX = 1_000;
/** Administrators of the service. */
export const ADMINISTRATORS_MAX = 100;
/** Pending invitations of an organization. */
export const INVITATIONS_MAX = 500;
/** Longest and default lifetime of an invitation in hours. */
export const INVITATION_MAX_HOURS = 720;
export const INVITATION_HOURS = 168;
/** Stored snapshots of an app; the oldest are removed. */
export const APP_VERSIONS_KEPT = 100;
/** Stored for one app; the oldest are removed: snapshots of its actions, entries of its audit log, sessions of its visitors. */
export const VERSION_BYTES_KEPT = 1024 * 1024 * 1024;
export const AUDIT_ENTRIES_KEPT = 100_000;
/** Entries about one account in the audit log of access. */
export const ACCOUNT_EVENTS_KEPT = 10_000;
export const PAGE_SESSIONS_KEPT = 100_000;
/** Stored for one app; the oldest are removed: finished messages of its outbox, responses to requests with an Idempotency-Key. */
export const MESSAGE_BYTES_KEPT = 512 * 1024 * 1024;
export const IDEMPOTENCY_BYTES_KEPT = 64 * 1024 * 1024;

/** Free disk space below which events are refused, and below half of it new runs. Overridden by DISK_FREE_MIN_MB. */
export const DISK_FREE_MIN_MB = 1_024;
/** Retry-After of OVERLOADED while the disk is nearly full. */
export const LOW_DISK_RETRY_SECONDS = 60;

/** Page loads that are logged as `app.view` events, per RATE_WINDOW_MS: per address or editor, and per app. */
export const PAGE_VIEWS_PER_VIEWER_AND_MINUTE = 60;
export const PAGE_VIEWS_PER_APP_AND_MINUTE = 600;

/** Names of changed fields and settings in an `app.update` event, as JSON. */
export const UPDATE_NAMES_MAX_BYTES = 16 * 1024;

/** Devices of one reader that receive notifications by Web Push; the oldest are removed. */
export const PUSH_SUBSCRIPTIONS_PER_READER = 20;
/** Stored for one app; the oldest are removed: notifications, and devices of all readers. */
export const NOTIFICATIONS_KEPT = 100_000;
export const PUSH_SUBSCRIPTIONS_KEPT = 100_000;

/** Delivery reports of one network address, per RATE_WINDOW_MS. */
export const REPORTS_PER_ADDRESS = 600;

/** Events of one analytics request. */
export const ANALYTICS_EVENTS_PER_REQUEST = 100;

/** Stored values in one page of a list. A page can therefore have fewer than `limit` entries, but has at least one. */
export const PAGE_MAX_BYTES = 8 * 1024 * 1024;

/** Response to one GraphQL document, and an exported document. */
export const ANSWER_MAX_BYTES = 16 * 1024 * 1024;

/** One entry of a data source as JSON in UTF-8, entries in a commit, entries of a data source, data sources of an app. */
export const ENTRY_MAX_BYTES = 1024 * 1024;
export const COMMIT_ENTRIES_MAX = 100_000;
export const ENTRIES_PER_DATA_SOURCE = 5_000_000;
export const DATA_SOURCES_PER_APP = 1_000;
/** Total size of the entries of one app. Overridden by DATA_SOURCE_QUOTA_MB. */
export const DATA_SOURCE_QUOTA_MB = 10_240;
/** Time limit of an import. */
export const IMPORT_LIMIT_MS = 15 * 60_000;
/** Stored snapshots of one data source; the oldest are removed. */
export const DATA_SOURCE_VERSIONS_KEPT = 30;
/** A write that changes more entries is a bulk change: one log event for all of them, and subscribers read everything again. */
export const BULK_ENTRIES = 1_000;
/** Failed sign-ins of users of a page within the window: per entry, and per network address. */
export const SIGN_IN_FAILURES = 10;
export const SIGN_IN_WINDOW_SECONDS = 600;
/** Sessions of people: longest time without use, and longest lifetime (contract, section 7). */
export const SESSION_IDLE_MS = 12 * 3_600_000;
export const SESSION_LIFETIME_MS = 30 * 24 * 3_600_000;
/** Lifetimes of one-time links. */
export const SETUP_LINK_MS = 3_600_000;
export const RESET_LINK_MS = 3_600_000;
/** Time limit of one statement of a query on entries. */
export const QUERY_TIMEOUT_MS = 5_000;

/** One media file, and all of one app. Overridden by MEDIA_MAX_MB and MEDIA_QUOTA_MB. */
export const MEDIA_MAX_MB = 100;
export const MEDIA_QUOTA_MB = 10_240;
/** Smallest size that a file or a thumbnail counts with: about the size of its row and of a block on disk. */
export const MEDIA_BLOB_MIN_BYTES = 4_096;
/** Pictures from which thumbnails or other sizes are made; larger ones are refused. */
export const PICTURE_MAX_BYTES = 100 * 1024 * 1024;
/** Longer edge of a thumbnail in pixels, its quality, and its size. */
export const THUMBNAIL = { edge: 320, quality: 75, maxBytes: 512 * 1024 } as const;
/** A picture in another size or format. */
export const RESIZED_MAX_BYTES = 32 * 1024 * 1024;
/** Such pictures that were requested recently, in memory: they are not stored. */
export const RESIZED_KEPT_BYTES = 32 * 1024 * 1024;
/** Pictures that wait for their conversion in one process. More are refused with OVERLOADED. */
export const PICTURES_WAITING_MAX = 300;
/** Concurrent uploads in one process, in total and of callers without a role. An app has at most half of what others leave. */
export const UPLOADS_MAX = 256;
export const UPLOADS_OF_VISITORS_MAX = 64;
/** Files in one upload. */
export const FILES_PER_UPLOAD = 20;
/** Folders of one app, and their depth. */
export const FOLDERS_MAX = 10_000;
export const FOLDER_DEPTH_MAX = 50;

/** Rows that a list counts exactly; above it the number is an estimate. */
export const COUNT_EXACT_MAX = 10_000;

/** Characters of a run's log entry, and as many of its console output, that are searched. */
export const SEARCH_CHARACTERS = 32 * 1024;
/** Time limit of one search. */
export const SEARCH_LIMIT_MS = 5_000;

/** A manifest, as request and as response. */
export const MANIFEST_MAX_BYTES = 32 * 1024 * 1024;
