/**
 * Text area for code with colored keywords, strings and comments. Studio shows this text area until Monaco is loaded, and
 * keeps it if Monaco cannot be loaded.
 */
import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  type RefObject,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
} from "react";
import { mayEdit } from "../shell/rights.js";
import { useRole } from "../shell/role.js";
import { highlightCode } from "./highlight-code.js";
import { indentLines, insertLineBreak, removeIndentation, type TextEdit } from "./plain-keys.js";
import type { CodePosition } from "./use-code-position.js";

/** State of the text area at the moment when Monaco replaces it. Monaco continues with this state. */
export interface PlainCodeState {
  /** Start and end of the selection as offsets in the code; null if the text area did not have the focus. */
  selection: { start: number; end: number } | null;
  scrollTop: number;
  scrollLeft: number;
  /** Text before the person's changes in this text area. Monaco starts with this text, so that Undo can restore it. */
  originalText: string;
}

interface PlainCodeProps {
  code: string;
  onChange: (code: string) => void;
  /** Receives the state of this text area when React removes it. */
  plainCodeState: RefObject<PlainCodeState | null>;
  /** Position to which the text area moves the cursor; null to leave the cursor where it is. */
  targetPosition: CodePosition | null;
}

/**
 * Maximum length of code that is shown in colors. Each key press renders all colored parts again, which would be slow for longer code.
 */
const COLORED_MAX_CHARACTERS = 20_000;

/** Colored copy of the code. It lies below the text area, whose own text is transparent. */
const ColoredCode = memo(function ColoredCode({
  code,
  element,
}: {
  code: string;
  element: RefObject<HTMLElement | null>;
}) {
  // Parts have no IDs, so the index of a part is its React key.
  const parts = useMemo(() => highlightCode(code).map((part, index) => ({ ...part, key: index })), [code]);
  return (
    <pre ref={element as RefObject<HTMLPreElement | null>} className="plain-code-colors" aria-hidden="true">
      {parts.map(({ key, kind, text }) =>
        kind === "plain" ? (
          text
        ) : (
          <span key={key} className={`code-${kind}`}>
            {text}
          </span>
        ),
      )}
    </pre>
  );
});

/** Line numbers, at the same place at which Monaco shows them. */
const LineNumbers = memo(function LineNumbers({
  lineCount,
  element,
}: {
  lineCount: number;
  element: RefObject<HTMLElement | null>;
}) {
  const numbersText = useMemo(() => Array.from({ length: lineCount }, (_, index) => index + 1).join("\n"), [lineCount]);
  return (
    <pre ref={element as RefObject<HTMLPreElement | null>} className="plain-code-numbers" aria-hidden="true">
      {numbersText}
    </pre>
  );
});

const LINE_HEIGHT_PX = 20;
/** Minimum width of line numbers in digits, the same as Monaco's option `lineNumbersMinChars`. */
const LINE_NUMBER_MIN_DIGITS = 3;

/** Moves the cursor to a position in the code and scrolls there, like Monaco. */
function showPosition(text: HTMLTextAreaElement, { line, column }: CodePosition): void {
  const linesBefore = text.value.split("\n").slice(0, line - 1);
  const offset = Math.min(text.value.length, linesBefore.reduce((sum, { length }) => sum + length + 1, 0) + column - 1);
  text.focus();
  text.setSelectionRange(offset, offset);
  text.scrollTop = Math.max(0, linesBefore.length * LINE_HEIGHT_PX - text.clientHeight / 2);
}

let isComposing = false;
const setComposing = (value: boolean) => {
  isComposing = value;
};

/**
 * Resolves when no input method (IME) is composing a character. Removing the text area earlier would lose the
 * unfinished character.
 */
export async function waitForComposition(): Promise<void> {
  if (isComposing) await new Promise((resolve) => addEventListener("compositionend", resolve, { once: true }));
}

/**
 * Hook that stores the state of the text area when React removes it. A new text area continues with the stored state.
 */
function usePlainCodeState(
  textArea: RefObject<HTMLTextAreaElement | null>,
  lastState: RefObject<PlainCodeState | null>,
  originalCode: RefObject<string>,
) {
  useLayoutEffect(() => {
    const text = textArea.current;
    if (!text) return;
    const { selection, scrollTop, scrollLeft } = lastState.current ?? { selection: null, scrollTop: 0, scrollLeft: 0 };
    if (selection) {
      text.focus();
      text.setSelectionRange(selection.start, selection.end);
    }
    if (lastState.current) {
      Object.assign(text, { scrollTop, scrollLeft });
      originalCode.current = lastState.current.originalText;
    }
    return () => {
      const { selectionStart: start, selectionEnd: end } = text;
      lastState.current = {
        selection: text === document.activeElement ? { start, end } : null,
        scrollTop: text.scrollTop,
        scrollLeft: text.scrollLeft,
        originalText: originalCode.current,
      };
      setComposing(false);
    };
  }, [textArea, lastState, originalCode]);
}

/** Applies an edit as one step of the browser's undo history, with the same input event as typing. */
function applyEdit(element: HTMLTextAreaElement, { startOffset, endOffset, insertedText, selection }: TextEdit): void {
  if (element.value.slice(startOffset, endOffset) !== insertedText) {
    element.setSelectionRange(startOffset, endOffset);
    document.execCommand(insertedText === "" ? "delete" : "insertText", false, insertedText);
  }
  element.setSelectionRange(selection.start, selection.end);
}

/** Returns the edit that a key causes, or null if the browser should handle the key. */
function getKeyEdit(
  event: KeyboardEvent,
  { value, selectionStart, selectionEnd }: HTMLTextAreaElement,
): TextEdit | null {
  if (event.ctrlKey || event.altKey || event.metaKey) return null;
  if (event.key === "Tab")
    return (event.shiftKey ? removeIndentation : indentLines)(value, selectionStart, selectionEnd);
  return event.key === "Enter" ? insertLineBreak(value, selectionStart, selectionEnd) : null;
}

export function PlainCodeEditor({ code, onChange, plainCodeState, targetPosition }: PlainCodeProps) {
  const textArea = useRef<HTMLTextAreaElement>(null);
  const colorsElement = useRef<HTMLElement>(null);
  const numbersElement = useRef<HTMLElement>(null);
  const isColored = code.length <= COLORED_MAX_CHARACTERS;
  const lineCount = code.split("\n").length;
  const followScroll = useCallback(() => {
    const { scrollLeft, scrollTop } = textArea.current!;
    if (colorsElement.current) colorsElement.current.style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
    if (numbersElement.current) numbersElement.current.style.transform = `translateY(${-scrollTop}px)`;
  }, []);
  // Scrolls the colored copy again when it appears, because the person may have scrolled the text area before.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colors appear and disappear with this value
  useLayoutEffect(followScroll, [isColored]);
  const readOnly = !mayEdit(useRole());
  const originalCode = useRef(code);
  const typedCode = useRef(code);
  useEffect(() => {
    // If the person did not type this text here, it was loaded or restored. Undo in Monaco then returns to this text.
    if (code !== typedCode.current) originalCode.current = code;
    typedCode.current = code;
  }, [code]);
  useLayoutEffect(() => {
    if (targetPosition && textArea.current) showPosition(textArea.current, targetPosition);
  }, [targetPosition]);
  usePlainCodeState(textArea, plainCodeState, originalCode);
  const tabMovesFocus = useRef(false);
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.ctrlKey && event.key === "m") tabMovesFocus.current = !tabMovesFocus.current;
    if (readOnly || event.nativeEvent.isComposing || (event.key === "Tab" && tabMovesFocus.current)) return;
    const edit = getKeyEdit(event, event.currentTarget);
    if (!edit) return;
    event.preventDefault();
    applyEdit(event.currentTarget, edit);
  };
  return (
    <div
      className={isColored ? "plain-code-box colored" : "plain-code-box"}
      style={{ "--code-digits": Math.max(LINE_NUMBER_MIN_DIGITS, String(lineCount).length) } as CSSProperties}
    >
      {isColored && <ColoredCode code={code} element={colorsElement} />}
      <textarea
        ref={textArea}
        className="plain-code"
        aria-label="Code. Tab indents; Control M lets Tab leave the editor."
        spellCheck={false}
        autoCapitalize="off"
        wrap="off"
        readOnly={readOnly}
        value={code}
        onScroll={followScroll}
        onKeyDown={onKeyDown}
        onCompositionStart={() => setComposing(true)}
        onCompositionEnd={() => setComposing(false)}
        onChange={({ target }) => {
          typedCode.current = target.value;
          onChange(target.value);
        }}
      />
      <LineNumbers lineCount={lineCount} element={numbersElement} />
    </div>
  );
}
