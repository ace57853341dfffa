/** Form field with a label and an error message. The caller passes the input element. */
import { type ReactNode, useId } from "react";
import type { FieldError, ActionDraftField as FieldName } from "../actions/field-error.js";

/** HTML attributes that connect an input with its error message for screen readers. */
export interface FieldAttributes {
  id: string;
  "aria-invalid": boolean;
  "aria-describedby": string;
}

interface FormFieldProps {
  name: FieldName;
  label: string;
  fault: FieldError | null;
  hint?: ReactNode;
  children: (fieldAttributes: FieldAttributes) => ReactNode;
}

export function FormField({ name, label, fault, hint, children }: FormFieldProps) {
  const id = useId();
  const fieldError = fault?.field === name ? fault : null;
  return (
    <div className="field" data-field={name}>
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-invalid": fieldError !== null, "aria-describedby": `${id}-fault ${id}-hint` })}
      <p id={`${id}-fault`} className="fault" role="alert">
        {fieldError && (
          <>
            {fieldError.message} <code>{fieldError.status}</code>
          </>
        )}
      </p>
      <p id={`${id}-hint`} className="hint">
        {hint}
      </p>
    </div>
  );
}
