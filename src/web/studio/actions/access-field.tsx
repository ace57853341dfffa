/** Form field that sets who can run the action on demand from a page. */

import { FormField } from "../shared/field.js";
import { ACCESS_LEVEL_LABELS, describeAccess } from "./access-text.js";
import type { ActionDraft } from "./draft.js";
import type { ActionFieldsProps } from "./fields-props.js";

type AccessDraft = ActionDraft["access"];

const USER_RULE_EXAMPLE = '{"Role": {"equals": "admin"}}';

export function AccessField({ draft: { access }, fault, changeDraft }: ActionFieldsProps) {
  const changeAccess = (part: Partial<AccessDraft>) => changeDraft({ access: { ...access, ...part } });
  return (
    <FormField name="access" label="Access" fault={fault} hint={describeAccess(access.who)}>
      {(fieldAttributes) => (
        <>
          <select
            {...fieldAttributes}
            value={access.who}
            onChange={(event) => changeAccess({ who: event.target.value as AccessDraft["who"] })}
          >
            {Object.entries(ACCESS_LEVEL_LABELS).map(([value, label]) => (
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
              placeholder={USER_RULE_EXAMPLE}
              value={access.user}
              onChange={(event) => changeAccess({ user: event.target.value })}
            />
          )}
        </>
      )}
    </FormField>
  );
}
