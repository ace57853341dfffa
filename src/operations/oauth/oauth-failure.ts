/** Failures that programs read by their OAuth code (RFC 6749, section 5.2), not by a status of this service. */

export class OauthFailure extends Error {
  override readonly name = "OauthFailure";
  readonly code: string;

  constructor(code: string, description: string) {
    super(description);
    this.code = code;
  }
}
