/** Button that copies a text. It shows if that failed, because browsers can block the clipboard. */
import { useState } from "react";

interface CopyButtonProps {
  text: () => string;
  className: string;
}

const COPY_LABELS = { ready: "Copy", copied: "Copied", refused: "The browser does not allow copying" };

export function CopyButton({ text, className }: CopyButtonProps) {
  const [said, setSaid] = useState<keyof typeof COPY_LABELS>("ready");
  const copyText = () =>
    navigator.clipboard.writeText(text()).then(
      () => setSaid("copied"),
      () => setSaid("refused"),
    );
  return (
    <button type="button" className={className} onClick={() => void copyText()}>
      {COPY_LABELS[said]}
    </button>
  );
}
