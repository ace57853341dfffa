/** Error codes of `Svc.AI` (contract, section 9). `Svc.App.V3.Actions.request()` uses the same codes. */
export type AiErrorCode = "POLICY" | "LIMIT" | "TIMEOUT" | "UNSUPPORTED" | "TRANSPORT" | "INTEGRATION_UNAVAILABLE";

export class AiError extends Error {
  override readonly name = "AiError";

  constructor(
    readonly code: AiErrorCode,
    message: string,
  ) {
    super(message);
  }
}

export const createAiPolicyError = (message: string): AiError => new AiError("POLICY", message);
