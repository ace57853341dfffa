/**
 * Text area for code with colored keywords, strings and comments. Shown until Monaco is loaded, or if Monaco cannot be loaded.
 */
import { memo, type RefObject, useCallback, useLayoutEffect, useMemo, useRef } from "react";
import { mayEdit } from "../shell/rights.js";
import { useRole } from "../shell/role.js";
import { highlightCode } from "./highlight-code.js";

/** Offsets of a selection in the code. */
export interface TextSelection {
  start: number;
  end: number;
}

interface PlainCodeProps {
  code: string;
  onChange: (code: string) => void;
  /** Receives the selection when this text area is removed while it has the focus. The editor that replaces it restores the selection. */
  caret: RefObject<TextSelection | null>;
}

/** Longer code is shown without colors, because each key press renders all parts again. */
const COLORED_MAX_CHARACTERS = 20_000;

/** The colored text. It lies below the text area, whose own text is transparent. */
const ColoredCode = memo(function ColoredCode({
  code,
  element,
}: {
  code: string;
  element: RefObject<HTMLElement | null>;
}) {
  // The parts have no identity of their own.
  const parts = useMemo(() => highlightCode(code).map((part, at) => ({ ...part, key: at })), [code]);
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

export function PlainCode({ code, onChange, caret }: PlainCodeProps) {
  const textArea = useRef<HTMLTextAreaElement>(null);
  const colors = useRef<HTMLElement>(null);
  const isColored = code.length <= COLORED_MAX_CHARACTERS;
  const followScroll = useCallback(() => {
    const { scrollLeft, scrollTop } = textArea.current!;
    if (colors.current) colors.current.style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
  }, []);
  // The text area can be scrolled already when the colors appear.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colors appear and disappear with this value
  useLayoutEffect(followScroll, [isColored]);
  const readOnly = !mayEdit(useRole());
  useLayoutEffect(() => {
    const text = textArea.current;
    if (text && caret.current) {
      text.focus();
      text.setSelectionRange(caret.current.start, caret.current.end);
      caret.current = null;
    }
    return () => {
      if (text && text === document.activeElement)
        caret.current = { start: text.selectionStart, end: text.selectionEnd };
    };
  }, [caret]);
  return (
    <div className={isColored ? "plain-code-box colored" : "plain-code-box"}>
      {isColored && <ColoredCode code={code} element={colors} />}
      <textarea
        ref={textArea}
        className="plain-code"
        aria-label="Code"
        spellCheck={false}
        autoCapitalize="off"
        wrap="off"
        readOnly={readOnly}
        value={code}
        onScroll={followScroll}
        onChange={({ target }) => onChange(target.value)}
      />
    </div>
  );
}
