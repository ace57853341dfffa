/**
 * Masks a text while it is still being received. Decides which part can be passed on, and which end has to wait because
 * it may be the beginning of a secret.
 */
import { incompleteEscapeStart } from "./escapes.js";

export interface Interval {
  from: number;
  to: number;
  name: string;
}

export interface TextBeginning {
  /** The received text. It may begin with text that was already passed on. */
  text: string;
  /** Index of the first character of `text` that was not passed on yet; 0 only if nothing was passed on. */
  from: number;
  /** True if no further text follows. */
  isEnd: boolean;
}

export interface MaskedBeginning {
  masked: string;
  /** Index of the first character that has to wait for the next part of the text. */
  to: number;
  /** Index from which the caller must keep the text for the scan of the next part. */
  neededFrom: number;
}

/** Returns the index of the first character at or after `from` that is not white space. */
function indexAfterSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && text[at]!.trim() === "") at += 1;
  return at;
}

/**
 * Adds the intervals of short secrets, which count only as a whole quoted string that is not a key. Returns the index
 * from which such a string may have begun.
 */
function addQuoted(intervals: Interval[], text: string, replacements: ReadonlyMap<string, string>): number {
  let undecided = text.length;
  for (const [value, name] of replacements) {
    // Strings with quotes or backslashes do not count, as in the scan of a complete text.
    if (value.includes('"') || value.includes("\\")) continue;
    const quoted = `"${value}"`;
    for (let at = text.indexOf(quoted); at !== -1; at = text.indexOf(quoted, at + 1)) {
      const next = indexAfterSpace(text, at + quoted.length);
      if (text[next] !== ":") intervals.push({ from: at + 1, to: at + quoted.length - 1, name });
      if (next === text.length) undecided = Math.min(undecided, at);
    }
    const last = text.lastIndexOf('"');
    if (last !== -1 && quoted.startsWith(text.slice(last, last + quoted.length + 1)))
      undecided = Math.min(undecided, last);
  }
  return undecided;
}

/** Returns the largest index up to `undecidedStart` that is not inside a secret. */
function endBeforeSecrets(undecidedStart: number, intervals: readonly Interval[]): number {
  let to = undecidedStart;
  // Starts with the last interval, because each one may reach into the next.
  for (const interval of intervals.toReversed()) if (interval.from < to && interval.to > to) to = interval.from;
  return to;
}

/**
 * Returns the index from which the text must be kept after everything before `to` was passed on. Keeps at least one
 * character before `to`, so that the next scan does not treat the rest as the beginning of the text.
 */
const neededStart = (text: string, to: number): number =>
  Math.max(0, Math.min(incompleteEscapeStart(text, to), to - 1));

/**
 * Masks the secrets in the part of a text that can be passed on.
 * @param sorted intervals of secrets in the text
 * @param replacements names of the secrets that count only as complete strings, by their values
 * @param undecidedStart index from which the text may become a part of another secret; its length if nothing follows
 */
export function maskBeginning(
  { text, from, isEnd }: TextBeginning,
  sorted: readonly Interval[],
  replacements: ReadonlyMap<string, string>,
  undecidedStart: number,
): MaskedBeginning {
  if (isEnd && from === 0 && replacements.has(text)) {
    return { masked: `«${replacements.get(text)}»`, to: text.length, neededFrom: text.length };
  }
  const intervals = [...sorted];
  const quotedFrom = addQuoted(intervals, text, replacements);
  intervals.sort((a, b) => a.from - b.from || b.to - a.to);
  // The whole text may become a secret that counts only as a complete string.
  const mayBeWhole = from === 0 && [...replacements.keys()].some((value) => value.startsWith(text));
  const waiting = mayBeWhole ? from : endBeforeSecrets(Math.min(undecidedStart, quotedFrom), intervals);
  const to = isEnd ? text.length : Math.max(from, waiting);
  let masked = "";
  let at = from;
  for (const interval of intervals) {
    if (interval.to <= at || interval.to > to) continue;
    if (interval.from >= at) masked += `${text.slice(at, interval.from)}«${interval.name}»`;
    else if (at === from) masked += `«${interval.name}»`;
    at = interval.to;
  }
  return { masked: masked + text.slice(at, Math.max(at, to)), to, neededFrom: neededStart(text, to) };
}
