/**
 * Repeats a request that the service rejected because of a rate limit. The caller passes the function that waits, so that tests can replace
 * it.
 */

/** Maximum number of times that one request is sent. */
const MAX_ATTEMPTS = 3;

/** Error of a request. `retryAfter` is set only if the service rejected the request because of a limit. */
interface RequestFailure {
  status: string;
  message: string;
  details: { retryAfter?: number };
}

export interface RateLimitRetryOptions {
  toRequestFailure(error: unknown): RequestFailure;
  waitSeconds(seconds: number): Promise<unknown>;
}

/** Sends a request, and repeats it after the time that the rate limit names. @throws the error of the last attempt */
export async function retryAfterRateLimit<Result>(
  sendRequest: () => Promise<Result>,
  { toRequestFailure, waitSeconds }: RateLimitRetryOptions,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await sendRequest();
    } catch (error) {
      const { status, details } = toRequestFailure(error);
      if (status !== "RATE_LIMIT_EXCEEDED" || details.retryAfter === undefined || attempt === MAX_ATTEMPTS) throw error;
      await waitSeconds(details.retryAfter);
    }
  }
}
