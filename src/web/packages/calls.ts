/** Shared by the packages that call the service: path segments, and rejections with the error body. */
import { failure } from "../runtime/failure.js";

/** One segment of a path. "." and ".." would leave the path, "" would select the list. @throws SvcError of `status` */
export function segment(value: unknown, status: string, what: string): string {
  const text = String(value ?? "");
  if (/^\.{0,2}$/.test(text))
    throw failure(status, `${what} is required (got ${JSON.stringify(value) ?? "undefined"})`);
  return encodeURIComponent(text.toWellFormed());
}

/** An id as a segment of a path. An invalid id names nothing, so no request is sent. @throws SvcError of `status` */
export function idSegment(id: unknown, status: string, what: string): string {
  if (/^[1-9]\d{0,15}$/.test(String(id))) return String(id);
  throw failure(status, `${what} must be a positive whole number (got ${JSON.stringify(id) ?? "undefined"})`);
}

/** A fault in the arguments, found before a request is sent, as the error body (specification, client library). */
function asFailure(error: unknown): unknown {
  return error instanceof TypeError ? failure("REQUEST_INVALID", error.message) : error;
}

/** Wraps the members: every asynchronous call rejects instead of throwing, with an error that has `status` and `error`. */
export function rejecting<Members extends object>(members: Members): Members {
  const wrapped = Object.entries(members).map(([name, call]) => {
    if (typeof call !== "function") return [name, call];
    return [
      name,
      async (...input: unknown[]) => {
        try {
          return await call(...input);
        } catch (error) {
          throw asFailure(error);
        }
      },
    ];
  });
  return Object.fromEntries(wrapped) as Members;
}
