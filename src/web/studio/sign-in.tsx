/** Signing in by a pasted token, unless the browser is signed in already. */
import { type FormEvent, useEffect, useState } from "react";
import { asApiError } from "./api.js";
import { presentSession, type Session, signIn } from "./session.js";

const REFUSED = "This token is not valid here, or not any more.";

export function SignIn({ onSession }: { onSession: (session: Session) => void }) {
  const [token, setToken] = useState("");
  const [keep, setKeep] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  const [busy, setBusy] = useState(true);

  useEffect(() => {
    document.title = "Sign in · Studio";
  }, []);
  useEffect(() => {
    let gone = false;
    void presentSession().then((session) => {
      if (gone) return;
      if (session) onSession(session);
      else setBusy(false);
    });
    return () => {
      gone = true;
    };
  }, [onSession]);

  const enter = async () => {
    setBusy(true);
    setFault(null);
    try {
      onSession(await signIn(token.trim(), keep));
    } catch (error) {
      const { status, message } = asApiError(error);
      setFault(status === "UNAUTHORIZED" ? REFUSED : message);
      setBusy(false);
    }
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void enter();
  };
  return (
    <main className="sign-in">
      <form onSubmit={submit} aria-busy={busy}>
        <h1>
          <span className="mark" aria-hidden="true" /> App Actions <em>Studio</em>
        </h1>
        <p>Write actions, run them, watch them, publish them.</p>
        <label>
          Editor's token
          <input
            type="password"
            name="token"
            required
            autoComplete="off"
            spellCheck={false}
            value={token}
            onChange={(event) => setToken(event.target.value)}
            aria-invalid={fault !== null}
            aria-describedby="sign-in-fault sign-in-hint"
          />
        </label>
        <p id="sign-in-fault" className="fault" role="alert">
          {fault}
        </p>
        <p id="sign-in-hint" className="hint">
          The first start wrote one to <code>.data/credentials.json</code>, under <code>tokens.editor</code>.
        </p>
        <label className="check">
          <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.target.checked)} />
          Stay signed in for a week in this browser
        </label>
        <button type="submit" className="primary" disabled={busy || token.trim() === ""}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
      </form>
    </main>
  );
}
