/** Plain text area for code, shown until Monaco is loaded, or if Monaco cannot be loaded. */
import { type RefObject, useLayoutEffect, useRef } from "react";
import { mayEdit } from "../shell/rights.js";
import { useRole } from "../shell/role.js";

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

export function PlainCode({ code, onChange, caret }: PlainCodeProps) {
  const textArea = useRef<HTMLTextAreaElement>(null);
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
    <textarea
      ref={textArea}
      className="plain-code"
      aria-label="Code"
      spellCheck={false}
      autoCapitalize="off"
      wrap="off"
      readOnly={readOnly}
      value={code}
      onChange={({ target }) => onChange(target.value)}
    />
  );
}
