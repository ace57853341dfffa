/** Sign-in forms: e-mail address and passphrase, passkey, OpenID provider, token; and the request for a reset link. */
import { type FormEvent, type ReactNode, useEffect, useId, useState } from "react";
import { type ApiError, asApiError } from "../shared/api.js";
import { signInByToken } from "../shell/session.js";
import { auth, type Provider, providerAddress, type SignedIn, signInFault } from "./auth-api.js";
import { hasPasskeys, signInByPasskey } from "./passkeys.js";

interface FormsProps {
  /** Called after the sign-in. The form shows an error if the promise rejects. */
  onSignedIn: () => Promise<void>;
  /** Initial value of the e-mail field. */
  email?: string;
  /** True if the form is shown over another page, which must stay. Providers then open in another tab. */
  isOverPage?: boolean;
  /** Error to show at first, from an earlier attempt. */
  fault?: string | null;
  heading: ReactNode;
}

type Mode = "account" | "token" | "reset";

interface FieldProps {
  label: string;
  name: string;
  type: "email" | "password" | "text";
  autoComplete: string;
  value: string;
  onChange: (value: string) => void;
  fault: string | null;
  autoFocus?: boolean;
}

/** Field of a sign-in form. The form announces its error to screen readers. */
export function Entry({ label, name, type, autoComplete, value, onChange, fault, autoFocus = false }: FieldProps) {
  return (
    <label>
      {label}
      <input
        {...{ name, type, autoComplete, value, autoFocus }}
        required
        spellCheck={false}
        autoCapitalize="none"
        onChange={(event) => onChange(event.target.value)}
        aria-invalid={fault !== null}
        aria-describedby="sign-in-fault"
      />
    </label>
  );
}

/** Runs one attempt at a time, and provides the error of the last one. */
export function useAttempt(words: (error: ApiError) => string, before: string | null = null) {
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<string | null>(before);
  const attempt = async (work: () => Promise<void>) => {
    setBusy(true);
    setFault(null);
    try {
      await work();
    } catch (error) {
      setFault(words(asApiError(error)));
    } finally {
      setBusy(false);
    }
  };
  return { busy, fault, attempt, clear: () => setFault(null) };
}

function useProviders(): Provider[] {
  const [providers, setProviders] = useState<Provider[]>([]);
  useEffect(() => {
    auth<{ providers: Provider[] }>("GET", "providers").then(
      (answer) => setProviders(answer.providers),
      // If providers cannot be read, the other ways to sign in still work.
      () => undefined,
    );
  }, []);
  return providers;
}

export function Fault({ text }: { text: string | null }) {
  return (
    <p id="sign-in-fault" className="fault" role="alert">
      {text}
    </p>
  );
}

function AccountForm({
  onSignedIn,
  email: known = "",
  isOverPage = false,
  fault: before = null,
  turnTo,
}: Omit<FormsProps, "heading"> & { turnTo: (mode: Mode) => void }) {
  const [email, setEmail] = useState(known);
  const [passphrase, setPassphrase] = useState("");
  const providers = useProviders();
  const { busy, fault, attempt } = useAttempt(signInFault, before);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt(async () => {
      await auth<SignedIn>("POST", "sign-in", { email: email.trim(), passphrase });
      await onSignedIn();
    });
  };
  const byPasskey = () =>
    void attempt(async () => {
      await signInByPasskey();
      await onSignedIn();
    });
  const next = isOverPage ? "/studio" : location.pathname + location.hash;
  return (
    <form onSubmit={submit} aria-busy={busy}>
      <Entry
        label="E-mail address"
        name="email"
        type="email"
        autoComplete="username"
        {...{ value: email, fault }}
        onChange={setEmail}
        autoFocus={known === ""}
      />
      <Entry
        label="Passphrase"
        name="passphrase"
        type="password"
        autoComplete="current-password"
        {...{ value: passphrase, fault }}
        onChange={setPassphrase}
        autoFocus={known !== ""}
      />
      <Fault text={fault} />
      <button type="submit" className="primary" disabled={busy || email.trim() === "" || passphrase === ""}>
        {busy ? "Signing in…" : "Sign in"}
      </button>
      {hasPasskeys() && (
        <button type="button" disabled={busy} onClick={byPasskey}>
          Sign in with a passkey
        </button>
      )}
      {providers.map(({ id, name }) => (
        <a
          key={id}
          className="button"
          href={providerAddress(id, next)}
          {...(isOverPage && { target: "_blank", rel: "noreferrer" })}
        >
          Sign in with {name}
        </a>
      ))}
      <p className="row between">
        <button type="button" className="link" onClick={() => turnTo("reset")}>
          Forgot your passphrase?
        </button>
        <button type="button" className="link" onClick={() => turnTo("token")}>
          Use a token
        </button>
      </p>
    </form>
  );
}

const TOKEN_REFUSED = "This token is not valid here, or not any more.";
const tokenFault = ({ status, message }: ApiError) => (status === "UNAUTHORIZED" ? TOKEN_REFUSED : message);

function TokenForm({ onSignedIn, turnTo }: Pick<FormsProps, "onSignedIn"> & { turnTo: (mode: Mode) => void }) {
  const [token, setToken] = useState("");
  const [keep, setKeep] = useState(false);
  const { busy, fault, attempt } = useAttempt(tokenFault);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt(async () => {
      await signInByToken(token.trim(), keep);
      await onSignedIn();
    });
  };
  return (
    <form onSubmit={submit} aria-busy={busy}>
      <Entry
        label="Editor's token"
        name="token"
        type="password"
        autoComplete="off"
        {...{ value: token, fault }}
        onChange={setToken}
        autoFocus
      />
      <Fault text={fault} />
      <p className="hint">
        The first start wrote one to <code>.data/credentials.json</code>, under <code>tokens.editor</code>.
      </p>
      <label className="check">
        <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.target.checked)} />
        Stay signed in for a week in this browser
      </label>
      <button type="submit" className="primary" disabled={busy || token.trim() === ""}>
        {busy ? "Signing in…" : "Sign in"}
      </button>
      <p>
        <button type="button" className="link" onClick={() => turnTo("account")}>
          Use an account
        </button>
      </p>
    </form>
  );
}

function ResetForm({ turnTo }: { turnTo: (mode: Mode) => void }) {
  const [email, setEmail] = useState("");
  const [isSent, setSent] = useState(false);
  const { busy, fault, attempt } = useAttempt(signInFault);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt(async () => {
      await auth("POST", "reset", { email: email.trim() });
      setSent(true);
    });
  };
  return (
    <form onSubmit={submit} aria-busy={busy}>
      <p>Enter your e-mail address. If it has an account, a link to choose a new passphrase is sent to it.</p>
      <Entry
        label="E-mail address"
        name="email"
        type="email"
        autoComplete="username"
        {...{ value: email, fault }}
        onChange={setEmail}
        autoFocus
      />
      <Fault text={fault} />
      {isSent && (
        <p role="status">
          If the address has an account, the link is on its way. It is valid for an hour. Without a mail server, ask an
          administrator for the link.
        </p>
      )}
      <button type="submit" className="primary" disabled={busy || email.trim() === ""}>
        Send the link
      </button>
      <p>
        <button type="button" className="link" onClick={() => turnTo("account")}>
          Back to the sign-in
        </button>
      </p>
    </form>
  );
}

export function SignInForms({ heading, ...props }: FormsProps) {
  const [mode, setMode] = useState<Mode>("account");
  const id = useId();
  return (
    <section className="sign-in-forms" aria-labelledby={id}>
      <h1 id={id}>{heading}</h1>
      {mode === "account" && <AccountForm {...props} turnTo={setMode} />}
      {mode === "token" && <TokenForm onSignedIn={props.onSignedIn} turnTo={setMode} />}
      {mode === "reset" && <ResetForm turnTo={setMode} />}
    </section>
  );
}
