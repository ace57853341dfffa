/** Every number that the specification or the contract fixes, once. Units are in the names. */

/** What the process of a run's page may hold: heap, buffers, canvases, everything. */
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
 * What is looked for in everything that a run lets out: strings and long numbers of one app's underscore settings, parts of structured
 * ones included. Beyond it such settings are refused. The bytes leave room for settings that no server action can have any more.
 */
export const SECRETS_MAX_COUNT = 20_000;
export const SECRETS_MAX_BYTES = 512 * 1024;

export const ACTION_NAME_MAX_CHARACTERS = 255;
export const ACTION_DESCRIPTION_MAX_CHARACTERS = 1000;

/** Versions kept per action, the oldest pruned (specification, Limits). */
export const VERSIONS_KEPT = 100;
export const VERSION_PAGE_DEFAULT = 50;
export const VERSION_PAGE_MAX = 100;

/** Payloads kept with an action to try it with, and the bytes of one. */
export const PRESETS_PER_ACTION = 50;
export const PRESET_MAX_BYTES = 64 * 1024;

/** Actions list and logs (specification, Limits). The upper bound is the contract's silence, settled here. */
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
/** Requests of one network address to one app's HTTP triggers, refused ones too, as a multiple of RATE_LIMIT_HTTP; in one process. */
export const HTTP_ADDRESS_FACTOR = 10;
/** Of one action, the newest: events of the last day whose repeats are found. A day at RATE_LIMIT_HTTP. */
export const HTTP_EVENTS_KEPT = 864_000;
/** Share of a rate limit beyond which the requests of visitors no longer count against the app's own credentials. */
export const VISITORS_SHARE = 2 / 3;

/** Tool calls of agents per window and app (docs/reference/agents.md). 0 means unlimited. */
export const RATE_LIMIT_MCP = 120;

/** Requests of Communicate per its own window and app (packages). */
export const RATE_LIMIT_COMMUNICATE = 20;
export const COMMUNICATE_WINDOW_MS = 30_000;

/** A request's body, payloads included (contract, section 4: 413 above it). */
export const BODY_MAX_BYTES = 1024 * 1024;
/** Report of a run in a browser: a payload, a result of RESULT_MAX_BYTES, and what writes them down. */
export const CLIENT_RUN_MAX_BYTES = RESULT_MAX_BYTES + 2 * BODY_MAX_BYTES;

/** The body of a commit, and of an import of JSON (packages). */
export const LARGE_BODY_MAX_BYTES = 64 * 1024 * 1024;
/** Bodies of commits above BODY_MAX_BYTES on their way, in total; of one network address LARGE_BODY_MAX_BYTES. */
export const LARGE_BODIES_MAX_BYTES = 3 * LARGE_BODY_MAX_BYTES;

/** Bodies up to it are read and parsed at once; larger ones wait for their sender's turn. */
export const SMALL_BODY_BYTES = 32 * 1024;
/** Request bodies on their way, in all and of one network address, by what they say they will be. */
export const BODIES_MAX_BYTES = 64 * 1024 * 1024;
export const BODIES_OF_ADDRESS_MAX_BYTES = 16 * 1024 * 1024;

/** Of payloads, results and settings: deeper JSON parses, but neither PostgreSQL nor JSON.stringify take it surely. */
export const JSON_MAX_DEPTH = 500;

export const SETTING_KEY_MAX_CHARACTERS = 512;
export const SETTINGS_KEYS_PER_REQUEST = 200;

/** How long an Idempotency-Key is remembered (contract, section 3). */
export const IDEMPOTENCY_HOURS = 24;

/** Memory and time of the compile check of `execute` in an isolate. */
export const CODE_CHECK_MEMORY_MB = 32;
export const CODE_CHECK_TIMEOUT_MS = 1_000;

/** Memory and time of reading code by the rules; a megabyte takes some 150 MB and, where nothing else is at work, a second. */
export const CODE_READ_MEMORY_MB = 256;
export const CODE_READ_TIMEOUT_MS = 15_000;

/** Runs that wait for a place, in all and of one app; more are refused with OVERLOADED before they are accepted. */
export const QUEUE_MAX = 1_000_000;
export const QUEUE_MAX_PER_APP = 100_000;
/** What the payloads of all of them may take, and of one app's a tenth of that. Overridden by QUEUE_MAX_MB. */
export const QUEUE_MAX_MB = 4_096;
export const QUEUE_BYTES_SHARE = 1 / 10;
/** What an app may have waiting however many others wait. */
export const QUEUE_MIN_PER_APP = 20;

/** What OVERLOADED gives as Retry-After. */
export const OVERLOADED_RETRY_SECONDS = 5;

/** Of one action: runs at once of one key, how long a debounce waits for quiet and in all, and the shortest time limit. */
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

/** Scheduled runs that one core of the runners begins within a minute, before others are skipped as late. Measured: 13 a second on two cores. */
export const SCHEDULED_RUNS_PER_CORE = 300;

/** Seconds over which the ticks of one action may be spread. */
export const JITTER_MAX_SECONDS = 300;

/** How many runs may have caused one another before log triggers are held to be a recursion. */
export const CHAIN_DEPTH_MAX = 8;
/** Runs that one chain of causes may start in a minute. */
export const CHAIN_RUNS_PER_MINUTE = 100;

/** Events that a filter is tried on (back-test). */
export const BACKTEST_EVENTS = 1_000;

/** Requests in progress in one process: of one credential, of one visitor's from one address, and of one address (its visitors, and its anonymous callers). */
export const REQUESTS_IN_PROGRESS_PER_CREDENTIAL = 512;
export const REQUESTS_IN_PROGRESS_PER_VISITOR = 64;
export const REQUESTS_IN_PROGRESS_PER_ADDRESS = 512;

/** Messages on websockets at once, and as many again over each window: of one socket, and of one credential or address. */
export const SOCKET_MESSAGES_PER_SOCKET = { limit: 400, windowMs: 8_000 };
export const SOCKET_MESSAGES_PER_SENDER = { limit: 2_000, windowMs: 10_000 };
/** Websockets of one address in one process, and those of them without an operation in progress. */
export const SOCKETS_PER_ADDRESS = 4_096;
export const IDLE_SOCKETS_PER_ADDRESS = 512;

/** Lookups of unknown tokens that one network address may cause in one process, per RATE_WINDOW_MS. */
export const UNKNOWN_TOKENS_PER_ADDRESS = 300;

/** Milliseconds that a visitor's session lasts, and for how long renewals may go on: then the visitor gets another one. */
export const VISIT_MS = 12 * 60 * 60 * 1000;
export const VISIT_RENEWALS_MS = 30 * 24 * 60 * 60 * 1000;

/** Sessions of visitors that one app keeps: of one network address, and in all. The oldest without a sign-in make room. */
export const VISITORS_PER_ADDRESS = 1_000;
export const VISITORS_PER_APP = 100_000;

/** Milliseconds that a call of a language model may take, and bytes of its options. */
export const AI_TIMEOUT_MS = 110_000;
export const AI_BODY_MAX_BYTES = 8 * 1024 * 1024;

/** Origins of pages that one app may list. */
export const PAGE_ORIGINS_MAX = 50;

/** New sessions that the live app's page gives to visitors of one network address, per RATE_WINDOW_MS. */
export const PAGE_SESSIONS_PER_ADDRESS = 120;

/** Rules of alerts of one app. */
export const ALERT_RULES_PER_APP = 100;

/** Analytics requests, and reports of client runs, that one credential may send to one process, per RATE_WINDOW_MS. */
export const CLIENT_REQUESTS_PER_CREDENTIAL = 600;

/** Readings of what packages declare for TypeScript, up to a megabyte each, of one app in one process, per RATE_WINDOW_MS. */
export const DECLARATIONS_PER_APP = 300;

/** A log or analytics event as JSON in UTF-8 (contract, section 3). */
export const EVENT_MAX_BYTES = 32 * 1024;

/** What an app's own credentials may have stored in a minute. Overridden by INTAKE_QUOTA_MB. */
export const INTAKE_QUOTA_MB = 64;
/** Of that: what all its visitors together may, and what one network address may of them. */
export const INTAKE_VISITORS_SHARE = 1 / 2;
export const INTAKE_ADDRESS_SHARE = 1 / 8;
/** What a row takes beside its content: its other columns, its places in indexes, its job. */
export const INTAKE_ROW_BYTES = 200;

/** What an app's finished runs with their logs may take on disk, and its events once more. Overridden by LOG_MAX_MB. */
export const LOG_MAX_MB = 1_024;
/** Days for which a version of an npm package is not chosen unless it is named. Overridden by NPM_MIN_AGE_DAYS. */
export const NPM_MIN_AGE_DAYS = 7;
/** Settings of one app, public ones too, as JSON. */
export const SETTINGS_MAX_BYTES = 8 * 1024 * 1024;
/** The actions of one app, both copies: their code and what each takes beside it. */
export const ACTIONS_MAX_BYTES = 256 * 1024 * 1024;
/** Scripts that dependencies of one app's actions, and of their versions, became. */
export const KEPT_SCRIPTS_MAX_BYTES = 256 * 1024 * 1024;
/** Tokens of one app that hold, those that pages and runs are given not counted. */
export const TOKENS_PER_APP = 1_000;
/** Members of an organization, and of an app. */
export const MEMBERS_MAX = 1_000;
/** Administrators of the service. */
export const ADMINISTRATORS_MAX = 100;
/** Pending invitations of an organization. */
export const INVITATIONS_MAX = 500;
/** Longest lifetime of an invitation in hours, and the usual one. */
export const INVITATION_MAX_HOURS = 720;
export const INVITATION_HOURS = 168;
/** Snapshots of an app, the oldest pruned. */
export const APP_VERSIONS_KEPT = 100;
/** Of one app, the newest: snapshots of its actions, entries of its trail, sessions of its visitors, answers to repeated requests. */
export const VERSION_BYTES_KEPT = 1024 * 1024 * 1024;
export const AUDIT_ENTRIES_KEPT = 100_000;
export const PAGE_SESSIONS_KEPT = 100_000;
/** Of one app, the newest: what its outbox holds of messages that are not waiting to be sent. */
export const MESSAGE_BYTES_KEPT = 512 * 1024 * 1024;
export const IDEMPOTENCY_BYTES_KEPT = 64 * 1024 * 1024;

/** Room for the database below which events are refused; half of it is kept for ending runs. Overridden by DISK_FREE_MIN_MB. */
export const DISK_FREE_MIN_MB = 1_024;
/** What OVERLOADED gives as Retry-After while the disk is nearly full. */
export const LOW_DISK_RETRY_SECONDS = 60;

/** Page loads that become `app.view` events, per RATE_WINDOW_MS: of one address or editor, and of one app. */
export const VIEWS_PER_VIEWER = 60;
export const VIEWS_PER_APP = 600;

/** What the names of changed fields and settings may take of an `app.update` event, as JSON. */
export const UPDATE_NAMES_MAX_BYTES = 16 * 1024;

/** Devices of one reader of an app's notifications that get them by Web Push, the newest. */
export const PUSH_SUBSCRIPTIONS_PER_READER = 20;
/** Of one app, the newest: its notifications, and all its devices. */
export const NOTIFICATIONS_KEPT = 100_000;
export const PUSH_SUBSCRIPTIONS_KEPT = 100_000;

/** Delivery reports of one network address, per RATE_WINDOW_MS. */
export const REPORTS_PER_ADDRESS = 600;

/** Events of one analytics request. */
export const ANALYTICS_EVENTS_PER_REQUEST = 100;

/** Stored values that one page of a list holds, in bytes; one entry comes whatever its size. Then fewer than `limit` come. */
export const PAGE_MAX_BYTES = 8 * 1024 * 1024;

/** Answers of one GraphQL document together, and the document of an export. */
export const ANSWER_MAX_BYTES = 16 * 1024 * 1024;

/** Data sources: one entry as JSON in UTF-8, what one commit may name, what one data source and one app may hold. */
export const ENTRY_MAX_BYTES = 1024 * 1024;
export const COMMIT_ENTRIES_MAX = 100_000;
export const ENTRIES_PER_DATA_SOURCE = 5_000_000;
export const DATA_SOURCES_PER_APP = 1_000;
/** What the entries of one app may take together. Overridden by DATA_SOURCE_QUOTA_MB. */
export const DATA_SOURCE_QUOTA_MB = 10_240;
/** How long an import may take. */
export const IMPORT_LIMIT_MS = 15 * 60_000;
/** Snapshots of one data source, the oldest pruned. */
export const DATA_SOURCE_VERSIONS_KEPT = 30;
/** Beyond so many changed entries one write is a bulk: one log event for all, and subscribers read anew. */
export const BULK_ENTRIES = 1_000;
/** Signing a page's user in: failures of one entry, or from one address, within the window. */
export const SIGN_IN_FAILURES = 10;
export const SIGN_IN_WINDOW_SECONDS = 600;
/** Sessions of people: longest time without use, and longest life (contract, section 7). */
export const SESSION_IDLE_MS = 12 * 3_600_000;
export const SESSION_LIFETIME_MS = 30 * 24 * 3_600_000;
/** Lifetimes of one-time links. */
export const SETUP_LINK_MS = 3_600_000;
export const RESET_LINK_MS = 3_600_000;
/** One statement of a query on entries (data sources). */
export const QUERY_TIMEOUT_MS = 5_000;

/** A file of the app's media, and all of them together. Overridden by MEDIA_MAX_MB and MEDIA_QUOTA_MB. */
export const MEDIA_MAX_MB = 100;
export const MEDIA_QUOTA_MB = 10_240;
/** What a file or a thumbnail counts for at the least: about what its row and its block of the disk take. */
export const MEDIA_BLOB_MIN_BYTES = 4_096;
/** Pictures that are looked at; larger ones are refused. */
export const PICTURE_MAX_BYTES = 100 * 1024 * 1024;
/** The longer edge of a thumbnail, its quality, and what it may take. */
export const THUMBNAIL = { edge: 320, quality: 75, maxBytes: 512 * 1024 } as const;
/** A picture made anew. */
export const RESIZED_MAX_BYTES = 32 * 1024 * 1024;
/** Those that were asked for lately, in memory: they are stored nowhere. */
export const RESIZED_KEPT_BYTES = 32 * 1024 * 1024;
/** Pictures that wait to be looked at in one process; beyond it more are refused with OVERLOADED. */
export const PICTURES_WAITING_MAX = 300;
/** Uploads at once in one process, in total and of callers that only access rules let in. An app has at most half of what others leave. */
export const UPLOADS_MAX = 256;
export const UPLOADS_OF_VISITORS_MAX = 64;
/** Files of one upload. */
export const FILES_PER_UPLOAD = 20;
/** Folders of one app, and how deep they nest. */
export const FOLDERS_MAX = 10_000;
export const FOLDER_DEPTH_MAX = 50;

/** How many rows a list counts one by one; beyond it says about how many there are. */
export const COUNT_EXACT_MAX = 10_000;

/** What is searched of one run: so many characters of its log entry, and of what it printed. */
export const SEARCH_CHARACTERS = 32 * 1024;
/** How long one search may take. */
export const SEARCH_LIMIT_MS = 5_000;

/** A manifest: the body of a request, and the answer. */
export const MANIFEST_MAX_BYTES = 32 * 1024 * 1024;
