/** Button that copies a text to the clipboard. It shows an error if the browser blocks the clipboard. */
import { useState } from "react";

interface CopyButtonProps {
  getText: () => string;
  className: string;
}

const COPY_LABELS = { ready: "Copy", copied: "Copied", refused: "The browser does not allow copying" };

export function CopyButton({ getText, className }: CopyButtonProps) {
  const [labelKey, setLabelKey] = useState<keyof typeof COPY_LABELS>("ready");
  const copyText = () =>
    navigator.clipboard.writeText(getText()).then(
      () => setLabelKey("copied"),
      () => setLabelKey("refused"),
    );
  return (
    <button type="button" className={className} onClick={() => void copyText()}>
      {COPY_LABELS[labelKey]}
    </button>
  );
}
