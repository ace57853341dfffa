/**
 * Pages that one-time links open: for the first administrator, an invitation, and a new passphrase. The link's token is in the URL's
 * fragment.
 */
import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import { resolveServiceUrl } from "../../service-address.js";
import type { ApiError } from "../shared/api.js";
import { requestAuthRoute, type SignInResult } from "./auth-api.js";
import { isPassphraseLongEnough, NewPassphrase } from "./new-passphrase.js";
import { registerPasskey, supportsPasskeys } from "./passkeys.js";
import { FormError, SignInField, useSignInAttempt } from "./sign-in-forms.js";

export type LinkPageName = "setup" | "invitation" | "reset";

const LINK_EXPIRED_TEXT = "This link was used, revoked or is too old. Ask for a new one.";
const getLinkErrorText = ({ status, message }: ApiError): string =>
  status === "LINK_EXPIRED" ? LINK_EXPIRED_TEXT : message;
const SIGN_IN_FIRST_TEXT =
  "This address has an account. Sign in to it in another tab of this browser, then accept here.";
const getInvitationErrorText = (error: ApiError): string =>
  error.status === "UNAUTHORIZED" ? SIGN_IN_FIRST_TEXT : getLinkErrorText(error);

/** Returns the link's token. Removes the token from the URL, so that the browser's history and the address bar do not show the token. */
function readTokenFromUrl(): string {
  const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
  history.replaceState(null, "", location.pathname);
  return token;
}

let cachedToken: string | null = null;
/**
 * Returns the token of the one-time link. A variable caches the token: React may render twice, but the URL contains the
 * token only at first.
 */
const getLinkToken = (): string => (cachedToken ??= readTokenFromUrl());

const openStudio = () => location.replace(resolveServiceUrl("/studio"));

function LinkPageFrame({ title, children }: { title: string; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Studio`;
  }, [title]);
  return (
    <main className="sign-in">
      <section className="sign-in-forms">
        <h1>
          <span className="mark" aria-hidden="true" /> App Actions <em>Studio</em>
        </h1>
        <h2>{title}</h2>
        {children}
      </section>
    </main>
  );
}

/** Page for a session that has no rights until the person adds a passkey or a passphrase. */
export function FinishAccountPage() {
  const [passphrase, setPassphrase] = useState("");
  const { busy, fault, attempt } = useSignInAttempt(getLinkErrorText);
  const finishWithPasskey = () =>
    void attempt(async () => {
      await registerPasskey("First passkey");
      openStudio();
    });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt(async () => {
      await requestAuthRoute("PUT", "account", { passphrase });
      openStudio();
    });
  };
  return (
    <LinkPageFrame title="Choose how you sign in">
      <form onSubmit={submit} aria-busy={busy}>
        {supportsPasskeys() && (
          <button type="button" className="primary" disabled={busy} onClick={finishWithPasskey}>
            Add a passkey
          </button>
        )}
        <NewPassphrase value={passphrase} onChange={setPassphrase} fault={fault} />
        <FormError text={fault} />
        <button type="submit" disabled={busy || !isPassphraseLongEnough(passphrase)}>
          Use this passphrase
        </button>
      </form>
    </LinkPageFrame>
  );
}

interface NewAccountPageProps {
  title: string;
  introText: string;
  /** Path below `/v1/auth` of the route that exchanges the token of the one-time link for a session. */
  route: "setup" | "invitations/accept";
  hasEmailField: boolean;
}

const EMPTY_PERSON = { email: "", firstName: "", lastName: "" };

function NewAccountPage({ title, introText, route, hasEmailField }: NewAccountPageProps) {
  const [token] = useState(getLinkToken);
  const [person, setPerson] = useState(EMPTY_PERSON);
  const [passphrase, setPassphrase] = useState("");
  const [isAccountCreated, setAccountCreated] = useState(false);
  const isInvitation = route === "invitations/accept";
  const { busy, fault, attempt } = useSignInAttempt(
    isInvitation ? getInvitationErrorText : getLinkErrorText,
    token === "" ? LINK_EXPIRED_TEXT : null,
  );
  /**
   * Accepts the invitation with the account that is signed in now. The service rejects the request if the e-mail
   * address of the account is not the invited address.
   */
  const acceptWithAccount = () =>
    void attempt(async () => {
      await requestAuthRoute("POST", route, { token });
      openStudio();
    });
  const createAccount = async (secret: string | null) => {
    const { email, ...names } = person;
    const body = {
      token,
      ...names,
      ...(hasEmailField && { email: email.trim() }),
      ...(secret !== null && { passphrase: secret }),
    };
    await requestAuthRoute<SignInResult>("POST", route, body);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt(async () => {
      await createAccount(passphrase);
      openStudio();
    });
  };
  const finishWithPasskey = () =>
    void attempt(async () => {
      await createAccount(null);
      // The one-time link is used up now. So this page shows FinishAccountPage if no passkey was registered, for example
      // because the person closed the browser's dialog.
      await registerPasskey("First passkey").then(openStudio, () => setAccountCreated(true));
    });
  if (isAccountCreated) return <FinishAccountPage />;
  const fieldProps = (name: keyof typeof EMPTY_PERSON) => ({
    name,
    value: person[name],
    // Shows the service's error message at this field if the message begins with the field's name.
    fault: fault?.startsWith(name) ? fault : null,
    onChange: (value: string) => setPerson({ ...person, [name]: value }),
  });
  const isComplete =
    person.firstName.trim() !== "" && person.lastName.trim() !== "" && (!hasEmailField || person.email.trim() !== "");
  return (
    <LinkPageFrame title={title}>
      <form onSubmit={submit} aria-busy={busy}>
        <p>{introText}</p>
        <SignInField label="First name" type="text" autoComplete="given-name" {...fieldProps("firstName")} autoFocus />
        <SignInField label="Last name" type="text" autoComplete="family-name" {...fieldProps("lastName")} />
        {hasEmailField && (
          <SignInField label="E-mail address" type="email" autoComplete="username" {...fieldProps("email")} />
        )}
        <NewPassphrase value={passphrase} onChange={setPassphrase} fault={fault} />
        <FormError text={fault} />
        <button type="submit" className="primary" disabled={busy || !isComplete || !isPassphraseLongEnough(passphrase)}>
          Create the account
        </button>
        {supportsPasskeys() && (
          <button type="button" disabled={busy || !isComplete} onClick={finishWithPasskey}>
            Use a passkey instead of a passphrase
          </button>
        )}
        {isInvitation && (
          <button type="button" className="link" disabled={busy} onClick={acceptWithAccount}>
            I have an account: accept with it
          </button>
        )}
      </form>
    </LinkPageFrame>
  );
}

function ResetPassphrasePage() {
  const [token] = useState(getLinkToken);
  const [passphrase, setPassphrase] = useState("");
  const [isDone, setDone] = useState(false);
  const { busy, fault, attempt } = useSignInAttempt(getLinkErrorText, token === "" ? LINK_EXPIRED_TEXT : null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt(async () => {
      await requestAuthRoute("POST", "reset/confirm", { token, passphrase });
      setDone(true);
    });
  };
  return (
    <LinkPageFrame title="Choose a new passphrase">
      {isDone ? (
        <>
          <p role="status">Your passphrase is changed. All your sessions have ended.</p>
          <a className="button" href={resolveServiceUrl("/studio").href}>
            Go to the sign-in
          </a>
        </>
      ) : (
        <form onSubmit={submit} aria-busy={busy}>
          <NewPassphrase value={passphrase} onChange={setPassphrase} fault={fault} />
          <FormError text={fault} />
          <button type="submit" className="primary" disabled={busy || !isPassphraseLongEnough(passphrase)}>
            Change the passphrase
          </button>
        </form>
      )}
    </LinkPageFrame>
  );
}

/** Returns the name of the one-time link page at a URL path; null if the path belongs to another page of Studio. */
export function parseLinkPage(path: string): LinkPageName | null {
  const [name] = /(?:setup|invitation|reset)\/?$/.exec(path.slice(path.lastIndexOf("/studio/") + 8)) ?? [];
  const pageName = name?.replace("/", "");
  return path.includes("/studio/") && pageName ? (pageName as LinkPageName) : null;
}

export function LinkPage({ name }: { name: LinkPageName }) {
  if (name === "reset") return <ResetPassphrasePage />;
  if (name === "setup") {
    return (
      <NewAccountPage
        title="Create the first administrator"
        introText="You will have all rights on this service."
        route="setup"
        hasEmailField
      />
    );
  }
  return (
    <NewAccountPage
      title="Accept the invitation"
      introText="Create your account."
      route="invitations/accept"
      hasEmailField={false}
    />
  );
}
