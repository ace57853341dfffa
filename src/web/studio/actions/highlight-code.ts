/**
 * Splits JavaScript code into keywords, strings, comments and other parts that an editor colors. The plain text area uses this
 * until Monaco is loaded.
 */

export type CodePartKind = "comment" | "string" | "number" | "keyword" | "type" | "plain";

export interface CodePart {
  kind: CodePartKind;
  text: string;
}

const KEYWORDS = new Set(
  `async await break case catch class const continue debugger default delete do else export extends false finally for from function get
   if import in instanceof let new null of return set static super switch this throw true try typeof undefined var void while with yield`.split(
    /\s/,
  ),
);
/** A slash after one of these characters begins a regular expression. After any other character, a slash is a division. */
const CHARACTERS_BEFORE_REGEX = "(,=:[!&|?{};+-*%<>~^\n";

const isBetween = (character: string, first: string, last: string) => character >= first && character <= last;
const isDigit = (character: string) => isBetween(character, "0", "9");
const isWordStart = (character: string) =>
  isBetween(character, "a", "z") ||
  isBetween(character, "A", "Z") ||
  character === "_" ||
  character === "$" ||
  character > "\u007f";
const isWordPart = (character: string) => isWordStart(character) || isDigit(character);

/** Returns the position behind the first `end` at or after `from`; the end of the code if there is none. */
function findPositionAfter(code: string, end: string, from: number): number {
  const found = code.indexOf(end, from);
  return found < 0 ? code.length : found + end.length;
}

/** Returns the position behind the string or regular expression that begins at `start`. Only a template literal can have several lines. */
function findQuotedEnd(code: string, start: number): number {
  const quote = code[start]!;
  let isInClass = false;
  for (let at = start + 1; at < code.length; at += 1) {
    const character = code[at]!;
    if (character === "\\") at += 1;
    else if (character === "\n" && quote !== "`") return at;
    else if (quote === "/" && character === "[") isInClass = true;
    else if (quote === "/" && character === "]") isInClass = false;
    else if (character === quote && !isInClass) return at + 1;
  }
  return code.length;
}

function findWordEnd(code: string, start: number): number {
  let at = start;
  while (at < code.length && (isWordPart(code[at]!) || (code[at] === "." && isDigit(code[start]!)))) at += 1;
  return at;
}

function getWordKind(word: string): CodePartKind {
  if (KEYWORDS.has(word)) return "keyword";
  return isBetween(word[0]!, "A", "Z") ? "type" : "plain";
}

/**
 * Returns the colored part that begins at the position `at`, or null if the character there has no color.
 * @param before last character before `at` that is not a space; "" at the beginning of the code
 */
function readPartAt(code: string, at: number, before: string): CodePart | null {
  const character = code[at]!;
  const part = (kind: CodePartKind, end: number): CodePart => ({ kind, text: code.slice(at, end) });
  if (code.startsWith("//", at)) {
    const end = code.indexOf("\n", at);
    return part("comment", end < 0 ? code.length : end);
  }
  if (code.startsWith("/*", at)) return part("comment", findPositionAfter(code, "*/", at + 2));
  if (character === '"' || character === "'" || character === "`") return part("string", findQuotedEnd(code, at));
  if (character === "/" && (before === "" || CHARACTERS_BEFORE_REGEX.includes(before)))
    return part("string", findQuotedEnd(code, at));
  if (isDigit(character)) return part("number", findWordEnd(code, at));
  if (!isWordStart(character)) return null;
  const end = findWordEnd(code, at);
  return part(getWordKind(code.slice(at, end)), end);
}

/** Splits the code into parts. The texts of all parts together are the whole code. */
export function highlightCode(code: string): CodePart[] {
  const parts: CodePart[] = [];
  let before = "";
  for (let at = 0; at < code.length; ) {
    const part = readPartAt(code, at, before) ?? { kind: "plain", text: code[at]! };
    const last = parts.at(-1);
    if (last && last.kind === part.kind && part.kind === "plain") last.text += part.text;
    else parts.push(part);
    at += part.text.length;
    if (part.kind !== "comment" && part.text.trim() !== "") before = part.text.at(-1)!;
  }
  return parts;
}
