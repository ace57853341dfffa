/** Error with an OAuth error code (RFC 6749, section 5.2). The OAuth routes send this code instead of an error status of the service. */

export class OauthError extends Error {
  override readonly name = "OauthError";
  readonly code: string;

  constructor(code: string, description: string) {
    super(description);
    this.code = code;
  }
}
