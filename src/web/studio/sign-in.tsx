/** Signing in by a pasted token: proves it by asking for the apps, and hands on what it opened. */
import { type FormEvent, useCallback, useEffect, useState } from "react";
import { type Api, asApiError, createApi } from "./api.js";
import { APPS, type App } from "./model.js";
import { rememberedToken, rememberToken } from "./remembered-token.js";

export interface Session {
  api: Api;
  apps: App[];
}

async function open(token: string): Promise<Session> {
  const api = createApi(token);
  const { apps } = await api.ask<{ apps: App[] }>(APPS);
  return { api, apps };
}

const REFUSED = "This token is not valid here, or not any more.";

export function SignIn({ onSession }: { onSession: (session: Session) => void }) {
  const [token, setToken] = useState("");
  const [keep, setKeep] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  const [busy, setBusy] = useState(rememberedToken() !== null);

  const enter = useCallback(
    async (given: string, remember: boolean) => {
      setBusy(true);
      setFault(null);
      try {
        const session = await open(given);
        rememberToken(remember ? given : null);
        onSession(session);
      } catch (error) {
        const { status, message } = asApiError(error);
        if (status === "UNAUTHORIZED") rememberToken(null);
        setFault(status === "UNAUTHORIZED" ? REFUSED : message);
        setBusy(false);
      }
    },
    [onSession],
  );

  useEffect(() => {
    const kept = rememberedToken();
    if (kept !== null) void enter(kept, true);
  }, [enter]);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    void enter(token.trim(), keep);
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
          Keep it in this tab until I close it
        </label>
        <button type="submit" className="primary" disabled={busy || token.trim() === ""}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
      </form>
    </main>
  );
}
