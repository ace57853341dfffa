/** A token that the service gives once and never again: shown until it is put away, with a button that copies it. */
import { CopyButton } from "./copy-button.js";

interface SecretOnceProps {
  /** Whose it is. */
  label: string;
  secret: string;
  close: () => void;
}

export function SecretOnce({ label, secret, close }: SecretOnceProps) {
  return (
    <div className="notice secret-once" role="alert">
      <p>{label}. It is shown only once. Store it in a safe place.</p>
      <code>{secret}</code>
      <p className="row">
        <CopyButton className="primary" text={() => secret} />
        <button type="button" onClick={close}>
          Done
        </button>
      </p>
    </div>
  );
}
