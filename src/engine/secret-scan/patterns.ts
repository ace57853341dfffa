/** Computes the byte patterns that stand for a secret in the layers of a text (layers.ts), which already undo most encodings. */

import { decodeEscapesOnce } from "./escapes.js";
import { createInitialLayer, type DecodedLayer, isLineBreak } from "./layers.js";
import { PATTERN_MIN_BYTES } from "./pattern-starts.js";

/** Maximum length of a host name. A longer secret cannot be in a host name. */
const HOST_MAX_CHARACTERS = 253;
/** Maximum number of nested levels of escapes that are removed from a secret's value. */
const VALUE_LAYERS_MAX = 2;
/** Matches values that look the same in URLs and JSON, so that they need no patterns for escaped forms. */
const NEVER_ESCAPED_PATTERN = /^[\w.~-]*$/;
/** Matches the start of a value if it could be the end of an escape that begins before the value. */
const ESCAPE_REST_AT_START_PATTERN = /^(?:u[\da-f]{4}|[\da-f]{1,4}|[nrt"\\/])/i;
/** Matches the end of a value if it could be the start of an escape that ends after the value. */
const ESCAPE_START_AT_END_PATTERN = /(?:%[\da-f]?|\\(?:u[\da-f]{0,3}|x[\da-f]?)?)$/i;
const LINE_BREAK_PATTERN = /\r\n|\r|\n/g;
const LABEL_SEPARATOR_PATTERN = /[.-]/g;

const toPatternBytes = (text: string): Uint8Array => createInitialLayer(text, true).bytes;

/** Yields the value, and the value with its escapes removed: decoding a text also decodes the escapes of a value in it. */
function* yieldUnescapedVariants(text: string): Generator<Uint8Array> {
  let layer: DecodedLayer | null = createInitialLayer(text, true);
  for (let times = 0; layer !== null && times <= VALUE_LAYERS_MAX; times += 1, layer = decodeEscapesOnce(layer))
    yield layer.bytes;
}

const decodeUrlText = (text: string): string =>
  text.replace(/(?:%[\da-f]{2})+/gi, (escapes) => Buffer.from(escapes.replaceAll("%", ""), "hex").toString());
const reverseText = (text: string): string => Array.from(text).reverse().join("");
const reverseCodeUnits = (text: string): string => text.split("").reverse().join("");

/**
 * Returns variants of the value: unchanged, with plus signs for spaces (forms), with slashes for backslashes (URLs), with lines joined by
 * spaces, and reversed.
 */
function createWrittenVariants(value: string): string[] {
  const forwardVariants = new Set([
    value,
    value.replaceAll(" ", "+"),
    value.replaceAll("\\", "/"),
    value.replace(LINE_BREAK_PATTERN, " "),
  ]);
  return [...forwardVariants, reverseText(value), reverseCodeUnits(value)];
}

const removeLineBreaks = (bytes: Uint8Array): Uint8Array => bytes.filter((byte) => !isLineBreak(byte));

/**
 * Decodes the hex digits of the bytes in reverse order. The result has the bytes in reverse order, with the two digits of each byte
 * exchanged.
 */
const decodeReversedHex = (bytes: Buffer): Uint8Array => Buffer.from(reverseCodeUnits(bytes.toString("hex")), "hex");

/**
 * Minimum length of a value whose reversed base64 digits encode 8 bytes, even without the digits that contain bits of surrounding text.
 * There are at most two of these digits at each end.
 */
const REVERSED_MIN_BYTES = 11;

/** Decodes base64 digits in reverse order, without the digits that contain bits of the surrounding text. */
function* yieldReversedBase64Patterns(bytes: Buffer): Generator<Uint8Array> {
  const decodeReversed = (digits: string): Uint8Array => Buffer.from(reverseCodeUnits(digits), "base64");
  // The patterns below leave out digits with bits of surrounding text. A short value then has too few digits left. So this pattern
  // contains all its digits.
  if (bytes.length < REVERSED_MIN_BYTES) yield decodeReversed(bytes.toString("base64").replaceAll("=", ""));
  for (const shift of [0, 1, 2]) yield decodeReversed(createInnerDigits(bytes, shift, "base64"));
}

/** Returns the bytes that result from decoding the value's hex or base64 digits in reverse order. */
function createReversedDigitPatterns(value: string): Uint8Array[] {
  const bytes = Buffer.from(value);
  return [decodeReversedHex(bytes), ...yieldReversedBase64Patterns(bytes)]
    .map(removeLineBreaks)
    .filter(({ length }) => length >= PATTERN_MIN_BYTES);
}

const removeDuplicatePatterns = (patterns: readonly Uint8Array[]): Uint8Array[] => [
  ...new Map(patterns.map((pattern) => [Buffer.from(pattern).toString("latin1"), pattern])).values(),
];

function removeAmbiguousEnds(text: string): string {
  return NEVER_ESCAPED_PATTERN.test(text)
    ? text
    : text.replace(ESCAPE_REST_AT_START_PATTERN, "").replace(ESCAPE_START_AT_END_PATTERN, "");
}

/** Returns the patterns that stand for a value. @param value at least PATTERN_MIN_BYTES bytes without line breaks */
export function createSecretPatterns(value: string): Uint8Array[] {
  // A value without escaped characters is usually a key or an ID, of which an app may have thousands. So it gets few patterns.
  if (NEVER_ESCAPED_PATTERN.test(value)) {
    return removeDuplicatePatterns([
      ...[value, reverseText(value)].map((text) => Buffer.from(text, "latin1")),
      ...createReversedDigitPatterns(value),
    ]);
  }
  const texts = createWrittenVariants(value.trim())
    .flatMap((text) => [
      ...yieldUnescapedVariants(text),
      toPatternBytes(decodeUrlText(text)),
      toPatternBytes(removeAmbiguousEnds(text)),
    ])
    .filter(({ length }) => length >= PATTERN_MIN_BYTES);
  return removeDuplicatePatterns([
    ...texts,
    ...createReversedDigitPatterns(value),
    ...createReversedDigitPatterns(value.trim()),
  ]);
}

/**
 * Returns the encoded digits of bytes that begin `shift` bytes after a multiple of three. Leaves out digits that depend on surrounding
 * text.
 */
function createInnerDigits(bytes: Buffer, shift: number, encoding: "base64" | "base64url"): string {
  const shiftedBytes = Buffer.concat([Buffer.alloc(shift), bytes]);
  const first = Math.ceil((shift * 8) / 6);
  const lastCharacter = Math.floor(((shift + bytes.length) * 8) / 6);
  return shiftedBytes.toString(encoding).slice(first, lastCharacter);
}

/** Returns the base64 and base64url digits of the bytes for each of the three alignments that the bytes can have in a longer text. */
const createBase64Variants = (bytes: Buffer): string[] =>
  [0, 1, 2].flatMap((shift) => [
    createInnerDigits(bytes, shift, "base64"),
    createInnerDigits(bytes, shift, "base64url"),
  ]);

/** Matches white space, quotation marks and backslashes: URLs drop or replace them, or JSON escapes them with a backslash. */
const ALTERED_CHARACTER_PATTERN = /[\s"\\]/;
const DROPPED_BYTES = new Set(Buffer.from(" +\t\r\n/\\"));

/** Removes spaces, plus signs, tabs, line breaks, slashes and backslashes, which URLs and forms may drop or replace. */
export const removeBytesThatUrlsMayDrop = (bytes: Uint8Array): Uint8Array =>
  bytes.filter((byte) => !DROPPED_BYTES.has(byte));

/**
 * Returns patterns that find a value, or its JSON text, in a URL from which characters were dropped. Returns no patterns if URLs and JSON
 * do not alter the value.
 */
export function createUrlSecretPatterns(value: string): Uint8Array[] {
  if (!ALTERED_CHARACTER_PATTERN.test(value)) return [];
  const lineBreakVariants = ["\n", "\r\n", "\r", ""].map((lineBreak) => value.replace(LINE_BREAK_PATTERN, lineBreak));
  const jsonVariants = [value, ...lineBreakVariants].map((text) => JSON.stringify(text).slice(1, -1));
  const texts = [value, reverseText(value), reverseCodeUnits(value), ...jsonVariants]
    .flatMap((form) => [...yieldUnescapedVariants(form)].map(removeBytesThatUrlsMayDrop))
    .filter(({ length }) => length >= PATTERN_MIN_BYTES);
  return removeDuplicatePatterns(texts);
}

/**
 * Returns patterns that find a value in a host name. Encoded text in a host name is in lower case and cannot be decoded, so the patterns
 * include encoded forms of the value.
 */
export function createHostSecretPatterns(value: string): Uint8Array[] {
  if (value.length > HOST_MAX_CHARACTERS) return [];
  const bytes = Buffer.from(value);
  const digits = [bytes.toString("hex"), ...createBase64Variants(bytes)];
  const variants = [value.trim(), reverseText(value), ...digits, ...digits.map(reverseCodeUnits)];
  return variants
    .flatMap((form) => [form, form.replace(LABEL_SEPARATOR_PATTERN, "")])
    .map((form) => toPatternBytes(form.toLowerCase()))
    .filter(({ length }) => length >= PATTERN_MIN_BYTES);
}

/** Returns three texts to search: the host name, the host name without dots, and the host name without dots and hyphens. */
export const listHostSearchTexts = (host: string): string[] => [
  host,
  host.replaceAll(".", ""),
  host.replace(LABEL_SEPARATOR_PATTERN, ""),
];
