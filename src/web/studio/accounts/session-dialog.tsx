/** Sign-in over the page when the session has expired: nothing that is unsaved is lost, and the interrupted request is sent again. */
import { useEffect, useState } from "react";
import { Modal } from "../shared/modal.js";
import { presentKind } from "../shell/session.js";
import { onExpiry, resume } from "./renewal.js";
import { SignInForms } from "./sign-in-forms.js";

async function resumeIfSignedIn(): Promise<void> {
  if ((await presentKind().catch(() => null)) !== null) resume();
}

/** @param email of the person who was signed in, to begin with */
export function SessionDialog({ email }: { email: string }) {
  const [isExpired, setExpired] = useState(false);
  useEffect(() => onExpiry(setExpired), []);
  useEffect(() => {
    if (!isExpired) return undefined;
    // After a sign-in in another tab.
    const look = () => void resumeIfSignedIn();
    addEventListener("focus", look);
    return () => removeEventListener("focus", look);
  }, [isExpired]);
  if (!isExpired) return null;
  return (
    <Modal
      className="sign-in-dialog"
      aria-label="Sign in again"
      // Esc would leave the page without a session.
      onCancel={(event) => event.preventDefault()}
    >
      <SignInForms heading="Your session has ended" isOverPage email={email} onSignedIn={async () => resume()} />
      <p className="hint">Sign in again to go on. What you have not saved is still here.</p>
    </Modal>
  );
}
