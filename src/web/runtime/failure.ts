/** The errors that the client library rejects with. Lets through only what the service means for callers. */
import type { Action, Entry, SvcError } from "./public-types.js";

type Details = Pick<
  SvcError,
  "retryAfter" | "nextValidRequestDate" | "runId" | "action" | "entry" | "columns" | "answered"
>;

/**
 * An Error whose own enumerable properties are the error body and nothing else: `{status, error}`, and `nextValidRequestDate` of a
 * refused rate (specification, Errors). What a body does not have, the name, the stack, seconds and run, can be read all the same.
 */
export function failure(status: string, error: string, details: Details = {}): SvcError {
  const { nextValidRequestDate, ...beside } = details;
  const failed = new Error(error);
  for (const [name, value] of Object.entries({ name: "SvcError", ...beside })) {
    Object.defineProperty(failed, name, { value, configurable: true, writable: true });
  }
  return Object.assign(failed, { status, error }, nextValidRequestDate === undefined ? {} : { nextValidRequestDate });
}

/** Takes the known properties one by one: a body is data from the network, not something to spread over an object. */
export function failureFrom(body: unknown, httpStatus: number): SvcError {
  const given = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const status = typeof given["status"] === "string" ? given["status"] : "INTERNAL_ERROR";
  const error = typeof given["error"] === "string" ? given["error"] : `the service answered ${httpStatus}`;
  const details: Details = {};
  if (typeof given["retryAfter"] === "number") details.retryAfter = given["retryAfter"];
  if (typeof given["nextValidRequestDate"] === "string") details.nextValidRequestDate = given["nextValidRequestDate"];
  if (typeof given["runId"] === "number") details.runId = given["runId"];
  if (typeof given["action"] === "object") details.action = given["action"] as Action;
  if (typeof given["entry"] === "object") details.entry = given["entry"] as Entry | null;
  if (Array.isArray(given["columns"])) details.columns = given["columns"].map(String);
  return failure(status, error, details);
}
