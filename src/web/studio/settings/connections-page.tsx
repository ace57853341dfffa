/**
 * Page of the app's connections: which settings the service sends to which origins, and which actions may call which origins. It
 * never shows the values of settings.
 */
import { useState } from "react";
import { ListAllowedOrigins, ReadSecretBindings, SetSecretBindings } from "../documents.js";
import type { ApiClient } from "../shared/api.js";
import type { SecretBinding } from "../shared/model.js";
import { useResource } from "../shared/use-resource.js";
import type { PageProps } from "../shell/page-props.js";
import { createHref } from "../shell/studio-route.js";
import { BindingTestForm } from "./binding-test.js";
import { CREDENTIAL_LOCATIONS, NewBindingForm } from "./new-binding.js";

const PAGE_SIZE = 100;
const MAX_PAGES = 20;

interface ActionWithOrigins {
  id: number;
  name: string;
  integrationOrigins: string[];
}

/** Returns the actions with allowed origins. Reads at most MAX_PAGES pages of the app's actions. */
async function readActionsWithOrigins(api: ApiClient, appId: number): Promise<ActionWithOrigins[]> {
  const listedActions: ActionWithOrigins[] = [];
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { listed } = await api.request(ListAllowedOrigins, { appId, offset: page * PAGE_SIZE });
    listedActions.push(...listed.actions.filter(({ integrationOrigins }) => integrationOrigins.length > 0));
    if (!listed.pagination.hasMore) break;
  }
  return listedActions;
}

type ActionLink = Pick<ActionWithOrigins, "id" | "name">;

function ActionLinks({ appId, actions }: { appId: number; actions: readonly ActionLink[] }) {
  return actions.map(({ id, name }, index) => (
    <span key={id}>
      {index > 0 && ", "}
      <a href={createHref({ appId, view: "actions", item: String(id) })}>{name}</a>
    </span>
  ));
}

interface BindingLineProps {
  api: ApiClient;
  appId: number;
  binding: SecretBinding;
  usingActions: readonly ActionLink[];
  removeBinding: () => void;
}

function BindingLine({ api, appId, binding, usingActions, removeBinding }: BindingLineProps) {
  const [isTestShown, setTestShown] = useState(false);
  const { key, origin, name, sealed } = binding;
  return (
    <li>
      <b className="mono">{key}</b>
      <code className="grow">{origin}</code>
      <span className="hint">
        {CREDENTIAL_LOCATIONS[binding.in]}
        {name !== null && ` ${name}`}
      </span>
      {sealed && <span className="chip">sealed</span>}
      <button
        type="button"
        className="small"
        aria-expanded={isTestShown}
        aria-label={`Send a request with ${key} to ${origin}`}
        onClick={() => setTestShown(!isTestShown)}
      >
        Send a request
      </button>
      <button
        type="button"
        className="quiet danger-text small"
        aria-label={`Remove ${key} for ${origin}`}
        onClick={removeBinding}
      >
        Remove
      </button>
      <p className="hint used-by">
        {usingActions.length === 0 ? (
          "No action uses this binding: none lists the origin and names the key in its code."
        ) : (
          <>
            Used by <ActionLinks appId={appId} actions={usingActions} />
          </>
        )}
      </p>
      {isTestShown && <BindingTestForm {...{ api, appId, binding }} />}
    </li>
  );
}

export function ConnectionsPage({ api, appId, confirm }: PageProps) {
  const { value, fault, isBusy, applyChange } = useResource({
    queryKey: ["connections", appId],
    async queryFn() {
      const [{ connections, uses }, listedActions] = await Promise.all([
        api.request(ReadSecretBindings, { appId }),
        readActionsWithOrigins(api, appId),
      ]);
      return { connections, uses, listedActions };
    },
    // Does not read the actions each time the window gets the focus. These reads and the saves of actions have the same rate
    // limit.
    refetchOnWindowFocus: false,
  });
  const bindings = value?.connections.bindings ?? [];

  const saveBindings = async (next: object[]) => {
    const ifUpdatedAt = value!.connections.updatedAt;
    return (await applyChange(() => api.request(SetSecretBindings, { appId, bindings: next, ifUpdatedAt }))) !== null;
  };
  const removeBinding = async (removedBinding: SecretBinding) => {
    const { key, origin, sealed } = removedBinding;
    const failureText = `Requests to ${origin} with this key fail from now on.`;
    const text = sealed ? `${failureText} The key stays sealed: code does not receive it.` : failureText;
    const title = `Remove ${key} for ${origin}?`;
    if (await confirm({ title, explanation: text, confirmLabel: "Remove", isDangerous: true }))
      await saveBindings(bindings.filter((binding) => binding !== removedBinding));
  };
  const findUsingActions = ({ key, origin }: SecretBinding) =>
    value?.uses.find((use) => use.key === key && use.origin === origin)?.actions ?? [];
  return (
    <>
      <h3>Secret bindings</h3>
      {value && bindings.length === 0 && <p className="hint">No secret bindings yet.</p>}
      <ul className="records">
        {bindings.map((binding) => (
          <BindingLine
            key={`${binding.key} ${binding.origin}`}
            {...{ api, appId, binding }}
            usingActions={findUsingActions(binding)}
            removeBinding={() => void removeBinding(binding)}
          />
        ))}
      </ul>
      <NewBindingForm
        isBusy={isBusy || value === null}
        addBinding={(binding) => saveBindings([...bindings, binding])}
      />
      <p className="fault" role="alert">
        {fault}
      </p>
      <h3>Allowed origins of actions</h3>
      {value && value.listedActions.length === 0 && (
        <p className="hint">No action may send requests to another service. Allow origins in an action's settings.</p>
      )}
      <ul className="records">
        {value?.listedActions.map(({ id, name, integrationOrigins }) => (
          <li key={id}>
            <a href={createHref({ appId, view: "actions", item: String(id) })}>{name}</a>
            <span className="grow">{integrationOrigins.join(", ")}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
