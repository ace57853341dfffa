/** Labelled field with its error message. The caller passes the input. */
import { type ReactNode, useId } from "react";
import type { FieldFault, Field as FieldName } from "../actions/field-fault.js";

/** Attributes that connect an input with its error message. */
export interface Tied {
  id: string;
  "aria-invalid": boolean;
  "aria-describedby": string;
}

interface FieldProps {
  name: FieldName;
  label: string;
  fault: FieldFault | null;
  hint?: ReactNode;
  children: (tied: Tied) => ReactNode;
}

export function Field({ name, label, fault, hint, children }: FieldProps) {
  const id = useId();
  const own = fault?.field === name ? fault : null;
  return (
    <div className="field" data-field={name}>
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-invalid": own !== null, "aria-describedby": `${id}-fault ${id}-hint` })}
      <p id={`${id}-fault`} className="fault" role="alert">
        {own && (
          <>
            {own.message} <code>{own.status}</code>
          </>
        )}
      </p>
      <p id={`${id}-hint`} className="hint">
        {hint}
      </p>
    </div>
  );
}
