/** Limits of the service. Where a comment says so, the API specification sets the value. The name of a constant ends with its unit. */

/** Maximum memory of a browser's renderer process, in which a run is executed. */
export const RENDERER_MEMORY_MAX_BYTES = 512 * 1024 * 1024;

/** Maximum execution time of a run on the server (specification, Limits). The variable SERVER_TIMEOUT_MS replaces this default. */
export const SERVER_TIMEOUT_MS = 120_000;

/** Maximum execution time of a run in a user's browser (specification, Limits). The variable CLIENT_TIMEOUT_MS replaces this default. */
export const CLIENT_TIMEOUT_MS = 30_000;

/** Maximum size of the result of an on-demand run, as JSON in UTF-8 (specification, Limits). */
export const RESULT_MAX_BYTES = 6 * 1024 * 1024;

/** Maximum size as JSON of an app's private and protected settings, whose keys begin with `_` (specification, Limits). */
export const NON_PUBLIC_SETTINGS_PER_APP_MAX_BYTES = 100 * 1024;

/**
 * Maximum number of an app's secrets: the texts and long numbers in private and protected settings. The service masks secrets in the
 * results and logs of runs.
 */
export const SECRETS_PER_APP_MAX = 20_000;
/** Maximum total size of an app's secrets. */
export const SECRETS_PER_APP_MAX_BYTES = 512 * 1024;

export const ACTION_NAME_MAX_CHARACTERS = 255;
export const ACTION_DESCRIPTION_MAX_CHARACTERS = 1000;

/** Maximum number of stored versions of an action. The service removes the oldest (specification, Limits). */
export const VERSIONS_PER_ACTION_MAX = 100;
export const VERSIONS_PER_PAGE_DEFAULT = 50;
export const VERSIONS_PER_PAGE_MAX = 100;

export const PAYLOAD_PRESETS_PER_ACTION = 50;
export const PAYLOAD_PRESET_MAX_BYTES = 64 * 1024;

/** Default number of items on one page of a list (specification, Limits). */
export const LIST_ITEMS_PER_PAGE_DEFAULT = 50;
/** Maximum number of items on one page of a list. */
export const LIST_ITEMS_PER_PAGE_MAX = 1000;

export const RATE_WINDOW_MS = 60_000;

/** Maximum requests that read or change an app's definitions in RATE_WINDOW_MS (specification, Limits). 0 means unlimited. */
export const RATE_LIMIT_MANAGE = 60;
/** Maximum requests that run an app's actions in RATE_WINDOW_MS (specification, Limits). 0 means unlimited. */
export const RATE_LIMIT_RUN = 30;
/** Maximum requests that publish, unpublish or restore an app's actions in RATE_WINDOW_MS (specification, Limits). 0 means unlimited. */
export const RATE_LIMIT_PUBLISH = 10;
/**
 * Maximum requests to an app's HTTP triggers in RATE_WINDOW_MS (contract, section 8). The variable RATE_LIMIT_HTTP replaces this default.
 */
export const RATE_LIMIT_HTTP = 600;
/**
 * Maximum requests from one network address to an app's HTTP triggers, as a multiple of RATE_LIMIT_HTTP. Each process counts separately.
 */
export const HTTP_TRIGGER_ADDRESS_RATE_LIMIT_FACTOR = 10;
/**
 * Maximum number of event IDs that the service stores for an action, in order to recognize repeated requests. The oldest are removed.
 * 864,000 IDs are enough for one day at RATE_LIMIT_HTTP.
 */
export const HTTP_EVENT_IDS_PER_ACTION_MAX = 864_000;
/**
 * Share of an app's rate limit for runs. Requests of visitors above this share do not reduce the quota of other callers. With a limit of 30
 * runs, visitors can start 30 runs, and people and API tokens can still start 10 runs.
 */
export const VISITORS_RATE_LIMIT_SHARE = 2 / 3;

/** Maximum tool calls by AI agents for an app in RATE_WINDOW_MS (docs/reference/agents.md). 0 means unlimited. */
export const RATE_LIMIT_MCP = 120;

/** Maximum requests that send messages (such as mail) for an app in COMMUNICATE_RATE_WINDOW_MS. */
export const RATE_LIMIT_COMMUNICATE = 20;
export const COMMUNICATE_RATE_WINDOW_MS = 30_000;

/** Maximum size of a request body (contract, section 4). The service answers a larger body with 413. */
export const BODY_MAX_BYTES = 1024 * 1024;
/** Maximum size of the report that a browser sends about a run: payload, result and the JSON around them. */
export const CLIENT_RUN_REPORT_MAX_BYTES = RESULT_MAX_BYTES + 2 * BODY_MAX_BYTES;

/** Maximum size of the body of a request that writes many entries: a commit, or an import as JSON. */
export const LARGE_BODY_MAX_BYTES = 64 * 1024 * 1024;
/** Maximum total size of the request bodies above BODY_MAX_BYTES that a process receives at the same time. */
export const CONCURRENT_LARGE_BODIES_MAX_BYTES = 3 * LARGE_BODY_MAX_BYTES;

/** Request bodies up to this size are parsed immediately. Larger bodies wait until it is the turn of their sender. */
export const IMMEDIATELY_PARSED_BODY_MAX_BYTES = 32 * 1024;
/**
 * Maximum total size of request bodies from IMMEDIATELY_PARSED_BODY_MAX_BYTES to BODY_MAX_BYTES that a process receives at the same time.
 * Smaller bodies have a separate limit, which is a quarter of this one.
 */
export const CONCURRENT_BODIES_MAX_BYTES = 64 * 1024 * 1024;
/** Part of CONCURRENT_BODIES_MAX_BYTES that one network address can use. For smaller bodies, it is a quarter of this size. */
export const CONCURRENT_BODIES_PER_ADDRESS_MAX_BYTES = 16 * 1024 * 1024;

/** Maximum nesting depth of payloads, results and settings. PostgreSQL and JSON.stringify can fail for deeper values. */
export const JSON_MAX_DEPTH = 500;

export const SETTING_KEY_MAX_CHARACTERS = 512;
export const SETTINGS_KEYS_PER_REQUEST = 200;

/** Number of hours for which the service recognizes an Idempotency-Key (contract, section 3). */
export const IDEMPOTENCY_KEY_LIFETIME_HOURS = 24;

/** Maximum memory of the V8 isolate (a separate JavaScript heap) that compiles an action's code to find syntax errors. */
export const SYNTAX_CHECK_MEMORY_MB = 32;
/** Time limit for compiling an action's code to find syntax errors. */
export const SYNTAX_CHECK_TIMEOUT_MS = 1_000;

/** Maximum memory of the thread that checks an action's code (rules/code.ts). One megabyte of code needs about 150 MB. */
export const CODE_RULES_CHECK_MEMORY_MB = 256;
/** Time limit of the check of an action's code (rules/code.ts). One megabyte of code needs about one second. */
export const CODE_RULES_CHECK_TIMEOUT_MS = 15_000;

/** Maximum queued runs of all apps. Above it, the service rejects calls, and events start no runs. Schedules still queue runs. */
export const QUEUE_MAX = 1_000_000;
/**
 * Maximum queued runs of one app. If a tenth of the queue's free capacity is less, this tenth is the maximum instead, but at least
 * QUEUED_RUNS_PER_APP_RESERVED.
 */
export const QUEUE_MAX_PER_APP = 100_000;
/** Maximum size of all queued payloads. */
export const QUEUE_MAX_MB = 4_096;
/** Maximum share of QUEUE_MAX_MB that the payloads of one app can use. */
export const QUEUE_BYTES_APP_SHARE = 1 / 10;
/** Number of queued runs that an app may always have, even if other apps have filled the queue. */
export const QUEUED_RUNS_PER_APP_RESERVED = 20;

/** `Retry-After` of OVERLOADED responses. */
export const OVERLOADED_RETRY_SECONDS = 5;

/** Maximum value of an action's `concurrency.limit`. */
export const CONCURRENCY_LIMIT_MAX = 1_000;
/** Maximum value of an action's `debounce.delayMs`. */
export const DEBOUNCE_DELAY_MAX_MS = 3_600_000;
/** Maximum value of an action's `debounce.maxWaitMs`. */
export const DEBOUNCE_WAIT_MAX_MS = 86_400_000;
/** Minimum time limit that an action can set for its runs. */
export const RUN_TIMEOUT_MIN_MS = 100;

export const INTEGRATION_ORIGINS_PER_ACTION_MAX = 20;

export const SECRET_BINDINGS_PER_APP_MAX = 100;

/** Limits of requests from runs to other servers (contract, section 9). */
export const OUTGOING_REQUEST_BODY_MAX_BYTES = 1024 * 1024;
export const OUTGOING_RESPONSE_BODY_MAX_BYTES = 5 * 1024 * 1024;
export const OUTGOING_RESPONSES_PER_RUN_MAX_BYTES = 20 * 1024 * 1024;
export const CONCURRENT_OUTGOING_REQUESTS_PER_RUN = 8;
export const OUTGOING_REQUESTS_PER_RUN_MAX = 100;
export const OUTGOING_REQUEST_TIMEOUT_DEFAULT_MS = 10_000;
export const OUTGOING_REQUEST_TIMEOUT_MAX_MS = 30_000;
export const OUTGOING_REQUEST_REDIRECTS_MAX = 5;

/** Maximum number of zstd frames in the body of a response. Each frame needs a decoder. */
export const ZSTD_FRAMES_MAX = 1_000;

/** Estimated number of scheduled runs that one processor core can execute in a minute. Studio's week view marks minutes with more runs. */
export const ESTIMATED_SCHEDULED_RUNS_PER_CORE_AND_MINUTE = 300;

/** Maximum delay by which the scheduled runs of an action can be spread (jitter), in seconds. */
export const SCHEDULE_JITTER_MAX_SECONDS = 300;

/** Maximum number of runs after the first one in a chain. In a chain, each run starts the next one by a call or a log event. */
export const RUN_CHAIN_DEPTH_MAX = 8;
/** Maximum number of runs that the log events of one chain of runs can start in a minute. */
export const RUNS_PER_CHAIN_AND_MINUTE = 100;

/** Number of the newest stored events on which an author can test the filter of a trigger. */
export const BACKTEST_EVENTS_MAX = 1_000;

/** Maximum requests in progress of one credential in one process. Visitors have the two limits below instead. */
export const REQUESTS_IN_PROGRESS_PER_CREDENTIAL = 512;
/** Maximum requests in progress of one visitor at one network address, in one process. */
export const REQUESTS_IN_PROGRESS_PER_VISITOR = 64;
/**
 * Maximum requests in progress of all visitors at one network address, in one process. Callers without a credential have this limit too,
 * separately.
 */
export const REQUESTS_IN_PROGRESS_PER_ADDRESS = 512;

/** Maximum messages on one WebSocket in `windowMs`. Further messages wait. */
export const SOCKET_MESSAGES_PER_SOCKET = { limit: 400, windowMs: 8_000 };
/** Maximum messages in `windowMs` on all WebSockets of one network address together, and on those of one credential at this address. */
export const SOCKET_MESSAGES_PER_SENDER = { limit: 2_000, windowMs: 10_000 };
/** Maximum open WebSockets of one network address in one process. */
export const SOCKETS_PER_ADDRESS = 4_096;
/** Maximum idle WebSockets of one network address in one process. Idle means that no GraphQL operation is in progress. */
export const IDLE_SOCKETS_PER_ADDRESS = 512;

/** Maximum number of unknown tokens from one network address that one process looks up in RATE_WINDOW_MS. */
export const UNKNOWN_TOKENS_PER_ADDRESS_AND_MINUTE = 300;

/** Lifetime of a visitor's session after its start or its last renewal. */
export const VISITOR_SESSION_LIFETIME_MS = 12 * 60 * 60 * 1000;
/** Maximum lifetime of a visitor's session from its start, even if it is renewed. */
export const VISITOR_SESSION_RENEWED_LIFETIME_MAX_MS = 30 * 24 * 60 * 60 * 1000;

/** Maximum stored visitor sessions of an app from one network address. The service removes the oldest ones without a signed-in user. */
export const VISITOR_SESSIONS_PER_ADDRESS_MAX = 1_000;
/** Maximum stored visitor sessions of an app in total. The service removes the oldest ones without a signed-in user. */
export const VISITOR_SESSIONS_PER_APP_MAX = 100_000;

/** Time limit of a call to a language model. */
export const AI_TIMEOUT_MS = 110_000;
/** Maximum size of the request body of a call to a language model. */
export const AI_BODY_MAX_BYTES = 8 * 1024 * 1024;

/** Maximum number of origins of an app's external pages (pages on other servers), which may start sessions of the app's visitors. */
export const EXTERNAL_PAGE_ORIGINS_PER_APP_MAX = 50;

export const NEW_VISITOR_SESSIONS_PER_ADDRESS_AND_MINUTE = 120;

export const ALERT_RULES_PER_APP = 100;

/**
 * Maximum requests of one credential in RATE_WINDOW_MS with reports: of runs in browsers, or of analytics events. App users' requests for
 * their notifications have a separate limit of the same size.
 */
export const CLIENT_REPORTS_PER_CREDENTIAL_AND_MINUTE = 600;

/** Maximum requests of one app in RATE_WINDOW_MS for the TypeScript declarations of packages. Each process counts separately. */
export const TYPE_DECLARATION_REQUESTS_PER_APP_AND_MINUTE = 300;

/** Maximum size of a log event or analytics event, as JSON in UTF-8 (contract, section 3). */
export const EVENT_MAX_BYTES = 32 * 1024;

/** Maximum MB that all callers of an app except its visitors can store in a minute. The variable INTAKE_QUOTA_MB replaces this default. */
export const INTAKE_QUOTA_MB = 64;
/** Share of INTAKE_QUOTA_MB that all visitors of an app can store in a minute. */
export const INTAKE_QUOTA_VISITORS_SHARE = 1 / 2;
/** Share of INTAKE_QUOTA_MB that visitors at one network address can store in a minute. */
export const INTAKE_QUOTA_ADDRESS_SHARE = 1 / 8;
/** Estimated disk space that a database row needs in addition to its content. */
export const INTAKE_ROW_OVERHEAD_BYTES = 200;

/**
 * Maximum disk space of an app's finished runs and logs. The same maximum applies separately to its events. Runs and events that visitors
 * cause have a separate limit of half the size. The variable LOG_MAX_MB replaces this default.
 */
export const LOG_MAX_MB = 1_024;
/** Minimum age in days of a version that the service chooses for an npm package. The variable NPM_MIN_AGE_DAYS replaces this default. */
export const NPM_MIN_AGE_DAYS = 7;
/** Maximum size of all settings of an app, including public ones, as JSON. */
export const SETTINGS_PER_APP_MAX_BYTES = 8 * 1024 * 1024;
/** Maximum total size of an app's actions: drafts and live versions with all their fields. */
export const ACTIONS_PER_APP_MAX_BYTES = 256 * 1024 * 1024;
/** Maximum total size of the stored scripts of dependencies that an app's actions and their versions use. */
export const STORED_SCRIPTS_PER_APP_MAX_BYTES = 256 * 1024 * 1024;
/** Maximum number of valid tokens of an app, not counting the tokens of pages and runs. */
export const TOKENS_PER_APP = 1_000;
/** Maximum number of members of an organization, and of an app. */
export const MEMBERS_PER_ORGANIZATION_OR_APP_MAX = 1_000;
/** Maximum administrators of the service. */
export const SERVICE_ADMINISTRATORS_MAX = 100;
/** Maximum pending invitations of an organization. */
export const PENDING_INVITATIONS_PER_ORGANIZATION_MAX = 500;
export const INVITATION_LIFETIME_MAX_HOURS = 720;
export const INVITATION_LIFETIME_DEFAULT_HOURS = 168;
/** Maximum number of stored snapshots of an app. The oldest are removed. */
export const VERSIONS_PER_APP_MAX = 100;
/** Maximum bytes of an app's stored versions of actions. The oldest are removed. */
export const ACTION_VERSIONS_PER_APP_MAX_BYTES = 1024 * 1024 * 1024;
/**
 * Maximum entries in the audit log of an app or organization. Frequent types of entries count separately. The oldest entries are removed.
 */
export const AUDIT_ENTRIES_PER_APP_MAX = 100_000;
/** Maximum entries in the audit log of a person's account. The oldest entries are removed. */
export const AUDIT_ENTRIES_PER_ACCOUNT_MAX = 10_000;
/** Maximum number of stored sessions of an app's pages. The oldest are removed, even if they are still valid. */
export const PAGE_SESSIONS_PER_APP_MAX = 100_000;
/** Maximum stored bytes of an app's sent messages. The oldest are removed. */
export const SENT_MESSAGES_PER_APP_MAX_BYTES = 512 * 1024 * 1024;
/** Maximum stored bytes of an app's responses to requests with an Idempotency-Key. The oldest are removed. */
export const IDEMPOTENT_RESPONSES_PER_APP_MAX_BYTES = 64 * 1024 * 1024;

/**
 * Minimum free space: on the disk of the embedded database, or below DATABASE_MAX_MB if it is set. With less, the service rejects events
 * and changes. With less than half, it also rejects new runs.
 */
export const DISK_FREE_MIN_MB = 1_024;
/** `Retry-After` of OVERLOADED responses while the disk is nearly full. */
export const LOW_DISK_RETRY_SECONDS = 60;

/** Maximum `app.view` events (page loads) that one network address or one editor causes in an app in RATE_WINDOW_MS. */
export const LOGGED_PAGE_VIEWS_PER_VIEWER_AND_MINUTE = 60;
/** Maximum `app.view` events (page loads) of one app in RATE_WINDOW_MS. The service does not log further page loads. */
export const LOGGED_PAGE_VIEWS_PER_APP_AND_MINUTE = 600;

export const APP_UPDATE_EVENT_FIELD_NAMES_MAX_BYTES = 16 * 1024;

/** Maximum number of devices on which one user of an app receives push messages. The oldest devices are removed. */
export const PUSH_SUBSCRIPTIONS_PER_USER_MAX = 20;
/** Maximum number of stored notifications of an app. The oldest are removed. */
export const NOTIFICATIONS_PER_APP_MAX = 100_000;
/** Maximum number of an app's push devices of signed-in users. The oldest are removed. */
export const PUSH_SUBSCRIPTIONS_PER_APP_MAX = 100_000;
/** Maximum number of an app's push devices of visitors who are not signed in. The oldest are removed. */
export const VISITOR_PUSH_SUBSCRIPTIONS_PER_APP_MAX = 20_000;
/** Maximum of the argument `lastSeconds` of the subscription to notifications, in seconds. */
export const MISSED_NOTIFICATIONS_MAX_SECONDS = 30 * 24 * 60 * 60;

/** Maximum reports about deliveries that mail and SMS providers send from one network address in RATE_WINDOW_MS. */
export const DELIVERY_REPORTS_PER_ADDRESS_AND_MINUTE = 600;

export const ANALYTICS_EVENTS_PER_REQUEST = 100;

/** Maximum size of the values on one page of a list. Because of this limit, a page may have fewer than `limit` entries. */
export const LIST_PAGE_MAX_BYTES = 8 * 1024 * 1024;

/** Maximum size of the response to one GraphQL request, and of an exported document. */
export const GRAPHQL_RESPONSE_MAX_BYTES = 16 * 1024 * 1024;

/** Maximum size of an entry of a data source (a table of an app), as JSON in UTF-8. */
export const ENTRY_MAX_BYTES = 1024 * 1024;
export const ENTRIES_PER_COMMIT_MAX = 100_000;
export const ENTRIES_PER_DATA_SOURCE = 5_000_000;
export const DATA_SOURCES_PER_APP = 1_000;
/** Maximum size of all entries of an app. The variable DATA_SOURCE_QUOTA_MB replaces this default. */
export const DATA_SOURCE_QUOTA_MB = 10_240;
export const ENTRY_IMPORT_TIMEOUT_MS = 15 * 60_000;
/** Maximum number of stored snapshots of a data source. The oldest are removed. */
export const VERSIONS_PER_DATA_SOURCE_MAX = 30;
/**
 * Number of entries up to which a write creates one log event for each entry. A larger write creates a single event, and subscribers must
 * read all entries again.
 */
export const BULK_WRITE_THRESHOLD_ENTRIES = 1_000;
/**
 * Maximum failed sign-ins to an app from one network address in APP_USER_SIGN_IN_WINDOW_SECONDS. The failures for one app user at one
 * address also have this limit.
 */
export const APP_USER_SIGN_IN_FAILURES_MAX = 10;
export const APP_USER_SIGN_IN_WINDOW_SECONDS = 600;
/** Time without use after which a signed-in person's session ends (contract, section 7). */
export const PERSON_SESSION_IDLE_TIMEOUT_MS = 12 * 3_600_000;
/** Maximum lifetime of a signed-in person's session, even if it is used (contract, section 7). */
export const PERSON_SESSION_LIFETIME_MAX_MS = 30 * 24 * 3_600_000;
/** Lifetime of the one-time link that creates the first administrator. */
export const SETUP_LINK_LIFETIME_MS = 3_600_000;
/** Lifetime of the link that resets a person's sign-in. */
export const SIGN_IN_RESET_LINK_LIFETIME_MS = 3_600_000;
/** Time limit of one SQL statement that queries entries of data sources. */
export const ENTRY_QUERY_TIMEOUT_MS = 5_000;

/** Maximum size of one media file. The variable MEDIA_MAX_MB replaces this default. */
export const MEDIA_MAX_MB = 100;
/** Maximum size of all media files of an app. The variable MEDIA_QUOTA_MB replaces this default. */
export const MEDIA_QUOTA_MB = 10_240;
/** Smaller files and thumbnails count as this size for the app's quota. */
export const MEDIA_QUOTA_MIN_BYTES_PER_FILE = 4_096;
/** Maximum size of an uploaded picture. */
export const PICTURE_MAX_BYTES = 100 * 1024 * 1024;
/** Thumbnails: maximum length of the longer edge in pixels, WebP quality (1 to 100), and maximum size of the file. */
export const THUMBNAIL_LIMITS = { edge: 320, quality: 75, maxBytes: 512 * 1024 } as const;
export const RESIZED_PICTURE_MAX_BYTES = 32 * 1024 * 1024;
/** Maximum total size of the converted pictures that one process caches in memory. */
export const RESIZED_PICTURES_CACHE_MAX_BYTES = 32 * 1024 * 1024;
/**
 * Maximum number of pictures that one process converts or keeps waiting. One app can use at most half of what other apps leave free.
 * Further requests fail with OVERLOADED.
 */
export const PICTURE_CONVERSIONS_WAITING_MAX = 300;
/** Maximum number of uploads in progress in one process. One app can use at most half of the number that other apps leave free. */
export const UPLOADS_IN_PROGRESS_MAX = 256;
/** Maximum number of uploads in progress in one process that come from untrusted callers, such as visitors. */
export const VISITOR_UPLOADS_IN_PROGRESS_MAX = 64;
export const FILES_PER_UPLOAD = 20;
export const MEDIA_FOLDERS_PER_APP_MAX = 10_000;
export const MEDIA_FOLDER_DEPTH_MAX = 50;

/** Maximum number of rows that the service counts exactly. If a list has more rows, its `total` is an estimate. */
export const EXACT_COUNT_MAX_ROWS = 10_000;

/** A search in runs reads at most this many characters of a run's log entry, and as many of the run's console output. */
export const RUN_SEARCH_TEXT_MAX_CHARACTERS = 32 * 1024;
/** Time limit of one search in runs. */
export const RUN_SEARCH_TIMEOUT_MS = 5_000;

export const MANIFEST_MAX_BYTES = 32 * 1024 * 1024;
