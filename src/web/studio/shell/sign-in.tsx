/** Shows the sign-in page, or calls `onSession` if the browser is signed in already. */
import { useCallback, useEffect, useState } from "react";
import { PROVIDER_ERROR_TEXTS } from "../accounts/auth-api.js";
import { SignInForms } from "../accounts/sign-in-forms.js";
import { ApiError } from "../shared/api.js";
import type { StudioSession } from "./session.js";
import { readCurrentSession } from "./start.js";

/**
 * Returns an error message if the URL contains the result of a failed sign-in at an OpenID provider; otherwise null. Removes this result
 * from the URL.
 */
function readProviderFault(): string | null {
  const outcome = new URLSearchParams(location.search).get("sign-in");
  if (outcome === null) return null;
  history.replaceState(history.state, "", location.pathname + location.hash);
  return PROVIDER_ERROR_TEXTS[outcome] ?? PROVIDER_ERROR_TEXTS["failed"]!;
}

/** Error message of a sign-in at an OpenID provider, or null. Read only once, because reading removes it from the URL. */
const PROVIDER_FAULT = readProviderFault();

export function SignInPage({ onSession }: { onSession: (session: StudioSession) => void }) {
  const [isSignedOut, setSignedOut] = useState(false);

  useEffect(() => {
    document.title = "Sign in · Studio";
  }, []);
  useEffect(() => {
    let isUnmounted = false;
    void readCurrentSession().then((session) => {
      if (isUnmounted) return;
      if (session) onSession(session);
      else setSignedOut(true);
    });
    return () => {
      isUnmounted = true;
    };
  }, [onSession]);

  const onSignedIn = useCallback(async () => {
    const session = await readCurrentSession();
    if (!session)
      throw new ApiError(
        "OFFLINE",
        "Studio could not read the session after the sign-in; check the connection, and allow cookies for this address",
      );
    onSession(session);
  }, [onSession]);
  const heading = (
    <>
      <span className="mark" aria-hidden="true" /> App Actions <em>Studio</em>
    </>
  );
  return (
    <main className="sign-in" aria-busy={!isSignedOut}>
      {isSignedOut && <SignInForms {...{ heading, onSignedIn }} fault={PROVIDER_FAULT} />}
    </main>
  );
}
