/**
 * Guesses from the key and the value of a setting if it contains a secret. Studio asks for a confirmation before it stores a secret in a
 * public setting.
 */

const SECRET_KEY_PATTERN =
  /secret|passw(or)?d|passphrase|private.?key|api.?key|access.?key|credential|(^|[^a-z])(token|auth|pwd)([^a-z]|$)/i;

/** Splits a key in camel case into words: `mailToken` becomes `mail Token`. */
const splitCamelCase = (name: string) => name.replace(/([a-z\d])([A-Z])/g, "$1 $2");

/** Patterns of secrets: prefixes of the tokens of well-known services, and usual formats of tokens. */
const SECRET_PATTERNS = [
  /^(sk|rk)_(live|test)_\w{8,}/,
  /^sk-[\w-]{16,}/,
  /^gh[pousr]_\w{20,}/,
  /^github_pat_\w{20,}/,
  /^glpat-[\w-]{16,}/,
  /^xox[abposr]-[\w-]{10,}/,
  /^AKIA[0-9A-Z]{16}\b/,
  /^AIza[\w-]{30,}/,
  /^SG\.[\w-]{16,}\.[\w-]{16,}/,
  /^svc_(editor|api|live|viewer|task|admin)_\w+/,
  /^eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+/,
];
const WORD_PATTERN = /[\w.-]+/g;
const PRIVATE_KEY_PATTERN = /-----BEGIN [^-]*-----/;
const URL_WITH_PASSWORD_PATTERN = /^[a-z][a-z\d+.-]*:\/\/[^/\s:@]+:[^/\s:@]+@/i;

const containsSecret = (text: string): boolean =>
  (PRIVATE_KEY_PATTERN.exec(text)?.[0].includes("PRIVATE KEY") ?? false) ||
  URL_WITH_PASSWORD_PATTERN.test(text) ||
  (text.match(WORD_PATTERN) ?? []).some((word) => SECRET_PATTERNS.some((form) => form.test(word)));

const RANDOM_MIN_CHARACTERS = 24;

/**
 * True if the text was probably generated at random: one word of at least RANDOM_MIN_CHARACTERS characters, with lower-case letters,
 * upper-case letters and at least four digits.
 */
const looksRandom = (text: string) =>
  text.length >= RANDOM_MIN_CHARACTERS &&
  /^[\w+/=-]+$/.test(text) &&
  [/[a-z]/, /[A-Z]/, /\d/].every((kind) => kind.test(text)) &&
  (text.match(/\d/g)?.length ?? 0) >= 4;

const collectStrings = (value: unknown): string[] =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.values(value).flatMap(collectStrings)
      : [];

const collectKeys = (value: unknown): string[] =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([name, part]) => [...(Array.isArray(value) ? [] : [name]), ...collectKeys(part)])
    : [];

export function looksLikeSecret(key: string, value: unknown): boolean {
  return (
    [key, ...collectKeys(value)].some((name) => SECRET_KEY_PATTERN.test(splitCamelCase(name))) ||
    collectStrings(value).some((text) => looksRandom(text) || containsSecret(text))
  );
}
