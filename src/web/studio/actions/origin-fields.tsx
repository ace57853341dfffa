/**
 * Form field for the origins that an action may call, with the secret bindings that apply to each origin. The service validates the
 * origins.
 */
import X from "lucide-react/icons/x";
import { type KeyboardEvent, useState } from "react";
import { ReadBindingKeys, type ReadBindingKeysQuery } from "../documents.js";
import { Field } from "../shared/field.js";
import { queryOf, useResource } from "../shared/use-resource.js";
import { hrefOf } from "../shell/place.js";
import { mayEdit } from "../shell/rights.js";
import { useRole } from "../shell/role.js";
import { AllowInDraftButton } from "./allow-origin.js";
import type { FieldsProps } from "./fields-props.js";
import { findRequestedOrigins } from "./requested-origins.js";

type SecretBindings = ReadBindingKeysQuery["connections"]["bindings"];

/** Reads the app's secret bindings. Returns an empty list if no origin is listed, and for readers, who may not see bindings. */
function useBindings(appId: number, isNeeded: boolean): SecretBindings {
  const isEditor = mayEdit(useRole());
  const { value } = useResource({ ...queryOf(ReadBindingKeys, { appId }), enabled: isNeeded && isEditor });
  return value?.connections.bindings ?? [];
}

/**
 * Form field for the allowed origins. It is shown for server actions. It is also shown for other actions with origins, because the service
 * rejects these until they are removed.
 */
export function OriginFields({ appId, draft, fault, change }: FieldsProps) {
  const { environment, integrationOrigins, code } = draft;
  const [text, setText] = useState("");
  const bindings = useBindings(appId, integrationOrigins.length > 0);
  if (environment !== "server" && integrationOrigins.length === 0) return null;
  const setOrigins = (all: string[]) => change({ integrationOrigins: all });

  const addOrigin = (origin: string) => {
    setText("");
    if (origin !== "" && !integrationOrigins.includes(origin)) setOrigins([...integrationOrigins, origin]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) addOrigin(text.trim());
  };

  return (
    <Field
      name="integrationOrigins"
      label="Allowed origins"
      fault={fault}
      hint="Hosts that Svc.App.V3.Actions.request() may call. Press Enter to add one."
    >
      {(tied) => (
        <div className="rows">
          {integrationOrigins.map((origin) => (
            <div key={origin} className="row dependency">
              <code className="grow">{origin}</code>
              {bindings
                .filter((binding) => binding.origin === origin)
                .map(({ key, sealed }) => (
                  <a
                    key={key}
                    className="chip"
                    title={`Code sends it by auth: "${key}"`}
                    href={hrefOf({ appId, view: "app", item: "connections" })}
                  >
                    {key}
                    {sealed && ", sealed"}
                  </a>
                ))}
              <button
                type="button"
                className="quiet icon"
                aria-label={`Remove ${origin}`}
                onClick={() => setOrigins(integrationOrigins.filter((other) => other !== origin))}
              >
                <X size={14} aria-hidden />
              </button>
            </div>
          ))}
          <input
            {...tied}
            placeholder="https://api.example.com"
            spellCheck={false}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={onKeyDown}
            onBlur={() => addOrigin(text.trim())}
          />
          {environment === "server" &&
            findRequestedOrigins(code)
              .filter((origin) => !integrationOrigins.includes(origin))
              .map((origin) => (
                <AllowInDraftButton key={origin} origin={origin} origins={integrationOrigins} allowOrigin={addOrigin} />
              ))}
        </div>
      )}
    </Field>
  );
}
