/** Helpers for the packages that call the service: they build URL paths, and turn errors into rejections with `status` and `error`. */
import { createSvcError } from "../runtime/failure.js";

/**
 * Encodes a value as one segment of a URL path. Rejects ".", ".." and "", because the URL would then have another path.
 * @throws SvcError with `status`
 */
export function encodePathSegment(value: unknown, status: string, description: string): string {
  const text = String(value ?? "");
  if (/^\.{0,2}$/.test(text))
    throw createSvcError(status, `${description} is required (got ${JSON.stringify(value) ?? "undefined"})`);
  return encodeURIComponent(text.toWellFormed());
}

/** Encodes an ID as one segment of a path. An invalid ID is rejected without a request. @throws SvcError with `status` */
export function encodeIdPathSegment(id: unknown, status: string, description: string): string {
  if (/^[1-9]\d{0,15}$/.test(String(id))) return String(id);
  throw createSvcError(
    status,
    `${description} must be a positive whole number (got ${JSON.stringify(id) ?? "undefined"})`,
  );
}

/**
 * Rejects query conditions with a value that JSON omits, such as undefined. The service would not receive the condition.
 * @throws SvcError REQUEST_INVALID with the path of the value
 */
export function rejectUndefinedValues(conditions: object, path: string, parents: readonly object[] = []): void {
  for (const [key, value] of Object.entries(conditions)) {
    const valuePath = Array.isArray(conditions) ? `${path}[${key}]` : `${path}.${key}`;
    if (value === undefined) throw createSvcError("REQUEST_INVALID", `${valuePath} must not be undefined`);
    if (typeof value === "function" || typeof value === "symbol")
      throw createSvcError("REQUEST_INVALID", `${valuePath} must be a JSON value (got a ${typeof value})`);
    // Skips objects that contain themselves: JSON.stringify rejects them later, with its own message.
    if (typeof value === "object" && value !== null && !parents.includes(value))
      rejectUndefinedValues(value, valuePath, [...parents, conditions]);
  }
}

/** Converts a TypeError, which reports invalid arguments, to an SvcError like the service's errors. Returns other errors unchanged. */
function convertTypeError(error: unknown): unknown {
  return error instanceof TypeError ? createSvcError("REQUEST_INVALID", error.message) : error;
}

/**
 * Wraps all functions of an object, so that calls reject instead of throwing. A TypeError becomes an SvcError like the service's errors.
 */
export function wrapWithSvcErrors<Members extends object>(members: Members): Members {
  const wrappedMembers = Object.entries(members).map(([name, call]) => {
    if (typeof call !== "function") return [name, call];
    return [
      name,
      async (...input: unknown[]) => {
        try {
          return await call(...input);
        } catch (error) {
          throw convertTypeError(error);
        }
      },
    ];
  });
  return Object.fromEntries(wrappedMembers) as Members;
}
