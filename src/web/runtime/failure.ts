/** Creates the errors with which the client library rejects. */
import type { Entry } from "./data-source-types.js";
import type { Action, SvcError } from "./public-types.js";

type ErrorDetails = Pick<
  SvcError,
  "retryAfter" | "nextValidRequestDate" | "runId" | "action" | "entry" | "columns" | "answered"
>;

/**
 * Creates an Error whose enumerable properties are those of the error body: `{status, error}`, and `nextValidRequestDate` for an exceeded
 * rate limit (specification, Errors). Its other properties, such as `runId`, are not enumerable.
 */
export function createSvcError(status: string, error: string, details: ErrorDetails = {}): SvcError {
  const { nextValidRequestDate, ...otherDetails } = details;
  const svcError = new Error(error);
  for (const [name, value] of Object.entries({ name: "SvcError", ...otherDetails })) {
    Object.defineProperty(svcError, name, { value, configurable: true, writable: true });
  }
  return Object.assign(svcError, { status, error }, nextValidRequestDate === undefined ? {} : { nextValidRequestDate });
}

const toFields = (value: unknown) =>
  (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;

/** Returns the fields of an error body. For a GraphQL response, adds the fields of its first error. */
function readErrorFields(body: unknown): Record<string, unknown> {
  const fields = toFields(body);
  if (!Array.isArray(fields["errors"])) return fields;
  const { message, extensions } = toFields(fields["errors"][0]);
  return { ...fields, ...toFields(extensions), error: message };
}

/** Creates an error from a response's body. Copies known fields only, because the body is untrusted data. */
export function toSvcError(body: unknown, httpStatus: number): SvcError {
  const fields = readErrorFields(body);
  const status = typeof fields["status"] === "string" ? fields["status"] : "INTERNAL_ERROR";
  const error =
    typeof fields["error"] === "string" ? fields["error"] : `the service responded with HTTP status ${httpStatus}`;
  const details: ErrorDetails = {};
  if (typeof fields["retryAfter"] === "number") details.retryAfter = fields["retryAfter"];
  if (typeof fields["nextValidRequestDate"] === "string") details.nextValidRequestDate = fields["nextValidRequestDate"];
  if (typeof fields["runId"] === "number") details.runId = fields["runId"];
  if (typeof fields["action"] === "object") details.action = fields["action"] as Action;
  if (typeof fields["entry"] === "object") details.entry = fields["entry"] as Entry | null;
  if (Array.isArray(fields["columns"])) details.columns = fields["columns"].map(String);
  return createSvcError(status, error, details);
}
