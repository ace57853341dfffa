/** Error codes of `Svc.AI` (contract, section 9). `request()` uses the same codes. */
export type AiCode = "POLICY" | "LIMIT" | "TIMEOUT" | "UNSUPPORTED" | "TRANSPORT" | "INTEGRATION_UNAVAILABLE";

export class AiError extends Error {
  override readonly name = "AiError";

  constructor(
    readonly code: AiCode,
    message: string,
  ) {
    super(message);
  }
}

export const createPolicyError = (message: string): AiError => new AiError("POLICY", message);
