/** Repeats a request that the rate limit has rejected. Pure: the caller provides the wait. */

/** Maximum number of attempts for one request. */
const TRIES_MAX = 3;

interface Refusal {
  status: string;
  message: string;
  details: { retryAfter?: number };
}

export interface Waiting {
  errorOf(error: unknown): Refusal;
  wait(seconds: number): Promise<unknown>;
}

/** @throws the error of the last request */
export async function afterRateLimit<Result>(send: () => Promise<Result>, { errorOf, wait }: Waiting): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await send();
    } catch (error) {
      const { status, details } = errorOf(error);
      if (status !== "RATE_LIMIT_EXCEEDED" || details.retryAfter === undefined || tries === TRIES_MAX) throw error;
      await wait(details.retryAfter);
    }
  }
}
