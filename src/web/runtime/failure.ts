/** The errors that the client library rejects with. Lets through only what the service means for callers. */
import type { SvcError } from "./public-types.js";

type Details = Pick<SvcError, "retryAfter" | "nextValidRequestDate" | "runId">;

/** An Error with the service's body, `{status, error}`, as own properties (specification, Errors). */
export function failure(status: string, error: string, details: Details = {}): SvcError {
  const failed = new Error(error);
  failed.name = "SvcError";
  return Object.assign(failed, { status, error, ...details });
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
  return failure(status, error, details);
}
