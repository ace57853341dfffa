/** The app's tokens: what each is for, making one, ending one. A token's secret is seen once. */
import { type FormEvent, useCallback, useState } from "react";
import { CreateToken, ListTokens, RevokeToken } from "./documents.js";
import { ago, exact } from "./format.js";
import type { TokenKind } from "./model.js";
import type { PageProps } from "./page-props.js";
import { useNames } from "./people.js";
import { SecretOnce } from "./secret-once.js";
import { useLoaded } from "./use-loaded.js";

const KINDS: Record<TokenKind, string> = {
  api: "for programs: everything but authoring",
  viewer: "for pages under test: drafts",
  live: "for the app's pages: live copies",
};

interface NewTokenProps {
  busy: boolean;
  make: (kind: TokenKind, name: string) => Promise<boolean>;
}

function NewToken({ busy, make }: NewTokenProps) {
  const [kind, setKind] = useState<TokenKind>("api");
  const [name, setName] = useState("");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (await make(kind, name.trim())) setName("");
  };
  return (
    <form className="row" onSubmit={(event) => void submit(event)}>
      <label>
        <span className="unseen">Kind</span>
        <select value={kind} onChange={(event) => setKind(event.target.value as TokenKind)}>
          {(Object.keys(KINDS) as TokenKind[]).map((one) => (
            <option key={one} value={one}>
              {one}, {KINDS[one]}
            </option>
          ))}
        </select>
      </label>
      <input
        aria-label="Name of the new token"
        placeholder="what it is for"
        autoComplete="off"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <button type="submit" className="primary" disabled={busy}>
        Make a token
      </button>
    </form>
  );
}

export function TokensPage({ api, appId, ask }: PageProps) {
  const read = useCallback(async () => (await api.ask(ListTokens, { appId })).tokens, [api, appId]);
  const { value: tokens, fault, busy, change } = useLoaded(api, read);
  const [secret, setSecret] = useState<{ label: string; secret: string } | null>(null);
  const nameOf = useNames(api, appId);

  const make = async (kind: TokenKind, name: string) => {
    const answer = await change(() => api.ask(CreateToken, { appId, data: { kind, name: name || null } }));
    if (answer) setSecret({ label: `The ${kind} token ${name}`.trim(), secret: answer.created.token });
    return answer !== null;
  };
  const revoke = async (id: number, name: string | null) => {
    const text = "Whatever uses it is refused from this moment on. It cannot be brought back.";
    const yes = await ask({ title: `Revoke ${name ?? `token ${id}`}?`, text, yes: "Revoke", danger: true });
    if (yes) await change(() => api.ask(RevokeToken, { appId, id }));
  };
  return (
    <>
      <NewToken busy={busy} make={make} />
      <p className="fault" role="alert">
        {fault}
      </p>
      {secret && <SecretOnce {...secret} close={() => setSecret(null)} />}
      {tokens?.length === 0 && <p className="hint">No token yet.</p>}
      <ul className="records">
        {tokens?.map(({ id, kind, name, userId, createdAt, expiresAt }) => (
          <li key={id}>
            <span className="chip">{kind}</span>
            <b className="grow">{name ?? `token ${id}`}</b>
            {userId !== null && <span className="hint">used by {nameOf(userId)}</span>}
            <span className="hint" title={exact(createdAt)}>
              made {ago(createdAt)}
            </span>
            {expiresAt && <span className="hint">ends {exact(expiresAt)}</span>}
            <button
              type="button"
              className="quiet danger-text"
              aria-label={`Revoke ${name ?? `token ${id}`}`}
              onClick={() => void revoke(id, name)}
            >
              Revoke
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
