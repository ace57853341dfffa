/** Packages and addresses that an action's code needs, added one at a time. Whether they exist is the service's to say. */
import { type KeyboardEvent, useState } from "react";
import packages from "../../rules/packages.json";
import { Field } from "./field.js";
import type { FieldsProps } from "./fields-props.js";

/** A name with nothing behind it is none to offer. */
const OFFERED = packages.filter((entry) => "path" in entry);

export function DependencyFields({ draft: { dependencies }, fault, change }: FieldsProps) {
  const [text, setText] = useState("");
  const set = (all: string[]) => change({ dependencies: all });

  const add = (name: string) => {
    setText("");
    if (name !== "" && !dependencies.includes(name)) set([...dependencies, name]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) add(text.trim());
  };
  // A choice from the list arrives as input like any other; a whole name of ours needs no Enter.
  const onText = (value: string) => (OFFERED.some(({ name }) => name === value) ? add(value) : setText(value));

  return (
    <Field name="dependencies" label="Dependencies" fault={fault}>
      {(tied) => (
        <div className="rows">
          {dependencies.map((dependency) => (
            <div key={dependency} className="row dependency">
              <code className="grow">{dependency}</code>
              <button
                type="button"
                className="quiet small"
                aria-label={`Remove ${dependency}`}
                onClick={() => set(dependencies.filter((name) => name !== dependency))}
              >
                ✕
              </button>
            </div>
          ))}
          <input
            {...tied}
            list="packages"
            placeholder="svc-… or https://…, then Enter"
            spellCheck={false}
            value={text}
            onChange={(event) => onText(event.target.value)}
            onKeyDown={onKeyDown}
            onBlur={() => add(text.trim())}
          />
          <datalist id="packages">
            {OFFERED.map(({ name, namespace }) => (
              <option key={name} value={name}>{`Svc.${namespace}`}</option>
            ))}
          </datalist>
        </div>
      )}
    </Field>
  );
}
