/**
 * What a text says beneath its encodings, as bytes in UTF-8 without line breaks: one layer of JSON's and URLs' escapes taken off
 * after the other, base64 and hex decoded wherever they may stand. Each is one pass. Knows no secret.
 */
import { SEPARATOR } from "./automaton.js";

/** Bytes, and for each the index in the text of the character that it comes from, where that was asked for. */
export interface Layer {
  bytes: Uint8Array;
  at: Int32Array | null;
}

const BACKSLASH = 0x5c;
const PERCENT = 0x25;
const LOWER_U = 0x75;
const LOWER_X = 0x78;

/** 8 bytes in base64, wherever they begin. */
const BASE64_MIN = 11;
const HEX_MIN = 16;

const HEX = new Int8Array(256).fill(-1);
for (let value = 0; value < 16; value += 1) {
  HEX[value.toString(16).charCodeAt(0)] = value;
  HEX[value.toString(16).toUpperCase().charCodeAt(0)] = value;
}
const BASE64 = new Int8Array(256).fill(-1);
for (const [value, character] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].entries()) {
  BASE64[character.charCodeAt(0)] = value;
}
BASE64["-".charCodeAt(0)] = 62;
BASE64["_".charCodeAt(0)] = 63;

/** What a backslash and the character make; 0 for none. */
const ESCAPED = new Uint8Array(256);
for (const [name, value] of Object.entries({ b: 8, t: 9, n: 10, f: 12, r: 13, '"': 34, "\\": 92, "/": 47 })) {
  ESCAPED[name.charCodeAt(0)] = value;
}

const isLineBreak = (byte: number): boolean => byte === 10 || byte === 13;

class Writer {
  bytes: Uint8Array;
  at: Int32Array | null;
  length = 0;
  constructor(capacity: number, mapped: boolean) {
    this.bytes = new Uint8Array(capacity);
    this.at = mapped ? new Int32Array(capacity) : null;
  }
  push(byte: number, from: number): void {
    this.bytes[this.length] = byte;
    if (this.at !== null) this.at[this.length] = from;
    this.length += 1;
  }
  layer(): Layer {
    return { bytes: this.bytes.subarray(0, this.length), at: this.at?.subarray(0, this.length) ?? null };
  }
}

/** The high surrogate that the writer ends with, as UTF-8 would write it by itself; 0 for none. */
function highAtEnd({ bytes, length }: Writer): number {
  const second = bytes[length - 2] ?? 0;
  if (bytes[length - 3] !== 0xed || second < 0xa0 || second >= 0xb0) return 0;
  return 0xd000 | ((second & 63) << 6) | (bytes[length - 1]! & 63);
}

/** Joins a low surrogate with the high one at the writer's end. */
function joinSurrogates(out: Writer, high: number, low: number, from: number): void {
  const point = 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff);
  out.length -= 3;
  const begun = out.at === null ? from : out.at[out.length]!;
  out.push(0xf0 | (point >> 18), begun);
  for (const shift of [12, 6, 0]) out.push(0x80 | ((point >> shift) & 63), begun);
}

/** A code unit in UTF-8, a lone surrogate by itself. */
function pushUnit(out: Writer, unit: number, from: number): void {
  const high = (unit & 0xfc00) === 0xdc00 ? highAtEnd(out) : 0;
  if (high !== 0) joinSurrogates(out, high, unit, from);
  else if (unit < 0x80) out.push(unit, from);
  else if (unit < 0x800) {
    out.push(0xc0 | (unit >> 6), from);
    out.push(0x80 | (unit & 63), from);
  } else {
    out.push(0xe0 | (unit >> 12), from);
    out.push(0x80 | ((unit >> 6) & 63), from);
    out.push(0x80 | (unit & 63), from);
  }
}

/** The text's own bytes, without line breaks. */
export function plainLayer(text: string, mapped: boolean): Layer {
  if (!mapped) {
    const bytes = Buffer.from(text);
    if (!bytes.includes(10) && !bytes.includes(13)) return { bytes, at: null };
    const out = new Writer(bytes.length, false);
    for (let index = 0; index < bytes.length; index += 1) if (!isLineBreak(bytes[index]!)) out.push(bytes[index]!, 0);
    return out.layer();
  }
  const out = new Writer(text.length * 3, true);
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (!isLineBreak(unit)) pushUnit(out, unit, index);
  }
  return out.layer();
}

/** The number that `count` hex digits from `from` on write; -1 where they are none. */
function hexAt(bytes: Uint8Array, from: number, count: number): number {
  let value = 0;
  for (let index = from; index < from + count; index += 1) {
    const digit = index < bytes.length ? HEX[bytes[index]!]! : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

/** Writes what the escape at `index` means. Answers how many bytes the escape has, 0 where there is none. */
function writeEscaped(bytes: Uint8Array, index: number, from: number, out: Writer): number {
  if (bytes[index] === PERCENT) {
    const value = hexAt(bytes, index + 1, 2);
    if (value >= 0 && !isLineBreak(value)) out.push(value, from);
    return value < 0 ? 0 : 3;
  }
  const letter = bytes[index + 1]!;
  const digits = letter === LOWER_U ? 4 : letter === LOWER_X ? 2 : 0;
  if (digits === 0) {
    const value = ESCAPED[letter] ?? 0;
    if (value !== 0 && !isLineBreak(value)) out.push(value, from);
    return value === 0 ? 0 : 2;
  }
  const value = hexAt(bytes, index + 2, digits);
  if (value >= 0 && !isLineBreak(value)) pushUnit(out, value, from);
  return value < 0 ? 0 : 2 + digits;
}

/** One layer of JSON's and URLs' escapes taken off, whichever stand there; null where there is none. */
export function unescapedLayer({ bytes, at }: Layer): Layer | null {
  if (!bytes.includes(BACKSLASH) && !bytes.includes(PERCENT)) return null;
  const out = new Writer(bytes.length, at !== null);
  for (let index = 0; index < bytes.length; ) {
    const byte = bytes[index]!;
    const from = at === null ? 0 : at[index]!;
    const taken = byte === BACKSLASH || byte === PERCENT ? writeEscaped(bytes, index, from, out) : 0;
    if (taken === 0) out.push(byte, from);
    index += taken || 1;
  }
  return out.length === bytes.length ? null : out.layer();
}

/** The runs of at least `min` bytes that `values` knows, as [from, to, from, to …]. */
function runsOf(bytes: Uint8Array, values: Int8Array, min: number): number[] {
  const runs: number[] = [];
  for (let from = 0; from + min <= bytes.length; ) {
    // A run that begins here holds the next `min` bytes: the last that does not belong to one says where the next may begin.
    let at = from + min - 1;
    while (at >= from && values[bytes[at]!]! >= 0) at -= 1;
    if (at >= from) {
      from = at + 1;
      continue;
    }
    let to = from + min;
    while (to < bytes.length && values[bytes[to]!]! >= 0) to += 1;
    runs.push(from, to);
    from = to + 1;
  }
  return runs;
}

/** Writes bytes that four digits of base64 make, from `index` on. Answers how far it wrote: line breaks stay away. */
function decodeFours(bytes: Uint8Array, from: number, to: number, out: Uint8Array, begun: number): number {
  let length = begun;
  for (let index = from; index + 4 <= to; index += 4) {
    const high = (BASE64[bytes[index]!]! << 6) | BASE64[bytes[index + 1]!]!;
    const low = (BASE64[bytes[index + 2]!]! << 6) | BASE64[bytes[index + 3]!]!;
    const [first, second, third] = [high >> 4, ((high << 4) | (low >> 8)) & 0xff, low & 0xff];
    out[length] = first;
    if (!isLineBreak(first)) length += 1;
    out[length] = second;
    if (!isLineBreak(second)) length += 1;
    out[length] = third;
    if (!isLineBreak(third)) length += 1;
  }
  return length;
}

/** All runs decoded from their `shift`th digit on, where digits of so many bits make whole bytes; parted by SEPARATOR. */
function decoded(layer: Layer, runs: readonly number[], values: Int8Array, bits: number, shift: number): Layer {
  const { bytes, at } = layer;
  let capacity = 0;
  for (let run = 0; run < runs.length; run += 2) capacity += (((runs[run + 1]! - runs[run]!) * bits) >> 3) + 1;
  const out = new Uint8Array(capacity);
  const outAt = at && new Int32Array(capacity);
  let length = 0;
  for (let run = 0; run < runs.length; run += 2) {
    const to = runs[run + 1]!;
    let held = 0;
    let count = 0;
    let from = runs[run]! + shift;
    if (bits === 6 && outAt === null) {
      // Most of a large text by a shorter way.
      length = decodeFours(bytes, from, to, out, length);
      from += (to - from) & ~3;
    }
    for (let index = from; index < to; index += 1) {
      held = ((held << bits) | values[bytes[index]!]!) & 0xffff;
      count += bits;
      if (count < 8) continue;
      count -= 8;
      const byte = (held >> count) & 0xff;
      if (byte !== 10 && byte !== 13) {
        out[length] = byte;
        if (outAt !== null) outAt[length] = at![from]!;
        length += 1;
      }
      from = count === 0 ? index + 1 : index;
    }
    out[length] = SEPARATOR;
    if (outAt !== null) outAt[length] = at![to - 1]!;
    length += 1;
  }
  return { bytes: out.subarray(0, length), at: outAt?.subarray(0, length) ?? null };
}

/** What may have been written in base64, base64url or hex, from each digit on that may be the first. */
export function* decodedLayers(layer: Layer): Generator<Layer> {
  const base64 = runsOf(layer.bytes, BASE64, BASE64_MIN);
  if (base64.length > 0) for (let shift = 0; shift < 4; shift += 1) yield decoded(layer, base64, BASE64, 6, shift);
  const hex = runsOf(layer.bytes, HEX, HEX_MIN);
  if (hex.length > 0) for (let shift = 0; shift < 2; shift += 1) yield decoded(layer, hex, HEX, 4, shift);
}
