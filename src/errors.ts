/** Catalogue of the error statuses with their HTTP codes and default messages, and the error classes of the service. */

import { OVERLOADED_RETRY_SECONDS } from "./limits.js";

interface StatusRow {
  http: number;
  message: string;
}

/** All error statuses that callers can receive (specification, Errors; contract, section 4). */
export const STATUS = {
  NAME_REQUIRED: { http: 400, message: "name is required" },
  NAME_EMPTY: { http: 400, message: "name must not be empty" },
  NAME_TOO_LONG: { http: 400, message: "name is longer than 255 characters" },
  NAME_INVALID_CHARS: { http: 400, message: "name can contain only letters, numbers, dashes and underscores" },
  NAME_ALREADY_EXISTS: { http: 409, message: "another action of this app already has this name" },
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
  TRIGGER_TYPE_INVALID: {
    http: 400,
    message:
      "the type of a trigger must be manual, schedule, log or analytics (the types of the API specification), or http",
  },
  TRIGGER_NOT_ALLOWED: {
    http: 400,
    message: "the action has no trigger for this call, or a trigger that its environment does not allow",
  },
  DEPENDENCIES_INVALID: { http: 400, message: "dependencies must be an array of package names and https URLs" },
  INTEGRATION_ORIGINS_INVALID: {
    http: 400,
    message: "integrationOrigins must be an array of at most 20 https origins",
  },
  DEPENDENCY_UNRESOLVED: { http: 400, message: "the service cannot use a dependency of the action" },
  ACCESS_INVALID: { http: 400, message: "access must be everyone, signedIn, editors or a rule" },
  ACTION_NOT_V3: { http: 400, message: "the action is a legacy V2 action; create a new action instead" },
  SETTINGS_INVALID: { http: 400, message: "the settings are not valid" },
  PAYLOAD_INVALID: { http: 400, message: "the payload must be a JSON object" },
  REQUEST_INVALID: { http: 400, message: "the request is not valid" },
  PASSPHRASE_TOO_WEAK: { http: 400, message: "the passphrase is too easy to guess" },
  UNAUTHORIZED: { http: 401, message: "a valid credential is required" },
  SIGN_IN_FAILED: { http: 401, message: "the sign-in failed" },
  SIGNATURE_INVALID: { http: 401, message: "the signature of the request is missing or not valid" },
  FORBIDDEN: { http: 403, message: "permission denied" },
  CANNOT_UPDATE_PRODUCTION: {
    http: 403,
    message: "the ID is of a live version, which cannot be changed; change the draft and publish it",
  },
  CANNOT_DELETE_PRODUCTION: {
    http: 403,
    message: "the ID is of a live version, which cannot be deleted; unpublish the action by the ID of its draft",
  },
  CANNOT_RESTORE_PRODUCTION: {
    http: 403,
    message: "the ID is of a live version, which cannot be restored; restore the draft and publish it",
  },
  CROSS_SITE_REQUEST: { http: 403, message: "the request must come from a page of this service" },
  DATA_SOURCE_ACCESS_DENIED: { http: 403, message: "the access rules of this data source do not allow the request" },
  ACTION_ACCESS_DENIED: { http: 403, message: "the action's access setting does not allow this caller" },
  ACTION_NOT_FOUND: { http: 404, message: "the app has no action with this ID or name" },
  VERSION_NOT_FOUND: { http: 404, message: "no such version" },
  APP_NOT_FOUND: { http: 404, message: "no such app" },
  FILE_NOT_FOUND: { http: 404, message: "no such file" },
  FOLDER_NOT_FOUND: { http: 404, message: "no such folder" },
  RUN_NOT_FOUND: { http: 404, message: "no such run" },
  DATA_SOURCE_NOT_FOUND: { http: 404, message: "no such data source" },
  ENTRY_NOT_FOUND: { http: 404, message: "no such entry" },
  NOTIFICATION_NOT_FOUND: { http: 404, message: "no such notification" },
  NOT_FOUND: { http: 404, message: "nothing exists at this address" },
  METHOD_NOT_ALLOWED: { http: 405, message: "this address does not support the HTTP method of the request" },
  ACTION_INACTIVE: { http: 409, message: "the action is inactive" },
  CLIENT_ACTION_NOT_RUNNABLE: {
    http: 409,
    message:
      "the action is a client action, which runs only in the browser of a user; run it in a page, or set its environment to any",
  },
  APP_NOT_PUBLISHED: { http: 409, message: "the app is not published" },
  TESTS_REQUIRED: {
    http: 409,
    message: "this app requires tests before an action is published; run svc publish --tested",
  },
  ACTION_NOT_PUBLISHED: { http: 409, message: "the action is not published" },
  ACTION_CHANGED: { http: 409, message: "the action was changed after you read it" },
  RUN_SKIPPED: { http: 409, message: "the run was skipped because of the action's concurrency setting" },
  RUN_NOT_CANCELLABLE: { http: 409, message: "the run has ended already" },
  ENTRY_ALREADY_EXISTS: { http: 409, message: "an entry with the same values already exists" },
  MANIFEST_CHANGED: { http: 409, message: "the app was changed after you read its manifest" },
  GIT_PULL_FAILED: { http: 409, message: "the Git repository cannot be read" },
  DATA_SOURCE_NOT_EMPTY: {
    http: 409,
    message: "the data source has entries; remove them before you remove the data source",
  },
  ENTRY_CHANGED: { http: 409, message: "the entry was changed after you read it" },
  RESOURCE_CHANGED: { http: 409, message: "the resource was changed after you read it" },
  LAST_OWNER: { http: 409, message: "an organization must have at least one owner" },
  LAST_ADMINISTRATOR: { http: 409, message: "the service must have at least one administrator who can sign in" },
  EMAIL_IN_USE: { http: 409, message: "another person has this e-mail address" },
  MESSAGE_DECIDED: { http: 409, message: 'only a message with the status "unknown" needs a decision' },
  LINK_EXPIRED: { http: 410, message: "the link is unknown, used, revoked or too old" },
  PAYLOAD_TOO_LARGE: { http: 413, message: "the request is larger than 1 MB" },
  RANGE_NOT_SATISFIABLE: { http: 416, message: "the range starts after the end of the file" },
  RATE_LIMIT_EXCEEDED: { http: 429, message: "too many requests for this app" },
  EXECUTION_FAILED: { http: 500, message: "the action failed" },
  PUBLISH_FAILED: { http: 500, message: "the service could not publish the action" },
  RESTORE_FAILED: { http: 500, message: "the service could not restore the action" },
  INTERNAL_ERROR: { http: 500, message: "the service had an internal error" },
  OVERLOADED: { http: 503, message: "the service is at its limit; try again shortly" },
} as const satisfies Record<string, StatusRow>;

/** Status of an error response, such as `ACTION_NOT_FOUND`. */
export type Status = keyof typeof STATUS;

/** Fields of an error response in addition to `status` and `error`. */
export interface ErrorDetails {
  /** Seconds after which a retry may succeed, also sent as the header `Retry-After`. */
  retryAfter?: number;
  /** First moment at which the service would accept the request, in ISO 8601 (RATE_LIMIT_EXCEEDED). */
  nextValidRequestDate?: string;
  /** ID of the run that failed (EXECUTION_FAILED). */
  runId?: number;
  /** Current version of the action (ACTION_CHANGED). */
  action?: object;
  /** Current version of the entry (ENTRY_CHANGED), with the fields that the caller may read; null if the caller cannot read the entry. */
  entry?: object | null;
  /** Current version of the resource (RESOURCE_CHANGED). */
  resource?: object;
  /** Unique columns in which another entry has the same value (ENTRY_ALREADY_EXISTS), without columns that the caller may not read. */
  columns?: readonly string[];
  /** Invalid actions of an import, or invalid parts of a manifest. */
  faults?: readonly (ActionImportFault | ManifestPathFault)[];
}

/** Invalid action of an import. `index` is its position in the imported document. */
export interface ActionImportFault {
  index: number;
  name: string | null;
  status: Status;
  error: string;
}

/** Invalid part of a document. `path` names it, for example `actions[3].frequency`. */
export interface ManifestPathFault {
  path: string;
  status: Status;
  error: string;
}

/** Error with a status of the catalogue. Callers receive its message; the messages of all other errors stay on the server. */
export class ActionError extends Error {
  override readonly name = "ActionError";

  constructor(
    readonly status: Status,
    message: string = STATUS[status].message,
    readonly details: ErrorDetails = {},
    /** Path of the invalid field in an item of a manifest. Omit it if the message starts with this path. */
    readonly path?: string,
  ) {
    super(message);
  }
}

/** Temporary failure of the media store. `cause` is the error of the store, which only the log of the service contains. */
export class MediaStoreUnavailableError extends ActionError {
  constructor(override readonly cause: unknown) {
    const message = "the media store of the service is not available; try again shortly";
    super("OVERLOADED", message, { retryAfter: OVERLOADED_RETRY_SECONDS });
  }
}

export const createClientDisconnectedError = (): ActionError =>
  new ActionError("REQUEST_INVALID", "the client disconnected before the service sent the response");

/** Returns the HTTP code of an error's status (contract, section 4), or 503 for a dependency that may be resolved later. */
export function getHttpStatus({ status, details }: ActionError): number {
  if (status === "DEPENDENCY_UNRESOLVED" && details.retryAfter !== undefined) return 503;
  return STATUS[status].http;
}

/** Creates the error for a request above a rate limit (contract, section 4), with `retryAfter` (in seconds) and `nextValidRequestDate`. */
export function createRateLimitError(
  message: string,
  retryAfter: number,
  nextAcceptedAt = new Date(Date.now() + retryAfter * 1000),
): ActionError {
  const nextValidRequestDate = nextAcceptedAt.toISOString();
  return new ActionError("RATE_LIMIT_EXCEEDED", message, { retryAfter, nextValidRequestDate });
}

/** Reason why the service or a command could not start. The message is one complete line for the operator. */
export class StartError extends Error {
  override readonly name: string = "StartError";
}

/**
 * Returns the text for an error that ends the process. For a StartError, an ActionError or a system error, this is the message in one line.
 * For any other error, it is the stack trace.
 */
export function formatFatalError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, syscall } = error as NodeJS.ErrnoException;
  const isKnown =
    error instanceof StartError || error instanceof ActionError || (code !== undefined && syscall !== undefined);
  return isKnown ? error.message.replaceAll("\n", " ") : (error.stack ?? error.message);
}
