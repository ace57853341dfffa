/**
 * Sign-in dialog over the current page when the session has expired. The page keeps its unsaved changes, and Studio repeats the interrupted
 * request.
 */
import { useEffect, useState } from "react";
import { ApiError } from "../shared/api.js";
import { ModalDialog } from "../shared/modal.js";
import { readSignedInEmail } from "../shell/session.js";
import { onSessionExpiry, resumePausedRequests } from "./session-renewal.js";
import { SignInForms } from "./sign-in-forms.js";

async function resumeIfSignedIn(email: string): Promise<void> {
  // Treats a failed request as "not signed in", so that the dialog stays open while the service does not respond.
  if ((await readSignedInEmail().catch(() => null)) === email) resumePausedRequests();
}

/**
 * Resumes the waiting requests if the person who signed in has this e-mail address.
 * @throws ApiError if another person or no one is signed in, or if the session cannot be read
 */
async function resumeForPerson(email: string): Promise<void> {
  const signedInEmail = await readSignedInEmail();
  if (signedInEmail === email) return resumePausedRequests();
  const signedInPerson = signedInEmail === null ? "No one" : signedInEmail || "A token";
  const expectedPerson = email || "a token";
  throw new ApiError(
    "FORBIDDEN",
    `${signedInPerson} is signed in now; this page belongs to ${expectedPerson}. Sign in as ${expectedPerson}, or reload the page and lose your unsaved changes.`,
  );
}

/** Sign-in dialog. @param email initial value of the e-mail field: the address of the person whose session has expired */
export function SessionDialog({ email }: { email: string }) {
  const [isExpired, setExpired] = useState(false);
  useEffect(() => onSessionExpiry(setExpired), []);
  useEffect(() => {
    if (!isExpired) return undefined;
    // The person may have signed in in another tab of the browser, so the dialog checks the session again.
    const checkSession = () => void resumeIfSignedIn(email);
    addEventListener("focus", checkSession);
    return () => removeEventListener("focus", checkSession);
  }, [isExpired, email]);
  if (!isExpired) return null;
  return (
    <ModalDialog
      className="sign-in-dialog"
      aria-label="Sign in again"
      // Escape must not close the dialog, because the page cannot send requests without a session.
      onCancel={(event) => event.preventDefault()}
    >
      <SignInForms
        heading="Your session has ended"
        isInDialog
        email={email}
        onSignedIn={() => resumeForPerson(email)}
      />
      <p className="hint">Sign in again to go on. What you have not saved is still here.</p>
    </ModalDialog>
  );
}
