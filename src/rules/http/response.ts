/** Validates the options of `Svc.App.V3.Actions.response()`. The sandbox and the service both execute this file, so it imports nothing. */

const HEADER_NAME_PATTERN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$/;
/** Matches Latin-1 text without line breaks and other control characters, except tabs. */
const HEADER_VALUE_PATTERN = /^[\t\x20-\x7e\x80-\xff]*$/;
const LOCATION_VALUE_PATTERN = /^[\x21-\x7e]+$/;
const HEADER_VALUE_MAX_CHARACTERS = 8_192;
const HEADERS_MAX = 100;
const REDIRECT_STATUSES = [301, 302, 303, 307, 308];

const hasValue = (value: unknown): boolean => value !== undefined && value !== null;
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Describes a received value for an error message. Quotes no text, which may be long. */
function describeReceived(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object" && value !== null) return "an object";
  return ["string", "function", "symbol"].includes(typeof value) ? `a ${typeof value}` : String(value);
}

function findHeadersFault(headers: unknown): string | null {
  if (!hasValue(headers)) return null;
  if (!isObject(headers)) return `headers must be an object (got ${describeReceived(headers)})`;
  const entries = Object.entries(headers);
  if (entries.length > HEADERS_MAX) return `headers must have at most ${HEADERS_MAX} fields (got ${entries.length})`;
  for (const [name, value] of entries) {
    if (!HEADER_NAME_PATTERN.test(name))
      return `headers must have valid HTTP header names (got ${JSON.stringify(name.slice(0, 60))})`;
    const isText =
      typeof value === "string" && value.length <= HEADER_VALUE_MAX_CHARACTERS && HEADER_VALUE_PATTERN.test(value);
    if (!isText && typeof value !== "number") {
      const expected = `a number, or one line of Latin-1 text of at most ${HEADER_VALUE_MAX_CHARACTERS} characters`;
      return `headers.${name} must be ${expected} (got ${describeReceived(value)})`;
    }
  }
  return null;
}

/** Returns an error message for invalid options; null if they are valid. Does not check `body` and `base64`. */
export function findResponseFault(options: unknown): string | null {
  if (!isObject(options)) return `options must be an object (got ${describeReceived(options)})`;
  const { status, headers, redirect } = options;
  const isStatus = Number.isInteger(status) && (status as number) >= 200 && (status as number) <= 599;
  if (hasValue(status) && !isStatus)
    return `status must be a whole number from 200 to 599 (got ${describeReceived(status)})`;
  const isLocation =
    typeof redirect === "string" &&
    redirect.length <= HEADER_VALUE_MAX_CHARACTERS &&
    LOCATION_VALUE_PATTERN.test(redirect);
  if (hasValue(redirect) && !isLocation) {
    const expected = `a percent-encoded URL of at most ${HEADER_VALUE_MAX_CHARACTERS} characters`;
    return `redirect must be ${expected} (got ${describeReceived(redirect)})`;
  }
  if (hasValue(redirect) && hasValue(status) && !REDIRECT_STATUSES.includes(status as number)) {
    return `status of a redirect must be one of ${REDIRECT_STATUSES.join(", ")} (got ${String(status)})`;
  }
  return findHeadersFault(headers);
}
