/** Rate limits of OAuth: requests without a credential are counted by address, decisions by person. */
import { createTokenBucket } from "../../engine/token-bucket.js";
import { rateLimitError } from "../../errors.js";
import { addressBlock } from "../../rules/address-block.js";

const REQUESTS_PER_ADDRESS = 240;
const DECISIONS_PER_PERSON = 120;
const WINDOW_MS = 60_000;

export class OauthLimits {
  readonly #requests = createTokenBucket({ limit: REQUESTS_PER_ADDRESS, windowMs: WINDOW_MS });
  readonly #decisions = createTokenBucket({ limit: DECISIONS_PER_PERSON, windowMs: WINDOW_MS });

  /** Counts a request of a program without a credential. @throws RATE_LIMIT_EXCEEDED */
  countRequest(address: string | undefined): void {
    const retryAfter = this.#requests.takeTokens(addressBlock(address ?? ""));
    if (retryAfter > 0) throw rateLimitError("too many requests from this address", retryAfter);
  }

  /** Counts a decision of a person. @throws RATE_LIMIT_EXCEEDED */
  countDecision(personId: number): void {
    const retryAfter = this.#decisions.takeTokens(String(personId));
    if (retryAfter > 0)
      throw rateLimitError(
        "this person has decided about too many authorization requests; try again later",
        retryAfter,
      );
  }
}
