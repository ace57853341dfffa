/**
 * Pages that one-time links open: for the first administrator, an invitation, and a new passphrase. The link's token is in the URL's
 * fragment.
 */
import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import { serviceAddress } from "../../service-address.js";
import type { ApiError } from "../shared/api.js";
import { auth, type SignedIn } from "./auth-api.js";
import { isLongEnough, NewPassphrase } from "./new-passphrase.js";
import { hasPasskeys, registerPasskey } from "./passkeys.js";
import { Entry, Fault, useAttempt } from "./sign-in-forms.js";

export type LinkPageName = "setup" | "invitation" | "reset";

const EXPIRED = "This link was used, revoked or is too old. Ask for a new one.";
const words = ({ status, message }: ApiError): string => (status === "LINK_EXPIRED" ? EXPIRED : message);
const SIGN_IN_FIRST = "This address has an account. Sign in to it in another tab of this browser, then accept here.";
const invitationWords = (error: ApiError): string => (error.status === "UNAUTHORIZED" ? SIGN_IN_FIRST : words(error));

/** Returns the token and removes it from the URL, so that it stays neither in the browser's history nor on the screen. */
function takeToken(): string {
  const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
  history.replaceState(null, "", location.pathname);
  return token;
}

let taken: string | null = null;
/** Returns the link's token. It is cached, because React may render twice but the URL contains the token only once. */
const linkToken = (): string => (taken ??= takeToken());

const toStudio = () => location.replace(serviceAddress("/studio"));

function Frame({ title, children }: { title: string; children: ReactNode }) {
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
export function FinishAccount() {
  const [passphrase, setPassphrase] = useState("");
  const { busy, fault, attempt } = useAttempt(words);
  const byPasskey = () =>
    void attempt(async () => {
      await registerPasskey("First passkey");
      toStudio();
    });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt(async () => {
      await auth("PUT", "account", { passphrase });
      toStudio();
    });
  };
  return (
    <Frame title="Choose how you sign in">
      <form onSubmit={submit} aria-busy={busy}>
        {hasPasskeys() && (
          <button type="button" className="primary" disabled={busy} onClick={byPasskey}>
            Add a passkey
          </button>
        )}
        <NewPassphrase value={passphrase} onChange={setPassphrase} fault={fault} />
        <Fault text={fault} />
        <button type="submit" disabled={busy || !isLongEnough(passphrase)}>
          Use this passphrase
        </button>
      </form>
    </Frame>
  );
}

interface NewAccountProps {
  title: string;
  text: string;
  /** Path below `/v1/auth` that exchanges the token for a session. */
  route: "setup" | "invitations/accept";
  asksEmail: boolean;
}

const NOBODY = { email: "", firstName: "", lastName: "" };

function NewAccount({ title, text, route, asksEmail }: NewAccountProps) {
  const [token] = useState(linkToken);
  const [person, setPerson] = useState(NOBODY);
  const [passphrase, setPassphrase] = useState("");
  const [isMade, setMade] = useState(false);
  const isInvitation = route === "invitations/accept";
  const { busy, fault, attempt } = useAttempt(isInvitation ? invitationWords : words, token === "" ? EXPIRED : null);
  /** Accepts the invitation for the account that is signed in, if it has the invited e-mail address. */
  const acceptWithAccount = () =>
    void attempt(async () => {
      await auth("POST", route, { token });
      toStudio();
    });
  const make = async (secret: string | null) => {
    const { email, ...names } = person;
    const body = {
      token,
      ...names,
      ...(asksEmail && { email: email.trim() }),
      ...(secret !== null && { passphrase: secret }),
    };
    await auth<SignedIn>("POST", route, body);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt(async () => {
      await make(passphrase);
      toStudio();
    });
  };
  const byPasskey = () =>
    void attempt(async () => {
      await make(null);
      // The link cannot be used again, so closing the dialog leads to the page that finishes the account.
      await registerPasskey("First passkey").then(toStudio, () => setMade(true));
    });
  if (isMade) return <FinishAccount />;
  const field = (name: keyof typeof NOBODY) => ({
    name,
    value: person[name],
    // The service's message begins with the name of the wrong field.
    fault: fault?.startsWith(name) ? fault : null,
    onChange: (value: string) => setPerson({ ...person, [name]: value }),
  });
  const isComplete =
    person.firstName.trim() !== "" && person.lastName.trim() !== "" && (!asksEmail || person.email.trim() !== "");
  return (
    <Frame title={title}>
      <form onSubmit={submit} aria-busy={busy}>
        <p>{text}</p>
        <Entry label="First name" type="text" autoComplete="given-name" {...field("firstName")} autoFocus />
        <Entry label="Last name" type="text" autoComplete="family-name" {...field("lastName")} />
        {asksEmail && <Entry label="E-mail address" type="email" autoComplete="username" {...field("email")} />}
        <NewPassphrase value={passphrase} onChange={setPassphrase} fault={fault} />
        <Fault text={fault} />
        <button type="submit" className="primary" disabled={busy || !isComplete || !isLongEnough(passphrase)}>
          Create the account
        </button>
        {hasPasskeys() && (
          <button type="button" disabled={busy || !isComplete} onClick={byPasskey}>
            Use a passkey instead of a passphrase
          </button>
        )}
        {isInvitation && (
          <button type="button" className="link" disabled={busy} onClick={acceptWithAccount}>
            I have an account: accept with it
          </button>
        )}
      </form>
    </Frame>
  );
}

function ResetPage() {
  const [token] = useState(linkToken);
  const [passphrase, setPassphrase] = useState("");
  const [isDone, setDone] = useState(false);
  const { busy, fault, attempt } = useAttempt(words, token === "" ? EXPIRED : null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt(async () => {
      await auth("POST", "reset/confirm", { token, passphrase });
      setDone(true);
    });
  };
  return (
    <Frame title="Choose a new passphrase">
      {isDone ? (
        <>
          <p role="status">Your passphrase is changed. All your sessions have ended.</p>
          <a className="button" href={serviceAddress("/studio").href}>
            Go to the sign-in
          </a>
        </>
      ) : (
        <form onSubmit={submit} aria-busy={busy}>
          <NewPassphrase value={passphrase} onChange={setPassphrase} fault={fault} />
          <Fault text={fault} />
          <button type="submit" className="primary" disabled={busy || !isLongEnough(passphrase)}>
            Change the passphrase
          </button>
        </form>
      )}
    </Frame>
  );
}

/** Returns the page for a path, or null for the paths of Studio itself. */
export function linkPageOf(path: string): LinkPageName | null {
  const [name] = /(?:setup|invitation|reset)\/?$/.exec(path.slice(path.lastIndexOf("/studio/") + 8)) ?? [];
  const known = name?.replace("/", "");
  return path.includes("/studio/") && known ? (known as LinkPageName) : null;
}

export function LinkPage({ name }: { name: LinkPageName }) {
  if (name === "reset") return <ResetPage />;
  if (name === "setup") {
    return (
      <NewAccount
        title="Create the first administrator"
        text="You will have all rights on this service."
        route="setup"
        asksEmail
      />
    );
  }
  return (
    <NewAccount
      title="Accept the invitation"
      text="Create your account."
      route="invitations/accept"
      asksEmail={false}
    />
  );
}
