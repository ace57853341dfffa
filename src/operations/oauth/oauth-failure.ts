/** Error with an OAuth code (RFC 6749, section 5.2), which the OAuth routes send instead of a status of this service. */

export class OauthFailure extends Error {
  override readonly name = "OauthFailure";
  readonly code: string;

  constructor(code: string, description: string) {
    super(description);
    this.code = code;
  }
}
