/** Shows a token that the service returns only once, with a button to copy it. The token stays visible until the person closes it. */
import { CopyButton } from "./copy-button.js";

interface NewSecretNoticeProps {
  /** Label that names the person or program that will use the token. */
  label: string;
  secret: string;
  onClose: () => void;
}

export function NewSecretNotice({ label, secret, onClose }: NewSecretNoticeProps) {
  return (
    <div className="notice secret-once" role="alert">
      <p>{label}: it is shown only once. Store it in a safe place.</p>
      <code>{secret}</code>
      <p className="row">
        <CopyButton className="primary" getText={() => secret} />
        <button type="button" onClick={onClose}>
          Done
        </button>
      </p>
    </div>
  );
}
