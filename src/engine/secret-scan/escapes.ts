/** One layer of JSON's and URLs' escapes taken off a text, whichever stand there, in one pass. Knows no secret. */
import { isLineBreak, type Layer, pushUnit, Writer } from "./layers.js";
import { HEX } from "./numerals.js";
import { addSpan, joinedSpans, type Spans } from "./spans.js";
import { sameBytes, wordOf, wordsOf } from "./words.js";

const BACKSLASH = 0x5c;
const PERCENT = 0x25;
const LOWER_U = 0x75;
const LOWER_X = 0x78;
/** So near the next escape is looked for byte by byte, and so few bytes are copied: to ask for it costs as much. */
const NEAR = 64;
/** What an escape may write anew before itself, a high surrogate, and how much it writes from there. */
const REWRITTEN = 3;
const WRITTEN_MAX = 4;
/** Beyond all texts. */
const NOWHERE = 2 ** 30;

/** What a backslash and the character make; 0 for none. */
const ESCAPED = new Uint8Array(256);
for (const [name, value] of Object.entries({ b: 8, t: 9, n: 10, f: 12, r: 13, '"': 34, "\\": 92, "/": 47 })) {
  ESCAPED[name.charCodeAt(0)] = value;
}

/** The number that `count` hex digits from `from` on write; -1 where they are none. */
function hexAt(bytes: Uint8Array, from: number, count: number): number {
  if (from + count > bytes.length) return -1;
  let value = 0;
  for (let index = from; index < from + count; index += 1) {
    const digit = HEX[bytes[index]!]!;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

const LENGTH_SHIFT = 16;
const PERCENT_LENGTH = 3;

/** The escape at that place: its bytes, shifted by LENGTH_SHIFT, and the byte or the code unit that it means; 0 where there is none. */
function escapeAt(bytes: Uint8Array, index: number): number {
  const mark = bytes[index];
  if (mark === BACKSLASH && index + 1 < bytes.length) {
    const named = ESCAPED[bytes[index + 1]!]!;
    return named === 0 ? codeAt(bytes, index) : (2 << LENGTH_SHIFT) | named;
  }
  if (mark !== PERCENT || index + 2 >= bytes.length) return 0;
  const value = (HEX[bytes[index + 1]!]! << 4) | HEX[bytes[index + 2]!]!;
  return value < 0 ? 0 : (PERCENT_LENGTH << LENGTH_SHIFT) | value;
}

/** The same for an escape that gives a character by its number. */
function codeAt(bytes: Uint8Array, index: number): number {
  const letter = bytes[index + 1];
  const digits = letter === LOWER_U ? 4 : letter === LOWER_X ? 2 : 0;
  const value = digits === 0 ? -1 : hexAt(bytes, index + 2, digits);
  return value < 0 ? 0 : ((2 + digits) << LENGTH_SHIFT) | value;
}

const BACKSLASHES = wordOf(BACKSLASH);
const PERCENTS = wordOf(PERCENT);

/** Bytes of the longest escape. */
const ESCAPE_BYTES = 6;

/** Finds the escapes of a text one after the other. */
class Escapes {
  private readonly words: Int32Array;
  /** The first span that the places asked for may lie in. */
  private span = 0;

  /** @param spans each escape holds a byte of them */
  constructor(
    private readonly bytes: Uint8Array,
    private readonly spans: Spans,
  ) {
    this.words = wordsOf(bytes);
  }

  /** Where the first escape at `from` or after it begins; the text's length for none. `from` only grows. */
  next(from: number): number {
    const { bytes, spans } = this;
    for (; this.span < spans.length; this.span += 2) {
      const to = Math.min(bytes.length, spans[this.span + 1]!);
      const at = this.nextWithin(Math.max(from, spans[this.span]! - ESCAPE_BYTES + 1), to);
      if (at < to) return at;
    }
    return bytes.length;
  }

  /** Where the bytes that begin at `from`, of which the first is no escape, may be one again. */
  endOfGap(from: number): number {
    const { bytes } = this;
    const near = Math.min(bytes.length, from + NEAR);
    let to = from + 1;
    while (to < near && bytes[to] !== BACKSLASH && bytes[to] !== PERCENT) to += 1;
    return to < near ? to : this.next(to);
  }

  /** The first one in `[from, to)`; `to` or after it for none. */
  private nextWithin(from: number, to: number): number {
    const { bytes } = this;
    let at = from;
    while (at < to) {
      if ((bytes[at] === BACKSLASH || bytes[at] === PERCENT) && escapeAt(bytes, at) !== 0) return at;
      at += 1;
      if ((at & 3) === 0) at = this.wordWithMark(at >> 2, to >> 2) << 2;
    }
    return at;
  }

  /** The first word in `[from, to)` that holds what an escape may begin with; `to` where none does. */
  private wordWithMark(from: number, to: number): number {
    const { words } = this;
    let word = from;
    for (; word < to; word += 1) {
      if ((sameBytes(words[word]!, BACKSLASHES) | sameBytes(words[word]!, PERCENTS)) !== 0) break;
    }
    return word;
  }
}

/** Where spans of the text that is read come to lie in the one that is written. */
class MovedSpans {
  readonly spans: number[] = [];
  /** The next place that a span begins or ends at; beyond all texts once there is none. */
  next: number;
  constructor(private readonly before: Spans) {
    this.next = before[0] ?? NOWHERE;
  }

  /** What was read from `from` to `to` has been written up to `length`: as it was, or as an escape's meaning. */
  upTo(from: number, to: number, length: number, isSame: boolean): void {
    for (; this.next <= to; this.next = this.before[this.spans.length] ?? NOWHERE) {
      this.spans.push(isSame ? length - (to - Math.max(from, this.next)) : length);
    }
  }
}

/** Writes the meaning of an escape that is more than a byte. */
function writeUnit(out: Writer, unit: number, from: number, length: number): number {
  out.length = length;
  pushUnit(out, unit, from);
  return out.length;
}

/** Copies `[from, to)` to that place of the other, which may be the same and before it. */
function copy<Units extends Uint8Array | Int32Array>(
  bytes: Units,
  from: number,
  to: number,
  target: Units,
  place: number,
): void {
  if (bytes === target && from === place) return;
  if (to - from > NEAR) target.set(bytes.subarray(from, to), place);
  else for (let index = from; index < to; index += 1) target[place + index - from] = bytes[index]!;
}

/**
 * One layer of escapes taken off; null where there is none.
 * @param reused whether it may take the memory of the layer, which is no more then: what it writes is never longer than what it has read
 */
export function unescapedLayer(layer: Layer, reused = false): Layer | null {
  const { bytes, at } = layer;
  // What has had its escapes taken off has others only where that made new ones.
  const escapes = new Escapes(bytes, layer.fresh);
  const first = escapes.next(0);
  if (first === bytes.length) return null;
  const out = reused ? new Writer(bytes, at) : Writer.ofSize(bytes.length, at !== null);
  const { bytes: written, at: places } = out;
  const fresh: number[] = [];
  const moved = new MovedSpans(layer.changed);
  copy(bytes, 0, first, written, 0);
  if (places !== null) copy(at!, 0, first, places, 0);
  moved.upTo(0, first, first, true);
  let length = first;
  /** Up to where of what is written `fresh` is known. */
  let noted = 0;
  for (let index = first; index < bytes.length; ) {
    const meaning = escapeAt(bytes, index);
    if (meaning === 0) {
      const to = escapes.endOfGap(index);
      copy(bytes, index, to, written, length);
      if (places !== null) copy(at!, index, to, places, length);
      length += to - index;
      if (moved.next <= to) moved.upTo(index, to, length, true);
      index = to;
      continue;
    }
    if (length + WRITTEN_MAX >= noted) {
      noted = length + NEAR;
      addSpan(fresh, Math.max(0, length - REWRITTEN), noted);
    }
    const value = meaning & 0xffff;
    const size = meaning >> LENGTH_SHIFT;
    if (value >= 0x80 && size !== PERCENT_LENGTH) length = writeUnit(out, value, at === null ? 0 : at[index]!, length);
    else {
      written[length] = value;
      if (places !== null) places[length] = at![index]!;
      if (!isLineBreak(value)) length += 1;
    }
    index += size;
    if (moved.next <= index) moved.upTo(index, index, length, false);
  }
  fresh[fresh.length - 1] = Math.min(fresh.at(-1)!, length);
  const cut = { bytes: written.subarray(0, length), at: places?.subarray(0, length) ?? null };
  return { ...cut, fresh, changed: moved.spans.length === 0 ? fresh : joinedSpans(moved.spans, fresh) };
}
