/** The catalogue of statuses: each once, with its HTTP code and default message; and the errors that are told. Knows no transport. */

interface StatusRow {
  http: number;
  message: string;
}

/** Every status that leaves the service (specification, Errors; contract, section 4). */
export const STATUS = {
  NAME_REQUIRED: { http: 400, message: "name is required" },
  NAME_EMPTY: { http: 400, message: "name must not be empty" },
  NAME_TOO_LONG: { http: 400, message: "name is longer than 255 characters" },
  NAME_INVALID_CHARS: { http: 400, message: "name may hold letters, numbers, dashes and underscores only" },
  NAME_ALREADY_EXISTS: { http: 409, message: "another action of this app has that name" },
  DESCRIPTION_INVALID: { http: 400, message: "description must be a string" },
  DESCRIPTION_TOO_LONG: { http: 400, message: "description is longer than 1000 characters" },
  CODE_REQUIRED: { http: 400, message: "code is required" },
  CODE_EMPTY: { http: 400, message: "code must not be empty" },
  CODE_VALIDATION_FAILED: { http: 400, message: "code must define an async function named execute" },
  ENVIRONMENT_INVALID: { http: 400, message: "environment must be server, client or any" },
  FREQUENCY_INVALID: { http: 400, message: "frequency must be a cron expression of five fields" },
  FREQUENCY_TOO_FREQUENT: { http: 400, message: "frequency must not fire every minute" },
  TIMEZONE_INVALID: { http: 400, message: "timezone must be a full IANA name" },
  TRIGGERS_INVALID: { http: 400, message: "triggers must be an array of trigger objects" },
  TRIGGER_TYPE_INVALID: { http: 400, message: "trigger must be manual, schedule, log, analytics or http" },
  TRIGGER_NOT_ALLOWED: { http: 400, message: "the trigger is not allowed here" },
  DEPENDENCIES_INVALID: { http: 400, message: "dependencies must be an array of package names and https URLs" },
  INTEGRATION_ORIGINS_INVALID: {
    http: 400,
    message: "integrationOrigins must be an array of at most 20 https origins",
  },
  DEPENDENCY_UNRESOLVED: { http: 400, message: "a dependency cannot be resolved" },
  ACCESS_INVALID: { http: 400, message: "access must be everyone, signedIn, editors or a rule" },
  ACTION_NOT_V3: { http: 400, message: "the action is a legacy V2 action" },
  SETTINGS_INVALID: { http: 400, message: "the settings are not acceptable" },
  PAYLOAD_INVALID: { http: 400, message: "the payload must be a JSON object" },
  REQUEST_INVALID: { http: 400, message: "the request is not acceptable" },
  PASSPHRASE_TOO_WEAK: { http: 400, message: "the passphrase is too easy to guess" },
  UNAUTHORIZED: { http: 401, message: "a valid credential is required" },
  SIGN_IN_FAILED: { http: 401, message: "the sign-in failed" },
  SIGNATURE_INVALID: { http: 401, message: "the signature of the request is missing or not valid" },
  FORBIDDEN: { http: 403, message: "this credential may not do that" },
  CANNOT_UPDATE_PRODUCTION: { http: 403, message: "a production action changes only by publishing its master" },
  CANNOT_DELETE_PRODUCTION: { http: 403, message: "a production action is removed only by unpublishing its master" },
  CANNOT_RESTORE_PRODUCTION: { http: 403, message: "a production action cannot be restored, only its master" },
  CROSS_SITE_REQUEST: { http: 403, message: "the request must come from a page of this service" },
  DATA_SOURCE_ACCESS_DENIED: { http: 403, message: "the access rules of this data source do not allow that" },
  ACTION_ACCESS_DENIED: { http: 403, message: "the action's access does not include this caller" },
  ACTION_NOT_FOUND: { http: 404, message: "no action with that id or name" },
  VERSION_NOT_FOUND: { http: 404, message: "no such version" },
  APP_NOT_FOUND: { http: 404, message: "no such app" },
  FILE_NOT_FOUND: { http: 404, message: "no such file" },
  FOLDER_NOT_FOUND: { http: 404, message: "no such folder" },
  RUN_NOT_FOUND: { http: 404, message: "no such run" },
  DATA_SOURCE_NOT_FOUND: { http: 404, message: "no such data source" },
  ENTRY_NOT_FOUND: { http: 404, message: "no such entry" },
  NOTIFICATION_NOT_FOUND: { http: 404, message: "no such notification" },
  NOT_FOUND: { http: 404, message: "there is nothing at this address" },
  METHOD_NOT_ALLOWED: { http: 405, message: "this address does not support that method" },
  ACTION_INACTIVE: { http: 409, message: "the action is inactive" },
  CLIENT_ACTION_NOT_RUNNABLE: { http: 409, message: "a client action runs in the browser only" },
  APP_NOT_PUBLISHED: { http: 409, message: "the app is not published" },
  ACTION_NOT_PUBLISHED: { http: 409, message: "the action is not published" },
  ACTION_CHANGED: { http: 409, message: "the action was changed meanwhile" },
  RUN_SKIPPED: { http: 409, message: "the run did not start, by its action's concurrency" },
  RUN_NOT_CANCELLABLE: { http: 409, message: "the run has ended already" },
  ENTRY_ALREADY_EXISTS: { http: 409, message: "an entry with the same values is there already" },
  MANIFEST_CHANGED: { http: 409, message: "the app was changed after the manifest that this change started from" },
  DATA_SOURCE_NOT_EMPTY: { http: 409, message: "the data source has entries" },
  ENTRY_CHANGED: { http: 409, message: "the entry has changed meanwhile" },
  RESOURCE_CHANGED: { http: 409, message: "the resource was changed after the state that this change started from" },
  LAST_OWNER: { http: 409, message: "an organization keeps at least one owner" },
  LAST_ADMINISTRATOR: { http: 409, message: "the service keeps at least one administrator who can sign in" },
  EMAIL_IN_USE: { http: 409, message: "another person has this e-mail address" },
  MESSAGE_DECIDED: { http: 409, message: "the message's status is known" },
  LINK_EXPIRED: { http: 410, message: "the link is unknown, used, revoked or too old" },
  PAYLOAD_TOO_LARGE: { http: 413, message: "the request is larger than 1 MB" },
  RANGE_NOT_SATISFIABLE: { http: 416, message: "the range lies behind the end of the file" },
  RATE_LIMIT_EXCEEDED: { http: 429, message: "too many requests for this app" },
  EXECUTION_FAILED: { http: 500, message: "the action failed" },
  PUBLISH_FAILED: { http: 500, message: "publishing failed" },
  RESTORE_FAILED: { http: 500, message: "restoring failed" },
  INTERNAL_ERROR: { http: 500, message: "something went wrong on our side" },
  OVERLOADED: { http: 503, message: "the service is at its limit, try again shortly" },
} as const satisfies Record<string, StatusRow>;

export type Status = keyof typeof STATUS;

/** What an error may carry beside `status` and `error`. */
export interface ErrorDetails {
  /** Seconds until a repeat may succeed; becomes the `Retry-After` header. */
  retryAfter?: number;
  /** ISO 8601; the first moment at which the request would be accepted (RATE_LIMIT_EXCEEDED). */
  nextValidRequestDate?: string;
  /** The run that failed (EXECUTION_FAILED). */
  runId?: number;
  /** The action as it stands now (ACTION_CHANGED). */
  action?: object;
  /** The entry as it stands now and as the caller may see it (ENTRY_CHANGED); null where it sees nothing of it. */
  entry?: object | null;
  /** The resource as it stands now (RESOURCE_CHANGED). */
  resource?: object;
  /** Columns whose values no two entries may share (ENTRY_ALREADY_EXISTS), as far as the caller may know of them. */
  columns?: readonly string[];
  /** Actions of an import, or places of a manifest, that are at fault. */
  faults?: readonly (ImportFault | PathFault)[];
}

/** An action of an import that is at fault. */
export interface ImportFault {
  index: number;
  name: string | null;
  status: Status;
  error: string;
}

/** A place of a document that is at fault, such as `actions[3].frequency`. */
export interface PathFault {
  path: string;
  status: Status;
  error: string;
}

/** A refusal or failure with a status of the catalogue: the only error whose text reaches a caller. */
export class ActionError extends Error {
  override readonly name = "ActionError";

  constructor(
    readonly status: Status,
    message: string = STATUS[status].message,
    readonly details: ErrorDetails = {},
  ) {
    super(message);
  }
}

/** Answers who has gone: it is read by nobody. */
export const nobodyWaits = (): ActionError =>
  new ActionError("REQUEST_INVALID", "nobody waits for this answer any more");

/** The HTTP code of a failure (contract, section 4): a dependency that may be resolved later is no fault of the request. */
export function httpOf({ status, details }: ActionError): number {
  if (status === "DEPENDENCY_UNRESOLVED" && details.retryAfter !== undefined) return 503;
  return STATUS[status].http;
}

/** A refusal of what comes too often (contract, section 4). */
export function tooOften(message: string, retryAfter: number): ActionError {
  const nextValidRequestDate = new Date(Date.now() + retryAfter * 1000).toISOString();
  return new ActionError("RATE_LIMIT_EXCEEDED", message, { retryAfter, nextValidRequestDate });
}

/** A reason not to start, or not to do what the command line asked: its message is a whole line for an operator. */
export class StartError extends Error {
  override readonly name: string = "StartError";
}

/** What an operator reads of an error that ended the process: one line where the reason is known, the stack where it is not. */
export function faultLine(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, syscall } = error as NodeJS.ErrnoException;
  const known =
    error instanceof StartError || error instanceof ActionError || (code !== undefined && syscall !== undefined);
  return known ? error.message.replaceAll("\n", " ") : (error.stack ?? error.message);
}
