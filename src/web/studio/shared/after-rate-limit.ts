/** Repeats a request that the rate limit has rejected. Pure: the caller provides the wait. */

/** Maximum number of attempts for one request. */
const MAX_ATTEMPTS = 3;

interface RateLimitError {
  status: string;
  message: string;
  details: { retryAfter?: number };
}

export interface RateLimitOptions {
  errorOf(error: unknown): RateLimitError;
  wait(seconds: number): Promise<unknown>;
}

/** @throws the error of the last request */
export async function retryAfterRateLimit<Result>(
  send: () => Promise<Result>,
  { errorOf, wait }: RateLimitOptions,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await send();
    } catch (error) {
      const { status, details } = errorOf(error);
      if (status !== "RATE_LIMIT_EXCEEDED" || details.retryAfter === undefined || attempt === MAX_ATTEMPTS) throw error;
      await wait(details.retryAfter);
    }
  }
}
