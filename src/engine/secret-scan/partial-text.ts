/** Masks a text that is still being received: the part that can be passed on, and where the rest begins, which may be a part of a secret. */

export interface Interval {
  from: number;
  to: number;
  name: string;
}

export interface TextBeginning {
  /** The received text, with some of what was passed on before. */
  text: string;
  /** Index of the first character that was not passed on. */
  from: number;
  /** True if nothing follows. */
  isEnd: boolean;
}

export interface MaskedBeginning {
  masked: string;
  /** Index of the first character that has to wait for the next part. */
  to: number;
}

/** Short secrets, which count as the whole of a quoted string: intervals of the complete ones, and of one that may have begun. */
function quotedIn(text: string, isEnd: boolean, whole: ReadonlyMap<string, string>): Interval[] {
  const found: Interval[] = [];
  for (const [value, name] of whole) {
    const quoted = `"${value}"`;
    for (let at = text.indexOf(quoted); at !== -1; at = text.indexOf(quoted, at + 1)) {
      found.push({ from: at, to: at + quoted.length, name });
    }
    const last = isEnd ? -1 : text.lastIndexOf('"');
    if (last !== -1 && quoted.startsWith(text.slice(last))) found.push({ from: last, to: text.length, name });
  }
  return found;
}

/** Index at which the text that has to wait begins: where an interval that reaches the end of the text does. */
function waitingFrom(text: string, from: number, intervals: readonly Interval[]): number {
  let to = text.length;
  // The last one first: each may reach into one that begins before it.
  for (const one of intervals.toReversed()) if (one.from < to && one.to >= to) to = one.from;
  return Math.max(from, to);
}

/**
 * @param found intervals of secrets in the text, also of those whose beginning is at its end
 * @param whole names of the secrets that count only as complete strings, by their values
 */
export function maskBeginning(
  { text, from, isEnd }: TextBeginning,
  found: readonly Interval[],
  whole: ReadonlyMap<string, string>,
): MaskedBeginning {
  const intervals = [...found, ...quotedIn(text, isEnd, whole)].sort((a, b) => a.from - b.from || b.to - a.to);
  // The whole text may become such a string.
  const mayBeWhole = from === 0 && [...whole.keys()].some((value) => value.startsWith(text));
  const to = isEnd ? text.length : mayBeWhole ? from : waitingFrom(text, from, intervals);
  if (isEnd && from === 0 && whole.has(text)) return { masked: `«${whole.get(text)}»`, to };
  let masked = "";
  let at = from;
  for (const one of intervals) {
    if (one.to <= at || one.to > to) continue;
    if (one.from >= at) masked += `${text.slice(at, one.from)}«${one.name}»`;
    else if (at === from) masked += `«${one.name}»`;
    at = one.to;
  }
  return { masked: masked + text.slice(at, Math.max(at, to)), to };
}
