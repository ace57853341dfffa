/** Copies a text, and says whether it could: a browser may forbid it to a page. Knows not what the text is. */
import { useState } from "react";

interface CopyButtonProps {
  text: () => string;
  className: string;
}

const SAID = { ready: "Copy", copied: "Copied", refused: "The browser lets no page copy" };

export function CopyButton({ text, className }: CopyButtonProps) {
  const [said, setSaid] = useState<keyof typeof SAID>("ready");
  const copy = () =>
    navigator.clipboard.writeText(text()).then(
      () => setSaid("copied"),
      () => setSaid("refused"),
    );
  return (
    <button type="button" className={className} onClick={() => void copy()}>
      {SAID[said]}
    </button>
  );
}
