/** A token that the service gives once and never again: shown until it is put away, with a button that copies it. */
import { useState } from "react";

interface SecretOnceProps {
  /** Whose it is. */
  label: string;
  secret: string;
  close: () => void;
}

export function SecretOnce({ label, secret, close }: SecretOnceProps) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(secret);
    setCopied(true);
  };
  return (
    <div className="notice secret-once" role="alert">
      <p>{label}. It is shown this once: keep it where secrets are kept.</p>
      <code>{secret}</code>
      <p className="row">
        <button type="button" className="primary" onClick={() => void copy()}>
          {copied ? "Copied" : "Copy"}
        </button>
        <button type="button" onClick={close}>
          I have it
        </button>
      </p>
    </div>
  );
}
