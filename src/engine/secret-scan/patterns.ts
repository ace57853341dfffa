/**
 * What of a secret value is looked for in the layers of a text (layers.ts): few patterns, since the layers undo the encodings.
 * The layers write no line breaks, so a value's own may be written any way.
 */
import { PATTERN_MIN_BYTES } from "./beginnings.js";
import { unescapedLayer } from "./escapes.js";
import { isLineBreak, type Layer, plainLayer } from "./layers.js";

/** A longer value is in no host. */
const HOST_MAX_CHARACTERS = 253;
/** Deeper escapes in a value itself are not looked for once they are taken off. */
const PEELED_TIMES = 2;
/** What an address does not change, and JSON neither: such a value is found as it stands. */
const NEVER_ESCAPED = /^[\w.~-]*$/;
/** What before it might take the beginning of a value for the rest of an escape, and its end for the beginning of one. */
const TAKEN_AT_START = /^(?:u[\da-f]{4}|[\da-f]{1,4}|[nrt"\\/])/i;
const TAKEN_AT_END = /(?:%[\da-f]?|\\(?:u[\da-f]{0,3}|x[\da-f]?)?)$/i;
const LINE_BREAKS = /\r\n|\r|\n/g;
const LABELS = /[.-]/g;

const bytesOf = (text: string): Uint8Array => plainLayer(text, true).bytes;

/** The value and what it becomes when a layer that stood around it is taken off and takes one off the value as well. */
function* peelings(text: string): Generator<Uint8Array> {
  let layer: Layer | null = plainLayer(text, true);
  for (let times = 0; layer !== null && times <= PEELED_TIMES; times += 1, layer = unescapedLayer(layer))
    yield layer.bytes;
}

const unescapedUrl = (text: string): string =>
  text.replace(/(?:%[\da-f]{2})+/gi, (run) => Buffer.from(run.replaceAll("%", ""), "hex").toString());
const reversed = (text: string): string => Array.from(text).reverse().join("");
const reversedUnits = (text: string): string => text.split("").reverse().join("");

/** A form's space is a plus, an address's backslash a slash; lines may be joined by spaces; reversed by characters or code units. */
function writings(value: string): string[] {
  const forward = new Set([
    value,
    value.replaceAll(" ", "+"),
    value.replaceAll("\\", "/"),
    value.replace(LINE_BREAKS, " "),
  ]);
  return [...forward, reversed(value), reversedUnits(value)];
}

/** The layers write no line breaks, nor does a pattern. */
const withoutBreaks = (bytes: Uint8Array): Uint8Array => bytes.filter((byte) => !isLineBreak(byte));

/** Hex digits that are reversed make the bytes in reverse, each with its digits exchanged. */
const ofReversedHex = (bytes: Buffer): Uint8Array => Buffer.from(reversedUnits(bytes.toString("hex")), "hex");

/** At most two digits at each end hold bits of the text around: 8 bytes are left of such a value wherever it lies. */
const SHORT_BYTES = 11;

/** The bytes that base64 makes if its digits are reversed. Digits that hold bits of the text around the value are left out. */
function* ofReversedBase64(bytes: Buffer): Generator<Uint8Array> {
  const decoded = (digits: string): Uint8Array => Buffer.from(reversedUnits(digits), "base64");
  // Of a short value too few digits are left: then all of them, as the value by itself has them.
  if (bytes.length < SHORT_BYTES) yield decoded(bytes.toString("base64").replaceAll("=", ""));
  for (const shift of [0, 1, 2]) yield decoded(innerDigits(bytes, shift, "base64"));
}

/** The value's hex and base64 reversed, as the layers decode them. */
function reversedDigits(value: string): Uint8Array[] {
  const bytes = Buffer.from(value);
  return [ofReversedHex(bytes), ...ofReversedBase64(bytes)]
    .map(withoutBreaks)
    .filter(({ length }) => length >= PATTERN_MIN_BYTES);
}

const unique = (patterns: readonly Uint8Array[]): Uint8Array[] => [
  ...new Map(patterns.map((pattern) => [Buffer.from(pattern).toString("latin1"), pattern])).values(),
];

function withoutTaken(text: string): string {
  return NEVER_ESCAPED.test(text) ? text : text.replace(TAKEN_AT_START, "").replace(TAKEN_AT_END, "");
}

/** @param value of PATTERN_MIN_BYTES or more beside line breaks */
export function patternsOf(value: string): Uint8Array[] {
  // A key or an id: cheap, since there may be thousands.
  if (NEVER_ESCAPED.test(value)) {
    return unique([...[value, reversed(value)].map((text) => Buffer.from(text, "latin1")), ...reversedDigits(value)]);
  }
  const found = writings(value.trim())
    .flatMap((text) => [...peelings(text), bytesOf(unescapedUrl(text)), bytesOf(withoutTaken(text))])
    .filter(({ length }) => length >= PATTERN_MIN_BYTES);
  return unique([...found, ...reversedDigits(value), ...reversedDigits(value.trim())]);
}

/** Base64 of the bytes that begin `shift` bytes after a multiple of three: the digits that are the same for all texts around them. */
function innerDigits(bytes: Buffer, shift: number, encoding: "base64" | "base64url"): string {
  const padded = Buffer.concat([Buffer.alloc(shift), bytes]);
  const first = Math.ceil((shift * 8) / 6);
  const end = Math.floor(((shift + bytes.length) * 8) / 6);
  return padded.toString(encoding).slice(first, end);
}

/** The same for each of the three places that they may have in a longer text. */
const base64Forms = (bytes: Buffer): string[] =>
  [0, 1, 2].flatMap((shift) => [innerDigits(bytes, shift, "base64"), innerDigits(bytes, shift, "base64url")]);

/** What an address drops or turns around as it stands, and what JSON escapes by a backslash. */
const ALTERED = /[\s"\\]/;
const DROPPED = new Set(Buffer.from(" +\t\r\n/\\"));

/** What is left of a text whatever an address or a form made of its spaces, tabs and line breaks, and of its backslashes, which may be slashes. */
export const asInAddress = (bytes: Uint8Array): Uint8Array => bytes.filter((byte) => !DROPPED.has(byte));

/** Of a value that an address alters: itself, and JSON of it, which is there for all that JSON makes of this in turn. */
export function addressPatternsOf(value: string): Uint8Array[] {
  if (!ALTERED.test(value)) return [];
  const broken = ["\n", "\r\n", "\r", ""].map((lineBreak) => value.replace(LINE_BREAKS, lineBreak));
  const inJson = [value, ...broken].map((text) => JSON.stringify(text).slice(1, -1));
  const found = [value, reversed(value), reversedUnits(value), ...inJson]
    .flatMap((form) => [...peelings(form)].map(asInAddress))
    .filter(({ length }) => length >= PATTERN_MIN_BYTES);
  return unique(found);
}

/** A host is lower case and can be decoded no more: there the encodings themselves are looked for, labels' dots and hyphens or not. */
export function hostPatternsOf(value: string): Uint8Array[] {
  if (value.length > HOST_MAX_CHARACTERS) return [];
  const bytes = Buffer.from(value);
  const digits = [bytes.toString("hex"), ...base64Forms(bytes)];
  const forms = [value.trim(), reversed(value), ...digits, ...digits.map(reversedUnits)];
  return forms
    .flatMap((form) => [form, form.replace(LABELS, "")])
    .map((form) => bytesOf(form.toLowerCase()))
    .filter(({ length }) => length >= PATTERN_MIN_BYTES);
}

/** A host's texts: as it is, and put together again from its labels, none of which holds more than 63 characters. */
export const hostTexts = (host: string): string[] => [host, host.replaceAll(".", ""), host.replace(LABELS, "")];
