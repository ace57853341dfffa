/** Ranges of a text: `[from, to, from, to …]`, ordered and disjoint. */

export type Spans = readonly number[];

export const EVERYWHERE: Spans = [0, Number.POSITIVE_INFINITY];

/** Spans that are nearer to each other are joined: reading the bytes in between costs less than a separate span. */
const NEAR = 64;

/** Adds a span that does not begin before the last one. */
export function addSpan(spans: number[], from: number, to: number): void {
  const last = spans.length - 1;
  if (last >= 0 && from <= spans[last]! + NEAR) spans[last] = Math.max(spans[last]!, to);
  else spans.push(from, to);
}

/** Union of both. */
export function joinedSpans(one: Spans, other: Spans): Spans {
  if (one.length === 0 || other.length === 0) return one.length === 0 ? other : one;
  const joined: number[] = [];
  for (let a = 0, b = 0; a < one.length || b < other.length; ) {
    const isOne = b >= other.length || (a < one.length && one[a]! <= other[b]!);
    if (isOne) addSpan(joined, one[a]!, one[a + 1]!);
    else addSpan(joined, other[b]!, other[b + 1]!);
    if (isOne) a += 2;
    else b += 2;
  }
  return joined;
}
