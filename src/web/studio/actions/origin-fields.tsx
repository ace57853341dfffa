/**
 * Form field for the origins to which an action may send requests. Beside each origin are its secret bindings: credentials that the service
 * adds to requests to this origin. Only the service validates the origins.
 */
import X from "icon:x";
import { type KeyboardEvent, useState } from "react";
import { ReadSecretBindingKeys, type ReadSecretBindingKeysQuery } from "../documents.js";
import { FormField } from "../shared/field.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { mayEdit } from "../shell/rights.js";
import { useRole } from "../shell/role.js";
import { createHref } from "../shell/studio-route.js";
import { AllowInDraftButton } from "./allow-origin.js";
import type { ActionFieldsProps } from "./fields-props.js";
import { findRequestedOrigins } from "./requested-origins.js";

type SecretBindings = ReadSecretBindingKeysQuery["connections"]["bindings"];

/** Reads the app's secret bindings. Returns an empty list for people who may not edit. @param isNeeded false to read nothing */
function useSecretBindings(appId: number, isNeeded: boolean): SecretBindings {
  const isEditor = mayEdit(useRole());
  const { value } = useResource({
    ...createQueryOptions(ReadSecretBindingKeys, { appId }),
    enabled: isNeeded && isEditor,
  });
  return value?.connections.bindings ?? [];
}

/**
 * Form field for the allowed origins of a server action. For another environment, the service rejects allowed origins. The form then shows
 * this field only if the action has such origins, so that the person can remove them.
 */
export function OriginFields({ appId, draft, fault, changeDraft }: ActionFieldsProps) {
  const { environment, integrationOrigins, code } = draft;
  const [text, setText] = useState("");
  const bindings = useSecretBindings(appId, integrationOrigins.length > 0);
  if (environment !== "server" && integrationOrigins.length === 0) return null;
  const setOrigins = (origins: string[]) => changeDraft({ integrationOrigins: origins });

  const addOrigin = (origin: string) => {
    setText("");
    if (origin !== "" && !integrationOrigins.includes(origin)) setOrigins([...integrationOrigins, origin]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) addOrigin(text.trim());
  };

  return (
    <FormField
      name="integrationOrigins"
      label="Allowed origins"
      fault={fault}
      hint="Origins to which Svc.App.V3.Actions.request() may send requests. Press Enter to add one."
    >
      {(fieldAttributes) => (
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
                    href={createHref({ appId, view: "app", item: "connections" })}
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
            {...fieldAttributes}
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
    </FormField>
  );
}
