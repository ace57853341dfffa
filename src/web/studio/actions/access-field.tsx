/** Form field that sets who can run the action on demand from a page. */

import { Field } from "../shared/field.js";
import { accessSentence, WHO_LABELS } from "./access-text.js";
import type { Draft } from "./draft.js";
import type { FieldsProps } from "./fields-props.js";

type Access = Draft["access"];

const EXAMPLE = '{"Role": {"equals": "admin"}}';

export function AccessField({ draft: { access }, fault, change }: FieldsProps) {
  const set = (part: Partial<Access>) => change({ access: { ...access, ...part } });
  return (
    <Field name="access" label="Access" fault={fault} hint={accessSentence(access.who)}>
      {(tied) => (
        <>
          <select {...tied} value={access.who} onChange={(event) => set({ who: event.target.value as Access["who"] })}>
            {Object.entries(WHO_LABELS).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
          {access.who === "user" && (
            <textarea
              aria-label="Tests of the user's columns, as JSON"
              className="mono"
              rows={3}
              spellCheck={false}
              placeholder={EXAMPLE}
              value={access.user}
              onChange={(event) => set({ user: event.target.value })}
            />
          )}
        </>
      )}
    </Field>
  );
}
