/** Page of the signed-in person's own account: name, passphrase, passkeys, OpenID providers and sessions. */
import { type FormEvent, useState } from "react";
import { resolveServiceUrl } from "../../service-address.js";
import { ChangedElsewhereNotice } from "../shared/changed-elsewhere.js";
import { formatAge } from "../shared/format.js";
import { useFieldDraft } from "../shared/use-field-draft.js";
import { useNewResourceForm } from "../shared/use-new-values.js";
import { type Resource, useResource } from "../shared/use-resource.js";
import type { PageProps } from "../shell/page-props.js";
import {
  type Identity,
  type Passkey,
  type Person,
  type PersonSession,
  type Provider,
  requestAuthRoute,
} from "./auth-api.js";
import { isPassphraseLongEnough } from "./new-passphrase.js";
import { registerPasskey, supportsPasskeys } from "./passkeys.js";

interface Account {
  user: Person;
  /** Sign-in data of the account. Null if the browser is signed in with a token, because a token cannot manage an account. */
  signInData: { sessions: PersonSession[]; passkeys: Passkey[]; identities: Identity[]; providers: Provider[] } | null;
}

/** Reads the account's data. @param isToken true if the browser is signed in with a token: `signInData` is then null */
async function readAccount(isToken: boolean): Promise<Account> {
  const { user } = await requestAuthRoute<{ user: Person }>("GET", "session");
  if (isToken) return { user, signInData: null };
  const [sessions, passkeys, identities, providers] = await Promise.all([
    requestAuthRoute<{ sessions: PersonSession[] }>("GET", "sessions"),
    requestAuthRoute<{ passkeys: Passkey[] }>("GET", "passkeys"),
    requestAuthRoute<{ identities: Identity[] }>("GET", "identities"),
    requestAuthRoute<{ providers: Provider[] }>("GET", "providers"),
  ]);
  return { user, signInData: { ...sessions, ...passkeys, ...identities, ...providers } };
}

type ApplyAccountChange = Resource<Account>["applyChange"];
interface AccountSectionProps {
  account: Account & { signInData: NonNullable<Account["signInData"]> };
  applyChange: ApplyAccountChange;
  isBusy: boolean;
}

function NameSection({ account: { user }, applyChange, isBusy }: AccountSectionProps) {
  const field = useFieldDraft({ firstName: user.firstName, lastName: user.lastName });
  const { draft: names, setDraft: setNames } = field;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if ((await applyChange(() => requestAuthRoute("PUT", "account", names))) !== null) field.markSaved(names);
  };
  return (
    <form className="row labelled" onSubmit={(event) => void submit(event)}>
      <p className="hint account-email">{user.email}</p>
      {(["firstName", "lastName"] as const).map((name) => (
        <label key={name}>
          <span>{name === "firstName" ? "First name" : "Last name"}</span>
          <input value={names[name]} onChange={(event) => setNames({ ...names, [name]: event.target.value })} />
        </label>
      ))}
      <button type="submit" disabled={isBusy || !field.isDirty || field.isChangedElsewhere}>
        Save the name
      </button>
      <ChangedElsewhereNotice label="Your name" field={field} />
    </form>
  );
}

function PassphraseSection({ applyChange, isBusy }: AccountSectionProps) {
  const { values: currentPassphrase, setValues: setCurrent, clearSaved: clearCurrent } = useNewResourceForm("");
  const { values: passphrase, setValues: setPassphrase, clearSaved: clearPassphrase } = useNewResourceForm("");
  const [isChanged, setChanged] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const body = { passphrase, ...(currentPassphrase !== "" && { currentPassphrase }) };
    const response = await applyChange(() => requestAuthRoute("PUT", "account", body));
    setChanged(response !== null);
    if (response === null) return;
    clearCurrent(currentPassphrase);
    clearPassphrase(passphrase);
  };
  return (
    <form className="row labelled" onSubmit={(event) => void submit(event)}>
      <label>
        <span>Current passphrase</span>
        <input
          type="password"
          autoComplete="current-password"
          placeholder="empty if you have none"
          value={currentPassphrase}
          onChange={(event) => setCurrent(event.target.value)}
        />
      </label>
      <label>
        <span>New passphrase</span>
        <input
          type="password"
          autoComplete="new-password"
          placeholder="at least 12 characters"
          value={passphrase}
          onChange={(event) => setPassphrase(event.target.value)}
        />
      </label>
      <button type="submit" disabled={isBusy || !isPassphraseLongEnough(passphrase)}>
        Change the passphrase
      </button>
      <span className="hint" role="status">
        {isChanged && "Changed. Your other sessions have ended."}
      </span>
    </form>
  );
}

function PasskeysSection({
  account: { signInData },
  applyChange,
  isBusy,
  confirm,
}: AccountSectionProps & Pick<PageProps, "confirm">) {
  const { values: name, setValues: setName, clearSaved } = useNewResourceForm("");
  const add = async (event: FormEvent) => {
    event.preventDefault();
    if (await applyChange(() => registerPasskey(name.trim() || "Passkey"))) clearSaved(name);
  };
  const removePasskey = async (passkey: Passkey) => {
    const text = "You can no longer sign in with this passkey. Delete it on your device too.";
    if (
      !(await confirm({
        title: `Remove ${passkey.name}?`,
        explanation: text,
        confirmLabel: "Remove",
        isDangerous: true,
      }))
    )
      return;
    await applyChange(() => requestAuthRoute("DELETE", `passkeys/${passkey.id}`));
  };
  return (
    <>
      {supportsPasskeys() ? (
        <form className="row" onSubmit={(event) => void add(event)}>
          <input
            aria-label="Name of the passkey"
            placeholder="for example: laptop"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
          <button type="submit" disabled={isBusy}>
            Add a passkey
          </button>
        </form>
      ) : (
        <p className="hint">Passkeys need a host name over https, or http://localhost.</p>
      )}
      <ul className="records">
        {signInData.passkeys.map((passkey) => (
          <li key={passkey.id}>
            <b className="grow">{passkey.name}</b>
            <span className="hint">
              {passkey.lastUsedAt ? `used ${formatAge(passkey.lastUsedAt)}` : "not used yet"}
            </span>
            <button
              type="button"
              className="quiet danger-text"
              aria-label={`Remove ${passkey.name}`}
              onClick={() => void removePasskey(passkey)}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function IdentitiesSection({ account: { signInData }, applyChange }: AccountSectionProps) {
  const getProviderName = (id: string) => signInData.providers.find((provider) => provider.id === id)?.name ?? id;
  const linkIdentity = (id: string) =>
    void applyChange(async () => {
      const returnPath = location.pathname + location.hash;
      const { url } = await requestAuthRoute<{ url: string }>("POST", `oidc/${encodeURIComponent(id)}/link`, {
        next: returnPath,
      });
      location.assign(url);
    });
  return (
    <>
      <p className="row">
        {signInData.providers.map(({ id, name }) => (
          <button key={id} type="button" onClick={() => linkIdentity(id)}>
            Link {name}
          </button>
        ))}
      </p>
      <ul className="records">
        {signInData.identities.map(({ id, provider, issuer }) => (
          <li key={id}>
            <b>{getProviderName(provider)}</b>
            <span className="hint grow">{issuer}</span>
            <button
              type="button"
              className="quiet danger-text"
              aria-label={`Unlink ${getProviderName(provider)}`}
              onClick={() => void applyChange(() => requestAuthRoute("DELETE", `identities/${id}`))}
            >
              Unlink
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function SessionsSection({ account: { signInData }, applyChange, isBusy }: AccountSectionProps) {
  return (
    <>
      <ul className="records">
        {signInData.sessions.map(({ id, device, address, lastUsedAt, isCurrent }) => (
          <li key={id}>
            <b>{device}</b>
            <span className="hint grow">{address}</span>
            <span className="hint">{isCurrent ? "this session" : `used ${formatAge(lastUsedAt)}`}</span>
            {!isCurrent && (
              <button
                type="button"
                className="quiet danger-text"
                aria-label={`End the session of ${device}`}
                onClick={() => void applyChange(() => requestAuthRoute("DELETE", `sessions/${id}`))}
              >
                End
              </button>
            )}
          </li>
        ))}
      </ul>
      {signInData.sessions.length > 1 && (
        <p>
          <button
            type="button"
            disabled={isBusy}
            onClick={() => void applyChange(() => requestAuthRoute("DELETE", "sessions"))}
          >
            End all other sessions
          </button>
        </p>
      )}
    </>
  );
}

export function AccountPage({ confirm, email }: Pick<PageProps, "confirm" | "email">) {
  const query = { queryKey: ["account"], queryFn: () => readAccount(email === "") };
  const { value, fault, isBusy, applyChange } = useResource(query);
  const renderSection = (id: string, title: string, content: (props: AccountSectionProps) => React.ReactNode) =>
    value?.signInData && (
      <section aria-labelledby={id}>
        <h3 id={id}>{title}</h3>
        {content({ account: { ...value, signInData: value.signInData }, applyChange, isBusy })}
      </section>
    );
  return (
    <div className="app-page">
      <section className="app-part account" aria-labelledby="account">
        <h2 id="account" className="unseen">
          Account
        </h2>
        <p className="fault" role="alert">
          {fault}
        </p>
        {value && !value.signInData && (
          <p>
            You are signed in with a token of {value.user.firstName} {value.user.lastName}. Sign in with an account to
            manage it.
          </p>
        )}
        {renderSection("account-name", "Name", (props) => (
          <NameSection {...props} />
        ))}
        {renderSection("account-passphrase", "Passphrase", (props) => (
          <PassphraseSection {...props} />
        ))}
        {renderSection("account-passkeys", "Passkeys", (props) => (
          <PasskeysSection {...props} confirm={confirm} />
        ))}
        {value?.signInData &&
          value.signInData.providers.length > 0 &&
          renderSection("account-providers", "OpenID providers", (props) => <IdentitiesSection {...props} />)}
        {renderSection("account-programs", "Programs", () => (
          <p>
            <a href={resolveServiceUrl("/oauth/programs").href}>Programs with access to your apps</a>
          </p>
        ))}
        {renderSection("account-sessions", "Sessions", (props) => (
          <SessionsSection {...props} />
        ))}
      </section>
    </div>
  );
}
