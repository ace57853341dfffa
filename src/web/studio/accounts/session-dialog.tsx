/** Sign-in over the page when the session has expired: nothing that is unsaved is lost, and the interrupted request is sent again. */
import { useEffect, useState } from "react";
import { ApiError } from "../shared/api.js";
import { Modal } from "../shared/modal.js";
import { presentEmail } from "../shell/session.js";
import { onExpiry, resume } from "./renewal.js";
import { SignInForms } from "./sign-in-forms.js";

async function resumeIfSignedIn(email: string): Promise<void> {
  // While the service does not answer, the dialog stays open.
  if ((await presentEmail().catch(() => null)) === email) resume();
}

/** Resumes requests only for the person who started them. @throws ApiError for another person */
async function resumeAs(email: string): Promise<void> {
  const present = await presentEmail();
  if (present === email) return resume();
  const who = present === null ? "No one" : present || "A token";
  const began = email || "a token";
  throw new ApiError(
    "FORBIDDEN",
    `${who} is signed in now; this page belongs to ${began}. Sign in as ${began}, or reload the page and lose what is unsaved.`,
  );
}

/** @param email of the person who was signed in, to begin with */
export function SessionDialog({ email }: { email: string }) {
  const [isExpired, setExpired] = useState(false);
  useEffect(() => onExpiry(setExpired), []);
  useEffect(() => {
    if (!isExpired) return undefined;
    // After a sign-in in another tab.
    const look = () => void resumeIfSignedIn(email);
    addEventListener("focus", look);
    return () => removeEventListener("focus", look);
  }, [isExpired, email]);
  if (!isExpired) return null;
  return (
    <Modal
      className="sign-in-dialog"
      aria-label="Sign in again"
      // Esc would leave the page without a session.
      onCancel={(event) => event.preventDefault()}
    >
      <SignInForms heading="Your session has ended" isOverPage email={email} onSignedIn={() => resumeAs(email)} />
      <p className="hint">Sign in again to go on. What you have not saved is still here.</p>
    </Modal>
  );
}
