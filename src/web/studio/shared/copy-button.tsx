/** Button that copies a text to the clipboard. It shows an error if the browser blocks the clipboard. */
import { useState } from "react";
import { copyText } from "../../copy-text.js";

interface CopyButtonProps {
  getText: () => string;
  className: string;
}

const COPY_LABELS = { ready: "Copy", copied: "Copied", refused: "The browser does not allow copying" };

export function CopyButton({ getText, className }: CopyButtonProps) {
  const [labelKey, setLabelKey] = useState<keyof typeof COPY_LABELS>("ready");
  const copy = () =>
    copyText(getText()).then(
      () => setLabelKey("copied"),
      () => setLabelKey("refused"),
    );
  return (
    <button type="button" className={className} onClick={() => void copy()}>
      {COPY_LABELS[labelKey]}
    </button>
  );
}
