/** Edits the origins that an action may send requests to. The service validates them. */
import { type KeyboardEvent, useState } from "react";
import { Field } from "../shared/field.js";
import type { FieldsProps } from "./fields-props.js";

/** Shown for server actions, and where an origin would be rejected. */
export function OriginFields({ draft: { environment, integrationOrigins }, fault, change }: FieldsProps) {
  const [text, setText] = useState("");
  if (environment !== "server" && integrationOrigins.length === 0) return null;
  const set = (all: string[]) => change({ integrationOrigins: all });

  const add = (origin: string) => {
    setText("");
    if (origin !== "" && !integrationOrigins.includes(origin)) set([...integrationOrigins, origin]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) add(text.trim());
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
              <button
                type="button"
                className="quiet small"
                aria-label={`Remove ${origin}`}
                onClick={() => set(integrationOrigins.filter((other) => other !== origin))}
              >
                ✕
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
            onBlur={() => add(text.trim())}
          />
        </div>
      )}
    </Field>
  );
}
