/** Whether a setting looks like a secret, by its key or its value. A guess for a warning: it refuses nothing. */

const KEYS =
  /secret|passw(or)?d|passphrase|private.?key|api.?key|access.?key|credential|(^|[^a-z])(token|auth|pwd)([^a-z]|$)/i;

/** `mailToken` as `mail Token`. */
const apart = (name: string) => name.replace(/([a-z\d])([A-Z])/g, "$1 $2");

/** Beginnings that well-known services give their secrets, and forms that are secrets as a rule. */
const VALUES = [
  /\b(sk|rk)_(live|test)_\w{8,}/,
  /\bsk-[\w-]{16,}/,
  /\bgh[pousr]_\w{20,}/,
  /\bgithub_pat_\w{20,}/,
  /\bglpat-[\w-]{16,}/,
  /\bxox[abposr]-[\w-]{10,}/,
  /\bAKIA[0-9A-Z]{16}\b/,
  /\bAIza[\w-]{30,}/,
  /\bSG\.[\w-]{16,}\.[\w-]{16,}/,
  /\bsvc_(editor|api|live|viewer|task|admin)_\w+/,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
  /\beyJ[\w-]+\.eyJ[\w-]+\.[\w-]+/,
  /^[a-z][a-z\d+.-]*:\/\/[^/\s:@]+:[^/\s:@]+@/i,
];

const RANDOM_MIN_CHARACTERS = 24;

/** Letters of both cases and digits, mixed and without a word's spaces: nobody types this. */
const isRandom = (text: string) =>
  text.length >= RANDOM_MIN_CHARACTERS &&
  /^[\w+/=-]+$/.test(text) &&
  [/[a-z]/, /[A-Z]/, /\d/].every((kind) => kind.test(text)) &&
  (text.match(/\d/g)?.length ?? 0) >= 4;

const stringsIn = (value: unknown): string[] =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.values(value).flatMap(stringsIn)
      : [];

const namesIn = (value: unknown): string[] =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([name, part]) => [...(Array.isArray(value) ? [] : [name]), ...namesIn(part)])
    : [];

export function looksSecret(key: string, value: unknown): boolean {
  return (
    [key, ...namesIn(value)].some((name) => KEYS.test(apart(name))) ||
    stringsIn(value).some((text) => isRandom(text) || VALUES.some((form) => form.test(text)))
  );
}
