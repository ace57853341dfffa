/** Describes received values for error messages, and checks if PostgreSQL can store a value. */

const QUOTED_CHARACTERS_MAX = 60;

/** Describes a value that a caller sent, such as "nothing" or "an array of 3". Of a text, quotes about 60 characters at most. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value !== "string") return String(value);
  const quotedStart = JSON.stringify(value.slice(0, QUOTED_CHARACTERS_MAX));
  if (quotedStart.length <= QUOTED_CHARACTERS_MAX + 2 && value.length <= QUOTED_CHARACTERS_MAX) return quotedStart;
  return `${quotedStart.slice(0, QUOTED_CHARACTERS_MAX).toWellFormed()}…"`;
}

/** Describes a value like `describeValue`, but quotes no text and no number, because they may be secrets. */
export const describeType = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? `a ${typeof value}` : describeValue(value);

/** True for a JSON object: neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Counts Unicode characters as PostgreSQL does: an emoji is one character, although its `length` is 2. */
export function countCharacters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Returns the index of the first character that PostgreSQL cannot store as text: U+0000 or a lone surrogate. -1 if there is none. */
export function findUnstorableCharacter(text: string): number {
  const nulIndex = text.indexOf("\0");
  const surrogateIndex = text.isWellFormed() ? -1 : text.search(/\p{Surrogate}/u);
  return nulIndex < 0 || surrogateIndex < 0 ? Math.max(nulIndex, surrogateIndex) : Math.min(nulIndex, surrogateIndex);
}

/**
 * True if objects and arrays in the value nest deeper than `levels`. JSON.parse accepts any depth, but JSON.stringify overflows the stack.
 */
export function nestsDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((innerValue) => nestsDeeperThan(innerValue, levels - 1));
}

const POSSIBLY_INFINITE_NUMBER_PATTERN = /[eE]\+?\d{3}|\d{100}/;

/** True for every JSON text with a number that is too large for a double, and for some others. Faster than `containsInfinity`. */
export const mayContainInfinity = (json: string): boolean => POSSIBLY_INFINITE_NUMBER_PATTERN.test(json);

/** True if the value contains Infinity at any depth. JSON.parse returns Infinity for `1e999`, but JSON.stringify writes it as null. */
export function containsInfinity(value: unknown): boolean {
  const pendingValues = [value];
  while (pendingValues.length > 0) {
    const pending = pendingValues.pop();
    if (typeof pending === "number" && !Number.isFinite(pending)) return true;
    if (typeof pending === "object" && pending !== null)
      for (const innerValue of Object.values(pending)) pendingValues.push(innerValue);
  }
  return false;
}
