/** The app's connections: which settings are sent to which origins, and which actions may send requests where. Values are never shown. */
import { type FormEvent, useCallback, useState } from "react";
import { ReadConnections, SetSecretBindings } from "../documents.js";
import type { SecretBinding } from "../shared/model.js";
import { useLoaded } from "../shared/use-loaded.js";
import type { PageProps } from "../shell/page-props.js";
import { hrefOf } from "../shell/place.js";

const PLACES: Record<string, string> = {
  header: "as a header",
  query: "as a query parameter",
  basic: "as basic credentials",
  "aws-sigv4": "by AWS Signature Version 4",
};

const EMPTY = { key: "", origin: "", in: "header", name: "", format: "", value: "", sealed: false };
const TEXTS = [
  ["key", "Key of the setting", "__stripe"],
  ["origin", "Origin", "https://api.stripe.com"],
  ["name", "Name of the header or parameter", "Authorization"],
  ["format", "Format", "Bearer {value}"],
] as const;

interface NewBindingProps {
  busy: boolean;
  add: (binding: typeof EMPTY) => Promise<boolean>;
}

function NewBinding({ busy, add }: NewBindingProps) {
  const [binding, setBinding] = useState(EMPTY);
  const set = (part: Partial<typeof EMPTY>) => setBinding({ ...binding, ...part });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (await add(binding)) setBinding(EMPTY);
  };
  return (
    <form className="row" onSubmit={(event) => void submit(event)}>
      {TEXTS.map(([field, label, placeholder]) => (
        <input
          key={field}
          aria-label={label}
          placeholder={placeholder}
          autoComplete="off"
          spellCheck={false}
          value={binding[field]}
          onChange={(event) => set({ [field]: event.target.value })}
        />
      ))}
      <select
        aria-label="Place in the request"
        value={binding.in}
        onChange={(event) => set({ in: event.target.value })}
      >
        {Object.entries(PLACES).map(([place, label]) => (
          <option key={place} value={place}>
            {label}
          </option>
        ))}
      </select>
      <input
        aria-label="New value"
        type="password"
        placeholder="new value"
        autoComplete="off"
        value={binding.value}
        onChange={(event) => set({ value: event.target.value })}
      />
      <label>
        <input type="checkbox" checked={binding.sealed} onChange={(event) => set({ sealed: event.target.checked })} />{" "}
        sealed
      </label>
      <button type="submit" className="primary" disabled={busy}>
        Add the binding
      </button>
    </form>
  );
}

/** As the service takes it: what is empty is left out. */
const inputOf = ({ name, format, value, ...binding }: typeof EMPTY) => ({
  ...binding,
  ...(name.trim() !== "" && { name: name.trim() }),
  ...(format.trim() !== "" && { format: format.trim() }),
  ...(value !== "" && { value }),
});

export function ConnectionsPage({ api, appId, ask }: PageProps) {
  const read = useCallback(() => api.ask(ReadConnections, { appId }), [api, appId]);
  const { value, fault, busy, change } = useLoaded(api, read);
  const bindings = value?.connections.bindings ?? [];
  const listed = (value?.listed.actions ?? []).filter(({ integrationOrigins }) => integrationOrigins.length > 0);

  const save = async (next: object[]) => {
    const ifUpdatedAt = value!.connections.updatedAt;
    return (await change(() => api.ask(SetSecretBindings, { appId, bindings: next, ifUpdatedAt }))) !== null;
  };
  const remove = async (gone: SecretBinding) => {
    const text = gone.sealed
      ? "Requests with this key fail from this moment on. The key stays sealed: code does not receive it."
      : "Requests with this key fail from this moment on.";
    const title = `Remove ${gone.key} for ${gone.origin}?`;
    if (await ask({ title, text, yes: "Remove", danger: true })) await save(bindings.filter((one) => one !== gone));
  };
  return (
    <>
      <NewBinding busy={busy || value === null} add={(binding) => save([...bindings, inputOf(binding)])} />
      <p className="fault" role="alert">
        {fault}
      </p>
      {value && bindings.length === 0 && <p className="hint">No binding yet: code has no credential to name.</p>}
      <ul className="records">
        {bindings.map((binding) => (
          <li key={`${binding.key} ${binding.origin}`}>
            <b>{binding.key}</b>
            <code className="grow">{binding.origin}</code>
            <span className="hint">{PLACES[binding.in] ?? "as an OAuth 2 token"}</span>
            {binding.sealed && <span className="chip">sealed</span>}
            <button
              type="button"
              className="quiet danger-text"
              aria-label={`Remove ${binding.key} for ${binding.origin}`}
              onClick={() => void remove(binding)}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      <h3>Allowed origins of actions</h3>
      {value && listed.length === 0 && <p className="hint">No action may send requests to another service.</p>}
      <ul className="records">
        {listed.map(({ id, name, integrationOrigins }) => (
          <li key={id}>
            <a href={hrefOf({ appId, view: "actions", item: String(id) })}>{name}</a>
            <span className="grow">{integrationOrigins.join(", ")}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
