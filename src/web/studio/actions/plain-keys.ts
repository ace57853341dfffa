/**
 * Key handling of the plain text area for code, the same as in Monaco. Tab indents, and Shift+Tab removes indentation. Enter keeps the
 * indentation of the line.
 */

/** Replacement of the text from `startOffset` to `endOffset`, and the selection after the replacement. */
export interface TextEdit {
  startOffset: number;
  endOffset: number;
  insertedText: string;
  selection: { start: number; end: number };
}

const INDENT = "  ";
const OPENING_BRACKETS = "{([";
const CLOSING_BRACKETS = "})]";

const findLineStart = (code: string, position: number): number => code.lastIndexOf("\n", position - 1) + 1;

/** Applies `changeLine` to each line that the selection touches. Afterwards the selection covers these lines. */
function editLines(code: string, start: number, end: number, changeLine: (line: string) => string): TextEdit {
  const firstLineStart = findLineStart(code, start);
  // A selection that ends at the start of a line does not include that line.
  const lastIncludedOffset = end > start && code[end - 1] === "\n" ? end - 1 : end;
  const lineEnd = code.indexOf("\n", lastIncludedOffset);
  const lastLineEnd = lineEnd < 0 ? code.length : lineEnd;
  const text = code.slice(firstLineStart, lastLineEnd).split("\n").map(changeLine).join("\n");
  return {
    startOffset: firstLineStart,
    endOffset: lastLineEnd,
    insertedText: text,
    selection: { start: firstLineStart, end: firstLineStart + text.length },
  };
}

export function indentLines(code: string, start: number, end: number): TextEdit {
  if (start !== end) return editLines(code, start, end, (line) => (line === "" ? line : INDENT + line));
  const caret = start + INDENT.length;
  return { startOffset: start, endOffset: end, insertedText: INDENT, selection: { start: caret, end: caret } };
}

export function removeIndentation(code: string, start: number, end: number): TextEdit {
  const edit = editLines(code, start, end, (line) => line.replace(/^(?:\t| {1,2})/, ""));
  if (start !== end) return edit;
  const caret = Math.max(edit.startOffset, start - (edit.endOffset - edit.startOffset - edit.insertedText.length));
  return { ...edit, selection: { start: caret, end: caret } };
}

/**
 * Inserts a line break and the indentation of the current line. After an opening bracket, adds one more level of
 * indentation; if the closing bracket follows, moves it to a line of its own.
 */
export function insertLineBreak(code: string, start: number, end: number): TextEdit {
  const [indentation] = /^[ \t]*/.exec(code.slice(findLineStart(code, start), start))!;
  const characterBefore = code[start - 1];
  const isInBrackets = characterBefore !== undefined && OPENING_BRACKETS.includes(characterBefore);
  const lineBreakText = `\n${indentation}${isInBrackets ? INDENT : ""}`;
  const isClosed = isInBrackets && code[end] === CLOSING_BRACKETS[OPENING_BRACKETS.indexOf(characterBefore)];
  const caret = start + lineBreakText.length;
  return {
    startOffset: start,
    endOffset: end,
    insertedText: isClosed ? `${lineBreakText}\n${indentation}` : lineBreakText,
    selection: { start: caret, end: caret },
  };
}
