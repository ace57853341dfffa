/** A labelled field with a place for its refusal; what is in it is the caller's. */
import { type ReactNode, useId } from "react";
import type { FieldFault, Field as FieldName } from "../actions/field-fault.js";

/** What an input needs to be tied to its label's refusal. */
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
