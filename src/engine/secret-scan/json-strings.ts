/** Finds short strings and key names in valid JSON text without parsing all of the text. */

const SPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);

function findStringEnd(text: string, from: number): number {
  for (
    let quoteIndex = text.indexOf('"', from + 1);
    quoteIndex !== -1;
    quoteIndex = text.indexOf('"', quoteIndex + 1)
  ) {
    let backslashes = 0;
    while (text.charCodeAt(quoteIndex - 1 - backslashes) === 0x5c) backslashes += 1;
    if (backslashes % 2 === 0) return quoteIndex + 1;
  }
  return text.length;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (SPACE.has(text.charCodeAt(at))) at += 1;
  return at;
}

/** Yields the decoded string values that have at most `max` characters, and some longer ones. Leaves out the names of keys. */
export function* readShortStringValues(json: string, max: number): Generator<string> {
  for (let from = json.indexOf('"'); from !== -1; ) {
    const stringEnd = findStringEnd(json, from);
    const isShort = stringEnd - from - 2 <= max * 6;
    if (isShort && json[skipSpace(json, stringEnd)] !== ":") yield JSON.parse(json.slice(from, stringEnd)) as string;
    from = json.indexOf('"', stringEnd);
  }
}

/**
 * Returns the ranges of key names that have fewer than `min` characters, with their quotes: `[from, to, from, to …]`.
 */
export function findShortKeyRanges(json: string, min: number): number[] {
  const keys: number[] = [];
  for (let from = json.indexOf('"'); from !== -1; ) {
    const stringEnd = findStringEnd(json, from);
    const isKey = stringEnd - from - 2 < min * 6 && json[skipSpace(json, stringEnd)] === ":";
    if (isKey && (JSON.parse(json.slice(from, stringEnd)) as string).length < min) keys.push(from, stringEnd);
    from = json.indexOf('"', stringEnd);
  }
  return keys;
}

/** True if a single span contains all characters from index `first` to index `last`. */
export function isWithinOneSpan(spans: readonly number[], first: number, last: number): boolean {
  let [low, high] = [0, spans.length / 2];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[2 * middle]! <= first) low = middle + 1;
    else high = middle;
  }
  return low > 0 && last < spans[2 * low - 1]!;
}
