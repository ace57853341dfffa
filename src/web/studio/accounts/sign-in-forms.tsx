/** Sign-in forms: e-mail address and passphrase, passkey, OpenID provider, token; and the request for a reset link. */
import { type FormEvent, type ReactNode, useEffect, useId, useState } from "react";
import { type ApiError, asApiError } from "../shared/api.js";
import { signInByToken } from "../shell/session.js";
import {
  getProviderSignInUrl,
  getSignInErrorText,
  type Provider,
  requestAuthRoute,
  type SignInResult,
} from "./auth-api.js";
import { signInByPasskey, supportsPasskeys } from "./passkeys.js";

interface SignInFormsProps {
  /** Called after a successful sign-in. If the returned promise rejects, the form shows the error. */
  onSignedIn: () => Promise<void>;
  /** Initial value of the e-mail field. */
  email?: string;
  /**
   * True if the form is in a dialog over an open page. OpenID providers then open in another tab, because leaving the page would lose
   * unsaved changes.
   */
  isInDialog?: boolean;
  /** Error message of an earlier sign-in, shown until the person tries again; null or missing if there is none. */
  fault?: string | null;
  heading: ReactNode;
}

type SignInMode = "account" | "token" | "reset";

interface SignInFieldProps {
  label: string;
  name: string;
  type: "email" | "password" | "text";
  autoComplete: string;
  value: string;
  onChange: (value: string) => void;
  fault: string | null;
  autoFocus?: boolean;
}

/** Input of a sign-in form with a label. Its error message is announced to screen readers. */
export function SignInField({
  label,
  name,
  type,
  autoComplete,
  value,
  onChange,
  fault,
  autoFocus = false,
}: SignInFieldProps) {
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

/**
 * Hook for attempts to sign in: provides `busy`, which is true during an attempt, and the error of the last attempt.
 * @param getErrorText converts an error to the message for the person
 * @param initialFault error message to show before the first attempt
 */
export function useSignInAttempt(getErrorText: (error: ApiError) => string, initialFault: string | null = null) {
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<string | null>(initialFault);
  const attempt = async (action: () => Promise<void>) => {
    setBusy(true);
    setFault(null);
    try {
      await action();
    } catch (error) {
      setFault(getErrorText(asApiError(error)));
    } finally {
      setBusy(false);
    }
  };
  return { busy, fault, attempt, clear: () => setFault(null) };
}

function useProviders(): Provider[] {
  const [providers, setProviders] = useState<Provider[]>([]);
  useEffect(() => {
    requestAuthRoute<{ providers: Provider[] }>("GET", "providers").then(
      (answer) => setProviders(answer.providers),
      // If the list of OpenID providers cannot be read, the form does not offer them. The person can still sign in in
      // another way.
      () => undefined,
    );
  }, []);
  return providers;
}

export function FormError({ text }: { text: string | null }) {
  return (
    <p id="sign-in-fault" className="fault" role="alert">
      {text}
    </p>
  );
}

function AccountForm({
  onSignedIn,
  email: initialEmail = "",
  isInDialog = false,
  fault: initialFault = null,
  switchTo,
}: Omit<SignInFormsProps, "heading"> & { switchTo: (mode: SignInMode) => void }) {
  const [email, setEmail] = useState(initialEmail);
  const [passphrase, setPassphrase] = useState("");
  const providers = useProviders();
  const { busy, fault, attempt } = useSignInAttempt(getSignInErrorText, initialFault);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt(async () => {
      await requestAuthRoute<SignInResult>("POST", "sign-in", { email: email.trim(), passphrase });
      await onSignedIn();
    });
  };
  const signInWithPasskey = () =>
    void attempt(async () => {
      await signInByPasskey();
      await onSignedIn();
    });
  const returnPath = isInDialog ? "/studio" : location.pathname + location.hash;
  return (
    <form onSubmit={submit} aria-busy={busy}>
      <SignInField
        label="E-mail address"
        name="email"
        type="email"
        autoComplete="username"
        {...{ value: email, fault }}
        onChange={setEmail}
        autoFocus={initialEmail === ""}
      />
      <SignInField
        label="Passphrase"
        name="passphrase"
        type="password"
        autoComplete="current-password"
        {...{ value: passphrase, fault }}
        onChange={setPassphrase}
        autoFocus={initialEmail !== ""}
      />
      <FormError text={fault} />
      <button type="submit" className="primary" disabled={busy || email.trim() === "" || passphrase === ""}>
        {busy ? "Signing in…" : "Sign in"}
      </button>
      {supportsPasskeys() && (
        <button type="button" disabled={busy} onClick={signInWithPasskey}>
          Sign in with a passkey
        </button>
      )}
      {providers.map(({ id, name }) => (
        <a
          key={id}
          className="button"
          href={getProviderSignInUrl(id, returnPath)}
          {...(isInDialog && { target: "_blank", rel: "noreferrer" })}
        >
          Sign in with {name}
        </a>
      ))}
      <p className="row between">
        <button type="button" className="link" onClick={() => switchTo("reset")}>
          Forgot your passphrase?
        </button>
        <button type="button" className="link" onClick={() => switchTo("token")}>
          Use a token
        </button>
      </p>
    </form>
  );
}

const TOKEN_REJECTED_TEXT = "This token is not valid. Enter another token.";
const getTokenErrorText = ({ status, message }: ApiError) =>
  status === "UNAUTHORIZED" ? TOKEN_REJECTED_TEXT : message;

function TokenForm({
  onSignedIn,
  switchTo,
}: Pick<SignInFormsProps, "onSignedIn"> & { switchTo: (mode: SignInMode) => void }) {
  const [token, setToken] = useState("");
  const [keepSignedIn, setKeepSignedIn] = useState(false);
  const { busy, fault, attempt } = useSignInAttempt(getTokenErrorText);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt(async () => {
      await signInByToken(token.trim(), keepSignedIn);
      await onSignedIn();
    });
  };
  return (
    <form onSubmit={submit} aria-busy={busy}>
      <SignInField
        label="Editor's token"
        name="token"
        type="password"
        autoComplete="off"
        {...{ value: token, fault }}
        onChange={setToken}
        autoFocus
      />
      <FormError text={fault} />
      <p className="hint">
        The first start of the service wrote such a token to <code>.data/credentials.json</code>, as{" "}
        <code>tokens.editor</code>.
      </p>
      <label className="check">
        <input type="checkbox" checked={keepSignedIn} onChange={(event) => setKeepSignedIn(event.target.checked)} />
        Stay signed in for a week in this browser
      </label>
      <button type="submit" className="primary" disabled={busy || token.trim() === ""}>
        {busy ? "Signing in…" : "Sign in"}
      </button>
      <p>
        <button type="button" className="link" onClick={() => switchTo("account")}>
          Use an account
        </button>
      </p>
    </form>
  );
}

function ResetForm({ switchTo }: { switchTo: (mode: SignInMode) => void }) {
  const [email, setEmail] = useState("");
  const [isSent, setSent] = useState(false);
  const { busy, fault, attempt } = useSignInAttempt(getSignInErrorText);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt(async () => {
      await requestAuthRoute("POST", "reset", { email: email.trim() });
      setSent(true);
    });
  };
  return (
    <form onSubmit={submit} aria-busy={busy}>
      <p>
        Enter your e-mail address. If an account has this address, the service sends a link to it, with which you can
        choose a new passphrase.
      </p>
      <SignInField
        label="E-mail address"
        name="email"
        type="email"
        autoComplete="username"
        {...{ value: email, fault }}
        onChange={setEmail}
        autoFocus
      />
      <FormError text={fault} />
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
        <button type="button" className="link" onClick={() => switchTo("account")}>
          Back to the sign-in
        </button>
      </p>
    </form>
  );
}

export function SignInForms({ heading, ...props }: SignInFormsProps) {
  const [mode, setMode] = useState<SignInMode>("account");
  const id = useId();
  return (
    <section className="sign-in-forms" aria-labelledby={id}>
      <h1 id={id}>{heading}</h1>
      {mode === "account" && <AccountForm {...props} switchTo={setMode} />}
      {mode === "token" && <TokenForm onSignedIn={props.onSignedIn} switchTo={setMode} />}
      {mode === "reset" && <ResetForm switchTo={setMode} />}
    </section>
  );
}
