/**
 * Computes the patterns of a secret that are searched in the layers of a text (layers.ts). They are few, because layers
 * already undo most encodings.
 */
import { PATTERN_MIN_BYTES } from "./beginnings.js";
import { removeEscapes } from "./escapes.js";
import { createPlainLayer, isLineBreak, type Layer } from "./layers.js";

/** Maximum length of a host name. Longer secrets cannot be in a host name. */
const HOST_MAX_CHARACTERS = 253;
/** Maximum number of escape layers that are removed from a secret's value. */
const VALUE_LAYERS_MAX = 2;
/** Matches values that URLs and JSON do not change, so that one pattern is enough for them. */
const NEVER_ESCAPED = /^[\w.~-]*$/;
/**
 * Matches the beginning of a value that an escape character before it could turn into an escape. ESCAPE_START_AT_END: the end
 * of a value that could begin an escape.
 */
const ESCAPE_REST_AT_START = /^(?:u[\da-f]{4}|[\da-f]{1,4}|[nrt"\\/])/i;
const ESCAPE_START_AT_END = /(?:%[\da-f]?|\\(?:u[\da-f]{0,3}|x[\da-f]?)?)$/i;
const LINE_BREAKS = /\r\n|\r|\n/g;
const LABEL_SEPARATORS = /[.-]/g;

const bytesOf = (text: string): Uint8Array => createPlainLayer(text, true).bytes;

/**
 * Yields the value, and the value without one or more layers of escapes. If a text contains the value inside escapes,
 * decoding the text also decodes escapes of the value itself.
 */
function* unescapedVariants(text: string): Generator<Uint8Array> {
  let layer: Layer | null = createPlainLayer(text, true);
  for (let times = 0; layer !== null && times <= VALUE_LAYERS_MAX; times += 1, layer = removeEscapes(layer))
    yield layer.bytes;
}

const unescapedUrl = (text: string): string =>
  text.replace(/(?:%[\da-f]{2})+/gi, (run) => Buffer.from(run.replaceAll("%", ""), "hex").toString());
const reverseText = (text: string): string => Array.from(text).reverse().join("");
const reversedUnits = (text: string): string => text.split("").reverse().join("");

/**
 * Returns variants of a value: plus signs for spaces (forms), slashes for backslashes (URLs), lines joined by spaces,
 * and the value reversed by characters or code units.
 */
function writtenVariants(value: string): string[] {
  const forward = new Set([
    value,
    value.replaceAll(" ", "+"),
    value.replaceAll("\\", "/"),
    value.replace(LINE_BREAKS, " "),
  ]);
  return [...forward, reverseText(value), reversedUnits(value)];
}

/** Removes line breaks from a pattern, because layers contain none. */
const removeLineBreaks = (bytes: Uint8Array): Uint8Array => bytes.filter((byte) => !isLineBreak(byte));

/**
 * Returns the bytes that decoding reversed hex digits yields: the bytes in reverse order, with the two digits of each
 * byte exchanged.
 */
const bytesOfReversedHex = (bytes: Buffer): Uint8Array => Buffer.from(reversedUnits(bytes.toString("hex")), "hex");

/**
 * Minimum length in bytes of a reversed value from which the digits with bits of the surrounding text are left out. At
 * most two digits at each end contain such bits, which leaves 8 bytes wherever the value is.
 */
const REVERSED_MIN_BYTES = 11;

/** Yields the bytes that decoding reversed base64 yields. Leaves out digits with bits of the surrounding text. */
function* reversedBase64Patterns(bytes: Buffer): Generator<Uint8Array> {
  const decoded = (digits: string): Uint8Array => Buffer.from(reversedUnits(digits), "base64");
  // A shorter value would have too few digits left, so all its digits are used.
  if (bytes.length < REVERSED_MIN_BYTES) yield decoded(bytes.toString("base64").replaceAll("=", ""));
  for (const shift of [0, 1, 2]) yield decoded(innerDigits(bytes, shift, "base64"));
}

/** Returns the patterns for the value in reversed hex and base64, as layers decode them. */
function reversedDigits(value: string): Uint8Array[] {
  const bytes = Buffer.from(value);
  return [bytesOfReversedHex(bytes), ...reversedBase64Patterns(bytes)]
    .map(removeLineBreaks)
    .filter(({ length }) => length >= PATTERN_MIN_BYTES);
}

const uniquePatterns = (patterns: readonly Uint8Array[]): Uint8Array[] => [
  ...new Map(patterns.map((pattern) => [Buffer.from(pattern).toString("latin1"), pattern])).values(),
];

function removeAmbiguousEnds(text: string): string {
  return NEVER_ESCAPED.test(text) ? text : text.replace(ESCAPE_REST_AT_START, "").replace(ESCAPE_START_AT_END, "");
}

/** Returns the patterns of a value. @param value at least PATTERN_MIN_BYTES bytes without line breaks */
export function patternsOf(value: string): Uint8Array[] {
  // A value without characters that URLs or JSON escape is usually a key or an ID. It gets few patterns, because an app
  // may have thousands of keys and IDs.
  if (NEVER_ESCAPED.test(value)) {
    return uniquePatterns([
      ...[value, reverseText(value)].map((text) => Buffer.from(text, "latin1")),
      ...reversedDigits(value),
    ]);
  }
  const texts = writtenVariants(value.trim())
    .flatMap((text) => [...unescapedVariants(text), bytesOf(unescapedUrl(text)), bytesOf(removeAmbiguousEnds(text))])
    .filter(({ length }) => length >= PATTERN_MIN_BYTES);
  return uniquePatterns([...texts, ...reversedDigits(value), ...reversedDigits(value.trim())]);
}

/**
 * Returns the base64 digits of bytes that begin `shift` bytes after a multiple of three. Leaves out the digits that
 * depend on the surrounding text.
 */
function innerDigits(bytes: Buffer, shift: number, encoding: "base64" | "base64url"): string {
  const padded = Buffer.concat([Buffer.alloc(shift), bytes]);
  const first = Math.ceil((shift * 8) / 6);
  const lastCharacter = Math.floor(((shift + bytes.length) * 8) / 6);
  return padded.toString(encoding).slice(first, lastCharacter);
}

/** Returns the base64 digits of the bytes, for each of the three positions that they can have in a longer text. */
const base64Forms = (bytes: Buffer): string[] =>
  [0, 1, 2].flatMap((shift) => [innerDigits(bytes, shift, "base64"), innerDigits(bytes, shift, "base64url")]);

/** Matches characters that URLs drop or replace, or that JSON escapes with a backslash. */
const ALTERED_CHARACTER = /[\s"\\]/;
const DROPPED_BYTES = new Set(Buffer.from(" +\t\r\n/\\"));

/**
 * Returns the bytes without those that URLs and forms may drop or replace: spaces, plus signs, tabs, line breaks,
 * slashes and backslashes.
 */
export const removeDroppedBytes = (bytes: Uint8Array): Uint8Array => bytes.filter((byte) => !DROPPED_BYTES.has(byte));

/** Returns the patterns of a value as URLs alter it: of the value, and of its JSON, which also covers repeated JSON encodings. */
export function urlPatternsOf(value: string): Uint8Array[] {
  if (!ALTERED_CHARACTER.test(value)) return [];
  const broken = ["\n", "\r\n", "\r", ""].map((lineBreak) => value.replace(LINE_BREAKS, lineBreak));
  const inJson = [value, ...broken].map((text) => JSON.stringify(text).slice(1, -1));
  const texts = [value, reverseText(value), reversedUnits(value), ...inJson]
    .flatMap((form) => [...unescapedVariants(form)].map(removeDroppedBytes))
    .filter(({ length }) => length >= PATTERN_MIN_BYTES);
  return uniquePatterns(texts);
}

/**
 * Returns the patterns of a value in a host name. Host names are in lower case and cannot be decoded, so the encoded
 * forms of the value are searched, with and without dots and hyphens.
 */
export function hostPatternsOf(value: string): Uint8Array[] {
  if (value.length > HOST_MAX_CHARACTERS) return [];
  const bytes = Buffer.from(value);
  const digits = [bytes.toString("hex"), ...base64Forms(bytes)];
  const forms = [value.trim(), reverseText(value), ...digits, ...digits.map(reversedUnits)];
  return forms
    .flatMap((form) => [form, form.replace(LABEL_SEPARATORS, "")])
    .map((form) => bytesOf(form.toLowerCase()))
    .filter(({ length }) => length >= PATTERN_MIN_BYTES);
}

/** Returns a host name as it is, and without the dots between its labels. */
export const hostTexts = (host: string): string[] => [
  host,
  host.replaceAll(".", ""),
  host.replace(LABEL_SEPARATORS, ""),
];
