/** Page that lists, creates and revokes the tokens of the app. It shows the secret of a new token only once. */
import { type FormEvent, useState } from "react";
import { CreateToken, type CreateTokenInput, ListTokens, RevokeToken } from "../documents.js";
import { usePersonNames } from "../people/people.js";
import { formatAge, formatExactTime } from "../shared/format.js";
import type { TokenKind, TokenScope } from "../shared/model.js";
import { NewSecretNotice } from "../shared/secret-once.js";
import { useNewResourceForm } from "../shared/use-new-values.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import type { PageProps } from "../shell/page-props.js";

const TOKEN_KIND_LABELS: Record<TokenKind, string> = {
  api: "API: for programs",
  viewer: "Viewer: for pages under test, runs drafts",
  live: "Live: for the app's pages, runs live versions",
};

const SCOPE_TEXTS: Readonly<Record<TokenScope, string>> = {
  read: "actions with code, runs, logs, data, public settings",
  run: "run live versions",
  settings: "read and write settings",
  data: "entries, media, messages, events",
  manage: "change actions and definitions, run drafts",
  publish: "publish actions and the app",
};

const DAY_MS = 86_400_000;
/** Days that a person can choose as lifetime of a new token; 0 means that the token never expires. */
const EXPIRY_DAYS = [30, 90, 365, 0];

/** The page marks tokens that expire within this number of days. */
const EXPIRY_WARNING_DAYS = 7;
const expiresSoon = (expiresAt: string | null): boolean =>
  expiresAt !== null && Date.parse(expiresAt) - Date.now() < EXPIRY_WARNING_DAYS * DAY_MS;

interface NewTokenFormProps {
  isBusy: boolean;
  createToken: (data: CreateTokenInput) => Promise<boolean>;
}

function ScopeChoice({
  chosenScopes,
  onChoose,
}: {
  chosenScopes: readonly TokenScope[];
  onChoose: (scopes: TokenScope[]) => void;
}) {
  return (
    <fieldset className="scopes">
      <legend>Scopes</legend>
      <p className="hint">
        Without a scope, the token can run live versions, read runs and logs, store log events, send messages, and read
        and change settings, data sources and media. It cannot read, change or publish actions.
      </p>
      {(Object.keys(SCOPE_TEXTS) as TokenScope[]).map((scope) => (
        <label key={scope} className="check">
          <input
            type="checkbox"
            checked={chosenScopes.includes(scope)}
            onChange={({ target }) =>
              onChoose(target.checked ? [...chosenScopes, scope] : chosenScopes.filter((other) => other !== scope))
            }
          />
          <b className="scope-name">{scope}</b> <span className="hint">{SCOPE_TEXTS[scope]}</span>
        </label>
      ))}
    </fieldset>
  );
}

function NewTokenForm({ isBusy, createToken }: NewTokenFormProps) {
  const [kind, setKind] = useState<TokenKind>("api");
  const { values: name, setValues: setName, clearSaved } = useNewResourceForm("");
  const [scopes, setScopes] = useState<TokenScope[]>([]);
  const [days, setDays] = useState(90);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const expiresAt = days === 0 ? null : new Date(Date.now() + days * DAY_MS).toISOString();
    const chosenScopes = kind === "api" && scopes.length > 0 ? scopes : null;
    if (await createToken({ kind, name: name.trim() || null, scopes: chosenScopes, expiresAt })) clearSaved(name);
  };
  return (
    <form className="token-form" onSubmit={(event) => void submit(event)}>
      <div className="row labelled">
        <label>
          <span>Kind</span>
          <select value={kind} onChange={(event) => setKind(event.target.value as TokenKind)}>
            {(Object.keys(TOKEN_KIND_LABELS) as TokenKind[]).map((tokenKind) => (
              <option key={tokenKind} value={tokenKind}>
                {TOKEN_KIND_LABELS[tokenKind]}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Name</span>
          <input
            aria-label="Name of the new token"
            placeholder="such as: CI of the shop"
            autoComplete="off"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <label>
          <span>Expires</span>
          <select value={days} onChange={(event) => setDays(Number(event.target.value))}>
            {EXPIRY_DAYS.map((expiryDays) => (
              <option key={expiryDays} value={expiryDays}>
                {expiryDays === 0 ? "Never" : `In ${expiryDays} days`}
              </option>
            ))}
          </select>
        </label>
      </div>
      {kind === "api" && <ScopeChoice chosenScopes={scopes} onChoose={setScopes} />}
      <button type="submit" className="primary" disabled={isBusy}>
        Create token
      </button>
    </form>
  );
}

export function TokensPage({ api, appId, confirm }: PageProps) {
  const { value, fault, isBusy, applyChange } = useResource(createQueryOptions(ListTokens, { appId }));
  const [secret, setSecret] = useState<{ label: string; secret: string } | null>(null);
  const getPersonName = usePersonNames(appId);

  const createToken = async (data: CreateTokenInput) => {
    const response = await applyChange(() => api.request(CreateToken, { appId, data }));
    if (response)
      setSecret({ label: data.name ? `Token “${data.name}”` : "New token", secret: response.created.token });
    return response !== null;
  };
  const revoke = async (id: number, name: string | null) => {
    const text = "Requests with this token are rejected from now on. You cannot restore it.";
    const isConfirmed = await confirm({
      title: `Revoke ${name ?? `token ${id}`}?`,
      explanation: text,
      confirmLabel: "Revoke",
      isDangerous: true,
    });
    if (isConfirmed) await applyChange(() => api.request(RevokeToken, { appId, id }));
  };
  return (
    <>
      <NewTokenForm isBusy={isBusy} createToken={createToken} />
      <p className="fault" role="alert">
        {fault}
      </p>
      {secret && <NewSecretNotice {...secret} onClose={() => setSecret(null)} />}
      {value?.tokens.length === 0 && <p className="hint">No tokens yet.</p>}
      <ul className="records tokens">
        {value?.tokens.map(({ id, kind, name, userId, scopes, createdAt, expiresAt, lastUsedAt, lastUsedAddress }) => (
          <li key={id}>
            <span className="chip">{kind}</span>
            <b>{name ?? `token ${id}`}</b>
            <button
              type="button"
              className="quiet danger-text"
              aria-label={`Revoke ${name ?? `token ${id}`}`}
              onClick={() => void revoke(id, name)}
            >
              Revoke
            </button>
            <span className="token-facts">
              {userId !== null && <span className="hint">used by {getPersonName(userId)}</span>}
              <span className="hint" title={formatExactTime(createdAt)}>
                created {formatAge(createdAt)}
              </span>
              {scopes?.map((scope) => (
                <span key={scope} className="chip">
                  {scope}
                </span>
              ))}
              <span className="hint" title={lastUsedAt ? formatExactTime(lastUsedAt) : undefined}>
                {lastUsedAt
                  ? `used ${formatAge(lastUsedAt)} from ${lastUsedAddress ?? "an unknown address"}`
                  : "never used"}
              </span>
              {expiresAt && (
                <span className={expiresSoon(expiresAt) ? "chip behind" : "hint"}>
                  {expiresSoon(expiresAt) ? "expires soon: " : "expires "}
                  {formatExactTime(expiresAt)}
                </span>
              )}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
