/** Errors that Studio shows to the person: those of the service, a missing response, and errors of Studio's own code. */
import { LoadError } from "../shell/load-error.js";

export interface ErrorDetails {
  runId?: number;
  retryAfter?: number;
}

/** Error with a message for the person. `status` is an error status of the service or of Studio, such as OFFLINE for no response. */
export class ApiError extends Error {
  constructor(
    readonly status: string,
    message: string,
    readonly details: ErrorDetails = {},
  ) {
    super(message);
  }
}

export const createOfflineError = () => new ApiError("OFFLINE", "the service does not answer");

/** Rejection handler of `fetch`, and of the functions that read a response's body. @throws ApiError with the status OFFLINE */
export function throwOffline(): never {
  throw createOfflineError();
}

/**
 * Converts a thrown value to an ApiError; returns an ApiError unchanged. The status is OFFLINE if a file of Studio could not be loaded. For
 * any other value, it is STUDIO_ERROR, because such an error is a fault in Studio's code.
 */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof LoadError) return new ApiError("OFFLINE", error.message);
  return new ApiError("STUDIO_ERROR", `an error occurred in Studio (${String(error)}); reload the page`);
}
