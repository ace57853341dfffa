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
  const endPosition = code.indexOf(end, from);
  return endPosition < 0 ? code.length : endPosition + end.length;
}

/**
 * Returns the position behind the string or regular expression that begins at `start`. Without an end quote, it ends with the line; a
 * template literal can continue over several lines.
 */
function findQuotedEnd(code: string, start: number): number {
  const quote = code[start]!;
  let isInClass = false;
  for (let position = start + 1; position < code.length; position += 1) {
    const character = code[position]!;
    if (character === "\\") position += 1;
    else if (character === "\n" && quote !== "`") return position;
    else if (quote === "/" && character === "[") isInClass = true;
    else if (quote === "/" && character === "]") isInClass = false;
    else if (character === quote && !isInClass) return position + 1;
  }
  return code.length;
}

function findWordEnd(code: string, start: number): number {
  let position = start;
  while (position < code.length && (isWordPart(code[position]!) || (code[position] === "." && isDigit(code[start]!))))
    position += 1;
  return position;
}

function getWordKind(word: string): CodePartKind {
  if (KEYWORDS.has(word)) return "keyword";
  return isBetween(word[0]!, "A", "Z") ? "type" : "plain";
}

/**
 * Returns the comment, string, regular expression, number or word that begins at `position`. Returns null if something else is there.
 * @param before last character before `position` that is not a space; "" at the beginning of the code
 */
function readPartAt(code: string, position: number, before: string): CodePart | null {
  const character = code[position]!;
  const createPart = (kind: CodePartKind, end: number): CodePart => ({ kind, text: code.slice(position, end) });
  if (code.startsWith("//", position)) {
    const end = code.indexOf("\n", position);
    return createPart("comment", end < 0 ? code.length : end);
  }
  if (code.startsWith("/*", position)) return createPart("comment", findPositionAfter(code, "*/", position + 2));
  if (character === '"' || character === "'" || character === "`")
    return createPart("string", findQuotedEnd(code, position));
  if (character === "/" && (before === "" || CHARACTERS_BEFORE_REGEX.includes(before)))
    return createPart("string", findQuotedEnd(code, position));
  if (isDigit(character)) return createPart("number", findWordEnd(code, position));
  if (!isWordStart(character)) return null;
  const end = findWordEnd(code, position);
  return createPart(getWordKind(code.slice(position, end)), end);
}

/** Splits the code into parts. The texts of all parts together are the whole code. */
export function highlightCode(code: string): CodePart[] {
  const parts: CodePart[] = [];
  let before = "";
  for (let position = 0; position < code.length; ) {
    const part = readPartAt(code, position, before) ?? { kind: "plain", text: code[position]! };
    const last = parts.at(-1);
    if (last && last.kind === part.kind && part.kind === "plain") last.text += part.text;
    else parts.push(part);
    position += part.text.length;
    if (part.kind !== "comment" && part.text.trim() !== "") before = part.text.at(-1)!;
  }
  return parts;
}
