/** Masks a text while it is still being received. Holds back the end of the received text while it may be the beginning of a secret. */
import { findIncompleteEscape } from "./escapes.js";

export interface SecretRange {
  from: number;
  to: number;
  name: string;
}

export interface StreamedText {
  /** Text that was received. Its start may be text that the caller has already passed on. */
  text: string;
  /** Index in `text` of the first character that the caller has not passed on yet; 0 only if it has passed on nothing. */
  from: number;
  isEnd: boolean;
}

export interface MaskedTextStart {
  masked: string;
  /** Index of the first character that must wait for the next part of the text. */
  to: number;
  /** Index from which the caller must keep the text, because the scan of the next part needs it. */
  neededFrom: number;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && text[at]!.trim() === "") at += 1;
  return at;
}

/** Adds the ranges of short secrets, which count only as whole quoted strings. Returns the index where an incomplete string may begin. */
function addQuotedSecrets(ranges: SecretRange[], text: string, replacements: ReadonlyMap<string, string>): number {
  let undecidedStart = text.length;
  for (const [value, name] of replacements) {
    // Skips secrets that contain quotes or backslashes, as the scan of a complete text does.
    if (value.includes('"') || value.includes("\\")) continue;
    const quotedSecret = `"${value}"`;
    for (let at = text.indexOf(quotedSecret); at !== -1; at = text.indexOf(quotedSecret, at + 1)) {
      const next = skipSpace(text, at + quotedSecret.length);
      if (text[next] !== ":") ranges.push({ from: at + 1, to: at + quotedSecret.length - 1, name });
      if (next === text.length) undecidedStart = Math.min(undecidedStart, at);
    }
    const lastQuote = text.lastIndexOf('"');
    if (lastQuote !== -1 && quotedSecret.startsWith(text.slice(lastQuote, lastQuote + quotedSecret.length + 1)))
      undecidedStart = Math.min(undecidedStart, lastQuote);
  }
  return undecidedStart;
}

/** Returns the largest index, at most `undecidedStart`, that is not inside a secret. */
function findEndBeforeSecrets(undecidedStart: number, ranges: readonly SecretRange[]): number {
  let to = undecidedStart;
  // Goes from the last range to the first, because a range may overlap the next one.
  for (const range of ranges.toReversed()) if (range.from < to && range.to > to) to = range.from;
  return to;
}

/**
 * Returns the index from which the caller must keep the text for the scan of the next part: before an incomplete escape, and at least one
 * character before `to`. So the next `from` is 0 only at the start of a text.
 */
const findKeptTextStart = (text: string, to: number): number =>
  Math.max(0, Math.min(findIncompleteEscape(text, to), to - 1));

/**
 * Masks the secrets in the part of a text that can be passed on.
 * @param sortedRanges ranges of secrets in the text, by their start
 * @param replacements names of the short secrets, which count only as complete strings, by the secret's value
 * @param undecidedStart index from which the text may become a part of another secret; the text's length for none
 */
export function maskStartOfStreamedText(
  { text, from, isEnd }: StreamedText,
  sortedRanges: readonly SecretRange[],
  replacements: ReadonlyMap<string, string>,
  undecidedStart: number,
): MaskedTextStart {
  if (isEnd && from === 0 && replacements.has(text)) {
    return { masked: `«${replacements.get(text)}»`, to: text.length, neededFrom: text.length };
  }
  const ranges = [...sortedRanges];
  const incompleteQuoteStart = addQuotedSecrets(ranges, text, replacements);
  ranges.sort((a, b) => a.from - b.from || b.to - a.to);
  // True if the whole text may become a short secret, which counts only as a complete string.
  const mayBeWhole = from === 0 && [...replacements.keys()].some((value) => value.startsWith(text));
  const waitingStart = mayBeWhole ? from : findEndBeforeSecrets(Math.min(undecidedStart, incompleteQuoteStart), ranges);
  const to = isEnd ? text.length : Math.max(from, waitingStart);
  let masked = "";
  let at = from;
  for (const range of ranges) {
    if (range.to <= at || range.to > to) continue;
    if (range.from >= at) masked += `${text.slice(at, range.from)}«${range.name}»`;
    else if (at === from) masked += `«${range.name}»`;
    at = range.to;
  }
  return { masked: masked + text.slice(at, Math.max(at, to)), to, neededFrom: findKeptTextStart(text, to) };
}
