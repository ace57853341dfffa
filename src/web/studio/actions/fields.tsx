/** Form fields of an action except its code. The form validates nothing itself: it shows the service's errors at the fields. */
import { useEffect } from "react";
import type { Environment } from "../../../data/action-types.js";
import { FormField } from "../shared/field.js";
import { AccessField } from "./access-field.js";
import { DependencyFields } from "./dependency-fields.js";
import type { FieldError } from "./field-error.js";
import type { ActionFieldsProps } from "./fields-props.js";
import { LimitFields } from "./limit-fields.js";
import { OriginFields } from "./origin-fields.js";
import { ScheduleFields } from "./schedule-fields.js";
import { TriggerFields } from "./trigger-fields.js";

const ENVIRONMENT_OPTIONS: [value: string, label: string][] = [
  ["server", "Server: a browser of the service"],
  ["client", "Client: the user's browser"],
  ["any", "Any of the two"],
];

const SETTINGS_HINTS: Record<string, string> = {
  server: "context.settings contains the _private and __protected settings.",
};

/** Hook that scrolls to the form field whose value the service has rejected. For the code, scrolls to the error below the code. */
function useScrollToError(fault: FieldError | null): void {
  useEffect(() => {
    if (fault === null || fault.field === null) return;
    // An error of the code is shown below the code, outside the form.
    const field = document.querySelector(
      fault.field === "code" ? ".code-fault" : `.fields [data-field="${fault.field}"]`,
    );
    field?.scrollIntoView({ block: "nearest" });
    field?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus({ preventScroll: true });
  }, [fault]);
}

export function ActionFields(props: ActionFieldsProps) {
  const { draft, fault, changeDraft } = props;
  useScrollToError(fault);
  const { environment } = draft;
  return (
    <>
      <FormField name="name" label="Name" fault={fault}>
        {(fieldAttributes) => (
          <input
            {...fieldAttributes}
            value={draft.name}
            spellCheck={false}
            autoComplete="off"
            placeholder="letters, numbers, - and _"
            onChange={(event) => changeDraft({ name: event.target.value })}
          />
        )}
      </FormField>
      <FormField
        name="active"
        label="Active"
        fault={fault}
        hint={draft.active ? "" : "An inactive action does not run."}
      >
        {(fieldAttributes) => (
          <input
            {...fieldAttributes}
            type="checkbox"
            role="switch"
            checked={draft.active}
            aria-checked={draft.active}
            onChange={(event) => changeDraft({ active: event.target.checked })}
          />
        )}
      </FormField>
      <FormField name="description" label="Description" fault={fault}>
        {(fieldAttributes) => (
          <textarea
            {...fieldAttributes}
            rows={2}
            value={draft.description}
            onChange={(event) => changeDraft({ description: event.target.value })}
          />
        )}
      </FormField>
      <FormField
        name="environment"
        label="Environment"
        fault={fault}
        hint={SETTINGS_HINTS[environment] ?? "context.settings is always empty."}
      >
        {(fieldAttributes) => (
          <select
            {...fieldAttributes}
            value={environment}
            onChange={(event) => changeDraft({ environment: event.target.value as Environment })}
          >
            {ENVIRONMENT_OPTIONS.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        )}
      </FormField>
      <TriggerFields {...props} />
      <AccessField {...props} />
      <ScheduleFields {...props} />
      <DependencyFields {...props} />
      <OriginFields {...props} />
      <LimitFields {...props} />
    </>
  );
}
