/** Ranges of a text (spans): `[from, to, from, to …]`, ordered and without overlaps. */

export type Spans = readonly number[];

/** One span that covers a text of any length. */
export const ENTIRE_TEXT_SPANS: Spans = [0, Number.POSITIVE_INFINITY];

/** Spans up to this distance are joined, because reading the bytes between them takes less time than handling another span. */
const JOINED_SPAN_DISTANCE = 64;

/** Appends a span. `from` must not be less than the start of the last span. */
export function addSpan(spans: number[], from: number, to: number): void {
  const last = spans.length - 1;
  if (last >= 0 && from <= spans[last]! + JOINED_SPAN_DISTANCE) spans[last] = Math.max(spans[last]!, to);
  else spans.push(from, to);
}

export function uniteSpans(left: Spans, right: Spans): Spans {
  if (left.length === 0 || right.length === 0) return left.length === 0 ? right : left;
  const joined: number[] = [];
  for (let a = 0, b = 0; a < left.length || b < right.length; ) {
    const isLeftNext = b >= right.length || (a < left.length && left[a]! <= right[b]!);
    if (isLeftNext) addSpan(joined, left[a]!, left[a + 1]!);
    else addSpan(joined, right[b]!, right[b + 1]!);
    if (isLeftNext) a += 2;
    else b += 2;
  }
  return joined;
}
