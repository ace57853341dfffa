/** Rate limits of the OAuth routes: requests of programs by network address, and decisions about programs by person. */
import { createTokenBucket } from "../../engine/token-bucket.js";
import { createRateLimitError } from "../../errors.js";
import { getAddressBlock } from "../../rules/address-block.js";

const REQUESTS_PER_ADDRESS_MAX = 240;
const DECISIONS_PER_PERSON_MAX = 120;
const OAUTH_LIMIT_WINDOW_MS = 60_000;

export class OauthRateLimits {
  readonly #requests = createTokenBucket({ limit: REQUESTS_PER_ADDRESS_MAX, windowMs: OAUTH_LIMIT_WINDOW_MS });
  readonly #decisions = createTokenBucket({ limit: DECISIONS_PER_PERSON_MAX, windowMs: OAUTH_LIMIT_WINDOW_MS });

  /** Counts a request of a program by network address. @throws RATE_LIMIT_EXCEEDED */
  countRequest(address: string | undefined): void {
    const retryAfter = this.#requests.takeTokens(getAddressBlock(address ?? ""));
    if (retryAfter > 0) throw createRateLimitError("too many requests from this network address", retryAfter);
  }

  /** Counts a person's decision about a program. @throws RATE_LIMIT_EXCEEDED */
  countDecision(personId: number): void {
    const retryAfter = this.#decisions.takeTokens(String(personId));
    if (retryAfter > 0)
      throw createRateLimitError(
        "this person has decided about too many authorization requests; try again later",
        retryAfter,
      );
  }
}
