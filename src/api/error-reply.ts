/** Turns errors into responses for REST, GraphQL and sockets, without internal details. */
import { unwrapResolverError } from "@apollo/server/errors";
import type { FastifyError } from "fastify";
import { GraphQLError, type GraphQLFormattedError } from "graphql";
import type { Logger } from "pino";
import {
  findViolatedForeignKey,
  isDatabaseUnavailable,
  isDeadlock,
  isReadOnlyError,
  isUnstorableTextError,
} from "../data/database.js";
import { ActionError, type ErrorDetails, getHttpStatus, MediaStoreUnavailableError, type Status } from "../errors.js";
import type { ServiceMetrics } from "../operations/watch/measures.js";
import { isDiskFull } from "../postgres.js";

/** `Retry-After` in seconds while the database is unavailable, or after a conflict with another request. */
const DATABASE_RETRY_SECONDS = 1;

/** JSON body of every error response (contract, section 4). */
export interface ErrorBody extends ErrorDetails {
  status: Status;
  error: string;
}

function createErrorBody({ status, message, details }: ActionError): ErrorBody {
  return { status, error: message, ...details };
}

/** Converts an error of Fastify to an ActionError. Returns REQUEST_INVALID for any other error with HTTP status 4xx; null for the rest. */
function convertFastifyError(error: FastifyError): ActionError | null {
  if (error.code === "FST_ERR_CTP_BODY_TOO_LARGE") return new ActionError("PAYLOAD_TOO_LARGE");
  if (error.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") {
    return new ActionError(
      "REQUEST_INVALID",
      "the header Content-Type is not valid; send a media type such as application/json",
    );
  }
  if (error.code === "FST_ERR_BAD_URL") {
    return new ActionError(
      "REQUEST_INVALID",
      "the URL is not valid; after each %, it must have two hexadecimal digits, and the decoded bytes must be UTF-8",
    );
  }
  return error.statusCode !== undefined && error.statusCode < 500 ? new ActionError("REQUEST_INVALID") : null;
}

const SCRIPT_REMOVED_MESSAGE = "a script of the action's dependencies was removed during this request; try again";
const UPLOAD_DISCARDED_MESSAGE = "the upload was discarded before its file was stored; send the file again";

/** Errors for violated foreign keys, by the suffix of the key's name. The first matching suffix applies. */
const ERROR_BY_FOREIGN_KEY: readonly [string, Status, string?][] = [
  ["kept_script_use_sha256_fkey", "OVERLOADED", SCRIPT_REMOVED_MESSAGE],
  ["package_choice_sha256_fkey", "OVERLOADED", SCRIPT_REMOVED_MESSAGE],
  ["media_file_blob_key_fkey", "OVERLOADED", UPLOAD_DISCARDED_MESSAGE],
  ["media_file_thumbnail_key_fkey", "OVERLOADED", UPLOAD_DISCARDED_MESSAGE],
  ["git_webhook_app_id_fkey", "NOT_FOUND", "no Git repository is connected to this app"],
  ["media_folder_app_id_parent_id_fkey", "FOLDER_NOT_FOUND"],
  ["_data_source_id_fkey", "DATA_SOURCE_NOT_FOUND"],
  ["_notification_id_fkey", "NOTIFICATION_NOT_FOUND"],
  ["_version_id_fkey", "VERSION_NOT_FOUND"],
  ["_action_id_fkey", "ACTION_NOT_FOUND"],
  ["_folder_id_fkey", "FOLDER_NOT_FOUND"],
  ["_run_id_fkey", "RUN_NOT_FOUND"],
  ["_app_id_fkey", "APP_NOT_FOUND"],
  ["_root_id_fkey", "APP_NOT_FOUND"],
  ["_master_id_fkey", "ACTION_NOT_FOUND"],
  ["_rule_id_fkey", "NOT_FOUND", "no alert of this app has this ID"],
  ["_grant_id_fkey", "NOT_FOUND", "no such authorization"],
  ["_client_id_fkey", "NOT_FOUND", "no such OAuth client"],
  ["_link_id_fkey", "NOT_FOUND", "no such link"],
  ["_subscription_id_fkey", "NOT_FOUND", "no such push subscription"],
  ["_organization_id_fkey", "NOT_FOUND", "no such organization"],
  ["_person_id_fkey", "NOT_FOUND", "no such person"],
  ["_subject_id_fkey", "NOT_FOUND", "no such person"],
  ["_created_by_fkey", "NOT_FOUND", "no such person"],
  ["_updated_by_fkey", "NOT_FOUND", "no such person"],
  ["_credential_id_fkey", "NOT_FOUND", "no such token or session"],
  ["_session_id_fkey", "NOT_FOUND", "no such token or session"],
  ["_maker_id_fkey", "NOT_FOUND", "no such token or session"],
  ["credential_parent_id_fkey", "NOT_FOUND", "no such token or session"],
];

/** Returns the error for a missing row that a foreign key refers to, and logs the violation; null for other errors. */
function convertMissingReference(error: unknown, log: Logger): ActionError | null {
  const key = findViolatedForeignKey(error);
  const [, status, message] = ERROR_BY_FOREIGN_KEY.find(([end]) => key?.endsWith(end)) ?? [];
  if (!status) return null;
  log.warn({ err: error, foreignKey: key }, "a request failed because a row that it refers to does not exist");
  return new ActionError(status, message, status === "OVERLOADED" ? { retryAfter: DATABASE_RETRY_SECONDS } : {});
}

function describeUnavailability(error: unknown): string {
  if (isReadOnlyError(error)) return "the database is read-only";
  return isDiskFull() ? "the database's disk is full" : "the database is not reachable";
}

/** Converts any thrown value to an error that callers may see. Logs unexpected errors and hides them behind INTERNAL_ERROR. */
function toVisibleError(error: unknown, log: Logger): ActionError {
  if (error instanceof MediaStoreUnavailableError)
    log.warn({ err: error }, "a request failed because the media store is not available");
  if (error instanceof ActionError) return error;
  const convertedError = convertFastifyError(error as FastifyError) ?? convertMissingReference(error, log);
  if (convertedError) return convertedError;
  // PostgreSQL cannot store text with U+0000. The caller sent this character, and no earlier check found it.
  if (isUnstorableTextError(error)) {
    return new ActionError(
      "REQUEST_INVALID",
      "the request contains the character U+0000, which the service cannot store; remove it",
    );
  }
  if (isDatabaseUnavailable(error)) {
    const reason = describeUnavailability(error);
    log.warn({ err: error }, `a request failed because ${reason}`);
    return new ActionError("OVERLOADED", `${reason}; try again shortly`, {
      retryAfter: DATABASE_RETRY_SECONDS,
    });
  }
  // The caller can try again. All transactions should lock rows in the same order, so each deadlock is a fault of the service.
  if (isDeadlock(error)) {
    log.error({ err: error }, "a request failed because of a deadlock");
    const message = "another request changed the same data at the same time; try again";
    return new ActionError("OVERLOADED", message, { retryAfter: DATABASE_RETRY_SECONDS });
  }
  log.error({ err: error }, "a request failed");
  return new ActionError("INTERNAL_ERROR");
}

export function createErrorReply(
  error: unknown,
  log: Logger,
): { http: number; headers: Record<string, string>; body: ErrorBody } {
  const failure = toVisibleError(error, log);
  const { retryAfter } = failure.details;
  return {
    http: getHttpStatus(failure),
    headers: retryAfter === undefined ? {} : { "Retry-After": String(retryAfter) },
    body: createErrorBody(failure),
  };
}

/** Matches the start of graphql-js's message about a value of the wrong type. The value follows, and may be a secret. */
const WRONG_TYPE_PATTERN =
  /(?:Int|Float|String|Boolean|ID|Enum "\w+") cannot represent (?:(?:non-integer|non 32-bit signed integer|non numeric|a non string|a non boolean|non-enum|non-string) )?value/g;

const VALUE_PATH_PATTERN = / at "(\w+(?:\.\w+|\[\d+\])+)"; /g;

/** Matches graphql-js's messages that contain names of fields and types but no values, so callers may see them. */
const INPUT_TYPE_PATTERN =
  /Expected type "\w+" to be an object|does not exist in "\w+" enum|Field "\w{1,60}" is not defined by type "\w+"/g;

function describeInvalidVariable(messageStart: string, message: string): string {
  const valuePath = [...message.matchAll(VALUE_PATH_PATTERN)].at(-1)?.[1];
  const expected = message.match(WRONG_TYPE_PATTERN)?.at(-1) ?? message.match(INPUT_TYPE_PATTERN)?.at(-1);
  const reason = expected?.replace(/^does not/, "the value does not");
  return `${messageStart}${valuePath ? ` at "${valuePath}"` : ""}${reason ? `; ${reason}` : ""}`;
}

/** Removes the values that graphql-js quotes in a message, because they may be secrets. */
function removeQuotedValues(message: string): string {
  const messageStart = /^Variable "\$\w+" got invalid value/.exec(message)?.[0];
  if (messageStart) return describeInvalidVariable(messageStart, message);
  const expected = message.match(WRONG_TYPE_PATTERN)?.at(-1);
  if (expected) return expected;
  return message
    .replace(/^Value "[\s\S]*" does not exist in/, "The value does not exist in")
    .replace(/^(Syntax Error: Unexpected \w+) "[\s\S]*$/, "$1")
    .replace(/(, found) [\s\S]*$/, "");
}

/** True if the GraphQL document or its variables are invalid, so that no resolver has run. */
function isDocumentFault(error: GraphQLError): boolean {
  return error.originalError === undefined || error.originalError instanceof GraphQLError;
}

/** Converts an error to the GraphQL format: `message`, and `extensions` with the status and the other fields of a REST error. */
export function formatGraphqlError(error: unknown, log: Logger): GraphQLFormattedError {
  const locatedError = error instanceof GraphQLError ? error : null;
  const cause = unwrapResolverError(error);
  const failure =
    locatedError && !(cause instanceof ActionError) && isDocumentFault(locatedError)
      ? new ActionError("REQUEST_INVALID", removeQuotedValues(locatedError.message))
      : toVisibleError(cause, log);
  const { status, error: message, ...details } = createErrorBody(failure);
  return {
    message,
    ...(locatedError?.locations && { locations: locatedError.locations }),
    ...(locatedError?.path && { path: locatedError.path }),
    extensions: { status, ...details },
  };
}

export type FormatError = (error: unknown) => GraphQLFormattedError;

export function createGraphqlErrorFormatter({
  measures,
  log,
}: {
  measures: Pick<ServiceMetrics, "countRefusal">;
  log: Logger;
}): FormatError {
  return (error) => {
    const formattedError = formatGraphqlError(error, log);
    measures.countRefusal(formattedError.extensions?.["status"] as Status);
    return formattedError;
  };
}
